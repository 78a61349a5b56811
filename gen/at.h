/* at.h -- typed reading of an lg_value tree, with errors that name the path:
 * "launches[3].dims.K: expected integer, got string 'x'".
 *
 * An lg_at is a value and the way to it. It lives on the caller's stack and points to its parent,
 * which must outlive it; nothing is allocated, the path is written only when an error needs it.
 * In every reader `key` is a key of the map at `at`, or NULL for the value at `at` itself.
 * Errors: LB_MISSING (no such key), LB_BAD_TYPE (another kind), LB_BAD_VALUE (out of range). */
#ifndef LG_AT_H
#define LG_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "value.h"

typedef struct lg_at {
    const lg_value *value;
    const struct lg_at *parent; /* NULL at the root */
    const char *key;            /* the root's name, a map key, or NULL for an array item */
    size_t index;               /* of an array item */
} lg_at;

/* The root of a tree; `name` starts every path, for example "kernel/matvec.c.lua". */
lg_at lg_at_root(const char *name, const lg_value *v);

/* True if the map at `at` has `key` and its value is not nil. */
bool lg_at_has(const lg_at *at, const char *key);

/* The child under `key`, of any kind; an array or a map with its number of items. `key` of the
 * child is the caller's pointer and must outlive it. */
bool lg_at_key(const lg_at *at, const char *key, lg_at *out, lb_err *err);
bool lg_at_array(const lg_at *at, const char *key, lg_at *out, size_t *n, lb_err *err);
bool lg_at_map(const lg_at *at, const char *key, lg_at *out, size_t *n, lb_err *err);

/* Item i of the array at `at`; entry i of the map at `at`, in insertion order (its key is in
 * out->key). i must be below the count. */
lg_at lg_at_item(const lg_at *at, size_t i);
lg_at lg_at_entry(const lg_at *at, size_t i);

/* Scalars. A uint is an integer >= 0; a double may be written as an integer that converts exactly;
 * a string must hold no NUL byte (read others from lg_value). */
bool lg_at_bool(const lg_at *at, const char *key, bool *out, lb_err *err);
bool lg_at_int(const lg_at *at, const char *key, int64_t *out, lb_err *err);
bool lg_at_uint(const lg_at *at, const char *key, uint64_t *out, lb_err *err);
bool lg_at_u32(const lg_at *at, const char *key, uint32_t *out, lb_err *err);
bool lg_at_double(const lg_at *at, const char *key, double *out, lb_err *err);
bool lg_at_string(const lg_at *at, const char *key, const char **out, lb_err *err);

/* The same with a value for an absent (or nil) key; a present one must still be right. */
bool lg_at_bool_or(const lg_at *at, const char *key, bool absent, bool *out, lb_err *err);
bool lg_at_int_or(const lg_at *at, const char *key, int64_t absent, int64_t *out, lb_err *err);
bool lg_at_uint_or(const lg_at *at, const char *key, uint64_t absent, uint64_t *out, lb_err *err);
bool lg_at_double_or(const lg_at *at, const char *key, double absent, double *out, lb_err *err);
bool lg_at_string_or(const lg_at *at, const char *key, const char *absent, const char **out,
                     lb_err *err);

/* A string that must be one of `names` (NULL-terminated); out receives its index. */
bool lg_at_choice(const lg_at *at, const char *key, const char *const *names, uint32_t *out,
                  lb_err *err);

/* The map at `at` has no key outside `names` (NULL-terminated): nothing is skipped silently. */
bool lg_at_only(const lg_at *at, const char *const *names, lb_err *err);

/* Sets err to "<path>[.key]: <text>" with any code and returns false, for checks of the caller. */
bool lg_at_fail(const lg_at *at, const char *key, lb_err *err, lb_code code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
