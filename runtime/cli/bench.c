/* bench.c -- `bench`: how fast prompts are read (pp) and tokens generated (tg), at depths of
 * context. The tests are those of llama-bench: pp N feeds N tokens at once, tg N feeds N tokens
 * one by one, each step with logits and without sampling; at depth D the context already holds D
 * tokens, which are not timed. One run of each test before the first that counts. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/console.h"
#include "cli/cli.h"

enum { LIST_MAX = 64, REPS_MAX = 1000, PROMPT_DEFAULT = 512, GEN_DEFAULT = 128, REPS_DEFAULT = 5 };

typedef struct numbers {
    uint32_t v[LIST_MAX];
    uint32_t n;
} numbers;

typedef struct options {
    rt_cli_team team;
    const char *prompts, *gens, *depths;
    uint64_t reps;
    bool no_warmup, json;
} options;

typedef struct test {
    uint32_t n_prompt, n_gen, depth; /* one of the first two is 0 */
    double seconds[REPS_MAX];
    uint32_t reps;
} test;

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    const lb_opt rows[] = {
        RT_CLI_NAME("--n-prompt", "-p", &o->prompts, "N,...",
                    "lengths of prompts (default 512; 0: no such test)"),
        RT_CLI_NAME("--n-gen", "-n", &o->gens, "N,...",
                    "numbers of generated tokens (default 128; 0: no such test)"),
        RT_CLI_NAME("--n-depth", "-d", &o->depths, "N,...",
                    "tokens already in the context (default 0)"),
        RT_CLI_UINT("--repetitions", "-r", &o->reps, 1, REPS_MAX, "N",
                    "how often each test is run (default 5)"),
        RT_CLI_FLAG("--no-warmup", &o->no_warmup, "no run before those that count"),
        RT_CLI_FLAG("--json", &o->json, "the results as JSON, schema lagen.bench/1"),
        RT_CLI_TEAM_ROWS(c, o->team),
    };
    const rt_cli_line line = {
        .name = "bench",
        .summary = rt_cmd_bench.summary,
        .details = "Prints tokens per second, mean and standard deviation over the repetitions.\n"
                   "The tests are those of llama-bench.",
        .options = rows,
        .n_options = sizeof rows / sizeof rows[0]};
    return rt_cli_parse(c, &line, argc, argv, go, err);
}

static bool parse_list(const char *name, const char *list, uint32_t most, numbers *out,
                       lb_err *err) {
    *out = (numbers){0};
    for (const char *p = list;; p++) {
        uint64_t x = 0;
        const char *begin = p;
        for (; *p >= '0' && *p <= '9' && x <= most; p++) {
            x = 10 * x + (uint64_t)(*p - '0');
        }
        if (p == begin || (*p != ',' && *p != '\0') || x > most) {
            return lb_err_set(err, LB_USAGE, "%s: '%.20s' does not begin with a number in 0..%u",
                              name, begin, most);
        }
        if (out->n == LIST_MAX) {
            return lb_err_set(err, LB_USAGE, "%s: more than %d numbers", name, LIST_MAX);
        }
        out->v[out->n++] = (uint32_t)x;
        if (*p == '\0') {
            return true;
        }
    }
}

/* ---- running ---- */

static uint32_t some_token(const rt_cli *c, uint32_t i) {
    return (uint32_t)((i * UINT64_C(2654435761) + 12345) % c->model->n_vocab);
}

/* The likeliest token is chosen where the program chooses tokens on its device: what an answer
 * does. */
static bool greedy(const rt_cli *c, rt_sampler *out, lb_err *err) {
    rt_sample_params p;
    rt_sample_defaults(NULL, &p);
    p.temperature = 0.0F;
    return rt_sampler_start(out, &p, c->model->n_vocab, err);
}

static bool feed_some(rt_cli *c, uint32_t *tokens, uint32_t n, lb_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        tokens[i] = some_token(c, i);
    }
    const rt_feed_opts o = {.prompt = true};
    return n == 0 || rt_seq_feed(&c->engine->seqs[0], tokens, n, &o, err);
}

