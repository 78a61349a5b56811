/* value.c -- the value tree and its builder; see value.h. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

enum { FIRST_CAP = 4, MAP_ENTRIES_MAX = 1 << 24 };

const char *lg_value_kind_name(lg_value_kind kind) {
    static const char *const names[] = {"nil",    "bool",  "integer", "double",
                                        "string", "array", "map"};
    return names[kind];
}

/* FNV-1a, 64 bit. Only equality depends on it, never an order. */
static uint64_t hash_bytes(const char *s, size_t n_bytes) {
    uint64_t h = 14695981039346656037ULL;
    for (size_t i = 0; i < n_bytes; i++) {
        h = (h ^ (unsigned char)s[i]) * 1099511628211ULL;
    }
    return h;
}

static bool same_bytes(const char *a, size_t n_a, const char *b, size_t n_b) {
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a) == 0);
}

static bool key_is(const lg_value_entry *e, uint64_t hash, const char *key, size_t n_bytes) {
    return e->hash == hash &&
           same_bytes(e->key->u.string.bytes, e->key->u.string.n_bytes, key, n_bytes);
}

/* The slot that holds `key`, or the free one where it would go. The map has slots. */
static size_t find_slot(const lg_value *map, uint64_t hash, const char *key, size_t n_bytes) {
    size_t mask = 2 * map->u.map.cap - 1;
    size_t at = (size_t)hash & mask;
    for (;;) {
        uint32_t number = map->u.map.slots[at];
        if (number == 0 || key_is(&map->u.map.entries[number - 1], hash, key, n_bytes)) {
            return at;
        }
        at = (at + 1) & mask;
    }
}

const lg_value *lg_value_find_n(const lg_value *map, const char *key, size_t n_bytes) {
    if (map == NULL || map->kind != LG_VALUE_MAP || map->u.map.n == 0) {
        return NULL;
    }
    uint32_t number = map->u.map.slots[find_slot(map, hash_bytes(key, n_bytes), key, n_bytes)];
    return number == 0 ? NULL : map->u.map.entries[number - 1].value;
}

const lg_value *lg_value_find(const lg_value *map, const char *key) {
    return lg_value_find_n(map, key, strlen(key));
}

size_t lg_value_count(const lg_value *v) {
    switch (v->kind) {
    case LG_VALUE_ARRAY: return v->u.array.n;
    case LG_VALUE_MAP: return v->u.map.n;
    default: return 0;
    }
}

static bool equal_at(const lg_value *a, const lg_value *b, int depth);

