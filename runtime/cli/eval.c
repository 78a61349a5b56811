/* eval.c -- `eval`: perplexity of a text.
 *
 * The text becomes tokens as a prompt does (with BOS where the model wants one) and is cut into
 * windows of --ctx tokens, one after the other, without overlap; what is left over is not used. A
 * window begins with an empty context; where the model wants a BOS it takes the place of the
 * window's first token. Tokens at places ctx/2 + 1 .. ctx - 1 are scored, each with at least
 * ctx/2 tokens before it. (The windows of llama.cpp's perplexity tool, so that numbers can be
 * compared.) */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/console.h"
#include "cli/cli.h"

typedef struct options {
    rt_cli_team team;
    const char *file;
    uint64_t ctx, windows;
    bool special, json;
} options;

enum { CTX_DEFAULT = 512, CTX_LEAST = 4 };

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    const lb_opt rows[] = {
        RT_CLI_UINT("--ctx", "-c", &o->ctx, CTX_LEAST, c->model->ctx, "N",
                    "tokens in a window (default 512, or the program's context\nif that is less)"),
        RT_CLI_UINT("--windows", NULL, &o->windows, 1, 1e9, "N",
                    "stop after so many windows (default: all)"),
        RT_CLI_FLAG("--special", &o->special,
                    "names of special tokens in the text stand for the tokens"),
        RT_CLI_FLAG("--json", &o->json, "the result as JSON, schema lagen.eval/1"),
        RT_CLI_TEAM_ROWS(c, o->team),
    };
    const lb_positional file = {"FILE", &o->file, true, "the text; - is standard input"};
    const rt_cli_line line = {
        .name = "eval", .summary = rt_cmd_eval.summary,
        .details = "Cuts the text into windows of N tokens without overlap, what is left over is\n"
                   "not used, and scores the second half of each. Where the model wants a BOS\n"
                   "token, it takes the place of a window's first token. (The windows of\n"
                   "llama.cpp's perplexity tool.) Prints the mean negative log-likelihood of a\n"
                   "token, in nats, and the perplexity, each with its standard error.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0],
        .positionals = &file, .n_positionals = 1};
    return rt_cli_parse(c, &line, argc, argv, go, err);
}

/* Sums of the scored tokens' negative log-likelihoods. */
typedef struct score {
    const uint32_t *window;
    uint32_t n_vocab, n_ctx;
    uint64_t n;
    double sum, sum_squares;
} score;

static bool visit(void *arg, uint32_t pos, const float *logits, lb_err *err) {
    score *s = arg;
    double lp = 0.0;
    if (pos + 1 == s->n_ctx) {
        return true;
    }
    if (!rt_log_prob(logits, s->n_vocab, s->window[pos + 1], &lp, err)) {
        return lb_err_prefix(err, "position %u", pos);
    }
    s->n++;
    s->sum -= lp;
    s->sum_squares += lp * lp;
    return true;
}

static double mean(const score *s) {
    return s->sum / (double)s->n;
}

/* Standard error of the mean. */
static double error_of_mean(const score *s) {
    double n = (double)s->n;
    double var = s->sum_squares / n - mean(s) * mean(s);
    return s->n < 2 || var < 0.0 ? 0.0 : sqrt(var / (n - 1.0));
}

static void print_result(const rt_cli *c, const options *o, const score *s, uint64_t windows) {
    double ppl = exp(mean(s));
    double e = error_of_mean(s);
    if (o->json) {
        printf("{\"schema\": \"lagen.eval/1\", \"model\": \"%s\", \"ctx\": %" PRIu64
               ", \"windows\": %" PRIu64 ", \"scored_tokens\": %" PRIu64
               ", \"mean_nll\": %.9g, \"stderr_nll\": %.9g, \"perplexity\": %.9g, "
               "\"stderr_perplexity\": %.9g}\n",
               c->model->name, o->ctx, windows, s->n, mean(s), e, ppl, ppl * e);
        return;
    }
    printf("%" PRIu64 " windows of %" PRIu64 " tokens, %" PRIu64 " tokens scored\n"
           "mean negative log-likelihood %.6f +- %.6f\nperplexity %.5f +- %.5f\n",
           windows, o->ctx, s->n, mean(s), e, ppl, ppl * e);
}

/* One window: the first half needs no logits. */
static bool score_window(rt_seq *seq, score *s, lb_err *err) {
    uint32_t first = s->n_ctx / 2;
    const rt_feed_opts before = {.prompt = true};
    rt_feed_opts o = {.visit = visit, .visit_arg = s, .prompt = true};
    rt_seq_cut(seq, 0);
    return rt_seq_feed(seq, s->window, first, &before, err) &&
           rt_seq_feed(seq, s->window + first, s->n_ctx - first, &o, err);
}

static bool score_all(rt_cli *c, const options *o, uint32_t *ids, uint64_t windows, lb_err *err) {
    const rt_tokenizer *tok = c->model->tokenizer;
    score s = {.n_vocab = c->model->n_vocab, .n_ctx = (uint32_t)o->ctx};
    for (uint64_t w = 0; w < windows; w++) {
        uint32_t *window = ids + w * o->ctx;
        if (tok->add_bos) {
            window[0] = tok->bos;
        }
        s.window = window;
        if (!score_window(&c->engine->seqs[0], &s, err)) {
            return lb_err_prefix(err, "window %" PRIu64, w);
        }
        if (!lb_console_heard(err)) {
            return false;
        }
        rt_cli_progress("windows", w + 1, windows);
    }
    rt_cli_progress_end();
    print_result(c, o, &s, windows);
    return true;
}

static bool get_tokens(rt_cli *c, const options *o, uint32_t **ids, size_t *n, lb_err *err) {
    const char *text = NULL;
    rt_cli_text from = {.file = o->file};
    if (!rt_cli_read(c, &from, &text, n, err)) {
        return false;
    }
    rt_token_input in = {.text = text, .n_bytes = *n, .add_special = true,
                         .parse_special = o->special};
    return rt_cli_encode(c, &in, &c->arena, ids, n, err);
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    options o = {.ctx = c->model->ctx < CTX_DEFAULT ? c->model->ctx : CTX_DEFAULT};
    bool go = false;
    size_t n = 0;
    uint32_t *ids = NULL;
    bool ok = parse(c, argc, argv, &o, &go, err);
    if (!ok || !go) {
        return ok;
    }
    if (!get_tokens(c, &o, &ids, &n, err)) {
        return false;
    }
    uint64_t windows = n / o.ctx;
    windows = o.windows != 0 && o.windows < windows ? o.windows : windows;
    if (windows == 0 || o.ctx < CTX_LEAST) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: %zu tokens; a window has %u", o.file, n,
                          (uint32_t)o.ctx);
    }
    return rt_cli_start(c, &o.team, err) && score_all(c, &o, ids, windows, err);
}

const rt_cli_command rt_cmd_eval = {"eval", "perplexity of a text file", run};
