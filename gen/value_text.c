/* value_text.c -- dump and JSON; see value_text.h. Parsing is jansson's, writing is ours, so that
 * layout and number forms cannot change with a library's version. */
#include "value_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 40 };

/* Which of the two forms a writer writes. */
typedef struct writer {
    lb_text *t;
    bool json;
} writer;

static void fail(writer *w, lb_code code, const char *what) {
    if (!w->t->failed) {
        w->t->failed = true;
        lb_err_set(&w->t->err, code, "%s", what);
    }
}

static void indent(writer *w, int depth) {
    lb_text_printf(w->t, "%*s", 2 * depth, "");
}

/* Length of the UTF-8 character at s (n_left bytes remain), or 0. Table 3-7 of the Unicode
 * standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
static size_t utf8_len(const unsigned char *s, size_t n_left) {
    if (s[0] < 0x80) {
        return 1;
    }
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n > n_left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    bool bad = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
               (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F);
    return bad ? 0 : n;
}

/* One character that needs an escape, in either form. */
static void write_escape(writer *w, unsigned char c) {
    switch (c) {
    case '"': lb_text_add(w->t, "\\\""); return;
    case '\\': lb_text_add(w->t, "\\\\"); return;
    case '\n': lb_text_add(w->t, "\\n"); return;
    case '\t': lb_text_add(w->t, "\\t"); return;
    default: lb_text_printf(w->t, w->json ? "\\u%04x" : "\\x%02x", c); return;
    }
}

static void write_string(writer *w, const lg_value *v) {
    const unsigned char *s = (const unsigned char *)v->u.string.bytes;
    size_t n = v->u.string.n_bytes;
    lb_text_add(w->t, "\"");
    for (size_t i = 0; i < n;) {
        size_t len = w->json ? utf8_len(s + i, n - i) : 1;
        if (len == 0) {
            fail(w, LB_BAD_FORMAT, "a string that is not UTF-8 cannot be written as JSON");
            return;
        }
        bool plain = s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] != 0x7F &&
                     (s[i] < 0x80 || w->json);
        if (plain) {
            lb_text_add_n(w->t, (const char *)s + i, len);
        } else {
            write_escape(w, s[i]);
        }
        i += len;
    }
    lb_text_add(w->t, "\"");
}

/* Fewest digits of 15, 16, 17 that read back as the same double. */
static void shortest(double d, char *to) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(to, NUMBER_BYTES, "%.*g", digits, d);
        if (strtod(to, NULL) == d) {
            return;
        }
    }
}

static void write_double(writer *w, double d) {
    char number[NUMBER_BYTES];
    if (!w->json) {
        if (isnan(d)) {
            lb_text_add(w->t, "nan");
            return;
        }
        lb_text_printf(w->t, "%a (%.17g)", d, d);
        return;
    }
    if (!isfinite(d)) {
        fail(w, LB_BAD_VALUE, "JSON has no infinity and no NaN");
        return;
    }
    shortest(d, number);
    lb_text_add(w->t, number);
    if (strpbrk(number, ".e") == NULL) {
        lb_text_add(w->t, ".0");
    }
}

static void write_scalar(writer *w, const lg_value *v) {
    switch (v->kind) {
    case LG_VALUE_BOOL: lb_text_add(w->t, v->u.boolean ? "true" : "false"); return;
    case LG_VALUE_INT: lb_text_printf(w->t, "%" PRId64, v->u.integer); return;
    case LG_VALUE_DOUBLE: write_double(w, v->u.real); return;
    case LG_VALUE_STRING: write_string(w, v); return;
    default: lb_text_add(w->t, w->json ? "null" : "nil"); return;
    }
}

static bool all_numbers(const lg_value *array) {
    for (size_t i = 0; i < array->u.array.n; i++) {
        lg_value_kind kind = array->u.array.items[i]->kind;
        if (kind != LG_VALUE_INT && kind != LG_VALUE_DOUBLE) {
            return false;
        }
    }
    return true;
}

static void write_value(writer *w, const lg_value *v, int depth);

static void write_array(writer *w, const lg_value *v, int depth) {
    bool one_line = all_numbers(v);
    lb_text_add(w->t, "[");
    for (size_t i = 0; i < v->u.array.n && !w->t->failed; i++) {
        if (one_line) {
            lb_text_add(w->t, i == 0 ? "" : ", ");
        } else {
            lb_text_add(w->t, i == 0 ? "\n" : ",\n");
            indent(w, depth + 1);
        }
        write_value(w, v->u.array.items[i], depth + 1);
    }
    if (!one_line) {
        lb_text_add(w->t, "\n");
        indent(w, depth);
    }
    lb_text_add(w->t, "]");
}

