/* logits.c -- `logits`: what the model makes of a text or of token ids: the most likely next
 * tokens, or all logits as raw f32 for other programs to compare. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/console.h"
#include "base/outfile.h"
#include "base/stop.h"
#include "cli/cli.h"

enum { TOP_DEFAULT = 10 };

typedef struct options {
    rt_cli_team team;
    rt_cli_text text;
    const char *ids, *raw, *trace;
    bool special, no_bos, all;
    uint64_t top;
} options;

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    bool top_given = false;
    const lb_opt rows[] = {
        RT_CLI_TEXT_ROWS(o->text),
        RT_CLI_NAME("--ids", NULL, &o->ids, "ID,...", "token ids instead of a text"),
        RT_CLI_FLAG("--special", &o->special,
                    "names of special tokens in the text stand for the tokens"),
        RT_CLI_FLAG("--no-bos", &o->no_bos, "add no token at the beginning or end of the text"),
        RT_CLI_FLAG("--all", &o->all, "every position; without it the last one"),
        {"--top", NULL, LB_OPT_UINT, &o->top, 1, c->model->n_vocab, false, &top_given, "K",
         "tokens in the table of a position (default 10)"},
        RT_CLI_NAME("--raw", NULL, &o->raw, "FILE",
                    "write all logits there instead of tables: f32,\nlittle-endian, "
                    "[positions][vocabulary]"),
        RT_CLI_NAME("--trace", NULL, &o->trace, "FILE",
                    "write what every layer leaves there: f32, little-endian,\n"
                    "[layers][positions][width]"),
        RT_CLI_TEAM_ROWS(c, o->team),
    };
    const rt_cli_line line = {
        .name = "logits", .summary = rt_cmd_logits.summary,
        .details = "Prints the most likely next tokens with logit and probability.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    if (!rt_cli_parse(c, &line, argc, argv, go, err)) {
        return false;
    }
    if (o->raw != NULL && top_given) {
        return lb_err_set(err, LB_USAGE, "--raw and --top exclude each other");
    }
    if (o->ids != NULL && (o->text.prompt != NULL || o->text.file != NULL)) {
        return lb_err_set(err, LB_USAGE, "give --ids or a text, not both");
    }
    const char *not_ids = o->special ? "--special" : o->no_bos ? "--no-bos" : NULL;
    if (o->ids != NULL && not_ids != NULL) {
        return lb_err_set(err, LB_USAGE, "--ids and %s exclude each other: it is about text",
                          not_ids);
    }
    return true;
}

/* Where the logits of a position go. */
typedef struct sink {
    rt_cli *cli;
    rt_sample_scratch *scratch;
    rt_token_prob *top;
    uint32_t n_top;
    const char *raw; /* path of the file, or NULL: tables */
    lb_out file;     /* a regular one: whole under its name, or not there */
    FILE *stream;    /* a pipe or a device, else NULL */
    const volatile sig_atomic_t *stop; /* a signal is no reason to leave a part of a file behind */
} sink;

static bool print_top(sink *s, uint32_t pos, const float *logits, lb_err *err) {
    const rt_model *m = s->cli->model;
    uint32_t n = 0;
    if (!rt_sample_top(s->scratch, logits, m->n_vocab, s->n_top, s->top, &n, err)) {
        return lb_err_prefix(err, "position %u", pos);
    }
    printf("after position %u (token %u)\n", pos, s->cli->engine->seqs[0].tokens[pos]);
    for (uint32_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        const char *text = m->tokenizer == NULL ? "" : rt_token_text(m->tokenizer,
                                                                     s->top[i].token, &n_bytes);
        printf("%8u  %12.6f  %8.4f %%  ", s->top[i].token, (double)s->top[i].logit,
               100.0 * exp(s->top[i].log_prob));
        rt_cli_print_quoted(text, n_bytes);
        putchar('\n');
    }
    return lb_console_flush(err);
}

static bool show(void *arg, uint32_t pos, const float *logits, lb_err *err) {
    sink *s = arg;
    if (s->raw == NULL) {
        return print_top(s, pos, logits, err);
    }
    size_t n = s->cli->model->n_vocab;
    if (s->stream == NULL) {
        return lb_out_write(&s->file, logits, n * sizeof logits[0], err);
    }
    if (fwrite(logits, sizeof logits[0], n, s->stream) != n) {
        return lb_err_set(err, LB_IO, "%s: cannot be written: %s", s->raw, strerror(errno));
    }
    return true;
}

/* Decimal ids, separated by commas. */
static bool parse_ids(rt_cli *c, const char *list, uint32_t **ids, size_t *n, lb_err *err) {
    *n = 0;
    *ids = lb_alloc_n(&c->arena, strlen(list) / 2 + 1, sizeof **ids, err);
    for (const char *p = list; *ids != NULL; p++) {
        uint64_t x = 0;
        const char *begin = p;
        for (; *p >= '0' && *p <= '9' && x < c->model->n_vocab; p++) {
            x = 10 * x + (uint64_t)(*p - '0');
        }
        if (p == begin || (*p != ',' && *p != '\0') || x >= c->model->n_vocab) {
            return lb_err_set(err, LB_USAGE,
                              "--ids: '%.20s' does not begin with a token id in 0..%u", begin, c->model->n_vocab - 1);
        }
        (*ids)[(*n)++] = (uint32_t)x;
        if (*p == '\0') {
            return true;
        }
    }
    return false;
}

