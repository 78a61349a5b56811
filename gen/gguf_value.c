/* gguf_value.c -- typed access to keys; see gguf_value.h. Only this file knows how a value's bytes
 * become a number. */
#include "gguf_value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gguf_bits.h"

const char *lg_gguf_type_name(lg_gguf_type t) {
    return lg_bits_type_name(t);
}

static double bits_f32(const uint8_t *p) {
    uint32_t bits = lg_bits_u32(p);
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double bits_f64(const uint8_t *p) {
    uint64_t bits = lg_bits_u64(p);
    double f = 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static lg_gguf_value of_int(int64_t i) {
    return (lg_gguf_value){.kind = LG_GGUF_KIND_INT, .i = i, .u = i < 0 ? 0 : (uint64_t)i};
}

static lg_gguf_value of_uint(uint64_t u) {
    if (u <= INT64_MAX) {
        return of_int((int64_t)u);
    }
    return (lg_gguf_value){.kind = LG_GGUF_KIND_UINT, .u = u};
}

static lg_gguf_value of_real(double f) {
    return (lg_gguf_value){.kind = LG_GGUF_KIND_REAL, .f = f};
}

static lg_gguf_value of_bool(uint8_t byte) {
    lg_gguf_value v = of_int(byte);
    v.kind = byte <= 1 ? LG_GGUF_KIND_BOOL : LG_GGUF_KIND_INT;
    return v;
}

/* The element of fixed size at p. */
static lg_gguf_value decode(lg_gguf_type t, const uint8_t *p) {
    switch (t) {
    case LG_GGUF_U8: return of_int(p[0]);
    case LG_GGUF_I8: return of_int((int8_t)p[0]);
    case LG_GGUF_U16: return of_int(lg_bits_u16(p));
    case LG_GGUF_I16: return of_int((int16_t)lg_bits_u16(p));
    case LG_GGUF_U32: return of_int(lg_bits_u32(p));
    case LG_GGUF_I32: return of_int((int32_t)lg_bits_u32(p));
    case LG_GGUF_U64: return of_uint(lg_bits_u64(p));
    case LG_GGUF_I64: return of_int((int64_t)lg_bits_u64(p));
    case LG_GGUF_F32: return of_real(bits_f32(p));
    case LG_GGUF_F64: return of_real(bits_f64(p));
    case LG_GGUF_BOOL: return of_bool(p[0]);
    default: return of_int(0); /* strings and arrays do not come here */
    }
}

lg_gguf_iter lg_gguf_begin(const lg_gguf_kv *kv) {
    return (lg_gguf_iter){.at = kv->data,
                          .left_bytes = kv->n_bytes,
                          .left_elems = kv->n_elems,
                          .type = kv->elem_type};
}

static bool next_str(lg_gguf_iter *it, lg_gguf_value *out) {
    if (it->left_bytes < 8) {
        return false;
    }
    uint64_t n = lg_bits_u64(it->at);
    if (n > it->left_bytes - 8) {
        return false; /* only if the file changed since it was checked */
    }
    *out = (lg_gguf_value){.kind = LG_GGUF_KIND_STR,
                           .s = {.data = (const char *)it->at + 8, .n_bytes = n}};
    it->at += 8 + n;
    it->left_bytes -= 8 + n;
    return true;
}

bool lg_gguf_next(lg_gguf_iter *it, lg_gguf_value *out) {
    if (it->left_elems == 0) {
        return false;
    }
    it->left_elems--;
    if (it->type == LG_GGUF_STR) {
        return next_str(it, out);
    }
    uint64_t n = lg_bits_size(it->type);
    *out = decode(it->type, it->at);
    it->at += n;
    it->left_bytes -= n;
    return true;
}

/* The key, NULL if it may be absent and is; false if it is needed. */
static bool lookup(const lg_gguf *g, const char *key, bool needed, const lg_gguf_kv **out,
                   lb_err *err) {
    *out = lg_gguf_find(g, key);
    if (*out == NULL && needed) {
        return lb_err_set(err, LB_MISSING, "key '%s' is missing", key);
    }
    return true;
}

static bool wrong_type(const lg_gguf_kv *kv, const char *needed, lb_err *err) {
    const char *of = kv->type == LG_GGUF_ARRAY ? " of " : "";
    const char *elem = kv->type == LG_GGUF_ARRAY ? lg_bits_type_name(kv->elem_type) : "";
    return lb_err_set(err, LB_BAD_TYPE, "key '%.*s': %s%s%s where %s is needed",
                      lg_bits_shown(kv->key), kv->key.data, lg_bits_type_name(kv->type), of, elem,
                      needed);
}

static bool is_int(lg_gguf_type t) {
    return t != LG_GGUF_STR && t != LG_GGUF_ARRAY && t != LG_GGUF_BOOL && t != LG_GGUF_F32 &&
           t != LG_GGUF_F64;
}

static bool is_real(lg_gguf_type t) {
    return t == LG_GGUF_F32 || t == LG_GGUF_F64;
}

/* The one element of a value that is no array. */
static lg_gguf_value scalar(const lg_gguf_kv *kv) {
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v = {0};
    lg_gguf_next(&it, &v);
    return v;
}

/* An integer from 0 to max (limit on the type that the caller keeps it in). */
static bool unsigned_of(const lg_gguf_kv *kv, uint64_t max, uint64_t *out, lb_err *err) {
    if (!is_int(kv->type)) {
        return wrong_type(kv, "an integer", err);
    }
    lg_gguf_value v = scalar(kv);
    if (v.kind == LG_GGUF_KIND_INT && v.i < 0) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': %" PRId64 " is negative",
                          lg_bits_shown(kv->key), kv->key.data, v.i);
    }
    if (v.u > max) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': %" PRIu64 "; the largest is %" PRIu64,
                          lg_bits_shown(kv->key), kv->key.data, v.u, max);
    }
    *out = v.u;
    return true;
}

