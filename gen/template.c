/* template.c -- line-for-line translation; see template.h.
 *
 * A text line becomes lg_line(lg_o, literal, (expr), literal, ...), literals and expressions taking
 * turns; a lone ${expr} becomes lg_insert(lg_o, indentation, (expr)). */
#include "template.h"

#include <string.h>

/* The line being translated and what surrounds it. */
typedef struct translation {
    const char *name;
    lb_text *out;
    lb_err *err;
    int line;
    bool in_text;
} translation;

typedef struct span {
    const char *s;
    size_t n;
} span;

static bool syntax(const translation *t, const char *what) {
    return lb_err_set(t->err, LB_SYNTAX, "%s:%d: %s", t->name, t->line, what);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool starts(span l, const char *with) {
    size_t n = strlen(with);
    return l.n >= n && memcmp(l.s, with, n) == 0;
}

static span skip(span l, size_t n) {
    return (span){.s = l.s + n, .n = l.n - n};
}

static span trim(span l) {
    while (l.n > 0 && is_blank(l.s[0])) {
        l = skip(l, 1);
    }
    while (l.n > 0 && is_blank(l.s[l.n - 1])) {
        l.n--;
    }
    return l;
}

/* Takes the next line off `rest`, without its newline. */
static span take_line(span *rest) {
    const char *nl = memchr(rest->s, '\n', rest->n);
    span line = {.s = rest->s, .n = nl == NULL ? rest->n : (size_t)(nl - rest->s)};
    *rest = skip(*rest, nl == NULL ? line.n : line.n + 1);
    return line;
}

/* A Lua string literal of these bytes. Checked before: no control characters but tabs. */
static void put_literal(const translation *t, span l) {
    lb_text_add(t->out, "\"");
    for (size_t i = 0; i < l.n; i++) {
        if (l.s[i] == '"' || l.s[i] == '\\') {
            lb_text_add(t->out, "\\");
        }
        lb_text_add_n(t->out, l.s + i, 1);
    }
    lb_text_add(t->out, "\"");
}

/* Position behind a quoted Lua string that starts at i, or l.n if it does not end. */
static size_t skip_quoted(span l, size_t i) {
    char quote = l.s[i++];
    while (i < l.n && l.s[i] != quote) {
        i += l.s[i] == '\\' ? 2 : 1;
    }
    return i < l.n ? i + 1 : l.n;
}

/* l starts with "${"; the position of the '}' that closes it, or l.n. Braces nest; those in quoted
 * strings do not count. */
static size_t find_close(span l) {
    size_t depth = 0;
    for (size_t i = 2; i < l.n;) {
        if (l.s[i] == '"' || l.s[i] == '\'') {
            i = skip_quoted(l, i);
            continue;
        }
        if (l.s[i] == '}' && depth == 0) {
            return i;
        }
        depth += l.s[i] == '{';
        depth -= l.s[i] == '}';
        i++;
    }
    return l.n;
}

/* Writes "(expr)" for the ${expr} that l starts with; *used is its length. */
static bool put_expr(const translation *t, span l, size_t *used) {
    size_t close = find_close(l);
    if (close == l.n) {
        return syntax(t, "'${' without its '}' on the same line");
    }
    span expr = trim((span){.s = l.s + 2, .n = close - 2});
    if (expr.n == 0) {
        return syntax(t, "empty '${}'");
    }
    lb_text_add(t->out, "(");
    lb_text_add_n(t->out, expr.s, expr.n);
    lb_text_add(t->out, ")");
    *used = close + 1;
    return true;
}

static size_t find_dollar(span l) {
    for (size_t i = 0; i + 1 < l.n; i++) {
        if (l.s[i] == '$' && l.s[i + 1] == '{') {
            return i;
        }
    }
    return l.n;
}

static bool put_text_line(const translation *t, span l) {
    lb_text_add(t->out, "lg_line(lg_o, ");
    for (;;) {
        size_t at = find_dollar(l);
        put_literal(t, (span){.s = l.s, .n = at});
        if (at == l.n) {
            break;
        }
        size_t used = 0;
        lb_text_add(t->out, ", ");
        l = skip(l, at);
        if (!put_expr(t, l, &used)) {
            return false;
        }
        lb_text_add(t->out, ", ");
        l = skip(l, used);
    }
    lb_text_add(t->out, ")");
    return true;
}

/* A line of blanks and one ${expr}. */
static bool is_lone_expr(span l) {
    span inner = trim(l);
    return starts(inner, "${") && find_close(inner) == inner.n - 1;
}

static bool put_lone_expr(const translation *t, span l) {
    span inner = trim(l);
    size_t used = 0;
    lb_text_add(t->out, "lg_insert(lg_o, ");
    put_literal(t, (span){.s = l.s, .n = (size_t)(inner.s - l.s)});
    lb_text_add(t->out, ", ");
    if (!put_expr(t, inner, &used)) {
        return false;
    }
    lb_text_add(t->out, ")");
    return true;
}

static void close_text(translation *t) {
    if (t->in_text) {
        lb_text_add(t->out, "return lg_join(lg_o) end ");
    }
    t->in_text = false;
}

/* "name(a, b)": an identifier and a list of identifiers. */
static bool is_signature(span l) {
    size_t i = 0;
    while (i < l.n && is_name_char(l.s[i])) {
        i++;
    }
    bool named = i > 0 && !(l.s[0] >= '0' && l.s[0] <= '9');
    if (!named || i + 2 > l.n || l.s[i] != '(' || l.s[l.n - 1] != ')') {
        return false;
    }
    for (i++; i < l.n - 1; i++) {
        if (!is_name_char(l.s[i]) && l.s[i] != ',' && l.s[i] != ' ') {
            return false;
        }
    }
    return true;
}

static bool open_text(translation *t, span head) {
    if (head.n == 0) {
        lb_text_add(t->out, "function module.render(params) "
                            "local params <const>, _ENV <const> = lg_env(params) ");
    } else if (starts(head, "render(")) {
        return syntax(t, "'render' is the name of the plain %%template");
    } else if (is_signature(head)) {
        lb_text_add(t->out, "function module.");
        lb_text_add_n(t->out, head.s, head.n);
    } else {
        return syntax(t, "expected '%%template' or '%%template name(argument, ...)'");
    }
    lb_text_add(t->out, " local lg_o <const> = {}");
    t->in_text = true;
    return true;
}

/* The rest of a "%%template" line, or false. */
static bool is_template_line(span l, span *head) {
    static const char mark[] = "%%template";
    if (!starts(l, mark)) {
        return false;
    }
    span rest = skip(l, sizeof mark - 1);
    if (rest.n > 0 && !is_blank(rest.s[0])) {
        return false;
    }
    *head = trim(rest);
    return true;
}

static bool put_section(translation *t, span l) {
    close_text(t);
    span head;
    if (is_template_line(l, &head)) {
        return open_text(t, head);
    }
    if (starts(l, "%%lua") && trim(l).n == 5) {
        return true;
    }
    return syntax(t, "a line that starts with '%%' must be '%%template' or '%%lua'");
}

static bool check_bytes(const translation *t, span l) {
    for (size_t i = 0; i < l.n; i++) {
        unsigned char c = (unsigned char)l.s[i];
        if (c == '\r') {
            return syntax(t, "carriage return: lines end in a newline only");
        }
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return syntax(t, "control character");
        }
    }
    return true;
}

