/* lex.c -- see lex.h. One pass over the normalised source; `pos` only moves forward. */
#include "jinja/lex.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "jinja/lex_string.h"

typedef struct lexer {
    lb_arena *arena;
    lb_err *err;
    const char *src; /* normalised */
    size_t n, pos;
    uint32_t line;
    size_t line_start;
    bool line_starting; /* the last match ended in a newline, or nothing was matched yet */
    lg_jtok *toks;
    size_t n_toks, cap_toks;
    char closers[256]; /* brackets that are open inside a tag */
    size_t n_closers;
} lexer;

bool lg_jinja_fail(lb_err *err, lb_code code, uint32_t line, uint32_t col, const char *fmt, ...) {
    char what[LB_ERR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return lb_err_set(err, code, "chat template line %u, column %u: %s", line, col, what);
}

static uint32_t column(const lexer *x) {
    return (uint32_t)(x->pos - x->line_start) + 1;
}

static bool bad(lexer *x, const char *what) {
    return lg_jinja_fail(x->err, LB_SYNTAX, x->line, column(x), "%s", what);
}

/* Moves over `n` bytes, counting lines. */
static void advance(lexer *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x->src[x->pos + i] == '\n') {
            x->line++;
            x->line_start = x->pos + i + 1;
        }
    }
    x->pos += n;
}

static bool at(const lexer *x, size_t pos, const char *what) {
    size_t n = strlen(what);
    return pos <= x->n && n <= x->n - pos && memcmp(x->src + pos, what, n) == 0;
}

/* Bytes of the white space character at `s`, 0 if it is none. Python's \s: White_Space and the four
 * separators 1C..1F. */
static size_t space_bytes(const char *s, size_t n) {
    uint32_t code = 0;
    size_t len = lb_utf8_decode(s, n, &code);
    bool is = len > 0 && ((code >= 0x1C && code <= 0x1F) ||
                          (LB_UC(lb_unicode_category(code)) & LB_UC_SPACE) != 0);
    return is ? len : 0;
}

static size_t spaces_from(const lexer *x, size_t pos) {
    size_t n = 0;
    for (size_t len; (len = space_bytes(x->src + pos + n, x->n - pos - n)) > 0;) {
        n += len;
    }
    return n;
}

static lg_jtok *push(lexer *x, lg_jtok_kind kind) {
    if (x->n_toks == x->cap_toks) {
        size_t cap = x->cap_toks == 0 ? 256 : x->cap_toks * 2;
        lg_jtok *p = lb_alloc_n(x->arena, cap, sizeof *p, x->err);
        if (p == NULL) {
            return NULL;
        }
        if (x->n_toks > 0) {
            memcpy(p, x->toks, x->n_toks * sizeof *p);
        }
        x->toks = p;
        x->cap_toks = cap;
    }
    lg_jtok *t = &x->toks[x->n_toks++];
    *t = (lg_jtok){.kind = kind, .line = x->line, .col = column(x)};
    return t;
}

/* Template text up to `end`, its tail cut as the sign of the following tag asks. */
static bool data(lexer *x, size_t end, char sign, bool lstrip) {
    const char *s = x->src + x->pos;
    size_t n = end - x->pos;
    size_t keep = n;
    size_t tail = 0; /* where the trailing white space begins */
    size_t last_line = 0;
    for (size_t i = 0; i < n;) {
        size_t len = space_bytes(s + i, n - i);
        if (s[i] == '\n') {
            last_line = i + 1;
        }
        i += len > 0 ? len : 1;
        if (len == 0) {
            tail = i;
        }
    }
    if (sign == '-') {
        keep = tail;
    }
    if (sign == '\0' && lstrip && (last_line > 0 || x->line_starting) && tail <= last_line) {
        keep = last_line;
    }
    if (keep > 0) {
        lg_jtok *t = push(x, LG_JTOK_DATA);
        if (t == NULL) {
            return false;
        }
        t->text = s;
        t->n_text = keep;
    }
    advance(x, n);
    return true;
}