static bool equal_items(const lg_value *a, const lg_value *b, int depth) {
    if (a->u.array.n != b->u.array.n) {
        return false;
    }
    for (size_t i = 0; i < a->u.array.n; i++) {
        if (!equal_at(a->u.array.items[i], b->u.array.items[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_entries(const lg_value *a, const lg_value *b, int depth) {
    if (a->u.map.n != b->u.map.n) {
        return false;
    }
    for (size_t i = 0; i < a->u.map.n; i++) {
        const lg_value_entry *e = &a->u.map.entries[i];
        const lg_value *other = lg_value_find_n(b, e->key->u.string.bytes,
                                                e->key->u.string.n_bytes);
        if (other == NULL || !equal_at(e->value, other, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_at(const lg_value *a, const lg_value *b, int depth) {
    if (a->kind != b->kind || depth > LG_VALUE_DEPTH_MAX) {
        return false;
    }
    switch (a->kind) {
    case LG_VALUE_NIL: return true;
    case LG_VALUE_BOOL: return a->u.boolean == b->u.boolean;
    case LG_VALUE_INT: return a->u.integer == b->u.integer;
    case LG_VALUE_DOUBLE: return memcmp(&a->u.real, &b->u.real, sizeof a->u.real) == 0;
    case LG_VALUE_STRING:
        return same_bytes(a->u.string.bytes, a->u.string.n_bytes, b->u.string.bytes,
                          b->u.string.n_bytes);
    case LG_VALUE_ARRAY: return equal_items(a, b, depth);
    case LG_VALUE_MAP: return equal_entries(a, b, depth);
    }
    return false;
}

bool lg_value_equal(const lg_value *a, const lg_value *b) {
    return equal_at(a, b, 0);
}

static int compare_keys(const lg_value *a, const lg_value *b) {
    size_t n_a = a->u.string.n_bytes;
    size_t n_b = b->u.string.n_bytes;
    int c = memcmp(a->u.string.bytes, b->u.string.bytes, n_a < n_b ? n_a : n_b);
    if (c != 0) {
        return c;
    }
    return (n_a > n_b) - (n_a < n_b);
}

/* qsort has no context argument, so each record carries its key. */
typedef struct sort_item {
    const lg_value *key;
    uint32_t index;
} sort_item;

static int compare_items(const void *a, const void *b) {
    const sort_item *x = a;
    const sort_item *y = b;
    return compare_keys(x->key, y->key);
}

bool lg_value_sorted(const lg_value *map, lb_arena *arena, uint32_t **order, lb_err *err) {
    size_t n = map->u.map.n;
    sort_item *items = lb_alloc_n(arena, n, sizeof *items, err);
    uint32_t *out = items == NULL ? NULL : lb_alloc_n(arena, n, sizeof *out, err);
    if (out == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = (sort_item){.key = map->u.map.entries[i].key, .index = (uint32_t)i};
    }
    qsort(items, n, sizeof *items, compare_items);
    for (size_t i = 0; i < n; i++) {
        out[i] = items[i].index;
    }
    *order = out;
    return true;
}

void lg_build_init(lg_builder *b, lb_arena *arena) {
    *b = (lg_builder){.arena = arena};
}

bool lg_build_done(lg_builder *b, lb_err *err) {
    if (b->failed && err != NULL) {
        *err = b->err;
    }
    return !b->failed;
}

void lg_build_fail(lg_builder *b, const lb_err *why) {
    if (!b->failed) {
        b->failed = true;
        b->err = *why;
    }
}

static lg_value *new_value(lg_builder *b, lg_value_kind kind) {
    if (b->failed) {
        return NULL;
    }
    lg_value *v = lb_alloc(b->arena, sizeof *v, &b->err);
    if (v == NULL) {
        b->failed = true;
        return NULL;
    }
    v->kind = kind;
    return v;
}

lg_value *lg_build_nil(lg_builder *b) {
    return new_value(b, LG_VALUE_NIL);
}

lg_value *lg_build_bool(lg_builder *b, bool v) {
    lg_value *out = new_value(b, LG_VALUE_BOOL);
    if (out != NULL) {
        out->u.boolean = v;
    }
    return out;
}

lg_value *lg_build_int(lg_builder *b, int64_t v) {
    lg_value *out = new_value(b, LG_VALUE_INT);
    if (out != NULL) {
        out->u.integer = v;
    }
    return out;
}

lg_value *lg_build_uint(lg_builder *b, uint64_t v) {
    if (!b->failed && v > INT64_MAX) {
        b->failed = true;
        lb_err_set(&b->err, LB_OVERFLOW, "%llu does not fit a 64-bit signed integer",
                   (unsigned long long)v);
    }
    return lg_build_int(b, (int64_t)v);
}

lg_value *lg_build_double(lg_builder *b, double v) {
    lg_value *out = new_value(b, LG_VALUE_DOUBLE);
    if (out != NULL) {
        out->u.real = v;
    }
    return out;
}

lg_value *lg_build_bytes(lg_builder *b, const char *s, size_t n_bytes) {
    lg_value *out = new_value(b, LG_VALUE_STRING);
    if (out == NULL) {
        return NULL;
    }
    out->u.string.bytes = lb_strndup(b->arena, s, n_bytes, &b->err);
    out->u.string.n_bytes = n_bytes;
    if (out->u.string.bytes == NULL) {
        b->failed = true;
        return NULL;
    }
    return out;
}

lg_value *lg_build_string(lg_builder *b, const char *s) {
    return lg_build_bytes(b, s, strlen(s));
}

lg_value *lg_build_array(lg_builder *b) {
    return new_value(b, LG_VALUE_ARRAY);
}

lg_value *lg_build_map(lg_builder *b) {
    return new_value(b, LG_VALUE_MAP);
}

static bool grow_array(lg_builder *b, lg_value *array) {
    size_t cap = array->u.array.cap == 0 ? FIRST_CAP : 2 * array->u.array.cap;
    const lg_value **items = lb_alloc_n(b->arena, cap, sizeof *items, &b->err);
    if (items == NULL) {
        b->failed = true;
        return false;
    }
    if (array->u.array.n > 0) {
        memcpy(items, array->u.array.items, array->u.array.n * sizeof *items);
    }
    array->u.array.items = items;
    array->u.array.cap = cap;
    return true;
}

void lg_build_push(lg_builder *b, lg_value *array, const lg_value *item) {
    if (b->failed) {
        return;
    }
    if (array->u.array.n == array->u.array.cap && !grow_array(b, array)) {
        return;
    }
    array->u.array.items[array->u.array.n++] = item;
}

/* Doubles entries and slots together and hashes all entries anew. */
static bool grow_map(lg_builder *b, lg_value *map) {
    size_t cap = map->u.map.cap == 0 ? FIRST_CAP : 2 * map->u.map.cap;
    if (cap > MAP_ENTRIES_MAX) {
        b->failed = true;
        return lb_err_set(&b->err, LB_LIMIT, "a map of more than %d keys", MAP_ENTRIES_MAX);
    }
    lg_value_entry *entries = lb_alloc_n(b->arena, cap, sizeof *entries, &b->err);
    uint32_t *slots = entries == NULL ? NULL
                                      : lb_alloc_n(b->arena, 2 * cap, sizeof *slots, &b->err);
    if (slots == NULL) {
        b->failed = true;
        return false;
    }
    if (map->u.map.n > 0) {
        memcpy(entries, map->u.map.entries, map->u.map.n * sizeof *entries);
    }
    map->u.map.entries = entries;
    map->u.map.slots = slots;
    map->u.map.cap = cap;
    for (size_t i = 0; i < map->u.map.n; i++) {
        const lg_value *key = entries[i].key;
        slots[find_slot(map, entries[i].hash, key->u.string.bytes, key->u.string.n_bytes)] =
            (uint32_t)i + 1;
    }
    return true;
}

void lg_build_set_n(lg_builder *b, lg_value *map, const char *key, size_t n_bytes,
                    const lg_value *item) {
    if (b->failed) {
        return;
    }
    if (lg_value_find_n(map, key, n_bytes) != NULL) {
        b->failed = true;
        int shown = n_bytes > 100 ? 100 : (int)n_bytes;
        lb_err_set(&b->err, LB_DUPLICATE, "key '%.*s' set twice", shown, key);
        return;
    }
    if (map->u.map.n == map->u.map.cap && !grow_map(b, map)) {
        return;
    }
    const lg_value *key_value = lg_build_bytes(b, key, n_bytes);
    if (key_value == NULL) {
        return;
    }
    uint64_t hash = hash_bytes(key, n_bytes);
    size_t slot = find_slot(map, hash, key, n_bytes);
    map->u.map.entries[map->u.map.n++] =
        (lg_value_entry){.key = key_value, .value = item, .hash = hash};
    map->u.map.slots[slot] = (uint32_t)map->u.map.n;
}

void lg_build_set(lg_builder *b, lg_value *map, const char *key, const lg_value *item) {
    lg_build_set_n(b, map, key, strlen(key), item);
}

void lg_build_set_bool(lg_builder *b, lg_value *map, const char *key, bool v) {
    lg_build_set(b, map, key, lg_build_bool(b, v));
}

void lg_build_set_int(lg_builder *b, lg_value *map, const char *key, int64_t v) {
    lg_build_set(b, map, key, lg_build_int(b, v));
}

void lg_build_set_uint(lg_builder *b, lg_value *map, const char *key, uint64_t v) {
    lg_build_set(b, map, key, lg_build_uint(b, v));
}

void lg_build_set_double(lg_builder *b, lg_value *map, const char *key, double v) {
    lg_build_set(b, map, key, lg_build_double(b, v));
}

void lg_build_set_string(lg_builder *b, lg_value *map, const char *key, const char *s) {
    lg_build_set(b, map, key, lg_build_string(b, s));
}

static lg_value *copy_at(lg_builder *b, const lg_value *v, int depth);

static lg_value *copy_map(lg_builder *b, const lg_value *v, int depth) {
    lg_value *out = lg_build_map(b);
    for (size_t i = 0; i < v->u.map.n && !b->failed; i++) {
        const lg_value_entry *e = &v->u.map.entries[i];
        lg_build_set_n(b, out, e->key->u.string.bytes, e->key->u.string.n_bytes,
                       copy_at(b, e->value, depth + 1));
    }
    return out;
}

static lg_value *copy_array(lg_builder *b, const lg_value *v, int depth) {
    lg_value *out = lg_build_array(b);
    for (size_t i = 0; i < v->u.array.n && !b->failed; i++) {
        lg_build_push(b, out, copy_at(b, v->u.array.items[i], depth + 1));
    }
    return out;
}

static lg_value *copy_at(lg_builder *b, const lg_value *v, int depth) {
    if (!b->failed && depth > LG_VALUE_DEPTH_MAX) {
        b->failed = true;
        lb_err_set(&b->err, LB_LIMIT, "a value nested deeper than %d levels", LG_VALUE_DEPTH_MAX);
    }
    switch (v->kind) {
    case LG_VALUE_NIL: return lg_build_nil(b);
    case LG_VALUE_BOOL: return lg_build_bool(b, v->u.boolean);
    case LG_VALUE_INT: return lg_build_int(b, v->u.integer);
    case LG_VALUE_DOUBLE: return lg_build_double(b, v->u.real);
    case LG_VALUE_STRING: return lg_build_bytes(b, v->u.string.bytes, v->u.string.n_bytes);
    case LG_VALUE_ARRAY: return copy_array(b, v, depth);
    case LG_VALUE_MAP: return copy_map(b, v, depth);
    }
    return NULL;
}

lg_value *lg_build_copy(lg_builder *b, const lg_value *v) {
    return copy_at(b, v, 0);
}

lg_value *lg_build_with(lg_builder *b, const lg_value *map, const char *key, const lg_value *item) {
    lg_value *out = lg_build_map(b);
    bool there = false;
    for (size_t i = 0; map->kind == LG_VALUE_MAP && i < map->u.map.n; i++) {
        const lg_value_entry *e = &map->u.map.entries[i];
        bool own = strcmp(e->key->u.string.bytes, key) == 0;
        lg_build_set_n(b, out, e->key->u.string.bytes, e->key->u.string.n_bytes,
                       own ? item : e->value);
        there = there || own;
    }
    if (!there) {
        lg_build_set(b, out, key, item);
    }
    return out;
}
