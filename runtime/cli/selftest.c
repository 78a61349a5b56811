/* selftest.c -- `selftest`: files against their digests; the kernels against their plain-C twins,
 * logits and caches equal to the bit; and the same tokens read at once and one by one. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/console.h"
#include "base/digest.h"
#include "cli/cli.h"
#include "golden.h"

enum {
    N_TOKENS = 19, /* odd, so that tiles and strips have edges */
    N_SINGLE = 3   /* of them fed one by one */
};

/* What a run over the tokens left behind. */
typedef struct trace {
    float *logits; /* [n][n_vocab] */
    uint32_t n_vocab;
    uint8_t cache[LB_DIGEST_BYTES];
} trace;

static bool keep_logits(void *arg, uint32_t pos, const float *logits, lb_err *err) {
    trace *t = arg;
    (void)err;
    memcpy(t->logits + (size_t)pos * t->n_vocab, logits, t->n_vocab * sizeof *logits);
    return true;
}

/* Feeds the tokens to `slot` of an empty cache: n - single in chunks, the others one by one. */
static bool trace_run(rt_cli *c, uint32_t slot, const uint32_t *tokens, uint32_t n,
                      uint32_t single, trace *out, lb_err *err) {
    const rt_model *m = c->engine->model;
    rt_seq *seq = &c->engine->seqs[slot];
    rt_feed_opts o = {.visit = keep_logits, .visit_arg = out};
    const rt_memory *mem = &c->engine->memory;
    rt_seq_cut(seq, 0);
    single = single < n ? single : n;
    bool ok = rt_memory_clear(m, mem, RT_ARENA_KV, err);
    ok = ok && (single == n || rt_seq_feed(seq, tokens, n - single, &o, err));
    for (uint32_t i = n - single; ok && i < n; i++) {
        ok = rt_seq_feed(seq, &tokens[i], 1, &o, err);
    }
    return ok && rt_memory_digest(m, mem, RT_ARENA_KV, &c->arena, out->cache, err);
}

static bool same(const trace *a, const trace *b, uint32_t n, const char *what, lb_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (size_t)i * a->n_vocab;
        if (memcmp(a->logits + at, b->logits + at, a->n_vocab * sizeof *a->logits) != 0) {
            return lb_err_set(err, LB_PROOF, "%s: the logits of position %u differ", what, i);
        }
    }
    if (memcmp(a->cache, b->cache, sizeof a->cache) != 0) {
        return lb_err_set(err, LB_PROOF, "%s: the caches differ", what);
    }
    return true;
}

/* The same run by the plain step; that of a GPU program runs in host memory of its own. */
static bool check_plain(rt_cli *c, uint32_t slot, const uint32_t *tokens, uint32_t n,
                        const trace *fast, trace *other, lb_err *err) {
    rt_engine *e = c->engine;
    rt_model plain = *c->model;
    rt_memory kept = e->memory;
    rt_memory twin = {0};
    plain.step = plain.step_plain;
    plain.device = NULL;
    if (c->model->device != NULL) {
        if (!rt_memory_twin(c->model, &kept, &twin, err)) {
            return lb_err_prefix(err, "memory for the plain twins");
        }
        e->memory = twin;
    }
    e->model = &plain;
    bool ok = trace_run(c, slot, tokens, n, N_SINGLE, other, err);
    e->model = c->model;
    e->memory = kept;
    rt_memory_unmap(&twin);
    return ok && same(fast, other, n, "kernels and their plain twins", err);
}

static bool check_all(rt_cli *c, lb_err *err) {
    const rt_model *m = c->model;
    uint32_t tokens[N_TOKENS];
    uint32_t n = m->ctx < N_TOKENS ? m->ctx : N_TOKENS;
    uint32_t slot = m->slots - 1;
    trace a = {.n_vocab = m->n_vocab};
    trace b = {.n_vocab = m->n_vocab};
    for (uint32_t i = 0; i < n; i++) {
        tokens[i] = (i + 1) * 7919U % m->n_vocab;
    }
    a.logits = lb_alloc_n(&c->arena, n, m->n_vocab * sizeof(float), err);
    b.logits = lb_alloc_n(&c->arena, n, m->n_vocab * sizeof(float), err);
    if (a.logits == NULL || b.logits == NULL ||
        !trace_run(c, slot, tokens, n, N_SINGLE, &a, err) ||
        !trace_run(c, slot, tokens, n, n, &b, err) ||
        !same(&a, &b, n, "a prompt at once and token by token", err)) {
        return false;
    }
    printf("ok  a prompt gives the same bits at once and token by token\n");
    if (m->step_plain == NULL) {
        printf("--  no plain twins in this program: kernels are not compared\n");
        return true;
    }
    if (!lb_console_flush(err) || !check_plain(c, slot, tokens, n, &a, &b, err)) {
        return false;
    }
    printf("ok  kernels give the same bits as their plain twins\n");
    return true;
}

/* The golden tokens of this machine: recorded, or compared with those that were. */
static bool golden(rt_cli *c, bool bless, lb_err *err) {
    char dir[PATH_MAX];
    bool found = false;
    if (!rt_program_dir(dir, sizeof dir, err)) {
        return false;
    }
    if (bless) {
        if (!rt_golden_bless(c->engine, dir, &c->arena, err)) {
            return false;
        }
        printf("ok  golden tokens recorded in %s\n", RT_GOLDEN_FILE);
        return true;
    }
    if (!rt_golden_check(c->engine, dir, &c->arena, &found, err)) {
        return false;
    }
    printf("%s\n", found ? "ok  golden tokens are those that were recorded"
                        : "--  no golden tokens: --bless records them");
    return true;
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    rt_cli_team team = {0};
    bool go = false;
    bool bless = false;
    const lb_opt rows[] = {
        RT_CLI_TEAM_ROWS(c, team),
        RT_CLI_FLAG("--bless", &bless,
                    "record what this machine answers in golden.json, which\nthe server compares "
                    "with before it opens its port"),
    };
    const rt_cli_line line = {
        .name = "selftest", .summary = rt_cmd_selftest.summary,
        .details = "Checks the weights against their digest, that a prompt read at once and token\n"
                   "by token gives the same bits, and so every kernel against its plain-C twin.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    bool ok = rt_cli_parse(c, &line, argc, argv, &go, err);
    if (!ok || !go) {
        return ok;
    }
    if (!rt_cli_start(c, &team, err)) {
        return false;
    }
    printf("ok  %s\n", c->model->weights_linked ? "files have their sizes"
                                                : "weights have their digest");
    return lb_console_flush(err) && check_all(c, err) && lb_console_flush(err) &&
           golden(c, bless, err);
}

const rt_cli_command rt_cmd_selftest = {"selftest", "check files and kernels on this machine", run};