static bool get_tokens(rt_cli *c, const options *o, uint32_t **ids, size_t *n, lb_err *err) {
    if (o->ids != NULL) {
        return parse_ids(c, o->ids, ids, n, err);
    }
    const char *text = NULL;
    size_t n_bytes = 0;
    if (!rt_cli_read(c, &o->text, &text, &n_bytes, err)) {
        return false;
    }
    rt_token_input in = {.text = text, .n_bytes = n_bytes, .add_special = !o->no_bos,
                         .parse_special = o->special};
    return rt_cli_encode(c, &in, &c->arena, ids, n, err);
}

static bool feed(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, sink *s,
                 lb_err *err) {
    rt_seq *seq = &c->engine->seqs[0];
    rt_feed_opts how = {.visit = o->all ? show : NULL, .visit_arg = s, .interrupt = s->stop,
                        .prompt = true};
    return rt_seq_feed(seq, ids, n, &how, err) &&
           (o->all || show(s, n - 1, rt_engine_logits(c->engine, 0), err));
}

static bool to_stream(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, sink *s,
                      lb_err *err) {
    s->stream = fopen(o->raw, "wbe");
    if (s->stream == NULL) {
        return lb_err_set(err, LB_IO, "%s: cannot be opened: %s", o->raw, strerror(errno));
    }
    bool ok = feed(c, o, ids, n, s, err);
    if (fclose(s->stream) != 0 && ok) {
        ok = lb_err_set(err, LB_IO, "%s: cannot be written: %s", o->raw, strerror(errno));
    }
    return ok;
}

static bool to_file(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, sink *s,
                    lb_err *err) {
    bool ok = lb_out_open(o->raw, &c->arena, &s->file, err);
    if (ok) {
        ok = feed(c, o, ids, n, s, err) && lb_out_finish(&s->file, err);
        lb_out_abort(&s->file); /* does nothing after a finished file */
    }
    return ok;
}

/* The hidden states of all layers and positions, kept until the last step is done. */
typedef struct layers {
    rt_cli *cli;
    float *rows; /* [n_layers][n_positions][n_embd] */
    uint32_t n_positions;
    bool failed; /* then err says why */
    lb_err err;
} layers;

/* Rows of the running step: those that the sequence stores and does not hold yet. */
static void keep_layer(void *arg, uint32_t layer, uint64_t offset) {
    layers *l = arg;
    const rt_model *m = l->cli->model;
    const rt_seq *q = &l->cli->engine->seqs[0];
    const rt_memory *mem = &l->cli->engine->memory;
    size_t n_bytes = (size_t)(q->n_stored - q->n_tokens) * m->n_embd * sizeof(float);
    float *to = l->rows + ((size_t)layer * l->n_positions + q->n_tokens) * m->n_embd;
    if (m->device == NULL) {
        memcpy(to, mem->arenas[RT_ARENA_SCRATCH] + offset, n_bytes);
    } else if (!l->failed) {
        l->failed = !m->device->get(mem, RT_ARENA_SCRATCH, offset, to, n_bytes, &l->err);
    }
}

typedef bool (*feed_fn)(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, sink *s,
                        lb_err *err);

/* `how`, with every step traced and the trace written where one is asked for. */
static bool traced(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, sink *s,
                   feed_fn how, lb_err *err) {
    layers l = {.cli = c, .n_positions = n};
    const rt_trace trace = {keep_layer, &l};
    uint64_t n_floats = (uint64_t)c->model->n_layers * n * c->model->n_embd;
    lb_out file = {.fd = -1};
    if (o->trace == NULL) {
        return how(c, o, ids, n, s, err);
    }
    l.rows = lb_alloc_n(&c->arena, n_floats, sizeof *l.rows, err);
    if (l.rows == NULL || !lb_out_open(o->trace, &c->arena, &file, err)) {
        return false;
    }
    c->engine->memory.arenas[RT_TRACE] = (uint8_t *)(uintptr_t)&trace;
    bool ok = how(c, o, ids, n, s, err);
    c->engine->memory.arenas[RT_TRACE] = NULL;
    if (ok && l.failed && err != NULL) {
        *err = l.err;
    }
    ok = ok && !l.failed && lb_out_write(&file, l.rows, n_floats * sizeof *l.rows, err) &&
         lb_out_finish(&file, err);
    lb_out_abort(&file); /* does nothing after a finished file */
    return ok;
}

static bool run_engine(rt_cli *c, const options *o, const uint32_t *ids, uint32_t n, lb_err *err) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, 0};
    sink s = {.cli = c, .raw = o->raw, .n_top = (uint32_t)o->top};
    struct stat st;
    s.top = lb_alloc_n(&c->arena, s.n_top, sizeof s.top[0], err);
    if (s.top == NULL ||
        !rt_sample_scratch_new(c->model->n_vocab, 1, &c->arena, &s.scratch, err) ||
        !rt_cli_start(c, &o->team, err)) {
        return false;
    }
    if (o->raw == NULL && o->trace == NULL) {
        return feed(c, o, ids, n, &s, err);
    }
    s.stop = lb_stop_catch(SIGNALS);
    if (o->raw == NULL) {
        return traced(c, o, ids, n, &s, feed, err);
    }
    bool regular = stat(o->raw, &st) != 0 || S_ISREG(st.st_mode);
    return traced(c, o, ids, n, &s, regular ? to_file : to_stream, err);
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    options o = {.top = c->model->n_vocab < TOP_DEFAULT ? c->model->n_vocab : TOP_DEFAULT};
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
    if (n == 0 || n > c->model->ctx) {
        return lb_err_set(err, n == 0 ? LB_BAD_VALUE : LB_LIMIT,
                          "%zu tokens; 1 to %u, the context, are possible", n, c->model->ctx);
    }
    return run_engine(c, &o, ids, (uint32_t)n, err);
}

const rt_cli_command rt_cmd_logits = {"logits", "show the logits after a text or token ids", run};
