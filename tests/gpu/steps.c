/* steps.c -- linked with an emitted GPU program's own files, all sanitized: steps of many shapes on
 * the device (an emulator) and by the plain-C twins of its kernels give the same logits and the
 * same caches, to the bit.
 *
 *   steps FOLDER [several] T...      no rows; several sequences at depths of their own, if told so;
 * one of each T Exit status 1 with a line on what differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "engine.h"
#include "session.h"

enum { SLOTS = 3 };

/* What a run leaves: logits of its last step, caches. */
typedef struct trace {
    float *logits; /* [SLOTS][n_vocab] */
    uint32_t n_logits;
    uint8_t cache[LB_DIGEST_BYTES];
} trace;

static uint32_t token_at(const rt_engine *e, uint32_t seq, uint32_t pos) {
    return (uint32_t)((pos * UINT64_C(7919) + seq * 31 + 1) % e->model->n_vocab);
}

/* The next n tokens of some sequences in one step, with the logits of their last rows. */
static bool step(rt_engine *e, const uint32_t n[SLOTS], trace *out, lb_err *err) {
    rt_feed feeds[SLOTS];
    uint32_t *tokens[SLOTS] = {NULL};
    uint32_t n_feeds = 0;
    for (uint32_t s = 0; s < SLOTS; s++) {
        if (n[s] > 0) {
            tokens[s] = malloc(n[s] * sizeof *tokens[s]);
            for (uint32_t i = 0; tokens[s] != NULL && i < n[s]; i++) {
                tokens[s][i] = token_at(e, s, e->seqs[s].n_tokens + i);
            }
            feeds[n_feeds++] =
                (rt_feed){.seq = &e->seqs[s], .tokens = tokens[s], .n_tokens = n[s], .n_logits = 1};
        }
    }
    bool ok = rt_engine_step(e, feeds, n_feeds, err);
    for (uint32_t s = 0; s < SLOTS; s++) {
        free(tokens[s]);
    }
    out->n_logits = n_feeds;
    for (uint32_t i = 0; ok && i < n_feeds; i++) {
        memcpy(out->logits + (size_t)i * e->model->n_vocab, rt_engine_logits(e, i),
               e->model->n_vocab * sizeof(float));
    }
    return ok;
}

/* Steps one after the other from empty caches; each of them at most a chunk for a sequence. */
static bool run(rt_engine *e, const uint32_t (*steps)[SLOTS], uint32_t n, lb_arena *arena,
                trace *out, lb_err *err) {
    bool ok = rt_memory_clear(e->model, &e->memory, RT_ARENA_KV, err);
    for (uint32_t s = 0; s < SLOTS; s++) {
        rt_seq_cut(&e->seqs[s], 0);
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = step(e, steps[i], out, err);
    }
    return ok && rt_memory_digest(e->model, &e->memory, RT_ARENA_KV, arena, out->cache, err);
}

/* The device and its twin, which is the same engine over memory of the host. */
static bool both(rt_engine *e, const rt_memory *twin, const char *what,
                 const uint32_t (*steps)[SLOTS], uint32_t n, lb_err *err) {
    const rt_model *m = e->model;
    rt_memory device = e->memory;
    rt_model plain = *m;
    lb_arena arena;
    lb_arena_init(&arena, "trace", UINT64_C(1) << 30);
    trace a = {.logits = lb_alloc_n(&arena, SLOTS, m->n_vocab * sizeof(float), err)};
    trace b = {.logits = lb_alloc_n(&arena, SLOTS, m->n_vocab * sizeof(float), err)};
    plain.step = plain.step_plain;
    plain.device = NULL;
    bool ok = a.logits != NULL && b.logits != NULL && run(e, steps, n, &arena, &a, err);
    e->model = &plain;
    e->memory = *twin;
    ok = ok && run(e, steps, n, &arena, &b, err);
    e->model = m;
    e->memory = device;
    size_t n_bytes = (size_t)a.n_logits * m->n_vocab * sizeof(float);
    ok = ok && ((a.n_logits == b.n_logits && memcmp(a.logits, b.logits, n_bytes) == 0) ||
                lb_err_set(err, LB_PROOF, "the logits differ"));
    ok = ok && (memcmp(a.cache, b.cache, sizeof a.cache) == 0 ||
                lb_err_set(err, LB_PROOF, "the caches differ"));
    lb_arena_reset(&arena);
    return ok || lb_err_prefix(err, "%s", what);
}

/* T tokens of one sequence, by chunks. */
static bool one_sequence(rt_engine *e, const rt_memory *twin, uint32_t T, lb_err *err) {
    char what[32];
    uint32_t steps[8][SLOTS] = {{0}};
    uint32_t n = 0;
    snprintf(what, sizeof what, "T=%u", T);
    for (uint32_t left = T; left > 0 && n < 8; n++) {
        steps[n][1] = left < e->chunk ? left : e->chunk;
        left -= steps[n][1];
    }
    return both(e, twin, what, (const uint32_t(*)[SLOTS])steps, n, err);
}

/* Prompts of several lengths; a token of each; a piece of a prompt beside a token of an answer. */
static bool several(rt_engine *e, const rt_memory *twin, lb_err *err) {
    static const uint32_t STEPS[][SLOTS] = {{5, 0, 0}, {0, 31, 1}, {1, 1, 1},
                                            {1, 0, 9}, {0, 17, 1}, {1, 1, 1}};
    return both(e, twin, "several sequences", STEPS, sizeof STEPS / sizeof *STEPS, err);
}

/* Nothing runs for no rows, and nothing changes. */
static bool nothing(rt_engine *e, lb_err *err) {
    const rt_step none = {0};
    uint8_t before[LB_DIGEST_BYTES];
    uint8_t after[LB_DIGEST_BYTES];
    lb_arena arena;
    lb_arena_init(&arena, "caches", UINT64_C(1) << 30);
    bool ok = rt_memory_digest(e->model, &e->memory, RT_ARENA_KV, &arena, before, err) &&
              e->model->step(e->memory.arenas, &none, e->pool, err) &&
              rt_engine_step(e, NULL, 0, err) &&
              rt_memory_digest(e->model, &e->memory, RT_ARENA_KV, &arena, after, err);
    lb_arena_reset(&arena);
    return ok && (memcmp(before, after, sizeof before) == 0 ||
                  lb_err_set(err, LB_PROOF, "a step of no rows changed the caches"));
}

int main(int argc, char **argv) {
    lb_err err = {0};
    rt_engine *e = NULL;
    rt_memory twin = {0};
    if (argc < 2) {
        return 2;
    }
    const rt_engine_opts o = {.n_threads = 2, .load = {.dir = argv[1]}};
    bool ok = rt_engine_start(&lagen_model, &o, &e, &err) &&
              rt_memory_twin(e->model, &e->memory, &twin, &err) && nothing(e, &err);
    bool more = argc > 2 && strcmp(argv[2], "several") == 0;
    ok = ok && (!more || several(e, &twin, &err));
    for (int i = more ? 3 : 2; ok && i < argc; i++) {
        ok = one_sequence(e, &twin, (uint32_t)strtoul(argv[i], NULL, 10), &err);
    }
    if (ok) {
        printf("the same bits\n");
    } else {
        fprintf(stderr, "steps: %s\n", err.text);
    }
    rt_memory_unmap(&twin);
    rt_engine_stop(e);
    return ok ? 0 : 1;
}
