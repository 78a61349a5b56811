/* gguf_array.c -- arrays of a model file's keys, copied out in one type; see gguf_value.h. Also the
 * two keys that everything else hangs on: architecture and number of layers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gguf_bits.h"
#include "gguf_parse.h"
#include "gguf_value.h"

static bool is_int_or_bool(lg_gguf_type t) {
    return t != LG_GGUF_STR && t != LG_GGUF_F32 && t != LG_GGUF_F64;
}

static bool is_real(lg_gguf_type t) {
    return t == LG_GGUF_F32 || t == LG_GGUF_F64;
}

static bool is_bool(lg_gguf_type t) {
    return t == LG_GGUF_BOOL;
}

static bool is_str(lg_gguf_type t) {
    return t == LG_GGUF_STR;
}

/* The key's value, which must be an array whose elements `fits` accepts. */
static bool find_array(const lg_gguf *g, const char *key, bool (*fits)(lg_gguf_type),
                       const char *needed, const lg_gguf_kv **out, lb_err *err) {
    const lg_gguf_kv *kv = lg_gguf_find(g, key);
    if (kv == NULL) {
        return lb_err_set(err, LB_MISSING, "key '%s' is missing", key);
    }
    if (kv->type != LG_GGUF_ARRAY) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%s': %s where an array of %s is needed", key,
                          lg_bits_type_name(kv->type), needed);
    }
    if (!fits(kv->elem_type)) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%s': array of %s where one of %s is needed", key,
                          lg_bits_type_name(kv->elem_type), needed);
    }
    *out = kv;
    return true;
}

/* Element i of `key` cannot be kept; `what` says why. */
static bool bad_elem(const char *key, uint64_t i, const char *what, lb_err *err) {
    return lb_err_set(err, LB_BAD_VALUE, "key '%s': element %" PRIu64 " is %s", key, i, what);
}

bool lg_gguf_i64s(const lg_gguf *g, const char *key, lb_arena *arena, const int64_t **out,
                  uint64_t *n, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!find_array(g, key, is_int_or_bool, "integers", &kv, err)) {
        return false;
    }
    int64_t *to = lb_alloc_n(arena, kv->n_elems, sizeof *to, err);
    if (to == NULL) {
        return false;
    }
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    for (uint64_t i = 0; lg_gguf_next(&it, &v); i++) {
        if (v.kind == LG_GGUF_KIND_UINT) {
            return bad_elem(key, i, "above 2^63-1", err);
        }
        to[i] = v.i;
    }
    *out = to;
    *n = kv->n_elems;
    return true;
}

bool lg_gguf_f32s(const lg_gguf *g, const char *key, lb_arena *arena, const float **out,
                  uint64_t *n, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!find_array(g, key, is_real, "f32 or f64", &kv, err)) {
        return false;
    }
    float *to = lb_alloc_n(arena, kv->n_elems, sizeof *to, err);
    if (to == NULL) {
        return false;
    }
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    for (uint64_t i = 0; lg_gguf_next(&it, &v); i++) {
        to[i] = (float)v.f;
        if (!isfinite(to[i])) {
            return bad_elem(key, i, "not a finite f32", err);
        }
    }
    *out = to;
    *n = kv->n_elems;
    return true;
}

bool lg_gguf_bools(const lg_gguf *g, const char *key, lb_arena *arena, const bool **out,
                   uint64_t *n, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!find_array(g, key, is_bool, "bool", &kv, err)) {
        return false;
    }
    bool *to = lb_alloc_n(arena, kv->n_elems, sizeof *to, err);
    if (to == NULL) {
        return false;
    }
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    for (uint64_t i = 0; lg_gguf_next(&it, &v); i++) {
        if (v.kind != LG_GGUF_KIND_BOOL) {
            return bad_elem(key, i, "neither 0 nor 1", err);
        }
        to[i] = v.i != 0;
    }
    *out = to;
    *n = kv->n_elems;
    return true;
}

bool lg_gguf_strs(const lg_gguf *g, const char *key, lb_arena *arena, const lg_gguf_str **out,
                  uint64_t *n, lb_err *err) {
    const lg_gguf_kv *kv = NULL;
    if (!find_array(g, key, is_str, "strings", &kv, err)) {
        return false;
    }
    lg_gguf_str *to = lb_alloc_n(arena, kv->n_elems, sizeof *to, err);
    if (to == NULL) {
        return false;
    }
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    for (uint64_t i = 0; lg_gguf_next(&it, &v); i++) {
        to[i] = v.s;
    }
    *out = to;
    *n = kv->n_elems;
    return true;
}