static bool put_line(translation *t, span l) {
    if (!check_bytes(t, l)) {
        return false;
    }
    if (starts(l, "%%")) {
        return put_section(t, l);
    }
    if (!t->in_text) {
        lb_text_add_n(t->out, l.s, l.n);
        return true;
    }
    span inner = trim(l);
    if (starts(inner, "%")) {
        lb_text_add_n(t->out, inner.s + 1, inner.n - 1);
        return true;
    }
    return is_lone_expr(l) ? put_lone_expr(t, l) : put_text_line(t, l);
}

static bool has_template_line(span rest) {
    span head;
    while (rest.n > 0) {
        if (is_template_line(take_line(&rest), &head)) {
            return true;
        }
    }
    return false;
}

bool lg_template_to_lua(const char *name, const char *text, size_t n_bytes, lb_text *out,
                        bool *is_template, lb_err *err) {
    translation t = {.name = name, .out = out, .err = err, .line = 1};
    span rest = {.s = text, .n = n_bytes};
    bool found = has_template_line(rest);
    if (found) {
        lb_text_add(out, "local module <const>, lg_line <const>, lg_insert <const>, "
                         "lg_join <const>, lg_env <const> = ... ");
    }
    for (; rest.n > 0; t.line++) {
        if (!put_line(&t, take_line(&rest))) {
            return false;
        }
        lb_text_add(out, "\n");
    }
    close_text(&t);
    *is_template = found;
    return lb_text_done(out, err);
}