bool lg_gguf_u64(const lg_gguf *g, const char *key, const uint64_t *absent, uint64_t *out,
                 lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!lookup(g, key, absent == NULL, &kv, err)) {
        return false;
    }
    if (kv == NULL) {
        *out = *absent;
        return true;
    }
    return unsigned_of(kv, UINT64_MAX, out, err);
}

bool lg_gguf_i64(const lg_gguf *g, const char *key, const int64_t *absent, int64_t *out,
                 lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!lookup(g, key, absent == NULL, &kv, err)) {
        return false;
    }
    if (kv == NULL) {
        *out = *absent;
        return true;
    }
    if (!is_int(kv->type)) {
        return wrong_type(kv, "an integer", err);
    }
    lg_gguf_value v = scalar(kv);
    if (v.kind != LG_GGUF_KIND_INT) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%s': %" PRIu64 "; the largest is 2^63-1", key,
                          v.u);
    }
    *out = v.i;
    return true;
}

bool lg_gguf_u32_in(const lg_gguf *g, const char *key, const uint32_t *absent, uint32_t min,
                    uint32_t max, uint32_t *out, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    uint64_t v = 0;
    if (!lookup(g, key, absent == NULL, &kv, err)) {
        return false;
    }
    if (kv == NULL) {
        *out = *absent;
        return true;
    }
    if (!unsigned_of(kv, UINT64_MAX, &v, err)) {
        return false;
    }
    if (v < min || v > max) {
        return lb_err_set(err, v < min ? LB_BAD_VALUE : LB_LIMIT,
                          "key '%s': %" PRIu64 " is not from %" PRIu32 " to %" PRIu32, key, v, min,
                          max);
    }
    *out = (uint32_t)v;
    return true;
}

bool lg_gguf_u32(const lg_gguf *g, const char *key, const uint32_t *absent, uint32_t *out,
                 lb_err *err) {
    return lg_gguf_u32_in(g, key, absent, 0, UINT32_MAX, out, err);
}

/* A finite number that f32 can hold. */
static bool f32_of(const lg_gguf_kv *kv, double f, float *out, lb_err *err) {
    float narrow = (float)f;
    if (!isfinite(f) || !isfinite(narrow)) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': %g is not a finite f32",
                          lg_bits_shown(kv->key), kv->key.data, f);
    }
    *out = narrow;
    return true;
}

