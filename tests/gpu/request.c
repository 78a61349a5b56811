/* request.c -- linked with an emitted GPU program in place of its CLI: a request is what a server
 * makes of one, steps of several sequences through the engine.
 *
 *   request edges FOLDER T...      one step of each T; prints T and the number of launches
 *   request failures FOLDER        fails each call of a request once, and where that refuses a
 *                                  graph, each call that then looks for the launch; on the recorder
 *                                  or an emulator. The request goes on, and the next succeeds, with
 *                                  the same bits
 *   request slots FOLDER           all slots, each at a depth of its own, together and alone: the
 *                                  same bits; on any driver
 * Exit status 1 with a line on what went wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/abi.h"
#include "cuda/gpu_abi.h"
#include "engine.h"
#include "recorder/control.h"
#include "session.h"

enum { PROMPT = 9, ANSWER = 2 }; /* more rows than few: both texts of a product */

static lagen_recorder_calls_fn *calls;
static lagen_recorder_fail_fn *fail_at;
static lagen_recorder_fail_again_fn *fail_again;
static lagen_recorder_launches_fn *launches;

static void *sym(void *library, const char *name) {
    void *at = dlsym(library, name);
    if (at == NULL) {
        fprintf(stderr, "request: the driver has no %s\n", name);
        exit(1);
    }
    return at;
}