static char sign_at(const lexer *x, size_t pos) {
    bool is = pos < x->n && (x->src[pos] == '-' || x->src[pos] == '+');
    return is ? x->src[pos] : '\0';
}

/* Skips a match that ends a tag or comment and remembers whether it ended a line. */
static void finish(lexer *x, size_t n) {
    advance(x, n);
    x->line_starting = n > 0 && x->src[x->pos - 1] == '\n';
}

/* Length of the end of a block or comment ("%}" or "#}") at the position, its sign and the white
 * space or newline that belongs to it included; 0 if there is none. */
static size_t block_end(const lexer *x, size_t pos, const char *close) {
    if (at(x, pos, close)) {
        return 2 + (size_t)at(x, pos + 2, "\n");
    }
    char sign = sign_at(x, pos);
    if (sign == '\0' || !at(x, pos + 1, close)) {
        return 0;
    }
    return 3 + (sign == '-' ? spaces_from(x, pos + 3) : 0);
}

static bool comment(lexer *x) {
    size_t from = x->pos + 2 + (size_t)(sign_at(x, x->pos + 2) != '\0');
    for (size_t p = from; p < x->n; p++) {
        size_t len = block_end(x, p, "#}");
        if (len > 0) {
            finish(x, p + len - x->pos);
            return true;
        }
    }
    return bad(x, "comment without an end");
}

/* Length of `{% raw %}` (or endraw) at `pos`, 0 if it is something else. An opening raw tag keeps
 * the newline behind it: jinja2 has it so. */
static size_t raw_tag(const lexer *x, size_t pos, const char *word, bool opening) {
    if (!at(x, pos, "{%")) {
        return 0;
    }
    size_t p = pos + 2 + (size_t)(sign_at(x, pos + 2) != '\0');
    p += spaces_from(x, p);
    if (!at(x, p, word)) {
        return 0;
    }
    p += strlen(word);
    p += spaces_from(x, p);
    if (opening && at(x, p, "%}")) {
        return p + 2 - pos;
    }
    if (opening && !at(x, p, "-%}")) {
        return 0;
    }
    size_t len = block_end(x, p, "%}");
    return len == 0 ? 0 : p + len - pos;
}

static bool raw_block(lexer *x, size_t begin_len) {
    finish(x, begin_len);
    for (size_t p = x->pos; p < x->n; p++) {
        size_t len = raw_tag(x, p, "endraw", false);
        if (len > 0) {
            if (!data(x, p, sign_at(x, p + 2), true)) {
                return false;
            }
            finish(x, len);
            return true;
        }
    }
    return bad(x, "raw block without an end");
}

