/* json_read.c -- see json_read.h. One pass over the text, before jansson sees it, counts brackets
 * and values and finds the integers that need another form. */
#include "chat/json_read.h"

#include <string.h>

#include "base/num.h"

/* What a big integer becomes: a string that begins with a NUL, which nobody writes by chance. */
#define MARK "\\u0000int:"
static const char mark[] = "\0int:";
enum { MARK_BYTES = sizeof mark - 1, GROWTH_BYTES = sizeof MARK - 1 + 2 };

bool rt_is_big(const char *s, size_t n) {
    bool negative = n > 0 && s[0] == '-';
    const char *digits = s + negative;
    size_t n_digits = n - negative;
    for (size_t i = 0; i < n_digits; i++) {
        if (digits[i] < '0' || digits[i] > '9') {
            return false;
        }
    }
    if (n_digits < 19 || digits[0] == '0') {
        return false;
    }
    const char *most = negative ? "9223372036854775808" : "9223372036854775807";
    return n_digits > 19 || memcmp(digits, most, 19) > 0;
}

/* One past the string that begins at s[i]. */
static size_t string_end(const char *s, size_t n, size_t i) {
    for (i++; i < n && s[i] != '"'; i++) {
        i += s[i] == '\\' && i + 1 < n;
    }
    return i < n ? i + 1 : n;
}

static size_t number_end(const char *s, size_t n, size_t i) {
    while (i < n && ((s[i] >= '0' && s[i] <= '9') || strchr("+-.eE", s[i]) != NULL) &&
           s[i] != '\0') {
        i++;
    }
    return i;
}

static bool begins_number(char c) {
    return c == '-' || (c >= '0' && c <= '9');
}

typedef struct survey {
    size_t depth, deepest, n_values, n_bigs, most_digits;
} survey;

static survey look(const char *s, size_t n) {
    survey v = {.n_values = 1};
    for (size_t i = 0; i < n;) {
        char c = s[i];
        if (c == '"') {
            i = string_end(s, n, i);
            continue;
        }
        if (begins_number(c)) {
            size_t end = number_end(s, n, i);
            bool big = rt_is_big(s + i, end - i);
            v.n_bigs += big;
            v.most_digits = big && end - i > v.most_digits ? end - i : v.most_digits;
            i = end;
            continue;
        }
        v.depth += c == '[' || c == '{';
        v.deepest = v.depth > v.deepest ? v.depth : v.deepest;
        v.depth -= (c == ']' || c == '}') && v.depth > 0;
        v.n_values += c == ',' || c == ':' || c == '[' || c == '{';
        i++;
    }
    return v;
}

bool rt_json_is_modest(const char *s, size_t n) {
    survey v = look(s, n);
    return v.deepest <= RT_JSON_TEXT_DEPTH_MAX && v.n_values <= RT_JSON_TEXT_VALUES_MAX;
}

/* The text with its big integers in their other form. */
static bool rewrite(const char *s, size_t n, size_t n_bigs, lb_arena *arena, const char **out,
                    size_t *n_out, lb_err *err) {
    uint64_t more = 0;
    uint64_t bytes = 0;
    if (!lb_mul(n_bigs, GROWTH_BYTES, &more) || !lb_add(n, more, &bytes)) {
        return lb_err_set(err, LB_OVERFLOW, "JSON text of %zu bytes", n);
    }
    char *to = lb_alloc(arena, bytes, err);
    if (to == NULL) {
        return false;
    }
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        size_t end = s[i] == '"' ? string_end(s, n, i)
                     : begins_number(s[i]) ? number_end(s, n, i) : i + 1;
        bool big = s[i] != '"' && rt_is_big(s + i, end - i);
        if (big) {
            memcpy(to + at, "\"" MARK, sizeof MARK);
            at += sizeof MARK;
        }
        memcpy(to + at, s + i, end - i);
        at += end - i;
        if (big) {
            to[at++] = '"';
        }
        i = end;
    }
    *out = to;
    *n_out = at;
    return true;
}

bool rt_json_read(const char *s, size_t n, lb_arena *arena, json_t **out, lb_err *err) {
    survey v = look(s, n);
    if (v.deepest > RT_JSON_TEXT_DEPTH_MAX) {
        return lb_err_set(err, LB_LIMIT, "JSON: brackets stand %zu deep; the most is %d", v.deepest,
                          (int)RT_JSON_TEXT_DEPTH_MAX);
    }
    if (v.n_values > RT_JSON_TEXT_VALUES_MAX) {
        return lb_err_set(err, LB_LIMIT, "JSON: %zu values; the most is %d", v.n_values,
                          (int)RT_JSON_TEXT_VALUES_MAX);
    }
    if (v.most_digits > RT_BIG_DIGITS_MAX) {
        return lb_err_set(err, LB_LIMIT, "JSON: an integer of %zu digits; the most is %d",
                          v.most_digits, (int)RT_BIG_DIGITS_MAX);
    }
    if (v.n_bigs > 0 && !rewrite(s, n, v.n_bigs, arena, &s, &n, err)) {
        return false;
    }
    json_error_t why;
    json_t *json = json_loadb(s, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (json == NULL && json_error_code(&why) == json_error_out_of_memory) {
        return lb_err_set(err, LB_NO_MEMORY, "JSON: no memory for %zu bytes of text", n);
    }
    if (json == NULL) {
        return lb_err_set(err, LB_SYNTAX, "JSON, line %d, column %d: %s", why.line, why.column,
                          why.text);
    }
    *out = json;
    return true;
}

bool rt_json_big(const json_t *v, const char **digits, size_t *n_digits) {
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);
    if (s == NULL || n <= MARK_BYTES || memcmp(s, mark, MARK_BYTES) != 0 ||
        !rt_is_big(s + MARK_BYTES, n - MARK_BYTES)) {
        return false;
    }
    *digits = s + MARK_BYTES;
    *n_digits = n - MARK_BYTES;
    return true;
}
