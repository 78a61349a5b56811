/* options.c -- see options.h. */
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

static bool is(const char *name, const char *arg, size_t n) {
    return name != NULL && strlen(name) == n && strncmp(name, arg, n) == 0;
}

static const lb_opt *find(const lb_command *c, const char *arg, size_t n) {
    for (uint32_t i = 0; i < c->n_options; i++) {
        const lb_opt *o = &c->options[i];
        if (is(o->name, arg, n) || is(o->brief, arg, n)) {
            return o;
        }
    }
    return NULL;
}

/* The option of which arg is the beginning, but for a second dash: "-out", or "-ou". */
static const lb_opt *one_dash(const lb_command *c, const char *arg) {
    size_t n = strcspn(arg, "=");
    for (uint32_t i = 0; n > 2 && i < c->n_options; i++) {
        if (strncmp(c->options[i].name + 1, arg, n) == 0) {
            return &c->options[i];
        }
    }
    return NULL;
}

static const struct {
    const char *name;
    uint64_t value;
} UNITS[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

enum { N_UNITS = sizeof UNITS / sizeof *UNITS };

static bool unit_of(const char *rest, uint64_t *unit) {
    for (size_t i = 0; i < N_UNITS; i++) {
        if (strcmp(rest, UNITS[i].name) == 0) {
            *unit = UNITS[i].value;
            return true;
        }
    }
    return false;
}

/* A size without a unit that is too small was mostly meant in one: the largest with which it is in
 * range and a TiB at most; NULL: none. */
static const char *unit_meant(const lb_opt *o, uint64_t n) {
    for (size_t i = N_UNITS; i-- > 1;) {
        uint64_t bytes = 0;
        if (n < (UINT64_C(1) << 40) / UNITS[i].value && lb_mul(n, UNITS[i].value, &bytes) &&
            (double)bytes >= o->min && (double)bytes <= o->max) {
            return UNITS[i].name;
        }
    }
    return NULL;
}

/* A value that passes 40 characters is cut, so that the limits behind it are not. */
static bool out_of_range(const lb_opt *o, const char *v, lb_err *err) {
    if (o->kind == LB_OPT_UINT || o->kind == LB_OPT_UINT_AUTO) {
        return lb_err_set(err, LB_USAGE, "%s: %.40s is out of range; it may be %.0f to %.0f",
                          o->name, v, o->min, o->max);
    }
    return lb_err_set(err, LB_USAGE, "%s: %.40s is out of range; it may be %g to %g", o->name, v,
                      o->min, o->max);
}

static bool parse_uint(const lb_opt *o, const char *v, lb_err *err) {
    char *end = NULL;
    errno = 0;
    uint64_t n = strtoull(v, &end, 10);
    uint64_t unit = 1;
    bool fits = errno == 0;
    if (v[0] < '0' || v[0] > '9' || !(o->bytes ? unit_of(end, &unit) : *end == '\0')) {
        return lb_err_set(err, LB_USAGE, "%s: '%s' is not a %s", o->name, v,
                          o->bytes                          ? "size (a number, or one with KiB, MiB, GiB)"
                          : o->kind == LB_OPT_UINT_AUTO ? "whole number, nor auto"
                                                        : "whole number");
    }
    const char *meant = NULL;
    if (fits && o->bytes && unit == 1 && (double)n < o->min && (meant = unit_meant(o, n)) != NULL) {
        return lb_err_set(err, LB_USAGE,
                          "%s: %" PRIu64 " bytes is out of range; it may be %.0f to %.0f; did you "
                          "mean %" PRIu64 "%s?",
                          o->name, n, o->min, o->max, n, meant);
    }
    if (!fits || !lb_mul(n, unit, &n) || (double)n < o->min || (double)n > o->max) {
        return out_of_range(o, v, err);
    }
    *(uint64_t *)o->out = n;
    return true;
}

static bool parse_auto(const lb_opt *o, const char *v, lb_err *err) {
    if (strcmp(v, "auto") != 0) {
        return parse_uint(o, v, err);
    }
    *(uint64_t *)o->out = 0;
    return true;
}

/* Numbers are written in decimal. One too small for a float would become 0, which means another
 * thing for most options, so it is out of range. */
static bool parse_double(const lb_opt *o, const char *v, lb_err *err) {
    char *end = NULL;
    double d = strtod(v, &end);
    if (v[0] == '\0' || *end != '\0' || v[strspn(v, "0123456789.+-eE")] != '\0') {
        return lb_err_set(err, LB_USAGE, "%s: '%s' is not a number", o->name, v);
    }
    bool zero = strchr("eE", v[strspn(v, "+-.0")]) != NULL; /* or the end: only zeros */
    if (!(d >= o->min && d <= o->max) || (!zero && fabs(d) < FLT_MIN)) {
        return out_of_range(o, v, err);
    }
    *(double *)o->out = d;
    return true;
}

/* The next of the words that stand in `*words`, parted by '|'; its length, 0 behind the last. */
static size_t next_word(const char **words, const char **word) {
    *words += **words == '|';
    *word = *words;
    size_t n = strcspn(*words, "|");
    *words += n;
    return n;
}

/* One of a row's words, in its own spelling. */
static bool parse_word(const lb_opt *o, const char *v, lb_err *err) {
    char list[128] = "";
    size_t at = 0;
    const char *rest = o->value;
    const char *word = NULL;
    for (size_t n; (n = next_word(&rest, &word)) > 0;) {
        if (strlen(v) == n && strncmp(word, v, n) == 0) {
            *(const char **)o->out = v;
            return true;
        }
        int more = snprintf(list + at, sizeof list - at, "%s%.*s", at == 0 ? "" : ", ", (int)n, word);
        at += more > 0 && (size_t)more < sizeof list - at ? (size_t)more : 0;
    }
    return lb_err_set(err, LB_USAGE, "%s: '%.40s' is none of %s", o->name, v, list);
}

static bool take(const lb_opt *o, const char *v, lb_err *err) {
    if (o->given != NULL) {
        *o->given = true;
    }
    switch (o->kind) {
    case LB_OPT_FLAG: *(bool *)o->out = true; return true;
    case LB_OPT_NAME:
    case LB_OPT_WORD:
        if (v[0] == '\0') {
            return lb_err_set(err, LB_USAGE, "%s needs a value (%s), not an empty one",
                              o->name, o->value);
        }
        return o->kind == LB_OPT_NAME ? (*(const char **)o->out = v, true) : parse_word(o, v, err);
    case LB_OPT_TEXT: *(const char **)o->out = v; return true;
    case LB_OPT_UINT: return parse_uint(o, v, err);
    case LB_OPT_UINT_AUTO: return parse_auto(o, v, err);
    case LB_OPT_DOUBLE: return parse_double(o, v, err);
    case LB_OPT_REPEAT: break;
    }
    lb_opt_list *list = o->out;
    if (list->n == LB_OPT_LIST_MAX) {
        return lb_err_set(err, LB_USAGE, "%s: given more than %d times", o->name, LB_OPT_LIST_MAX);
    }
    list->items[list->n++] = v;
    return true;
}

/* The option that arg names; its value stands in arg, behind '=' or a short name, or *value is
 * NULL: a flag, or the value is the next argument. */
static const lb_opt *option_at(const lb_command *c, const char *arg, const char **value) {
    size_t n = strcspn(arg, "=");
    const lb_opt *o = find(c, arg, n);
    *value = arg[n] == '=' ? arg + n + 1 : NULL;
    if (o != NULL || arg[0] != '-' || arg[1] == '-' || arg[1] == '\0' || one_dash(c, arg) != NULL) {
        return o;
    }
    o = find(c, arg, 2);
    *value = arg + 2;
    return o != NULL && o->kind != LB_OPT_FLAG ? o : NULL;
}

static bool unknown(const lb_command *c, const char *arg, lb_err *err) {
    const lb_opt *meant = one_dash(c, arg);
    return meant == NULL
               ? lb_err_set(err, LB_USAGE, "unknown option '%s'; %s --help lists them", arg, c->name)
               : lb_err_set(err, LB_USAGE, "unknown option '%s'; %s has two dashes", arg, meant->name);
}

/* One option at argv[*i]. `seen` has a place for each row. */
static bool parse_option(const lb_command *c, int argc, char *const *argv, int *i, bool *seen,
                         lb_err *err) {
    const char *arg = argv[*i];
    const char *value = NULL;
    const char *unused = NULL;
    const lb_opt *o = option_at(c, arg, &value);
    if (o == NULL) {
        return unknown(c, arg, err);
    }
    if (seen[o - c->options] && o->kind != LB_OPT_REPEAT) {
        return lb_err_set(err, LB_USAGE, "%s is given twice", o->name);
    }
    seen[o - c->options] = true;
    if (o->kind == LB_OPT_FLAG) {
        return value == NULL ? take(o, NULL, err)
                             : lb_err_set(err, LB_USAGE, "%s takes no value", o->name);
    }
    if (value != NULL) {
        return take(o, value, err);
    }
    if (*i + 1 >= argc) {
        return lb_err_set(err, LB_USAGE, "%s needs a value (%s)", o->name, o->value);
    }
    (*i)++;
    /* `-o --json`: a forgotten value, and not a file of that name. Any text can be a prompt. */
    if ((o->kind == LB_OPT_NAME || o->kind == LB_OPT_WORD) && option_at(c, argv[*i], &unused) != NULL) {
        return lb_err_set(err, LB_USAGE,
                          "%s needs a value (%s), and '%s' is an option; %s=%s would take it",
                          o->name, o->value, argv[*i], o->name, argv[*i]);
    }
    return take(o, argv[*i], err);
}

/* --help in an option's place; as an option's value it is a value. */
static bool wants_help(const lb_command *c, int argc, char *const *argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = NULL;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
        const lb_opt *o = option_at(c, argv[i], &value);
        i += o != NULL && o->kind != LB_OPT_FLAG && value == NULL;
    }
    return false;
}