static bool narrow(const char *key, const int64_t *from, uint64_t n, uint32_t *to, lb_err *err) {
    for (uint64_t i = 0; i < n; i++) {
        if (from[i] < 0 || from[i] > UINT32_MAX) {
            return bad_elem(key, i, "not from 0 to 2^32-1", err);
        }
        to[i] = (uint32_t)from[i];
    }
    return true;
}

bool lg_gguf_u32_each(const lg_gguf *g, const char *key, const uint32_t *absent, uint64_t n,
                      lb_arena *arena, const uint32_t **out, lb_err *err) {
    const lg_gguf_kv *kv = lg_gguf_find(g, key);
    uint32_t *to = lb_alloc_n(arena, n, sizeof *to, err);
    if (to == NULL) {
        return false;
    }
    if (kv != NULL && kv->type == LG_GGUF_ARRAY) {
        const int64_t *from = NULL;
        uint64_t n_from = 0;
        if (!lg_gguf_i64s(g, key, arena, &from, &n_from, err)) {
            return false;
        }
        if (n_from != n) {
            return lb_err_set(err, LB_BAD_SHAPE,
                              "key '%s': %" PRIu64 " elements where one or %" PRIu64
                              " are needed",
                              key, n_from, n);
        }
        if (!narrow(key, from, n, to, err)) {
            return false;
        }
        *out = to;
        return true;
    }
    uint32_t one = 0;
    if (!lg_gguf_u32(g, key, absent, &one, err)) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        to[i] = one;
    }
    *out = to;
    return true;
}

static bool arch_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool lg_gguf_arch(const lg_gguf *g, lb_arena *arena, const char **out, lb_err *err) {
    static const char key[] = "general.architecture";
    lg_gguf_str s = {0};
    if (!lg_gguf_str_key(g, key, &s, err)) {
        return false;
    }
    if (s.n_bytes == 0 || s.n_bytes > LG_GGUF_MAX_NAME_BYTES) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%s': %" PRIu64 " bytes; it has 1 to %d", key,
                          s.n_bytes, (int)LG_GGUF_MAX_NAME_BYTES);
    }
    for (uint64_t i = 0; i < s.n_bytes; i++) {
        if (!arch_char(s.data[i])) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "key '%s': byte %" PRIu64 " is 0x%02x; allowed are a-z 0-9 _ -", key,
                              i, (unsigned)(unsigned char)s.data[i]);
        }
    }
    char *copy = lb_strndup(arena, s.data, s.n_bytes, err);
    if (copy == NULL) {
        return false;
    }
    *out = copy;
    return true;
}

/* The N of "blk.N.", at most LG_GGUF_MAX_LAYERS; -1 for another name. */
static int layer_of(lg_gguf_str name) {
    if (name.n_bytes < 6 || memcmp(name.data, "blk.", 4) != 0) {
        return -1;
    }
    int n = 0;
    uint64_t i = 4;
    for (; i < name.n_bytes && name.data[i] >= '0' && name.data[i] <= '9'; i++) {
        n = n * 10 + (name.data[i] - '0');
        n = n > LG_GGUF_MAX_LAYERS ? LG_GGUF_MAX_LAYERS : n;
    }
    return i > 4 && i < name.n_bytes && name.data[i] == '.' ? n : -1;
}

bool lg_gguf_n_layers(const lg_gguf *g, uint32_t *out, lb_err *err) {
    lg_gguf_str arch = {0};
    char key[128];
    uint32_t n = 0;
    if (!lg_gguf_str_key(g, "general.architecture", &arch, err)) {
        return false;
    }
    snprintf(key, sizeof key, "%.*s.block_count", lg_bits_shown(arch), arch.data);
    if (!lg_gguf_u32_in(g, key, NULL, 1, LG_GGUF_MAX_LAYERS, &n, err)) {
        return false;
    }
    bool seen[LG_GGUF_MAX_LAYERS + 1] = {false};
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        int layer = layer_of(g->tensors[i].name);
        if (layer >= (int)n) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "key '%s': %" PRIu32 " layers, but there is a tensor '%.*s'", key, n,
                              lg_bits_shown(g->tensors[i].name), g->tensors[i].name.data);
        }
        if (layer >= 0) {
            seen[layer] = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!seen[i]) {
            return lb_err_set(err, LB_MISSING,
                              "key '%s': %" PRIu32 " layers, but no tensor 'blk.%" PRIu32 ".*'",
                              key, n, i);
        }
    }
    *out = n;
    return true;
}
