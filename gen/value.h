/* value.h -- lg_value: a JSON-like tree in an arena, the one form in which data crosses between C,
 * Lua and JSON files: graph parameters, launch descriptors, recipes, launches.json.
 *
 * A tree is built once, through an lg_builder, and is const from then on. Maps keep the order in
 * which keys were set and look up by hash. Reading with errors that name the path is in at.h,
 * text and JSON forms are in value_text.h. */
#ifndef LG_VALUE_H
#define LG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { LG_VALUE_DEPTH_MAX = 64 }; /* nesting that dump, JSON and the Lua host accept */

typedef enum lg_value_kind {
    LG_VALUE_NIL,
    LG_VALUE_BOOL,
    LG_VALUE_INT,
    LG_VALUE_DOUBLE,
    LG_VALUE_STRING,
    LG_VALUE_ARRAY,
    LG_VALUE_MAP
} lg_value_kind;

typedef struct lg_value lg_value;
typedef struct lg_value_entry lg_value_entry;

/* Fields may be read by anybody; only value.c writes them. */
struct lg_value {
    lg_value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct {
            const char *bytes; /* any bytes, NUL included; one NUL more behind the last */
            size_t n_bytes;
        } string;
        struct {
            const lg_value **items; /* never NULL inside */
            size_t n;
            size_t cap;
        } array;
        struct {
            lg_value_entry *entries; /* in the order of their first setting */
            size_t n;
            size_t cap;
            uint32_t *slots; /* open addressing, 2 * cap of them: entry number + 1, 0 = free */
        } map;
    } u;
};

struct lg_value_entry {
    const lg_value *key; /* a string */
    const lg_value *value;
    uint64_t hash;
};

/* The kind's name in messages: "nil", "bool", "integer", "double", "string", "array", "map". */
const char *lg_value_kind_name(lg_value_kind kind);

/* The value under `key` of a map, or NULL if there is none or `map` is no map. */
const lg_value *lg_value_find(const lg_value *map, const char *key);
const lg_value *lg_value_find_n(const lg_value *map, const char *key, size_t n_bytes);

/* Number of items of an array, of entries of a map, 0 for all else. */
size_t lg_value_count(const lg_value *v);

/* Same kind, same content; maps are equal whatever the order of their keys. Doubles compare by bit
 * pattern, and an integer never equals a double. `depth` beyond LG_VALUE_DEPTH_MAX is unequal. */
bool lg_value_equal(const lg_value *a, const lg_value *b);

/* Entry indexes of a map sorted by key bytes, in the arena. */
bool lg_value_sorted(const lg_value *map, lb_arena *arena, uint32_t **order, lb_err *err);

/* Builds trees. Errors stick: after the first failure every call returns NULL or does nothing, and
 * NULL is accepted as a value then; the builder's user checks once, with lg_build_done. */
typedef struct lg_builder {
    lb_arena *arena;
    bool failed;
    lb_err err;
} lg_builder;

void lg_build_init(lg_builder *b, lb_arena *arena);
bool lg_build_done(lg_builder *b, lb_err *err);

/* New values. Strings are copied. lg_build_uint fails with LB_OVERFLOW above INT64_MAX. */
lg_value *lg_build_nil(lg_builder *b);
lg_value *lg_build_bool(lg_builder *b, bool v);
lg_value *lg_build_int(lg_builder *b, int64_t v);
lg_value *lg_build_uint(lg_builder *b, uint64_t v);
lg_value *lg_build_double(lg_builder *b, double v);
lg_value *lg_build_string(lg_builder *b, const char *s);
lg_value *lg_build_bytes(lg_builder *b, const char *s, size_t n_bytes);
lg_value *lg_build_array(lg_builder *b);
lg_value *lg_build_map(lg_builder *b);

/* A deep copy into the builder's arena; fails with LB_LIMIT beyond LG_VALUE_DEPTH_MAX levels. */
lg_value *lg_build_copy(lg_builder *b, const lg_value *v);

/* A map like `map` in which `key` has the value `item`, in its place if it was there, else last; other
 * values are shared. What is no map counts as an empty one. */
lg_value *lg_build_with(lg_builder *b, const lg_value *map, const char *key, const lg_value *item);

/* Appends to an array; sets a key of a map (a key that is already there fails: LB_DUPLICATE).
 * `item` may be a tree of another arena that lives at least as long. A container given to another
 * container must not change afterwards. */
void lg_build_push(lg_builder *b, lg_value *array, const lg_value *item);
void lg_build_set(lg_builder *b, lg_value *map, const char *key, const lg_value *item);
void lg_build_set_n(lg_builder *b, lg_value *map, const char *key, size_t n_bytes,
                    const lg_value *item);

/* lg_build_set with a new value. */
void lg_build_set_bool(lg_builder *b, lg_value *map, const char *key, bool v);
void lg_build_set_int(lg_builder *b, lg_value *map, const char *key, int64_t v);
void lg_build_set_uint(lg_builder *b, lg_value *map, const char *key, uint64_t v);
void lg_build_set_double(lg_builder *b, lg_value *map, const char *key, double v);
void lg_build_set_string(lg_builder *b, lg_value *map, const char *key, const char *s);

/* Fails the builder with this text, for callers that find a fault of their own. */
void lg_build_fail(lg_builder *b, const lb_err *why);

#endif
