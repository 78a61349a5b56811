/* step.c -- one step on the device: its block goes up, its launches run in order on one stream, its
 * logits come back, or, from a step that chooses tokens, its choices: 8 bytes a row.
 *
 * Steps of decode (one row and one logit row for each of the first n sequences) replay a graph that
 * was captured from the same calls at start, one with logits and one with choices. A graph that is
 * refused is run again call by call, to name the launch; the step fails all the same. Where a
 * message cannot know the launch it names the first and the last of the step. */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 64, LAUNCH_TEXT_BYTES = 96 };

/* "launch matmul of ffn_down_weight of layer 3, grid 4 x 36 x 1" */
static void launch_text(const rt_gpu_launch *l, char out[LAUNCH_TEXT_BYTES]) {
    char layer[32] = "";
    if (l->layer >= 0) {
        snprintf(layer, sizeof layer, " of layer %" PRId32, l->layer);
    }
    snprintf(out, LAUNCH_TEXT_BYTES, "launch %s%s, grid %u x %u x %u", l->what, layer, l->grid[0],
             l->grid[1], l->grid[2]);
}

/* Puts what ran, or should have, in front of `err`. */
static bool blame(const rt_cuda *c, const char *what, const rt_step *s, lb_err *err) {
    char first[LAUNCH_TEXT_BYTES] = "no launch";
    char last[LAUNCH_TEXT_BYTES] = "none";
    if (c->span.n > 0) {
        launch_text(&c->span.first, first);
        launch_text(&c->span.last, last);
    }
    return lb_err_prefix(err, "%s: %s, to %s, T=%u", what, first, last, s->n_rows);
}

static uint64_t put_words(uint8_t *to, uint64_t at, const uint32_t *from, uint32_t n) {
    memcpy(to + at, from, (size_t)n * sizeof *from);
    return at + (uint64_t)n * sizeof *from;
}

static const uint32_t *address(rt_cu_ptr base, uint64_t at) {
    return (const uint32_t *)(uintptr_t)(base + at);
}

uint64_t rt_cuda_pack_step(const rt_step *s, rt_cu_ptr base, uint8_t *to) {
    rt_step d = {.n_rows = s->n_rows,
                 .n_seqs = s->n_seqs,
                 .n_logits = s->n_logits,
                 .n_prompt = s->n_prompt};
    uint64_t at = HEAD_BYTES;
    d.slot_of_seq = address(base, at);
    at = put_words(to, at, s->slot_of_seq, s->n_seqs);
    d.logit_rows = address(base, at);
    at = put_words(to, at, s->logit_rows, s->n_logits);
    d.token_of_row = address(base, at);
    at = put_words(to, at, s->token_of_row, s->n_rows);
    d.seq_of_row = address(base, at);
    at = put_words(to, at, s->seq_of_row, s->n_rows);
    d.pos_of_row = address(base, at);
    at = put_words(to, at, s->pos_of_row, s->n_rows);
    if (s->picks != NULL) {
        memset(to + at, 0, at % 8);
        at += at % 8; /* 0 or 4 */
        d.picks = (const rt_pick *)(uintptr_t)(base + at);
        memcpy(to + at, s->picks, s->n_logits * sizeof *s->picks);
        at += s->n_logits * sizeof *s->picks;
    }
    memset(to, 0, HEAD_BYTES);
    memcpy(to, &d, sizeof d);
    return at;
}

bool rt_cuda_show(rt_cuda *c, uint32_t layer, uint64_t offset, lb_err *err) {
    if (c->trace == NULL) {
        return true;
    }
    if (!RT_CU_CALL(&c->d, err, cuStreamSynchronize, c->stream)) {
        return lb_err_prefix(err, "layer %u", layer);
    }
    c->trace->visit(c->trace->arg, layer, offset);
    return true;
}

bool rt_cuda_launch(rt_cuda *c, const rt_gpu_launch *l, const void *params, const rt_step *step,
                    lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[l->kernel];
    rt_cu_launch_attr overlap = {.id = RT_CU_ATTR_PROGRAMMATIC_SERIALIZATION,
                                 .value.programmatic_serialization = 1};
    const rt_cu_launch_config config = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                        .block = {k->block, 1, 1},
                                        .smem_bytes = k->smem_bytes,
                                        .stream = c->stream,
                                        .attrs = &overlap,
                                        .n_attrs = k->overlaps ? 1 : 0};
    void *list[] = {(void *)(uintptr_t)params};
    c->span.first = c->span.n == 0 ? *l : c->span.first;
    c->span.last = *l;
    c->span.n++;
    if (RT_CU_CALL(&c->d, err, cuLaunchKernelEx, &config, c->functions[l->kernel], list, NULL)) {
        return true;
    }
    char text[LAUNCH_TEXT_BYTES];
    launch_text(l, text);
    return lb_err_prefix(err, "%s, T=%u", text, step->n_rows);
}

