/* lex_string.c -- see lex_string.h. The value is never longer than its spelling: every escape takes
 * at least as many bytes as the character that it stands for. */
#include "jinja/lex_string.h"

#include <stdint.h>
#include <string.h>

#include "base/unicode.h"

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Up to `want` digits of `base` (8 or 16) at `s`; returns how many. */
static size_t read_digits(const char *s, size_t n, size_t want, int base, uint32_t *code) {
    size_t i = 0;
    *code = 0;
    while (i < n && i < want && hex_value(s[i]) >= 0 && hex_value(s[i]) < base) {
        *code = *code * (uint32_t)base + (uint32_t)hex_value(s[i]);
        i++;
    }
    return i;
}

/* A numeric escape at `s` (behind the backslash): the bytes it takes, 0 after setting err. */
static size_t numeric(const char *s, size_t n, uint32_t *code, lb_err *err) {
    size_t want = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (want == 0) {
        return read_digits(s, n, 3, 8, code);
    }
    if (read_digits(s + 1, n - 1, want, 16, code) != want) {
        lb_err_set(err, LB_SYNTAX, "cut \\%c escape in a string", s[0]);
        return 0;
    }
    return 1 + want;
}

/* The character of a one-letter escape, or -1. */
static int letter(char c) {
    const char *from = "ntr\\'\"abfv";
    const char *to = "\n\t\r\\'\"\a\b\f\v";
    const char *p = c == '\0' ? NULL : strchr(from, c);
    return p == NULL ? -1 : to[p - from];
}

/* One escape at `s` (behind the backslash) into `to`: bytes read, 0 after setting err. */
static size_t escape(const char *s, size_t n, char *to, size_t *n_to, lb_err *err) {
    if (letter(s[0]) >= 0) {
        to[(*n_to)++] = (char)letter(s[0]);
        return 1;
    }
    if (s[0] == '\n') {
        return 1;
    }
    if (s[0] == 'N') {
        lb_err_set(err, LB_UNSUPPORTED, "\\N{...} in a string is not supported");
        return 0;
    }
    if ((unsigned char)s[0] >= 0x80) { /* Python makes of it something that nobody means */
        lb_err_set(err, LB_UNSUPPORTED, "backslash before a character outside ASCII");
        return 0;
    }
    if (strchr("xuU01234567", s[0]) == NULL || s[0] == '\0') {
        to[(*n_to)++] = '\\';
        return SIZE_MAX;
    }
    uint32_t code = 0;
    size_t used = numeric(s, n, &code, err);
    if (used > 0 && (code >= LB_UNICODE_END || (code >= 0xD800 && code <= 0xDFFF))) {
        lb_err_set(err, LB_BAD_VALUE, "escape of U+%04X, which is no character", code);
        return 0;
    }
    if (used > 0) {
        *n_to += lb_utf8_encode(code, to + *n_to);
    }
    return used;
}

bool lg_jinja_unescape(const char *s, size_t n, lb_arena *arena, const char **out, size_t *n_out,
                       lb_err *err) {
    char *to = lb_alloc(arena, n + 1, err);
    if (to == NULL) {
        return false;
    }
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        if (s[i] != '\\' || i + 1 == n) {
            to[len++] = s[i++];
            continue;
        }
        size_t used = escape(s + i + 1, n - i - 1, to, &len, err);
        if (used == 0) {
            return false;
        }
        i += used == SIZE_MAX ? 1 : 1 + used;
    }
    *out = to;
    *n_out = len;
    return true;
}
