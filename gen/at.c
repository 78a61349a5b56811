/* at.c -- typed reading with paths; see at.h. */
#include "at.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 160, SHOWN_BYTES = 48 };

/* Appends, cutting silently: the path is for a message of bounded length. */
static size_t put(char *to, size_t at, const char *s) {
    int n = at < PATH_BYTES ? snprintf(to + at, PATH_BYTES - at, "%s", s) : 0;
    size_t end = at + (n < 0 ? 0 : (size_t)n);
    return end < PATH_BYTES ? end : PATH_BYTES - 1;
}

static size_t put_path(char *to, const lg_at *at, int depth) {
    if (at->parent == NULL || depth > LG_VALUE_DEPTH_MAX) {
        return put(to, 0, at->key == NULL ? "value" : at->key);
    }
    size_t n = put_path(to, at->parent, depth + 1);
    if (at->key != NULL) {
        return put(to, put(to, n, "."), at->key);
    }
    char index[32];
    snprintf(index, sizeof index, "[%zu]", at->index);
    return put(to, n, index);
}

bool lg_at_fail(const lg_at *at, const char *key, lb_err *err, lb_code code, const char *fmt, ...) {
    char path[PATH_BYTES];
    size_t n = put_path(path, at, 0);
    if (key != NULL) {
        put(path, put(path, n, "."), key);
    }
    char text[LB_ERR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return lb_err_set(err, code, "%s: %s", path, text);
}

/* Short text of a value for "got ...". */
static void show(const lg_value *v, char *to, size_t size) {
    const char *name = lg_value_kind_name(v->kind);
    switch (v->kind) {
    case LG_VALUE_NIL: snprintf(to, size, "nil"); return;
    case LG_VALUE_BOOL: snprintf(to, size, "%s", v->u.boolean ? "true" : "false"); return;
    case LG_VALUE_INT: snprintf(to, size, "%s %" PRId64, name, v->u.integer); return;
    case LG_VALUE_DOUBLE: snprintf(to, size, "%s %.17g", name, v->u.real); return;
    case LG_VALUE_STRING: snprintf(to, size, "%s '%.24s'", name, v->u.string.bytes); return;
    case LG_VALUE_ARRAY:
    case LG_VALUE_MAP: snprintf(to, size, "%s of %zu", name, lg_value_count(v)); return;
    }
}

static bool wrong_kind(const lg_at *at, const char *key, const lg_value *v, const char *wanted,
                       lb_err *err) {
    char got[SHOWN_BYTES];
    show(v, got, sizeof got);
    return lg_at_fail(at, key, err, LB_BAD_TYPE, "expected %s, got %s", wanted, got);
}

lg_at lg_at_root(const char *name, const lg_value *v) {
    return (lg_at){.value = v, .key = name};
}

bool lg_at_has(const lg_at *at, const char *key) {
    const lg_value *v = lg_value_find(at->value, key);
    return v != NULL && v->kind != LG_VALUE_NIL;
}

/* The value that a reader is about: at itself or a child of its map. */
static const lg_value *pick(const lg_at *at, const char *key, lb_err *err) {
    if (key == NULL) {
        return at->value;
    }
    if (at->value->kind != LG_VALUE_MAP) {
        wrong_kind(at, NULL, at->value, "map", err);
        return NULL;
    }
    const lg_value *v = lg_value_find(at->value, key);
    if (v == NULL) {
        lg_at_fail(at, key, err, LB_MISSING, "missing");
    }
    return v;
}

bool lg_at_key(const lg_at *at, const char *key, lg_at *out, lb_err *err) {
    const lg_value *v = pick(at, key, err);
    if (v == NULL) {
        return false;
    }
    *out = key == NULL ? *at : (lg_at){.value = v, .parent = at, .key = key};
    return true;
}

/* A container that Lua could not tell from the other kind: an empty table is an empty array. */
static bool pick_container(const lg_at *at, const char *key, lg_value_kind kind, lg_at *out,
                           size_t *n, lb_err *err) {
    lg_at child;
    if (!lg_at_key(at, key, &child, err)) {
        return false;
    }
    const lg_value *v = child.value;
    bool container = v->kind == LG_VALUE_ARRAY || v->kind == LG_VALUE_MAP;
    if (!container || (v->kind != kind && lg_value_count(v) > 0)) {
        return wrong_kind(at, key, v, lg_value_kind_name(kind), err);
    }
    *out = child;
    *n = lg_value_count(v);
    return true;
}

bool lg_at_array(const lg_at *at, const char *key, lg_at *out, size_t *n, lb_err *err) {
    return pick_container(at, key, LG_VALUE_ARRAY, out, n, err);
}

bool lg_at_map(const lg_at *at, const char *key, lg_at *out, size_t *n, lb_err *err) {
    return pick_container(at, key, LG_VALUE_MAP, out, n, err);
}

lg_at lg_at_item(const lg_at *at, size_t i) {
    return (lg_at){.value = at->value->u.array.items[i], .parent = at, .index = i};
}

lg_at lg_at_entry(const lg_at *at, size_t i) {
    const lg_value_entry *e = &at->value->u.map.entries[i];
    return (lg_at){.value = e->value, .parent = at, .key = e->key->u.string.bytes};
}

/* pick, and the kind must be `kind`. */
static const lg_value *pick_kind(const lg_at *at, const char *key, lg_value_kind kind,
                                 lb_err *err) {
    const lg_value *v = pick(at, key, err);
    if (v != NULL && v->kind != kind) {
        wrong_kind(at, key, v, lg_value_kind_name(kind), err);
        return NULL;
    }
    return v;
}

bool lg_at_bool(const lg_at *at, const char *key, bool *out, lb_err *err) {
    const lg_value *v = pick_kind(at, key, LG_VALUE_BOOL, err);
    if (v == NULL) {
        return false;
    }
    *out = v->u.boolean;
    return true;
}

bool lg_at_int(const lg_at *at, const char *key, int64_t *out, lb_err *err) {
    const lg_value *v = pick_kind(at, key, LG_VALUE_INT, err);
    if (v == NULL) {
        return false;
    }
    *out = v->u.integer;
    return true;
}

bool lg_at_uint(const lg_at *at, const char *key, uint64_t *out, lb_err *err) {
    int64_t v = 0;
    if (!lg_at_int(at, key, &v, err)) {
        return false;
    }
    if (v < 0) {
        return lg_at_fail(at, key, err, LB_BAD_VALUE, "%" PRId64 " is negative", v);
    }
    *out = (uint64_t)v;
    return true;
}

bool lg_at_u32(const lg_at *at, const char *key, uint32_t *out, lb_err *err) {
    uint64_t v = 0;
    if (!lg_at_uint(at, key, &v, err)) {
        return false;
    }
    if (v > UINT32_MAX) {
        return lg_at_fail(at, key, err, LB_BAD_VALUE, "%" PRIu64 " is above %" PRIu32, v,
                          UINT32_MAX);
    }
    *out = (uint32_t)v;
    return true;
}

bool lg_at_double(const lg_at *at, const char *key, double *out, lb_err *err) {
    const lg_value *v = pick(at, key, err);
    if (v == NULL) {
        return false;
    }
    if (v->kind == LG_VALUE_DOUBLE) {
        *out = v->u.real;
        return true;
    }
    int64_t exact = (int64_t)1 << 53;
    if (v->kind != LG_VALUE_INT || v->u.integer > exact || v->u.integer < -exact) {
        return wrong_kind(at, key, v, "double", err);
    }
    *out = (double)v->u.integer;
    return true;
}

bool lg_at_string(const lg_at *at, const char *key, const char **out, lb_err *err) {
    const lg_value *v = pick_kind(at, key, LG_VALUE_STRING, err);
    if (v == NULL) {
        return false;
    }
    if (memchr(v->u.string.bytes, '\0', v->u.string.n_bytes) != NULL) {
        return lg_at_fail(at, key, err, LB_BAD_VALUE, "a NUL byte inside '%.24s'",
                          v->u.string.bytes);
    }
    *out = v->u.string.bytes;
    return true;
}

/* True if an _or reader should take its default. A non-map is left to the reader to refuse. */
static bool absent_at(const lg_at *at, const char *key) {
    return at->value->kind == LG_VALUE_MAP && !lg_at_has(at, key);
}

bool lg_at_bool_or(const lg_at *at, const char *key, bool absent, bool *out, lb_err *err) {
    if (absent_at(at, key)) {
        *out = absent;
        return true;
    }
    return lg_at_bool(at, key, out, err);
}

bool lg_at_int_or(const lg_at *at, const char *key, int64_t absent, int64_t *out, lb_err *err) {
    if (absent_at(at, key)) {
        *out = absent;
        return true;
    }
    return lg_at_int(at, key, out, err);
}

bool lg_at_uint_or(const lg_at *at, const char *key, uint64_t absent, uint64_t *out, lb_err *err) {
    if (absent_at(at, key)) {
        *out = absent;
        return true;
    }
    return lg_at_uint(at, key, out, err);
}

bool lg_at_double_or(const lg_at *at, const char *key, double absent, double *out, lb_err *err) {
    if (absent_at(at, key)) {
        *out = absent;
        return true;
    }
    return lg_at_double(at, key, out, err);
}

bool lg_at_string_or(const lg_at *at, const char *key, const char *absent, const char **out,
                     lb_err *err) {
    if (absent_at(at, key)) {
        *out = absent;
        return true;
    }
    return lg_at_string(at, key, out, err);
}

static int index_of(const char *const *names, const char *s) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], s) == 0) {
            return i;
        }
    }
    return -1;
}

