/* selftest.c -- `selftest`: files against their digests; the kernels against their plain-C twins,
 * logits and caches equal to the bit; the same tokens read at once and one by one; and, where the
 * device chooses tokens, its choices against the host's. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/console.h"
#include "base/digest.h"
#include "cli/cli.h"
#include "golden.h"
#include "rehearse.h"

enum {
    N_TOKENS = 19, /* odd, so that tiles and strips have edges */
    N_SINGLE = 3   /* of them fed one by one */
};

/* What a run over the tokens left behind. */
typedef struct trace {
    float *logits; /* [n][n_vocab] */
    uint32_t n_vocab;
    uint8_t cache[LB_DIGEST_BYTES];
    bool prompt; /* its tokens are fed as a prompt's (rt_feed) */
} trace;

static bool keep_logits(void *arg, uint32_t pos, const float *logits, lb_err *err) {
    trace *t = arg;
    (void)err;
    memcpy(t->logits + (size_t)pos * t->n_vocab, logits, t->n_vocab * sizeof *logits);
    return true;
}

/* Feeds the tokens to `slot` of an empty cache: n - single in chunks, the others one by one. */
static bool trace_run(rt_cli *c, uint32_t slot, const uint32_t *tokens, uint32_t n, uint32_t single,
                      trace *out, lb_err *err) {
    const rt_model *m = c->engine->model;
    rt_seq *seq = &c->engine->seqs[slot];
    rt_feed_opts o = {.visit = keep_logits, .visit_arg = out, .prompt = out->prompt};
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

/* Squared distance of two rows of logits and squared length of the first, both without their mean. */
static void compare_rows(const float *a, const float *b, uint32_t n, double *apart, double *length) {
    double mean_a = 0.0;
    double mean_b = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        mean_a += (double)a[i] / n;
        mean_b += (double)b[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double x = (double)a[i] - mean_a;
        double d = x - ((double)b[i] - mean_b);
        *length += x * x;
        *apart += d * d;
    }
}

/* Where prompts have an arithmetic of their own: the same bits however they are fed, and near those
 * of `exact`. The distance is there to find fragments in wrong places, not to measure: 1/4, far above
 * what roundings and the experts that they let change give, far below what other keys give. */
static bool check_prompt(rt_cli *c, uint32_t slot, const uint32_t *tokens, uint32_t n,
                         const trace *exact, lb_err *err) {
    trace a = {.n_vocab = exact->n_vocab, .prompt = true};
    trace b = a;
    double apart = 0.0;
    double length = 0.0;
    a.logits = lb_alloc_n(&c->arena, n, a.n_vocab * sizeof(float), err);
    b.logits = lb_alloc_n(&c->arena, n, b.n_vocab * sizeof(float), err);
    if (a.logits == NULL || b.logits == NULL || !trace_run(c, slot, tokens, n, 0, &a, err) ||
        !trace_run(c, slot, tokens, n, n, &b, err) ||
        !same(&a, &b, n, "a prompt in f16 at once and token by token", err)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (size_t)i * a.n_vocab;
        compare_rows(exact->logits + at, a.logits + at, a.n_vocab, &apart, &length);
    }
    if (!(apart <= length / 16.0)) {
        return lb_err_set(err, LB_PROOF,
                          "a prompt in f16: its logits are %g of their length away from those in f32",
                          sqrt(apart / length));
    }
    printf("ok  a prompt in f16 gives the same bits at once and token by token, %.1e from f32\n",
           sqrt(apart / length));
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

/* Ways to choose: each step that a device does, alone and with others. */
static const rt_sample_params WAYS[] = {
    {.temperature = 0.0F, .top_p = 1.0F},
    {.temperature = 1.0F, .top_p = 1.0F},
    {.temperature = 0.8F, .top_p = 0.95F, .min_p = 0.05F, .top_k = 40},
    {.temperature = 1.5F, .top_p = 0.9F},
    {.temperature = 0.7F, .top_p = 1.0F, .min_p = 0.1F},
    {.temperature = 1.0F, .top_p = 1.0F, .top_k = 7, .min_keep = 9},
    {.temperature = 0.9F,
     .top_p = 0.99F,
     .top_k = 64,
     .repeat_penalty = 1.3F,
     .frequency_penalty = 0.5F,
     .presence_penalty = 0.25F,
     .repeat_last_n = -1}};
enum { N_WAYS = sizeof WAYS / sizeof *WAYS, N_DRAWS = 4 };

/* The next token by the device, which reads the last of n tokens again, and by the host from
 * logits.
 */
static bool check_choice(rt_cli *c, rt_seq *seq, const uint32_t *tokens, uint32_t n,
                         const float *logits, rt_sampler *sampler, rt_sample_scratch *scratch,
                         lb_err *err) {
    const rt_feed_opts o = {.sampler = sampler};
    rt_sampler host = *sampler;
    uint32_t want = 0;
    uint32_t got = 0;
    rt_seq_cut(seq, n - 1);
    if (!rt_seq_feed(seq, &tokens[n - 1], 1, &o, err) ||
        !rt_sampler_pick(&host, scratch, logits, tokens, n, &want, err) ||
        !rt_seq_choose(seq, sampler, scratch, rt_engine_logits(c->engine, 0), &got, err)) {
        return false;
    }
    if (got != want || memcmp(&host.rng, &sampler->rng, sizeof host.rng) != 0) {
        return lb_err_set(err, LB_PROOF,
                          "the device chose token %u, the host token %u (temperature %g, top_k %d, "
                          "top_p %g, min_p %g)",
                          got, want, (double)host.params.temperature, host.params.top_k,
                          (double)host.params.top_p, (double)host.params.min_p);
    }
    return true;
}

static bool check_choices(rt_cli *c, uint32_t slot, const uint32_t *tokens, uint32_t n,
                          const trace *host, lb_err *err) {
    const rt_model *m = c->model;
    const float *logits = host->logits + (size_t)(n - 1) * m->n_vocab;
    rt_sample_scratch *scratch = NULL;
    bool ok = rt_sample_scratch_new(m->n_vocab, m->ctx, &c->arena, &scratch, err);
    for (uint32_t i = 0; ok && i < N_WAYS * N_DRAWS; i++) {
        rt_sample_params p;
        rt_sampler s;
        rt_sample_defaults(NULL, &p);
        p.temperature = WAYS[i % N_WAYS].temperature;
        p.top_p = WAYS[i % N_WAYS].top_p;
        p.min_p = WAYS[i % N_WAYS].min_p;
        p.top_k = WAYS[i % N_WAYS].top_k;
        p.min_keep = WAYS[i % N_WAYS].min_keep;
        p.seed = i;
        if (WAYS[i % N_WAYS].repeat_penalty > 0.0F) {
            p.repeat_penalty = WAYS[i % N_WAYS].repeat_penalty;
            p.frequency_penalty = WAYS[i % N_WAYS].frequency_penalty;
            p.presence_penalty = WAYS[i % N_WAYS].presence_penalty;
            p.repeat_last_n = WAYS[i % N_WAYS].repeat_last_n;
        }
        ok = rt_sampler_start(&s, &p, m->n_vocab, err) &&
             check_choice(c, &c->engine->seqs[slot], tokens, n, logits, &s, scratch, err);
    }
    return ok;
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
    if (a.logits == NULL || b.logits == NULL || !trace_run(c, slot, tokens, n, N_SINGLE, &a, err) ||
        !trace_run(c, slot, tokens, n, n, &b, err) ||
        !same(&a, &b, n, "a prompt at once and token by token", err)) {
        return false;
    }
    printf("ok  a prompt gives the same bits at once and token by token\n");
    if (m->samples) {
        if (!check_choices(c, slot, tokens, n, &b, err)) {
            return false;
        }
        printf("ok  the device chooses the host's tokens\n");
    }
    if (rt_prompts_in_f16(m) && !check_prompt(c, slot, tokens, n, &a, err)) {
        return false;
    }
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

/* Without weights: nothing is compared, and no launch may be refused. */
static bool rehearse(rt_cli *c, const char *device, lb_err *err) {
    rt_rehearsal seen;
    if (!rt_rehearse(c->model, device, &seen, err)) {
        return false;
    }
    printf("ok  %" PRIu64 " steps without weights: every number of rows from 1 to %u, sequences",
           seen.steps, c->model->t_max);
    for (int i = 0; i < 3 && seen.slots[i] != 0; i++) {
        printf(" %u", seen.slots[i]);
    }
    printf(", contexts");
    for (int i = 0; i < 5 && seen.contexts[i] != 0; i++) {
        printf(" %u", seen.contexts[i]);
    }
    printf("\n");
    return true;
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    rt_cli_team team = {0};
    bool go = false;
    bool bless = false;
    bool launches = false;
    const lb_opt rows[] = {
        RT_CLI_TEAM_ROWS(c, team),
        RT_CLI_FLAG("--bless", &bless,
                    "record what this machine answers in golden.json, which\nthe server compares "
                    "with before it opens its port"),
        RT_CLI_FLAG("--launches", &launches,
                    "nothing but this: a step of every size on the GPU, without\nweights; none of "
                    "its launches may be refused"),
    };
    const rt_cli_line line = {
        .name = "selftest",
        .summary = rt_cmd_selftest.summary,
        .details = "Checks the weights against their digest, that a prompt read at once and token\n"
                   "by token gives the same bits, and so every kernel against its plain-C twin.",
        .options = rows,
        .n_options = sizeof rows / sizeof rows[0]};
    bool ok = rt_cli_parse(c, &line, argc, argv, &go, err);
    if (!ok || !go) {
        return ok;
    }
    if (launches) {
        return bless ? lb_err_set(err, LB_USAGE, "--bless and --launches exclude each other")
                     : rehearse(c, team.device, err);
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
