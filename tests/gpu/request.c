/* request.c -- linked with an emitted GPU program in place of its CLI: a request is a prompt and a
 * few tokens more.
 *
 *   request edges FOLDER T...      one step of each T; prints T and the number of launches
 *   request failures FOLDER        fails each call of a request once, on the recorder; the next
 * request must succeed request slots FOLDER           all slots, each at a depth of its own,
 * together and alone: the same bits; on any driver Exit status 1 with a line on what went wrong. */
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

enum { PROMPT = 11, ANSWER = 3 };

static lagen_recorder_calls_fn *calls;
static lagen_recorder_fail_fn *fail_at;
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
    *(void **)&launches = sym(library, "lagen_recorder_launches");
}

static bool request(rt_engine *e, lb_err *err) {
    uint32_t tokens[PROMPT];
    rt_seq *seq = &e->seqs[0];
    for (uint32_t i = 0; i < PROMPT; i++) {
        tokens[i] = (i * 7 + 1) % e->model->n_vocab;
    }
    rt_seq_cut(seq, 0);
    if (!rt_seq_feed(seq, tokens, PROMPT, NULL, err)) {
        return false;
    }
    for (uint32_t i = 0; i < ANSWER; i++) {
        if (!rt_seq_feed(seq, tokens, 1, NULL, err)) {
            return false;
        }
    }
    return true;
}

static int bad(const char *what, unsigned k, const lb_err *err) {
    fprintf(stderr, "request: %s (call %u): %s\n", what, k, err->text);
    return 1;
}

static int failures(rt_engine *e) {
    unsigned named = 0;
    for (unsigned k = 1;; k++) {
        lb_err err = {0};
        unsigned before = calls();
        fail_at(k, RT_CU_INVALID_VALUE);
        bool ok = request(e, &err);
        unsigned made = calls() - before;
        fail_at(0, 0);
        if (ok && made < k) {
            printf("%u calls, each failed once; %u errors name a launch\n", made, named);
            return named > 0 ? 0 : bad("no error named a launch", k, &err);
        }
        if (ok) {
            return bad("a failed call went unseen", k, &err);
        }
        bool launch = strstr(err.text, "launch ") != NULL && strstr(err.text, "grid ") != NULL;
        named += launch;
        if (strstr(err.text, "cuLaunchKernelEx") != NULL && !launch) {
            return bad("a launch error names no launch", k, &err);
        }
        if (strstr(err.text, "cuCtxSetCurrent") == NULL && strstr(err.text, "T=") == NULL) {
            return bad("the error names no T", k, &err);
        }
        if (!request(e, &err)) {
            return bad("the next request fails too", k, &err);
        }
    }
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

static int slots(rt_engine *e) {
    lb_err err = {0};
    const rt_model *m = e->model;
    uint32_t n = m->slots < 64 ? m->slots : 64;
    float *together = calloc((size_t)n * m->n_vocab, sizeof *together);
    float *alone = calloc((size_t)n * m->n_vocab, sizeof *alone);
    bool ok = together != NULL && alone != NULL && fill_slots(e, &err) &&
              decode(e, 0, n, together, &err) && fill_slots(e, &err);
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
    const rt_step s = {T, 1, 1, zeros, zeros, words, zeros, &last};
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