bool lg_gguf_f32(const lg_gguf *g, const char *key, const float *absent, float *out, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!lookup(g, key, absent == NULL, &kv, err)) {
        return false;
    }
    if (kv == NULL) {
        *out = *absent;
        return true;
    }
    if (!is_real(kv->type)) {
        return wrong_type(kv, "f32 or f64", err);
    }
    return f32_of(kv, scalar(kv).f, out, err);
}

static bool bool_of(const lg_gguf_kv *kv, const lg_gguf_value *v, bool *out, lb_err *err) {
    if (v->kind != LG_GGUF_KIND_BOOL) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': a bool of %" PRId64 "; it is 0 or 1",
                          lg_bits_shown(kv->key), kv->key.data, v->i);
    }
    *out = v->i != 0;
    return true;
}

bool lg_gguf_bool(const lg_gguf *g, const char *key, const bool *absent, bool *out, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!lookup(g, key, absent == NULL, &kv, err)) {
        return false;
    }
    if (kv == NULL) {
        *out = *absent;
        return true;
    }
    if (kv->type != LG_GGUF_BOOL) {
        return wrong_type(kv, "bool", err);
    }
    lg_gguf_value v = scalar(kv);
    return bool_of(kv, &v, out, err);
}

bool lg_gguf_str_key(const lg_gguf *g, const char *key, lg_gguf_str *out, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!lookup(g, key, true, &kv, err)) {
        return false;
    }
    if (kv->type != LG_GGUF_STR) {
        return wrong_type(kv, "string", err);
    }
    *out = scalar(kv).s;
    return true;
}

/* Element i of a value that must hold elements of one class (`fits`). */
static bool elem(const lg_gguf_kv *kv, uint64_t i, bool fits, const char *needed,
                 lg_gguf_value *out, lb_err *err) {
    if (!fits) {
        return wrong_type(kv, needed, err);
    }
    lg_gguf_iter it = lg_gguf_begin(kv);
    if (i >= kv->n_elems) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': no element %" PRIu64 " of %" PRIu64,
                          lg_bits_shown(kv->key), kv->key.data, i, kv->n_elems);
    }
    if (kv->elem_type != LG_GGUF_STR) {
        it.at += i * lg_bits_size(kv->elem_type); /* i < 2^24 */
        it.left_elems = 1;
        it.left_bytes = lg_bits_size(kv->elem_type);
        return lg_gguf_next(&it, out);
    }
    for (uint64_t k = 0; k <= i; k++) {
        if (!lg_gguf_next(&it, out)) {
            return lb_err_set(err, LB_BAD_FORMAT, "key '%.*s': the file has changed",
                              lg_bits_shown(kv->key), kv->key.data);
        }
    }
    return true;
}

bool lg_gguf_elem_i64(const lg_gguf_kv *kv, uint64_t i, int64_t *out, lb_err *err) {
    lg_gguf_value v = {0};
    if (!elem(kv, i, is_int(kv->elem_type), "an integer", &v, err)) {
        return false;
    }
    if (v.kind != LG_GGUF_KIND_INT) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%.*s': %" PRIu64 "; the largest is 2^63-1",
                          lg_bits_shown(kv->key), kv->key.data, v.u);
    }
    *out = v.i;
    return true;
}

bool lg_gguf_elem_f64(const lg_gguf_kv *kv, uint64_t i, double *out, lb_err *err) {
    lg_gguf_value v = {0};
    if (!elem(kv, i, is_real(kv->elem_type), "f32 or f64", &v, err)) {
        return false;
    }
    *out = v.f;
    return true;
}

bool lg_gguf_elem_str(const lg_gguf_kv *kv, uint64_t i, lg_gguf_str *out, lb_err *err) {
    lg_gguf_value v = {0};
    if (!elem(kv, i, kv->elem_type == LG_GGUF_STR, "string", &v, err)) {
        return false;
    }
    *out = v.s;
    return true;
}