static bool is_name_byte(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static bool name(lexer *x) {
    size_t n = 1;
    while (x->pos + n < x->n && is_name_byte(x->src[x->pos + n], false)) {
        n++;
    }
    if (n > LG_JINJA_NAME_BYTES_MAX) {
        return lg_jinja_fail(x->err, LB_LIMIT, x->line, column(x),
                             "name of %zu characters; the limit is %d", n, LG_JINJA_NAME_BYTES_MAX);
    }
    lg_jtok *t = push(x, LG_JTOK_NAME);
    if (t == NULL) {
        return false;
    }
    t->text = x->src + x->pos;
    t->n_text = n;
    advance(x, n);
    return true;
}

static size_t digits_from(const lexer *x, size_t pos) {
    size_t n = 0;
    while (pos + n < x->n && x->src[pos + n] >= '0' && x->src[pos + n] <= '9') {
        n++;
    }
    return n;
}

/* Length of the fraction and exponent behind the digits that end at `pos`: 0 for an integer. */
static size_t float_tail(const lexer *x, size_t pos) {
    size_t n = 0;
    if (pos < x->n && x->src[pos] == '.' && digits_from(x, pos + 1) > 0) {
        n = 1 + digits_from(x, pos + 1);
    }
    if (pos + n < x->n && (x->src[pos + n] == 'e' || x->src[pos + n] == 'E')) {
        size_t e = n + 1 + (size_t)(sign_at(x, pos + n + 1) != '\0');
        size_t d = digits_from(x, pos + e);
        n = d > 0 ? e + d : n;
    }
    return n;
}

/* Decimal integers and floats. Python's 0x, 0b, 0o and digit groups with _ are refused. */
static bool number(lexer *x) {
    size_t n = digits_from(x, x->pos);
    bool after_dot = x->pos > 0 && x->src[x->pos - 1] == '.'; /* a.0.5 is two subscripts */
    size_t tail = after_dot ? 0 : float_tail(x, x->pos + n);
    char digits[64];
    if (n + tail >= sizeof digits) {
        return bad(x, "number with too many digits");
    }
    if (x->pos + n + tail < x->n && is_name_byte(x->src[x->pos + n + tail], true)) {
        return lg_jinja_fail(x->err, LB_UNSUPPORTED, x->line, column(x),
                             "only decimal numbers without '_' are supported");
    }
    if (tail == 0 && n > 1 && x->src[x->pos] == '0') {
        return bad(x, "integer with a leading zero");
    }
    memcpy(digits, x->src + x->pos, n + tail);
    digits[n + tail] = '\0';
    lg_jtok *t = push(x, tail > 0 ? LG_JTOK_FLOAT : LG_JTOK_INT);
    if (t == NULL) {
        return false;
    }
    errno = 0;
    if (tail > 0) {
        t->f = strtod(digits, NULL);
    } else {
        t->i = strtoll(digits, NULL, 10);
    }
    if (tail > 0 ? isinf(t->f) : errno == ERANGE) {
        return lg_jinja_fail(x->err, LB_LIMIT, x->line, column(x), "number %s is out of range",
                             digits);
    }
    advance(x, n + tail);
    return true;
}

static bool string(lexer *x) {
    char quote = x->src[x->pos];
    size_t end = x->pos + 1;
    while (end < x->n && x->src[end] != quote) {
        end += x->src[end] == '\\' ? 2 : 1;
    }
    if (end >= x->n) {
        return bad(x, "string without an end");
    }
    lg_jtok *t = push(x, LG_JTOK_STRING);
    if (t == NULL) {
        return false;
    }
    lb_err why = {0};
    if (!lg_jinja_unescape(x->src + x->pos + 1, end - x->pos - 1, x->arena, &t->text, &t->n_text,
                           &why)) {
        return lg_jinja_fail(x->err, why.code, x->line, column(x), "%s", why.text);
    }
    advance(x, end + 1 - x->pos);
    return true;
}

/* Keeps the stack of open brackets, so that `}}` inside a dict literal ends no tag. */
static bool bracket(lexer *x, char c) {
    const char *opens = "([{";
    const char *closes = ")]}";
    const char *o = strchr(opens, c);
    if (o != NULL) {
        if (x->n_closers == sizeof x->closers) {
            return bad(x, "brackets nested too deep");
        }
        x->closers[x->n_closers++] = closes[o - opens];
        return true;
    }
    if (strchr(closes, c) == NULL) {
        return true;
    }
    if (x->n_closers == 0 || x->closers[x->n_closers - 1] != c) {
        return bad(x, "bracket that closes nothing");
    }
    x->n_closers--;
    return true;
}

static bool operator_token(lexer *x) {
    static const struct { char text[3]; int op; } pairs[] = {
        {"==", LG_JOP_EQ}, {"!=", LG_JOP_NE},       {"<=", LG_JOP_LE},
        {">=", LG_JOP_GE}, {"//", LG_JOP_FLOORDIV}, {"**", LG_JOP_POW},
    };
    int op = 0;
    size_t n = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (at(x, x->pos, pairs[i].text)) {
            op = pairs[i].op;
            n = 2;
        }
    }
    char c = x->src[x->pos];
    if (op == 0 && (c == '\0' || strchr("+-/*%~[](){}><=.:|,;", c) == NULL)) {
        return bad(x, "unexpected character in a tag");
    }
    if (op == 0 && !bracket(x, c)) {
        return false;
    }
    lg_jtok *t = push(x, LG_JTOK_OP);
    if (t == NULL) {
        return false;
    }
    t->op = op != 0 ? op : c;
    advance(x, n);
    return true;
}