/* n bytes of the IO arena back to their mirror. */
static bool fetch(rt_cuda *c, const rt_step *s, uint64_t at, uint64_t n, const char *what,
                  lb_err *err) {
    return n == 0 ||
           RT_CU_CALL(&c->d, err, cuMemcpyDtoHAsync_v2, c->io + at, c->arenas[RT_ARENA_IO] + at, n,
                      c->stream) ||
           lb_err_prefix(err, "%s of %u rows, T=%u", what, s->n_logits, s->n_rows);
}

/* All inside the arena: n_logits <= logit_rows_max. */
static bool fetch_logits(rt_cuda *c, const rt_step *s, lb_err *err) {
    const rt_model *m = c->model;
    return fetch(c, s, m->logits_offset_bytes, (uint64_t)s->n_logits * m->n_vocab * sizeof(float),
                 "logits", err);
}

/* The calls of a step: made on the stream, or into the graph that is being captured from it. */
static bool calls(rt_cuda *c, const rt_step *s, uint64_t block_bytes, lb_err *err) {
    const rt_model *m = c->model;
    uint64_t at = m->gpu->step_offset_bytes;
    c->span.n = 0;
    if (!RT_CU_CALL(&c->d, err, cuMemcpyHtoDAsync_v2, c->arenas[RT_ARENA_IO] + at, c->io + at,
                    block_bytes, c->stream)) {
        return lb_err_prefix(err, "the step's block, T=%u", s->n_rows);
    }
    if (!m->gpu->launches(c, s, err)) {
        return false;
    }
    return s->picks == NULL ? fetch_logits(c, s, err)
                            : fetch(c, s, m->choices_offset_bytes, s->n_logits * sizeof(rt_picked),
                                    "choices", err);
}

static bool wait(rt_cuda *c, const rt_step *s, lb_err *err) {
    return RT_CU_CALL(&c->d, err, cuStreamSynchronize, c->stream) ||
           blame(c, "running", s, err);
}

static bool is_undecided(const rt_cuda *c, const rt_step *s) {
    const rt_picked *choice =
        (const rt_picked *)(const void *)(c->io + c->model->choices_offset_bytes);
    bool any = false;
    for (uint32_t i = 0; s->picks != NULL && i < s->n_logits; i++) {
        any = any || (choice[i] >> 32 & 255) == RT_PICKED_UNDECIDED;
    }
    return any;
}

/* The end of a step; the host sees the logits of one that left a choice to it. */
static bool finish(rt_cuda *c, const rt_step *s, lb_err *err) {
    return wait(c, s, err) && (!is_undecided(c, s) || (fetch_logits(c, s, err) && wait(c, s, err)));
}

/* After a refused call: what was queued before it must be over before buffers are used again, or it
 * would run with the next step's rows. A device of which nobody can know that is lost. */
static void settle(rt_cuda *c, lb_err *err) {
    if (!RT_CU_CALL(&c->d, NULL, cuStreamSynchronize, c->stream) && err->code != LB_DEVICE_LOST) {
        lb_err_prefix(err, "device lost");
        err->code = LB_DEVICE_LOST;
    }
}

static bool run(rt_cuda *c, const rt_step *s, uint64_t block_bytes, lb_err *err) {
    return calls(c, s, block_bytes, err) && finish(c, s, err);
}

/* The graph for this step, or NULL: decode takes one row of each of n sequences and all their
 * logits. */
static const rt_cuda_graph *graph_of(rt_cuda *c, const rt_step *s) {
    bool decode = s->n_rows == s->n_seqs && s->n_rows == s->n_logits && s->n_prompt == 0 &&
                  s->n_rows <= RT_CUDA_GRAPHS;
    const rt_cuda_graph *g = decode ? &c->graphs[s->picks != NULL][s->n_rows - 1] : NULL;
    return decode && c->trace == NULL && g->exec != NULL ? g : NULL;
}

static bool replay(rt_cuda *c, const rt_cuda_graph *graph, const rt_step *s, uint64_t block_bytes,
                   lb_err *err) {
    c->span = graph->span;
    if (RT_CU_CALL(&c->d, err, cuGraphLaunch, graph->exec, c->stream)) {
        return finish(c, s, err);
    }
    blame(c, "graph of decode", s, err);
    lb_err why = {0};
    if (err->code == LB_DEVICE_LOST) {
        return false;
    }
    if (run(c, s, block_bytes, &why)) {
        return lb_err_prefix(err, "refused at once, not one by one");
    }
    *err = why;
    return lb_err_prefix(err, "a graph was refused, then");
}