/* One repetition; `tokens` has room for the context. */
static bool run_once(rt_cli *c, const test *t, uint32_t *tokens, double *seconds, lb_err *err) {
    rt_seq *seq = &c->engine->seqs[0];
    rt_sampler sampler;
    const rt_feed_opts o = {.sampler = &sampler};
    rt_seq_cut(seq, 0);
    if (!greedy(c, &sampler, err) || !feed_some(c, tokens, t->depth, err)) {
        return false;
    }
    double begin = rt_cli_seconds();
    if (!feed_some(c, tokens, t->n_prompt, err)) {
        return false;
    }
    for (uint32_t i = 0; i < t->n_gen; i++) {
        uint32_t token = some_token(c, i);
        if (!rt_seq_feed(seq, &token, 1, &o, err)) {
            return false;
        }
    }
    *seconds = rt_cli_seconds() - begin;
    return true;
}

static uint32_t n_timed(const test *t) {
    return t->n_prompt + t->n_gen;
}

static void name_of(const test *t, char out[64]) {
    int n = snprintf(out, 64, "%s%u", t->n_prompt > 0 ? "pp" : "tg", n_timed(t));
    if (t->depth > 0 && n > 0) {
        snprintf(out + n, 64 - (size_t)n, "@d%u", t->depth);
    }
}

static bool run_test(rt_cli *c, const options *o, test *t, uint32_t *tokens, lb_err *err) {
    char name[64];
    double unused = 0.0;
    name_of(t, name);
    if (!o->no_warmup && !run_once(c, t, tokens, &unused, err)) {
        return lb_err_prefix(err, "%s", name);
    }
    for (t->reps = 0; t->reps < o->reps; t->reps++) {
        rt_cli_progress(name, t->reps, o->reps);
        if (!run_once(c, t, tokens, &t->seconds[t->reps], err)) {
            return lb_err_prefix(err, "%s", name);
        }
        if (!lb_console_heard(err)) {
            return false;
        }
    }
    rt_cli_progress_end();
    return true;
}

/* ---- results ---- */

/* Mean and sample deviation of tokens per second. */
static void statistics(const test *t, double *mean, double *deviation) {
    double sum = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < t->reps; i++) {
        sum += n_timed(t) / t->seconds[i];
    }
    *mean = sum / t->reps;
    for (uint32_t i = 0; i < t->reps; i++) {
        double d = n_timed(t) / t->seconds[i] - *mean;
        squares += d * d;
    }
    *deviation = t->reps < 2 ? 0.0 : sqrt(squares / (t->reps - 1));
}

static bool print_text(const test *t, lb_err *err) {
    char name[64];
    double mean = 0.0;
    double deviation = 0.0;
    name_of(t, name);
    statistics(t, &mean, &deviation);
    printf("%-20s %12.2f +- %.2f tokens/s\n", name, mean, deviation);
    return lb_console_flush(err);
}

static void print_json(const test *t, bool first) {
    char name[64];
    double mean = 0.0;
    double deviation = 0.0;
    name_of(t, name);
    statistics(t, &mean, &deviation);
    printf("%s\n  {\"name\": \"%s\", \"n_prompt\": %u, \"n_gen\": %u, \"n_depth\": %u, "
           "\"avg_ts\": %.6f, \"stddev_ts\": %.6f, \"seconds\": [",
           first ? "" : ",", name, t->n_prompt, t->n_gen, t->depth, mean, deviation);
    for (uint32_t i = 0; i < t->reps; i++) {
        printf("%s%.9f", i == 0 ? "" : ", ", t->seconds[i]);
    }
    printf("]}");
}