static void write_map(writer *w, const lg_value *v, int depth) {
    uint32_t *order = NULL;
    if (!w->json && !lg_value_sorted(v, w->t->arena, &order, &w->t->err)) {
        w->t->failed = true;
        return;
    }
    lb_text_add(w->t, v->u.map.n == 0 ? "{" : "{\n");
    for (size_t i = 0; i < v->u.map.n && !w->t->failed; i++) {
        const lg_value_entry *e = &v->u.map.entries[w->json ? i : order[i]];
        indent(w, depth + 1);
        write_string(w, e->key);
        lb_text_add(w->t, ": ");
        write_value(w, e->value, depth + 1);
        lb_text_add(w->t, i + 1 < v->u.map.n ? ",\n" : "\n");
    }
    if (v->u.map.n > 0) {
        indent(w, depth);
    }
    lb_text_add(w->t, "}");
}

static void write_value(writer *w, const lg_value *v, int depth) {
    if (depth > LG_VALUE_DEPTH_MAX) {
        fail(w, LB_LIMIT, "a value nested deeper than 64 levels");
        return;
    }
    switch (v->kind) {
    case LG_VALUE_ARRAY: write_array(w, v, depth); return;
    case LG_VALUE_MAP: write_map(w, v, depth); return;
    default: write_scalar(w, v); return;
    }
}

void lg_value_dump(const lg_value *v, lb_text *t) {
    writer w = {.t = t};
    write_value(&w, v, 0);
    lb_text_add(t, "\n");
}

bool lg_value_to_json(const lg_value *v, lb_text *t, lb_err *err) {
    writer w = {.t = t, .json = true};
    write_value(&w, v, 0);
    lb_text_add(t, "\n");
    return lb_text_done(t, err);
}

static lg_value *from_jansson(lg_builder *b, json_t *j, int depth);

static lg_value *from_object(lg_builder *b, json_t *j, int depth) {
    lg_value *map = lg_build_map(b);
    for (void *it = json_object_iter(j); it != NULL && !b->failed;
         it = json_object_iter_next(j, it)) {
        lg_build_set(b, map, json_object_iter_key(it),
                     from_jansson(b, json_object_iter_value(it), depth + 1));
    }
    return map;
}

static lg_value *from_array(lg_builder *b, json_t *j, int depth) {
    lg_value *array = lg_build_array(b);
    for (size_t i = 0; i < json_array_size(j) && !b->failed; i++) {
        lg_build_push(b, array, from_jansson(b, json_array_get(j, i), depth + 1));
    }
    return array;
}

static lg_value *from_jansson(lg_builder *b, json_t *j, int depth) {
    if (depth > LG_VALUE_DEPTH_MAX) {
        lb_err why;
        lb_err_set(&why, LB_LIMIT, "nested deeper than %d levels", LG_VALUE_DEPTH_MAX);
        lg_build_fail(b, &why);
        return NULL;
    }
    switch (json_typeof(j)) {
    case JSON_OBJECT: return from_object(b, j, depth);
    case JSON_ARRAY: return from_array(b, j, depth);
    case JSON_STRING: return lg_build_bytes(b, json_string_value(j), json_string_length(j));
    case JSON_INTEGER: return lg_build_int(b, json_integer_value(j));
    case JSON_REAL: return lg_build_double(b, json_real_value(j));
    case JSON_TRUE: return lg_build_bool(b, true);
    case JSON_FALSE: return lg_build_bool(b, false);
    case JSON_NULL: return lg_build_nil(b);
    }
    return NULL;
}

bool lg_value_from_json(const char *name, const char *text, size_t n_bytes, lb_arena *arena,
                        lg_value **out, lb_err *err) {
    json_error_t why;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *j = json_loadb(text, n_bytes, flags, &why);
    if (j == NULL) {
        return lb_err_set(err, LB_SYNTAX, "%s:%d:%d: %s", name, why.line, why.column, why.text);
    }
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *v = from_jansson(&b, j, 0);
    json_decref(j);
    if (!lg_build_done(&b, err)) {
        return lb_err_prefix(err, "%s", name);
    }
    *out = v;
    return true;
}