bool rt_cuda_step(uint8_t *const *arenas, const rt_step *s, lb_err *err) {
    rt_cuda *c = (rt_cuda *)(void *)arenas[RT_DEVICE];
    lb_err own = {0};
    if (s->n_rows == 0) {
        return true;
    }
    if (c->lost) {
        return lb_err_set(err, LB_DEVICE_LOST, "device %d (%s) was lost by an earlier step",
                          c->board.index, c->board.name);
    }
    uint64_t at = c->model->gpu->step_offset_bytes;
    c->trace = (const rt_trace *)(const void *)arenas[RT_TRACE];
    bool ok = RT_CU_CALL(&c->d, &own, cuCtxSetCurrent, c->context);
    if (ok) {
        uint64_t n = rt_cuda_pack_step(s, c->arenas[RT_ARENA_IO] + at, c->io + at);
        const rt_cuda_graph *graph = graph_of(c, s);
        ok = graph != NULL ? replay(c, graph, s, n, &own) : run(c, s, n, &own);
    } else {
        lb_err_prefix(&own, "a step of T=%u", s->n_rows);
    }
    if (!ok) {
        settle(c, &own);
        c->lost = own.code == LB_DEVICE_LOST;
        if (err != NULL) {
            *err = own;
        }
    }
    return ok;
}

/* ---- before the program is ready */

enum { DUMMY_ROWS = 64 };

/* Steps that need no request: token 0, which every vocabulary has, at positions that any request
 * writes before it reads. */
typedef struct dummy {
    rt_step step;
    uint32_t zeros[DUMMY_ROWS];
    uint32_t count[DUMMY_ROWS];
    rt_pick picks[RT_CUDA_GRAPHS]; /* greedy */
} dummy;

static void fill(dummy *t) {
    memset(t->picks, 0, sizeof t->picks);
    for (uint32_t i = 0; i < DUMMY_ROWS; i++) {
        t->zeros[i] = 0;
        t->count[i] = i;
    }
}

/* One row at position 0 of each of the first n slots, all with logits, or with choices. */
static void make_decode(dummy *t, uint32_t n, bool picks) {
    t->step = (rt_step){
        n, n, n, 0, t->zeros, t->count, t->zeros, t->count, t->count, picks ? t->picks : NULL};
}

/* n rows of a prompt in slot 0, and as many logits as there is room for. */
static void make_prefill(dummy *t, uint32_t n, uint32_t n_logits) {
    t->step = (rt_step){
        n, 1, n < n_logits ? n : n_logits, n, t->zeros, t->zeros, t->count, t->zeros, t->count, NULL};
}

static bool capture(rt_cuda *c, const rt_step *s, rt_cuda_graph *out, lb_err *err) {
    uint64_t at = c->model->gpu->step_offset_bytes;
    uint64_t n = rt_cuda_pack_step(s, c->arenas[RT_ARENA_IO] + at, c->io + at);
    rt_cu_graph graph = NULL;
    if (!RT_CU_CALL(&c->d, err, cuStreamBeginCapture_v2, c->stream, RT_CU_CAPTURE_THREAD_LOCAL)) {
        return false;
    }
    bool ok = calls(c, s, n, err);
    lb_err late = {0};
    bool ended = RT_CU_CALL(&c->d, &late, cuStreamEndCapture, c->stream, &graph);
    if (ok && !ended && err != NULL) {
        *err = late;
    }
    ok = ok && ended && RT_CU_CALL(&c->d, err, cuGraphInstantiateWithFlags, &out->exec, graph, 0);
    out->span = c->span;
    if (graph != NULL) {
        c->d.cuGraphDestroy(graph);
    }
    return ok;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Steps of one row and of more than few: every kernel that the program can ever launch has run once
 * then. */
static bool launch_all(rt_cuda *c, uint8_t *const *arenas, dummy *t, lb_err *err) {
    const rt_model *m = c->model;
    uint32_t more = least(least(m->gpu->few_rows + 1, DUMMY_ROWS), least(m->t_max, m->ctx));
    make_decode(t, 1, m->samples);
    if (!rt_cuda_step(arenas, &t->step, err)) {
        return lb_err_prefix(err, "first launches");
    }
    make_prefill(t, more, m->logit_rows_max);
    return rt_cuda_step(arenas, &t->step, err) || lb_err_prefix(err, "first launches");
}

static bool make_graphs(rt_cuda *c, uint8_t *const *arenas, dummy *t, bool picks, lb_err *err) {
    const rt_model *m = c->model;
    uint32_t most = least(least(m->slots, RT_CUDA_GRAPHS), m->logit_rows_max);
    for (uint32_t n = 1; n <= most; n++) {
        make_decode(t, n, picks);
        if (!capture(c, &t->step, &c->graphs[picks][n - 1], err) ||
            !rt_cuda_step(arenas, &t->step, err)) {
            return lb_err_prefix(err, "graph of decode, T=%u", n);
        }
    }
    return true;
}

bool rt_cuda_warm(rt_cuda *c, lb_err *err) {
    uint8_t *arenas[RT_N_PLACES] = {[RT_DEVICE] = (uint8_t *)c};
    dummy t;
    fill(&t);
    return launch_all(c, arenas, &t, err) && make_graphs(c, arenas, &t, false, err) &&
           (!c->model->samples || make_graphs(c, arenas, &t, true, err));
}