static void print_json_head(const rt_cli *c, const options *o) {
    const rt_model *m = c->model;
    printf("{\"schema\": \"lagen.bench/1\", \"model\": \"%s\", \"arch_row\": \"%s\", "
           "\"kv_type\": \"%s\", \"n_params\": %" PRIu64 ", \"weights_bytes\": %" PRIu64
           ", \"n_threads\": %u, \"chunk\": %u, \"ctx\": %u, \"repetitions\": %" PRIu64
           ", \"warmup\": %s, \"tests\": [",
           m->name, m->arch_row, m->kv_type, m->n_params, m->arena_bytes[RT_ARENA_WEIGHTS],
           rt_pool_size(c->engine->pool), c->engine->chunk, m->ctx, o->reps,
           o->no_warmup ? "false" : "true");
}

/* ---- the list of tests ---- */

static bool add_test(const rt_cli *c, test *tests, size_t *n, uint32_t prompt, uint32_t gen,
                     uint32_t depth, lb_err *err) {
    if (prompt + gen == 0) {
        return true;
    }
    if (prompt + gen > c->model->ctx - depth) {
        return lb_err_set(err, LB_LIMIT, "%u tokens at depth %u; the context holds %u",
                          prompt + gen, depth, c->model->ctx);
    }
    tests[*n].n_prompt = prompt;
    tests[*n].n_gen = gen;
    tests[(*n)++].depth = depth;
    return true;
}

static bool list_tests(rt_cli *c, const options *o, test **tests, size_t *n, lb_err *err) {
    numbers prompts;
    numbers gens;
    numbers depths;
    uint32_t ctx = c->model->ctx;
    if (!parse_list("--n-prompt", o->prompts, ctx, &prompts, err) ||
        !parse_list("--n-gen", o->gens, ctx, &gens, err) ||
        !parse_list("--n-depth", o->depths, ctx, &depths, err)) {
        return false;
    }
    *n = 0;
    *tests = lb_alloc_n(&c->arena, (uint64_t)depths.n * (prompts.n + gens.n), sizeof **tests, err);
    bool ok = *tests != NULL;
    for (uint32_t d = 0; ok && d < depths.n; d++) {
        for (uint32_t i = 0; ok && i < prompts.n; i++) {
            ok = add_test(c, *tests, n, prompts.v[i], 0, depths.v[d], err);
        }
        for (uint32_t i = 0; ok && i < gens.n; i++) {
            ok = add_test(c, *tests, n, 0, gens.v[i], depths.v[d], err);
        }
    }
    if (ok && *n == 0) {
        return lb_err_set(err, LB_USAGE, "no test is left");
    }
    return ok;
}

static bool run_tests(rt_cli *c, const options *o, test *tests, size_t n, lb_err *err) {
    uint32_t *tokens = lb_alloc_n(&c->arena, c->model->ctx, sizeof *tokens, err);
    bool ok = tokens != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        ok = run_test(c, o, &tests[i], tokens, err) && (o->json || print_text(&tests[i], err));
    }
    if (ok && o->json) {
        print_json_head(c, o);
        for (size_t i = 0; i < n; i++) {
            print_json(&tests[i], i == 0);
        }
        printf("\n]}\n");
    }
    return ok;
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    char prompts[16];
    char gens[16];
    uint32_t ctx = c->model->ctx;
    /* The defaults must fit a small context too. */
    snprintf(prompts, sizeof prompts, "%u", ctx < PROMPT_DEFAULT ? ctx : PROMPT_DEFAULT);
    snprintf(gens, sizeof gens, "%u", ctx < GEN_DEFAULT ? ctx : GEN_DEFAULT);
    options o = {.prompts = prompts, .gens = gens, .depths = "0", .reps = REPS_DEFAULT};
    bool go = false;
    test *tests = NULL;
    size_t n = 0;
    bool ok = parse(c, argc, argv, &o, &go, err);
    if (!ok || !go) {
        return ok;
    }
    return list_tests(c, &o, &tests, &n, err) && rt_cli_start(c, &o.team, err) &&
           run_tests(c, &o, tests, n, err);
}

const rt_cli_command rt_cmd_bench = {"bench", "measure tokens per second", run};