static bool take_positional(const lb_command *c, uint32_t n, const char *arg, lb_err *err) {
    if (n == c->n_positionals) {
        return lb_err_set(err, LB_USAGE, "unexpected argument '%s'; %s --help shows the usage", arg,
                          c->name);
    }
    if (arg[0] == '\0') {
        return lb_err_set(err, LB_USAGE, "%s is empty; see %s --help", c->positionals[n].name,
                          c->name);
    }
    *c->positionals[n].out = arg;
    return true;
}

bool lb_options_parse(const lb_command *c, int argc, char *const *argv, bool *help, lb_err *err) {
    bool seen[LB_OPT_ROWS_MAX] = {false};
    uint32_t n = 0;
    bool only_positional = false;
    assert(c->n_options <= LB_OPT_ROWS_MAX);
    *help = wants_help(c, argc, argv);
    if (*help) {
        return true;
    }
    for (int i = 0; i < argc; i++) {
        if (!only_positional && strcmp(argv[i], "--") == 0) {
            only_positional = true;
            continue;
        }
        if (!only_positional && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(c, argc, argv, &i, seen, err)) {
                return false;
            }
        } else if (!take_positional(c, n, argv[i], err)) {
            return false;
        } else {
            n++;
        }
    }
    if (n < c->n_positionals && c->positionals[n].required) {
        return lb_err_set(err, LB_USAGE, "%s needs %s; see %s --help", c->name,
                          c->positionals[n].name, c->name);
    }
    return true;
}