static void find_control(void) {
    void *library = dlopen(getenv("LAGEN_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "request: %s\n", dlerror());
        exit(1);
    }
    *(void **)&calls = sym(library, "lagen_recorder_calls");
    *(void **)&fail_at = sym(library, "lagen_recorder_fail");
    *(void **)&fail_again = sym(library, "lagen_recorder_fail_again");
    *(void **)&launches = sym(library, "lagen_recorder_launches");
}

static uint32_t token_at(const rt_engine *e, uint32_t seq, uint32_t pos) {
    return (pos * 7 + seq + 1) % e->model->n_vocab;
}

/* Feeds sequence `seq` up to n tokens, at most `most` in a step, from where it stands. */
static bool feed_to(rt_engine *e, uint32_t seq, uint32_t n, uint32_t most, lb_err *err) {
    rt_seq *q = &e->seqs[seq];
    while (q->n_tokens < n) {
        uint32_t tokens[PROMPT];
        uint32_t k = n - q->n_tokens < most ? n - q->n_tokens : most;
        for (uint32_t i = 0; i < k; i++) {
            tokens[i] = token_at(e, seq, q->n_tokens + i);
        }
        if (!rt_seq_feed(q, tokens, k, NULL, err)) {
            return false;
        }
    }
    return true;
}

/* A request of two sequences, from where they stand: prompts at once, an answer token by token, then a step of both, whose logits [2][n_vocab] are kept. */
static bool request(rt_engine *e, float *logits, lb_err *err) {
    uint32_t n_vocab = e->model->n_vocab;
    if (!feed_to(e, 0, PROMPT, PROMPT, err) || !feed_to(e, 0, PROMPT + ANSWER, 1, err) ||
        !feed_to(e, 1, 2, 2, err)) {
        return false;
    }
    const uint32_t tokens[2] = {token_at(e, 0, PROMPT + ANSWER), token_at(e, 1, 2)};
    rt_feed feeds[2] = {{.seq = &e->seqs[0], .tokens = tokens, .n_tokens = 1, .n_logits = 1},
                        {.seq = &e->seqs[1], .tokens = tokens + 1, .n_tokens = 1, .n_logits = 1}};
    if (!rt_engine_step(e, feeds, 2, err)) {
        return false;
    }
    memcpy(logits, rt_engine_logits(e, 0), 2 * (size_t)n_vocab * sizeof *logits);
    return true;
}

static bool request_anew(rt_engine *e, float *logits, lb_err *err) {
    rt_seq_cut(&e->seqs[0], 0);
    rt_seq_cut(&e->seqs[1], 0);
    return request(e, logits, err);
}

static int bad(const char *what, unsigned k, const lb_err *err) {
    fprintf(stderr, "request: %s (call %u): %s\n", what, k, err->text);
    return 1;
}

/* What the error of a failed call must say; NULL if it does. */
static const char *missing(const char *text, bool *names_launch) {
    *names_launch = strstr(text, "launch ") != NULL && strstr(text, ", grid ") != NULL &&
                    strstr(text, ", T=") != NULL;
    bool launch = strstr(text, "cuLaunchKernelEx") != NULL ||
                  strstr(text, "cuGraphLaunch") != NULL ||
                  strstr(text, "cuStreamSynchronize") != NULL;
    if (launch && !*names_launch) {
        return "the error names no launch, grid or T";
    }
    return strstr(text, "T=") == NULL ? "the error names no T" : NULL;
}

typedef struct failing {
    const float *want; /* logits of an undisturbed request */
    float *got;
    unsigned made;    /* requests that failed */
    unsigned named;   /* errors that named a launch */
    unsigned looked;  /* failures while the launch was looked for that a graph was refused for */
    unsigned behind;  /* of the last request: calls that looked for it */
    bool done;        /* of the last request: nothing failed */
} failing;

/* Fails the k-th call of a request, and the one `then` calls behind it (0: none). */
static int fail_one(rt_engine *e, unsigned k, unsigned then, failing *f) {
    lb_err err = {0};
    bool names_launch = false;
    float *got = f->got;
    const float *want = f->want;
    size_t n_bytes = 2 * (size_t)e->model->n_vocab * sizeof *got;
    unsigned before = calls();
    fail_at(k, RT_CU_INVALID_VALUE);
    fail_again(then, RT_CU_LAUNCH_OUT_OF_RESOURCES, 2);
    bool ok = request_anew(e, got, &err);
    unsigned made = calls() - before;
    fail_at(0, 0);
    f->done = ok && made < k;
    f->behind = made - k - !ok; /* the last call waits for what was queued */
    if (ok) {
        return f->done ? 0 : bad("a failed call went unseen", k, &err);
    }
    const char *what = missing(err.text, &names_launch);
    f->made++;
    f->named += names_launch;
    f->looked += strstr(err.text, "a graph was refused, then: ") != NULL;
    if (what != NULL) {
        return bad(what, k, &err);
    }
    if (then == 0 && (!request(e, got, &err) || memcmp(got, want, n_bytes) != 0)) {
        return bad("it cannot go on with the same bits", k, &err);
    }
    if (!request_anew(e, got, &err) || memcmp(got, want, n_bytes) != 0) {
        return bad("the next request fails too, or has other bits", k, &err);
    }
    return 0;
}

/* Fails the k-th call and, if that refuses a graph, each of those that then look for the launch. */
static int fail_and_again(rt_engine *e, unsigned k, failing *f) {
    int status = fail_one(e, k, 0, f);
    unsigned behind = f->done ? 0 : f->behind;
    unsigned looked = f->looked;
    for (unsigned m = 1; status == 0 && m <= behind; m++) {
        status = fail_one(e, k, m, f);
    }
    lb_err err = {.text = "a failure while the launch was looked for went unseen"};
    return status != 0 || f->looked == looked + behind ? status : bad("a graph", k, &err);
}

static int failures(rt_engine *e) {
    lb_err err = {0};
    size_t n = 2 * (size_t)e->model->n_vocab;
    float *want = calloc(2 * n, sizeof *want);
    failing f = {.want = want, .got = want + n};
    int status = want == NULL || !request_anew(e, want, &err) ? bad("undisturbed", 0, &err) : 0;
    unsigned k = 0;
    while (status == 0 && !f.done) {
        status = fail_and_again(e, ++k, &f);
    }
    if (status == 0) {
        printf("%u calls, each failed once; %u failures, %u name a launch, %u behind a graph\n",
               k - 1, f.made, f.named, f.looked);
    }
    free(want);
    return status;
}

/* Fills every slot to a depth of its own: 5, 8, 11, ... tokens. */
static bool fill_slots(rt_engine *e, lb_err *err) {
    for (uint32_t s = 0; s < e->model->slots; s++) {
        uint32_t tokens[256];
        uint32_t n = 5 + 3 * s % 200;
        for (uint32_t i = 0; i < n; i++) {
            tokens[i] = (i * 13 + s + 1) % e->model->n_vocab;
        }
        rt_seq_cut(&e->seqs[s], 0);
        if (!rt_seq_feed(&e->seqs[s], tokens, n, NULL, err)) {
            return false;
        }
    }
    return true;
}

/* ANSWER tokens for the slots [from, to) in common steps; logits [to - from][n_vocab] of the last
 * one. */
static bool decode(rt_engine *e, uint32_t from, uint32_t to, float *logits, lb_err *err) {
    uint32_t n_vocab = e->model->n_vocab;
    for (uint32_t i = 0; i < ANSWER; i++) {
        rt_feed feeds[64];
        uint32_t token[64];
        for (uint32_t s = from; s < to; s++) {
            token[s - from] = (i * 29 + s) % n_vocab;
            feeds[s - from] = (rt_feed){
                .seq = &e->seqs[s], .tokens = &token[s - from], .n_tokens = 1, .n_logits = 1};
        }
        if (!rt_engine_step(e, feeds, to - from, err)) {
            return false;
        }
        for (uint32_t s = from; s < to; s++) {
            const float *row = rt_engine_logits(e, feeds[s - from].first_logit);
            memcpy(logits + (size_t)(s - from) * n_vocab, row, n_vocab * sizeof *row);
        }
    }
    return true;
}

/* Ways to choose, one a slot: each in turn. */
static rt_sampler sampler_of(uint32_t slot, uint32_t n_vocab) {
    static const float temperatures[] = {0.8f, 0.0f, 1.0f, 1.5f};
    static const int ks[] = {40, 0, 64, 0};
    rt_sample_params p;
    rt_sampler s;
    rt_sample_defaults(NULL, &p);
    p.temperature = temperatures[slot % 4];
    p.top_k = ks[slot % 4];
    p.top_p = slot % 4 == 1 ? 1.0f : 0.9f;
    p.min_p = slot % 4 == 0 ? 0.05f : 0.0f;
    p.repeat_penalty = slot % 4 == 2 ? 1.2f : 1.0f;
    p.seed = slot;
    rt_sampler_start(&s, &p, n_vocab, NULL);
    return s;
}

/* The last tokens once more, in one step that chooses what follows: as the host does from `logits`.
 */
static bool choices(rt_engine *e, uint32_t n, const float *logits, lb_err *err) {
    const rt_model *m = e->model;
    rt_sampler samplers[64];
    uint32_t last[64];
    rt_feed feeds[64];
    rt_sample_scratch *scratch = NULL;
    lb_arena arena;
    lb_arena_init(&arena, "choices", UINT64_C(1) << 30);
    for (uint32_t s = 0; s < n; s++) {
        samplers[s] = sampler_of(s, m->n_vocab);
        last[s] = e->seqs[s].tokens[e->seqs[s].n_tokens - 1];
        rt_seq_cut(&e->seqs[s], e->seqs[s].n_tokens - 1);
        feeds[s] = (rt_feed){.seq = &e->seqs[s],
                             .tokens = &last[s],
                             .n_tokens = 1,
                             .n_logits = 1,
                             .sampler = &samplers[s]};
    }
    bool ok = rt_sample_scratch_new(m->n_vocab, m->ctx, &arena, &scratch, err) &&
              rt_engine_step(e, feeds, n, err);
    for (uint32_t s = 0; ok && s < n; s++) {
        rt_sampler host = sampler_of(s, m->n_vocab);
        const rt_seq *q = &e->seqs[s];
        uint32_t want = 0;
        uint32_t got = 0;
        ok = rt_sampler_pick(&host, scratch, logits + (size_t)s * m->n_vocab, q->tokens,
                             q->n_tokens, &want, err) &&
             rt_seq_choose(q, &samplers[s], scratch, rt_engine_logits(e, s), &got, err) &&
             (got == want ||
              lb_err_set(err, LB_PROOF, "slot %u: token %u, the host's is %u", s, got, want));
    }
    lb_arena_reset(&arena);
    return ok;
}

static int slots(rt_engine *e) {
    lb_err err = {0};
    const rt_model *m = e->model;
    uint32_t n = m->slots < 64 ? m->slots : 64;
    float *together = calloc((size_t)n * m->n_vocab, sizeof *together);
    float *alone = calloc((size_t)n * m->n_vocab, sizeof *alone);
    bool ok = together != NULL && alone != NULL && fill_slots(e, &err) &&
              decode(e, 0, n, together, &err) && choices(e, n, together, &err) &&
              fill_slots(e, &err);
    for (uint32_t s = 0; ok && s < n; s++) {
        ok = decode(e, s, s + 1, alone + (size_t)s * m->n_vocab, &err);
    }
    if (!ok) {
        return bad("slots", 0, &err);
    }
    ok = memcmp(together, alone, (size_t)n * m->n_vocab * sizeof *alone) == 0;
    printf("%u slots together and alone: %s\n", n, ok ? "the same bits" : "DIFFERENT BITS");
    free(together);
    free(alone);
    return !ok;
}

/* A step of T rows of one sequence, if the program takes that many. */
static int edge(rt_engine *e, uint32_t T) {
    lb_err err = {0};
    const rt_model *m = e->model;
    uint32_t *words = calloc(2 * (size_t)T + 1, sizeof *words);
    if (words == NULL) {
        return 1;
    }
    for (uint32_t i = 0; i < T; i++) {
        words[i] = i;
    }
    const uint32_t *zeros = words + T;
    const uint32_t last = T - 1;
    const rt_pick pick = {0}; /* greedy */
    const rt_step s = {T, 1, 1, 0, zeros, zeros, words, zeros, &last, m->samples ? &pick : NULL};
    unsigned long long before = launches();
    bool ok = m->step(e->memory.arenas, &s, e->pool, &err);
    printf("T=%u: ", T);
    ok ? printf("%llu launches\n", launches() - before) : printf("%s\n", err.text);
    free(words);
    return 0;
}

int main(int argc, char **argv) {
    lb_err err = {0};
    rt_engine *e = NULL;
    int status = 0;
    if (argc < 3) {
        return 2;
    }
    const rt_engine_opts o = {.n_threads = 2, .load = {.dir = argv[2]}};
    bool recorded = strcmp(argv[1], "slots") != 0;
    if (recorded) {
        find_control();
    }
    if (!rt_engine_start(&lagen_model, &o, &e, &err)) {
        fprintf(stderr, "request: %s\n", err.text);
        return 1;
    }
    if (!recorded) {
        status = slots(e);
    }
    if (strcmp(argv[1], "failures") == 0) {
        status = failures(e);
    }
    for (int i = 3; i < argc && strcmp(argv[1], "edges") == 0; i++) {
        status |= edge(e, (uint32_t)strtoul(argv[i], NULL, 10));
    }
    rt_engine_stop(e);
    return status;
}
