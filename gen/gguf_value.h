/* gguf_value.h -- typed access to the keys of a model file.
 *
 * Each accessor takes `absent`: the value for a key that is not there, or NULL if the key must be
 * (LB_MISSING). A key that is there must have the right type (LB_BAD_TYPE) and range (LB_BAD_VALUE,
 * LB_LIMIT above a stated limit); a wrong one is never replaced by `absent`. Integers may be stored
 * as any integer type, f32 as f32 or f64. Messages name key, value and limit. Outputs are untouched
 * on failure; copies are in the arena that is passed, strings stay in the map. */
#ifndef LG_GGUF_VALUE_H
#define LG_GGUF_VALUE_H

#include "gguf.h"

bool lg_gguf_u64(const lg_gguf *g, const char *key, const uint64_t *absent, uint64_t *out,
                 lb_err *err);
bool lg_gguf_i64(const lg_gguf *g, const char *key, const int64_t *absent, int64_t *out,
                 lb_err *err);
bool lg_gguf_u32(const lg_gguf *g, const char *key, const uint32_t *absent, uint32_t *out,
                 lb_err *err);
/* Also holds a value that is there against min <= value <= max. */
bool lg_gguf_u32_in(const lg_gguf *g, const char *key, const uint32_t *absent, uint32_t min,
                    uint32_t max, uint32_t *out, lb_err *err);
/* NaN, infinities and what f32 cannot hold are LB_BAD_VALUE. */
bool lg_gguf_f32(const lg_gguf *g, const char *key, const float *absent, float *out, lb_err *err);
bool lg_gguf_bool(const lg_gguf *g, const char *key, const bool *absent, bool *out, lb_err *err);
/* Required; any bytes, not even UTF-8 is promised. */
bool lg_gguf_str_key(const lg_gguf *g, const char *key, lg_gguf_str *out, lb_err *err);

/* general.architecture, required: 1..63 characters of a-z 0-9 _ - only, so that it may become part
 * of a file's name; NUL-terminated. */
bool lg_gguf_arch(const lg_gguf *g, lb_arena *arena, const char **out, lb_err *err);

/* <arch>.block_count, required: 1..LG_GGUF_MAX_LAYERS, and each of these layers, and no other, has
 * at least one tensor blk.<layer>.*. */
bool lg_gguf_n_layers(const lg_gguf *g, uint32_t *out, lb_err *err);

/* Arrays; an absent key is LB_MISSING (ask lg_gguf_find first where it may be). Elements of
 * integer arrays may be any integer type or bool. */
bool lg_gguf_i64s(const lg_gguf *g, const char *key, lb_arena *arena, const int64_t **out,
                  uint64_t *n, lb_err *err);
bool lg_gguf_f32s(const lg_gguf *g, const char *key, lb_arena *arena, const float **out,
                  uint64_t *n, lb_err *err);
bool lg_gguf_bools(const lg_gguf *g, const char *key, lb_arena *arena, const bool **out,
                   uint64_t *n, lb_err *err);
bool lg_gguf_strs(const lg_gguf *g, const char *key, lb_arena *arena, const lg_gguf_str **out,
                   uint64_t *n, lb_err *err);

/* A number per layer: one integer stands for all n of them, an array must have exactly n elements,
 * each 0..2^32-1. `absent` fills all. */
bool lg_gguf_u32_each(const lg_gguf *g, const char *key, const uint32_t *absent, uint64_t n,
                      lb_arena *arena, const uint32_t **out, lb_err *err);

/* One element of any value, for listings and for handing metadata on. */
typedef enum lg_gguf_kind {
    LG_GGUF_KIND_INT,  /* i */
    LG_GGUF_KIND_UINT, /* u, above 2^63-1 */
    LG_GGUF_KIND_REAL, /* f, any bits */
    LG_GGUF_KIND_BOOL, /* i: 0 or 1; another byte comes as LG_GGUF_KIND_INT */
    LG_GGUF_KIND_STR   /* s */
} lg_gguf_kind;

typedef struct lg_gguf_value {
    lg_gguf_kind kind;
    int64_t i;
    uint64_t u;
    double f;
    lg_gguf_str s;
} lg_gguf_value;

/* Walks a value's elements in order: `while (lg_gguf_next(&it, &v))`. A value that is no array has
 * one element. Allocates nothing. */
typedef struct lg_gguf_iter {
    const uint8_t *at;
    uint64_t left_bytes;
    uint64_t left_elems;
    lg_gguf_type type;
} lg_gguf_iter;

lg_gguf_iter lg_gguf_begin(const lg_gguf_kv *kv);
bool lg_gguf_next(lg_gguf_iter *it, lg_gguf_value *out);

/* Element i of any value, in one type. LB_BAD_TYPE if it is of another kind, LB_BAD_VALUE if there
 * is no element i or i64 cannot hold it. f64 gives any bits, NaN too; a bool is no integer here.
 * A string costs a walk over those before it: use lg_gguf_next for all of them. */
bool lg_gguf_elem_i64(const lg_gguf_kv *kv, uint64_t i, int64_t *out, lb_err *err);
bool lg_gguf_elem_f64(const lg_gguf_kv *kv, uint64_t i, double *out, lb_err *err);
bool lg_gguf_elem_str(const lg_gguf_kv *kv, uint64_t i, lg_gguf_str *out, lb_err *err);

/* "u32", "string", "array", ... as in messages. */
const char *lg_gguf_type_name(lg_gguf_type t);

#endif