/* "a, b, c", cut to fit a message. */
static void list(const char *const *names, char *to) {
    size_t n = 0;
    to[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        n = put(to, n, i == 0 ? "" : ", ");
        n = put(to, n, names[i]);
    }
}

bool lg_at_choice(const lg_at *at, const char *key, const char *const *names, uint32_t *out,
                  lb_err *err) {
    const char *s = NULL;
    if (!lg_at_string(at, key, &s, err)) {
        return false;
    }
    int i = index_of(names, s);
    if (i < 0) {
        char all[PATH_BYTES];
        list(names, all);
        return lg_at_fail(at, key, err, LB_BAD_VALUE, "'%.32s' is not one of: %s", s, all);
    }
    *out = (uint32_t)i;
    return true;
}

bool lg_at_only(const lg_at *at, const char *const *names, lb_err *err) {
    lg_at map;
    size_t n = 0;
    if (!lg_at_map(at, NULL, &map, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lg_at entry = lg_at_entry(&map, i);
        const lg_value *key = map.value->u.map.entries[i].key;
        if (index_of(names, entry.key) < 0 || strlen(entry.key) != key->u.string.n_bytes) {
            char all[PATH_BYTES];
            list(names, all);
            return lg_at_fail(&map, entry.key, err, LB_BAD_VALUE, "unknown key; known: %s", all);
        }
    }
    return true;
}