/* The end of the tag at the position, 0 if it goes on. */
static size_t tag_end(const lexer *x, bool block) {
    if (x->n_closers > 0) {
        return 0;
    }
    if (block) {
        return block_end(x, x->pos, "%}");
    }
    if (at(x, x->pos, "-}}")) {
        return 3 + spaces_from(x, x->pos + 3);
    }
    return at(x, x->pos, "}}") ? 2 : 0;
}

static bool inside_tag(lexer *x, bool block) {
    x->n_closers = 0;
    while (x->pos < x->n) {
        size_t end = tag_end(x, block);
        if (end > 0) {
            bool ok = push(x, block ? LG_JTOK_BLOCK_END : LG_JTOK_VAR_END) != NULL;
            finish(x, end);
            return ok;
        }
        size_t blanks = spaces_from(x, x->pos);
        if (blanks > 0) {
            advance(x, blanks);
            continue;
        }
        char c = x->src[x->pos];
        bool ok = is_name_byte(c, true)        ? name(x)
                  : c >= '0' && c <= '9'       ? number(x)
                  : c == '\'' || c == '"'      ? string(x)
                                               : operator_token(x);
        if (!ok) {
            return false;
        }
    }
    return bad(x, "the template ends inside a tag");
}

static bool tag(lexer *x) {
    size_t raw = raw_tag(x, x->pos, "raw", true);
    if (raw > 0) {
        return raw_block(x, raw);
    }
    if (x->src[x->pos + 1] == '#') {
        return comment(x);
    }
    bool block = x->src[x->pos + 1] == '%';
    if (push(x, block ? LG_JTOK_BLOCK_BEGIN : LG_JTOK_VAR_BEGIN) == NULL) {
        return false;
    }
    advance(x, 2 + (size_t)(sign_at(x, x->pos + 2) != '\0'));
    return inside_tag(x, block);
}

static bool run(lexer *x) {
    while (x->pos < x->n) {
        size_t p = x->pos;
        while (p < x->n && !at(x, p, "{%") && !at(x, p, "{{") && !at(x, p, "{#")) {
            p++;
        }
        if (p == x->n) {
            return data(x, p, '+', false);
        }
        bool is_var = x->src[p + 1] == '{';
        if (!data(x, p, sign_at(x, p + 2), !is_var) || !tag(x)) {
            return false;
        }
    }
    return true;
}

/* Line ends to \n; one newline at the very end goes. */
static bool normalise(const char *src, size_t n, lb_arena *arena, char **out, size_t *n_out,
                      lb_err *err) {
    char *to = lb_alloc(arena, n + 1, err);
    if (to == NULL) {
        return false;
    }
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (src[i] == '\r') {
            to[len++] = '\n';
            i += (size_t)(i + 1 < n && src[i + 1] == '\n');
        } else {
            to[len++] = src[i];
        }
    }
    if (len > 0 && to[len - 1] == '\n') {
        len--;
    }
    *out = to;
    *n_out = len;
    return true;
}

bool lg_jinja_lex(const char *src, size_t n_bytes, lb_arena *arena, lg_jtok **out, size_t *n,
                  lb_err *err) {
    if (n_bytes > LG_JINJA_SOURCE_BYTES_MAX) {
        return lb_err_set(err, LB_LIMIT, "chat template of %zu bytes; the limit is %d", n_bytes,
                          LG_JINJA_SOURCE_BYTES_MAX);
    }
    size_t valid = lb_utf8_valid_bytes(src, n_bytes);
    if (valid < n_bytes) {
        return lb_err_set(err, LB_BAD_FORMAT, "chat template: byte %zu is not UTF-8", valid);
    }
    char *norm = NULL;
    lexer x = {.arena = arena, .err = err, .line = 1, .line_starting = true};
    if (!normalise(src, n_bytes, arena, &norm, &x.n, err)) {
        return false;
    }
    x.src = norm;
    if (!run(&x) || push(&x, LG_JTOK_EOF) == NULL) {
        return false;
    }
    *out = x.toks;
    *n = x.n_toks;
    return true;
}
