/* answer.c -- see answer.h. */
#define _GNU_SOURCE
#include "cli/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/console.h"
#include "chat/output.h"
#include "chat/render.h"

static const double PROGRESS_AFTER_S = 0.5;

/* ---- options ---- */

static bool check_greedy(const rt_cli_sampling *s, lb_err *err) {
    const struct {
        bool given;
        const char *name;
    } others[] = {{s->temp_given, "--temp"},   {s->top_k_given, "--top-k"},
                  {s->top_p_given, "--top-p"}, {s->min_p_given, "--min-p"},
                  {s->seed_given, "--seed"},   {s->repeat_penalty_given, "--repeat-penalty"}};
    for (size_t i = 0; s->greedy && i < sizeof others / sizeof others[0]; i++) {
        if (others[i].given) {
            return lb_err_set(err, LB_USAGE, "--greedy and %s exclude each other", others[i].name);
        }
    }
    return true;
}

static bool random_seed(uint32_t *seed, lb_err *err) {
    if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed) {
        return lb_err_set(err, LB_IO, "cannot draw a seed: %s; give one by --seed", strerror(errno));
    }
    return true;
}

static bool make_params(const rt_cli *c, const rt_cli_sampling *s, rt_sample_params *p,
                        lb_err *err) {
    rt_sample_defaults(s->greedy ? NULL : &c->model->sampling, p);
    if (s->greedy) {
        p->temperature = 0.0F;
        return true;
    }
    p->temperature = s->temp_given ? (float)s->temp : p->temperature;
    p->top_p = s->top_p_given ? (float)s->top_p : p->top_p;
    p->min_p = s->min_p_given ? (float)s->min_p : p->min_p;
    p->repeat_penalty = s->repeat_penalty_given ? (float)s->repeat_penalty : p->repeat_penalty;
    p->top_k = s->top_k_given ? (int32_t)s->top_k : p->top_k;
    p->repeat_last_n = s->repeat_last_n_given ? (int32_t)s->repeat_last_n : p->repeat_last_n;
    p->seed = (uint32_t)s->seed;
    return s->seed_given || random_seed(&p->seed, err);
}

/* What ends a turn where it is spelled in ordinary text, or NULL. */
static const char *end_of_turn(const rt_model *m) {
    return m->chat == NULL || m->chat->output == NULL ? NULL : m->chat->output->turn_end;
}

bool rt_cli_answerer_new(rt_cli *c, const rt_cli_sampling *s, bool turns, rt_cli_answerer *out,
                         lb_err *err) {
    const rt_model *m = c->model;
    const rt_tokenizer *tok = NULL;
    rt_sample_params p;
    size_t longest = 1;
    *out = (rt_cli_answerer){.n_stops = s->stops.n,
                             .opening = "",
                             .n_predict = s->n_predict_given ? (uint32_t)s->n_predict
                                                             : UINT32_MAX};
    for (size_t i = 0; i < s->stops.n; i++) {
        out->stops[i] = (rt_stop_string){s->stops.items[i], strlen(s->stops.items[i])};
        if (out->stops[i].n_bytes == 0) {
            return lb_err_set(err, LB_USAGE, "--stop: the text is empty");
        }
        longest = out->stops[i].n_bytes > longest ? out->stops[i].n_bytes : longest;
    }
    const char *end = turns ? end_of_turn(m) : NULL;
    if (end != NULL) {
        out->stops[out->n_stops++] = (rt_stop_string){end, strlen(end)};
        longest = strlen(end) > longest ? strlen(end) : longest;
    }
    return check_greedy(s, err) && rt_cli_tokenizer(c, &tok, err) && make_params(c, s, &p, err) &&
           rt_sampler_start(&out->sampler, &p, m->n_vocab, err) &&
           rt_sample_scratch_new(m->n_vocab, m->ctx, &c->arena, &out->scratch, err) &&
           rt_stream_new(&out->stream, rt_detok_max_bytes(tok), longest, &c->arena, err);
}

/* ---- answering ---- */

