/* common.c -- see cli.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/file.h"
#include "base/unicode.h"
#include "cli/cli.h"
#include "heap.h"

enum { FILE_MAX_BYTES = 256 * 1024 * 1024, READ_BYTES = 1 << 16, PROGRESS_MS = 100 };

double rt_cli_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool rt_cli_parse(rt_cli *c, const rt_cli_line *line, int argc, char **argv, bool *go,
                  lb_err *err) {
    bool help = false;
    lb_text text;
    lb_command cmd = {.summary = line->summary, .details = line->details,
                      .options = line->options, .n_options = line->n_options,
                      .positionals = line->positionals, .n_positionals = line->n_positionals};
    cmd.name = lb_format(&c->arena, err, "%s %s", c->prog, line->name);
    if (cmd.name == NULL || !lb_options_parse(&cmd, argc, argv, &help, err)) {
        return false;
    }
    *go = !help;
    if (help) {
        lb_text_init(&text, &c->arena);
        lb_options_help(&cmd, &text);
        if (!lb_text_done(&text, err)) {
            return false;
        }
        fwrite(text.data, 1, text.n_bytes, stdout);
    }
    return true;
}

/* ---- progress ---- */

void rt_cli_progress(const char *what, uint64_t done, uint64_t total) {
    if (isatty(STDERR_FILENO) && total > 0) {
        fprintf(stderr, "\r%s %3d %%\033[K", what, (int)((double)done * 100.0 / (double)total));
        fflush(stderr);
    }
}

void rt_cli_progress_end(void) {
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
}

/* Loading calls for every piece: a line every tenth of a second is enough. */
static void load_progress(void *arg, uint64_t done, uint64_t total) {
    double *next = arg;
    double now = rt_cli_seconds();
    if (now >= *next) {
        *next = now + PROGRESS_MS * 1e-3;
        rt_cli_progress("loading weights", done, total);
    }
}

/* What `info` calls "all else": what the command has taken of it before counts too. */
static bool limit_heap(const rt_cli *c, lb_err *err) {
    uint64_t in_force = 0;
    return rt_heap_limit(LB_HEAP_BYTES - c->arena.used_bytes, &in_force, err);
}

bool rt_cli_start(rt_cli *c, const rt_cli_team *team, lb_err *err) {
    char dir[PATH_MAX];
    double begin = rt_cli_seconds();
    double next = begin + PROGRESS_MS * 1e-3;
    rt_engine_opts o = {.n_threads = (uint32_t)team->n_threads, .device = team->device,
                        .load = {.dir = dir, .progress = load_progress, .progress_arg = &next}};
    if (!rt_program_dir(dir, sizeof dir, err) ||
        !rt_engine_start(c->model, &o, &c->engine, err) || !limit_heap(c, err)) {
        return false;
    }
    rt_cli_progress_end();
    if (team->chunk != 0) {
        c->engine->chunk = (uint32_t)team->chunk;
    }
    c->load_seconds = rt_cli_seconds() - begin;
    return true;
}

/* ---- text ---- */

/* Standard input, to its end. The arena keeps outgrown buffers; they add up to twice the text. */
static bool read_stdin(rt_cli *c, const char **text, size_t *n_bytes, lb_err *err) {
    size_t cap = READ_BYTES;
    size_t n = 0;
    char *buf = lb_alloc(&c->arena, cap, err);
    while (buf != NULL) {
        ssize_t got = read(STDIN_FILENO, buf + n, cap - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return lb_err_set(err, LB_IO, "standard input: cannot be read: %s", strerror(errno));
        }
        if (got == 0) {
            *text = buf;
            *n_bytes = n;
            return true;
        }
        n += (size_t)got;
        if (n > FILE_MAX_BYTES) {
            return lb_err_set(err, LB_LIMIT, "standard input: more than %d bytes", FILE_MAX_BYTES);
        }
        if (n == cap) {
            char *more = lb_alloc(&c->arena, 2 * cap, err);
            if (more != NULL) {
                memcpy(more, buf, n);
            }
            buf = more;
            cap *= 2;
        }
    }
    return false;
}

bool rt_cli_read(rt_cli *c, const rt_cli_text *t, const char **text, size_t *n_bytes,
                 lb_err *err) {
    if ((t->prompt == NULL) == (t->file == NULL)) {
        return lb_err_set(err, LB_USAGE, "give the text by -p TEXT or by -f FILE%s",
                          t->prompt == NULL ? "" : ", not by both");
    }
    if (t->prompt != NULL) {
        *text = t->prompt;
        *n_bytes = strlen(t->prompt);
        return true;
    }
    if (strcmp(t->file, "-") == 0) {
        return read_stdin(c, text, n_bytes, err);
    }
    char *read = NULL;
    if (!lb_read_file(t->file, FILE_MAX_BYTES, &c->arena, &read, n_bytes, err)) {
        return false;
    }
    *text = read;
    return true;
}

bool rt_cli_tokenizer(const rt_cli *c, const rt_tokenizer **out, lb_err *err) {
    if (c->model->tokenizer == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "%s has no tokenizer; only `logits` with token "
                          "ids, `bench`, `info` and `selftest` work", c->model->name);
    }
    *out = c->model->tokenizer;
    return true;
}

bool rt_cli_encode(const rt_cli *c, const rt_token_input *in, lb_arena *arena, uint32_t **ids,
                   size_t *n, lb_err *err) {
    const rt_tokenizer *tok = NULL;
    rt_token_scratch *scratch = NULL;
    /* A byte that is no UTF-8 is encoded as three. No token stands for less than a byte. */
    bool valid = lb_utf8_valid_bytes(in->text, in->n_bytes) == in->n_bytes;
    size_t most = (valid ? 1 : 3) * in->n_bytes + 1;
    size_t cap = most + 2;
    if (!rt_cli_tokenizer(c, &tok, err) ||
        !rt_token_scratch_new(tok, most, arena, &scratch, err)) {
        return false;
    }
    *ids = lb_alloc_n(arena, cap, sizeof **ids, err);
    return *ids != NULL && rt_token_encode(tok, in, scratch, *ids, cap, n, err);
}

void rt_cli_print_quoted(const char *text, size_t n_bytes) {
    putchar('"');
    for (size_t i = 0; i < n_bytes;) {
        uint32_t code = 0;
        unsigned char b = (unsigned char)text[i];
        size_t n = lb_utf8_decode(text + i, n_bytes - i, &code);
        if (b == '\n') {
            fputs("\\n", stdout);
        } else if (n == 0 || b < 0x20 || b == 0x7F) {
            printf("\\x%02x", b);
        } else {
            printf("%s%.*s", b == '"' || b == '\\' ? "\\" : "", (int)n, text + i);
        }
        i += n == 0 ? 1 : n;
    }
    putchar('"');
}
