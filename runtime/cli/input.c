/* input.c -- see input.h; libedit on terminals. */
#define _GNU_SOURCE
#include "cli/input.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "base/unicode.h"

enum { HISTORY_LINES = 1000 };

struct rt_cli_input {
    const char *prompt;
    const volatile sig_atomic_t *interrupt;
    EditLine *el; /* NULL: not a terminal */
    History *history;
    char *line; /* of getline */
    size_t cap;
};

static char *show_prompt(EditLine *el) {
    rt_cli_input *in = NULL;
    el_get(el, EL_CLIENTDATA, &in);
    return (char *)(uintptr_t)in->prompt;
}

/* One byte: 1, or 0 at the end, or -1 when the read is interrupted. */
static int read_byte(const rt_cli_input *in, char *out) {
    for (;;) {
        ssize_t n = read(STDIN_FILENO, out, 1);
        if (n >= 0) {
            return (int)n;
        }
        if (errno != EINTR || *in->interrupt != 0) {
            return -1;
        }
    }
}

/* libedit's own reader goes on after an interrupt; this one does not. Bytes that are no UTF-8
 * come out as U+FFFD. */
static int read_character(EditLine *el, wchar_t *out) {
    rt_cli_input *in = NULL;
    char bytes[4];
    size_t n = 0;
    uint32_t code = LB_REPLACEMENT;
    el_get(el, EL_CLIENTDATA, &in);
    do {
        int got = read_byte(in, &bytes[n]);
        if (got <= 0) {
            return got;
        }
        n++;
    } while (lb_utf8_is_cut(bytes, n));
    lb_utf8_decode(bytes, n, &code);
    *out = (wchar_t)code;
    return 1;
}

static bool start_editor(rt_cli_input *in, const char *prog, lb_err *err) {
    HistEvent ev;
    setlocale(LC_CTYPE, "C.UTF-8"); /* for libedit; the environment has no say */
    in->el = el_init(prog, stdin, stdout, stderr);
    in->history = history_init();
    if (in->el == NULL || in->history == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "the line editor cannot start");
    }
    history(in->history, &ev, H_SETSIZE, HISTORY_LINES);
    history(in->history, &ev, H_SETUNIQUE, 1);
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_PROMPT, show_prompt);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_HIST, history, in->history);
    el_set(in->el, EL_SIGNAL, 0);
    el_set(in->el, EL_GETCFN, read_character);
    return true;
}

bool rt_cli_input_new(const char *prog, const char *prompt, const volatile sig_atomic_t *interrupt,
                      lb_arena *arena, rt_cli_input **out, lb_err *err) {
    rt_cli_input *in = lb_alloc(arena, sizeof *in, err);
    if (in == NULL) {
        return false;
    }
    in->prompt = prompt;
    in->interrupt = interrupt;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !start_editor(in, prog, err)) {
        rt_cli_input_free(in);
        return false;
    }
    *out = in;
    return true;
}

void rt_cli_input_free(rt_cli_input *in) {
    if (in != NULL) {
        if (in->history != NULL) {
            history_end(in->history);
        }
        if (in->el != NULL) {
            el_end(in->el);
        }
        free(in->line);
    }
}

bool rt_cli_input_is_terminal(const rt_cli_input *in) {
    return in->el != NULL;
}

static size_t without_newline(const char *line, size_t n) {
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) {
        n--;
    }
    return n;
}

rt_cli_got rt_cli_input_next(rt_cli_input *in, const char **line, size_t *n_bytes) {
    if (in->el == NULL) {
        ssize_t n = getline(&in->line, &in->cap, stdin);
        *line = in->line;
        *n_bytes = n < 0 ? 0 : without_newline(in->line, (size_t)n);
        return n < 0 ? RT_CLI_END : RT_CLI_LINE;
    }
    int n = 0;
    HistEvent ev;
    *line = el_gets(in->el, &n);
    if (*line == NULL || n <= 0) {
        return *in->interrupt != 0 ? RT_CLI_INTERRUPTED : RT_CLI_END;
    }
    *n_bytes = without_newline(*line, (size_t)n);
    if (*n_bytes > 0) {
        history(in->history, &ev, H_ENTER, *line);
    }
    return RT_CLI_LINE;
}