static bool print_piece(void *arg, const char *text, size_t n_bytes, lb_err *err) {
    rt_cli_answerer *a = arg;
    fwrite(a->opening, 1, a->n_opening, stdout);
    a->n_opening = 0;
    fwrite(text, 1, n_bytes, stdout);
    a->last = text[n_bytes - 1];
    if (a->capture != NULL) {
        lb_text_add_n(a->capture, text, n_bytes);
    }
    return lb_console_flush(err);
}

/* `arg` is when reading began: short prompts show nothing. */
static void prompt_progress(void *arg, uint64_t done, uint64_t total) {
    if (rt_cli_seconds() - *(const double *)arg > PROGRESS_AFTER_S) {
        rt_cli_progress("reading the prompt", done, total);
    }
}

static bool generate(rt_cli *c, rt_cli_answerer *a, lb_err *err) {
    rt_gen g;
    rt_gen_opts o = {.sampler = &a->sampler, .scratch = a->scratch, .stream = &a->stream,
                     .n_predict = a->n_predict, .emit = print_piece, .emit_arg = a,
                     .interrupt = a->interrupt};
    double begin = rt_cli_seconds();
    rt_gen_start(&g, &c->engine->seqs[0], &o);
    bool ok = rt_generate(&g, err);
    a->answer_seconds = rt_cli_seconds() - begin;
    a->n_generated = g.n_generated;
    a->stop = g.stop;
    if (a->last != '\n') {
        putchar('\n');
    }
    return ok ? lb_console_flush(err) : (fflush(stdout), false);
}

bool rt_cli_answer(rt_cli *c, rt_cli_answerer *a, const uint32_t *prompt, size_t n, lb_err *err) {
    double begin = rt_cli_seconds();
    const rt_feed_opts o = {.interrupt = a->interrupt, .progress = prompt_progress,
                            .progress_arg = &begin, .sampler = &a->sampler};
    uint32_t ctx = c->model->ctx;
    if (n == 0 || n > ctx) {
        return lb_err_set(err, n == 0 ? LB_BAD_VALUE : LB_LIMIT,
                          "the prompt has %zu tokens; 1 to %u, the context, are possible", n, ctx);
    }
    a->n_prompt = (uint32_t)n;
    a->n_generated = 0;
    a->last = '\n';
    if (!rt_stream_start(&a->stream, a->stops, a->n_stops, err)) {
        return false;
    }
    bool ok = rt_seq_prompt(&c->engine->seqs[0], prompt, (uint32_t)n, &o, &a->n_kept, err);
    a->prompt_seconds = rt_cli_seconds() - begin;
    rt_cli_progress_end();
    if (!ok && err->code == LB_CANCELLED) {
        a->stop = RT_STOP_INTERRUPT;
        return true;
    }
    return ok && generate(c, a, err);
}

/* ---- numbers ---- */

static double rate(uint32_t n, double seconds) {
    return seconds > 0.0 ? n / seconds : 0.0;
}

void rt_cli_print_rates(const rt_cli_answerer *a) {
    uint32_t fed = a->n_prompt - a->n_kept;
    fprintf(stderr, "prompt %u tokens", a->n_prompt);
    if (a->n_kept > 0) {
        fprintf(stderr, " (%u kept)", a->n_kept);
    }
    fprintf(stderr, ", %.1f tokens/s; answer %u tokens, %.1f tokens/s; %s\n",
            rate(fed, a->prompt_seconds), a->n_generated, rate(a->n_generated, a->answer_seconds),
            rt_stop_name(a->stop));
}

void rt_cli_print_stats(const rt_cli *c, const rt_cli_answerer *a) {
    const rt_model *m = c->model;
    uint64_t sum = 0;
    for (int k = 0; k < RT_N_ARENAS; k++) {
        sum += m->arena_bytes[k];
    }
    fprintf(stderr,
            "seed %u, temperature %g\n%u threads, chunk %u\nloaded %" PRIu64
            " bytes of weights in %.2f s; %" PRIu64 " bytes of memory planned\n"
            "context %u of %u tokens; prompt %.3f s, answer %.3f s\n",
            a->sampler.params.seed, (double)a->sampler.params.temperature,
            rt_pool_size(c->engine->pool), c->engine->chunk, m->arena_bytes[RT_ARENA_WEIGHTS],
            c->load_seconds, sum, c->engine->seqs[0].n_tokens, m->ctx, a->prompt_seconds,
            a->answer_seconds);
}