/* Help text: continuation lines stand under the first. */
static void help_lines(lb_text *out, const char *head, const char *text) {
    enum { COLUMN = 28 };
    size_t n = strlen(head);
    lb_text_printf(out, "  %s", head);
    lb_text_printf(out, n + 3 > COLUMN ? "\n%*s" : "%*s",
                   n + 3 > COLUMN ? COLUMN : COLUMN - 2 - (int)n, "");
    for (const char *p = text; *p != '\0';) {
        size_t len = strcspn(p, "\n");
        lb_text_add_n(out, p, len);
        p += len;
        if (*p == '\n') {
            p++;
            lb_text_printf(out, "\n%*s", COLUMN, "");
        }
    }
    lb_text_add(out, "\n");
}

static void help_option(const lb_opt *o, lb_text *out) {
    char head[80];
    snprintf(head, sizeof head, "%s%s%s%s%s", o->brief != NULL ? o->brief : "",
             o->brief != NULL ? ", " : "", o->name, o->kind == LB_OPT_FLAG ? "" : " ",
             o->kind == LB_OPT_FLAG ? "" : o->value);
    help_lines(out, head, o->help);
}

void lb_options_help(const lb_command *c, lb_text *out) {
    lb_text_printf(out, "usage: %s", c->name);
    for (uint32_t i = 0; i < c->n_positionals; i++) {
        bool must = c->positionals[i].required;
        lb_text_printf(out, " %s%s%s", must ? "" : "[", c->positionals[i].name, must ? "" : "]");
    }
    lb_text_printf(out, "%s\n\n%s\n", c->n_options > 0 ? " [options]" : "", c->summary);
    if (c->details != NULL) {
        lb_text_printf(out, "\n%s\n", c->details);
    }
    if (c->n_positionals > 0) {
        lb_text_add(out, "\narguments:\n");
    }
    for (uint32_t i = 0; i < c->n_positionals; i++) {
        help_lines(out, c->positionals[i].name, c->positionals[i].help);
    }
    lb_text_add(out, "\noptions:\n");
    for (uint32_t i = 0; i < c->n_options; i++) {
        help_option(&c->options[i], out);
    }
    help_lines(out, "-h, --help", "show this text");
}
