/* selftest.c -- see selftest.h. */
#include "server/selftest.h"

#include <math.h>
#include <string.h>

#include "golden.h"
#include "session.h"

enum { N_TOKENS = 7, N_SINGLE = 3 }; /* odd, and few: this is done at every start */
static const uint64_t TEST_BYTES = UINT64_C(1) << 30;

/* Reads the tokens into slot 0, `single` of them one by one, and keeps the last logits. */
static bool read_tokens(rt_engine *e, const uint32_t *tokens, uint32_t n, uint32_t single,
                        float *logits, lb_err *err) {
    rt_seq *q = &e->seqs[0];
    rt_seq_cut(q, 0);
    if (n > single && !rt_seq_feed(q, tokens, n - single, NULL, err)) {
        return false;
    }
    for (uint32_t i = n - single; i < n; i++) {
        if (!rt_seq_feed(q, &tokens[i], 1, NULL, err)) {
            return false;
        }
    }
    memcpy(logits, rt_engine_logits(e, 0), e->model->n_vocab * sizeof *logits);
    rt_seq_cut(q, 0);
    return true;
}

static bool check_bits(rt_engine *e, lb_arena *arena, lb_err *err) {
    uint32_t n_vocab = e->model->n_vocab;
    uint32_t tokens[N_TOKENS];
    uint32_t n = e->model->ctx < N_TOKENS ? e->model->ctx : N_TOKENS;
    uint32_t single = n < N_SINGLE ? n : N_SINGLE;
    float *a = lb_alloc_n(arena, n_vocab, sizeof *a, err);
    float *b = lb_alloc_n(arena, n_vocab, sizeof *b, err);
    for (uint32_t i = 0; i < n; i++) {
        tokens[i] = (i + 1) * 7919U % n_vocab;
    }
    if (a == NULL || b == NULL || !read_tokens(e, tokens, n, single, a, err) ||
        !read_tokens(e, tokens, n, n, b, err)) {
        return false;
    }
    for (uint32_t i = 0; i < n_vocab; i++) {
        if (!isfinite(a[i]) && !(a[i] < 0.0F)) {
            return lb_err_set(err, LB_PROOF, "self-test: the logit of token %u is %g", i,
                              (double)a[i]);
        }
    }
    if (memcmp(a, b, n_vocab * sizeof *a) != 0) {
        return lb_err_set(err, LB_PROOF,
                          "self-test: a prompt at once and token by token give "
                          "different logits");
    }
    return true;
}

bool rt_server_selftest(rt_engine *e, const char *dir, bool *golden, lb_err *err) {
    lb_arena arena;
    lb_arena_init(&arena, "self-test", TEST_BYTES);
    bool ok = check_bits(e, &arena, err) && rt_golden_check(e, dir, &arena, golden, err);
    lb_arena_reset(&arena);
    return ok;
}
