/* gguf_write.c -- see gguf_write.h. Keys and directory are encoded as they come, into two byte
 * buffers that the header joins. */
#include "gguf_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "gguf.h"
#include "half.h"

struct lg_gguf_writer {
    lb_arena *arena;
    lb_text keys;      /* encoded pairs */
    lb_text directory; /* encoded tensor infos */
    lg_builder names;  /* of both kinds, to find duplicates */
    lg_value *key_names;
    lg_value *tensor_names;
    uint64_t n_keys, n_tensors;
    uint64_t data_bytes;
};

bool lg_gguf_write_new(lb_arena *arena, lg_gguf_writer **out, lb_err *err) {
    lg_gguf_writer *w = lb_alloc(arena, sizeof *w, err);
    if (w == NULL) {
        return false;
    }
    w->arena = arena;
    lb_text_init(&w->keys, arena);
    lb_text_init(&w->directory, arena);
    lg_build_init(&w->names, arena);
    w->key_names = lg_build_map(&w->names);
    w->tensor_names = lg_build_map(&w->names);
    *out = w;
    return lg_build_done(&w->names, err);
}

/* The low n_bytes of v, little-endian. */
static void put_le(lb_text *t, uint64_t v, uint32_t n_bytes) {
    char bytes[8];
    for (uint32_t i = 0; i < n_bytes; i++) {
        bytes[i] = (char)(v >> (8 * i) & 0xFFU);
    }
    lb_text_add_n(t, bytes, n_bytes);
}

static void put_string(lb_text *t, const char *s, size_t n_bytes) {
    put_le(t, n_bytes, 8);
    lb_text_add_n(t, s, n_bytes);
}

typedef struct type_row {
    const char *name;
    lg_gguf_type id;
    uint32_t n_bytes;
    lg_value_kind kind;
    int64_t min, max; /* of integers; u64 is held as int64 */
} type_row;

static const type_row types[] = {
    {"u8", LG_GGUF_U8, 1, LG_VALUE_INT, 0, UINT8_MAX},
    {"i8", LG_GGUF_I8, 1, LG_VALUE_INT, INT8_MIN, INT8_MAX},
    {"u16", LG_GGUF_U16, 2, LG_VALUE_INT, 0, UINT16_MAX},
    {"i16", LG_GGUF_I16, 2, LG_VALUE_INT, INT16_MIN, INT16_MAX},
    {"u32", LG_GGUF_U32, 4, LG_VALUE_INT, 0, UINT32_MAX},
    {"i32", LG_GGUF_I32, 4, LG_VALUE_INT, INT32_MIN, INT32_MAX},
    {"u64", LG_GGUF_U64, 8, LG_VALUE_INT, 0, INT64_MAX},
    {"i64", LG_GGUF_I64, 8, LG_VALUE_INT, INT64_MIN, INT64_MAX},
    {"f32", LG_GGUF_F32, 4, LG_VALUE_DOUBLE, 0, 0},
    {"f64", LG_GGUF_F64, 8, LG_VALUE_DOUBLE, 0, 0},
    {"bool", LG_GGUF_BOOL, 1, LG_VALUE_BOOL, 0, 0},
    {"string", LG_GGUF_STR, 0, LG_VALUE_STRING, 0, 0},
};

static const type_row *find_type(const char *name, size_t n_bytes) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].name) == n_bytes && memcmp(types[i].name, name, n_bytes) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

/* A double, or an integer that a double holds. */
static bool as_double(const lg_value *v, double *out) {
    if (v->kind == LG_VALUE_DOUBLE) {
        *out = v->u.real;
        return true;
    }
    if (v->kind == LG_VALUE_INT && v->u.integer >= -(1LL << 53) && v->u.integer <= 1LL << 53) {
        *out = (double)v->u.integer;
        return true;
    }
    return false;
}

static bool put_float(lb_text *t, const char *key, const type_row *type, double x, lb_err *err) {
    if (type->n_bytes == 4) {
        if (isfinite(x) && fabs(x) > 0x1.FFFFFEp127) {
            return lb_err_set(err, LB_BAD_VALUE, "key '%s': %g does not fit f32", key, x);
        }
        put_le(t, lg_float_bits((float)x), 4);
        return true;
    }
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    put_le(t, bits, 8);
    return true;
}

/* One value of a type that is no array. */
static bool put_value(lb_text *t, const char *key, const type_row *type, const lg_value *v,
                      lb_err *err) {
    double x = 0.0;
    if (type->kind == LG_VALUE_DOUBLE && as_double(v, &x)) {
        return put_float(t, key, type, x, err);
    }
    if (v->kind != type->kind) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%s': %s given for type %s", key,
                          lg_value_kind_name(v->kind), type->name);
    }
    if (type->kind == LG_VALUE_STRING) {
        put_string(t, v->u.string.bytes, v->u.string.n_bytes);
        return true;
    }
    if (type->kind == LG_VALUE_BOOL) {
        put_le(t, v->u.boolean ? 1 : 0, 1);
        return true;
    }
    if (v->u.integer < type->min || v->u.integer > type->max) {
        return lb_err_set(err, LB_BAD_VALUE, "key '%s': %" PRId64 " does not fit %s", key,
                          v->u.integer, type->name);
    }
    put_le(t, (uint64_t)v->u.integer, type->n_bytes);
    return true;
}

static bool put_array(lb_text *t, const char *key, const type_row *type, const lg_value *v,
                      lb_err *err) {
    bool empty_map = v->kind == LG_VALUE_MAP && v->u.map.n == 0; /* Lua's {} may be either */
    if (v->kind != LG_VALUE_ARRAY && !empty_map) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%s': %s given for an array", key,
                          lg_value_kind_name(v->kind));
    }
    uint64_t n = lg_value_count(v);
    put_le(t, LG_GGUF_ARRAY, 4);
    put_le(t, (uint64_t)type->id, 4);
    put_le(t, n, 8);
    for (uint64_t i = 0; i < n; i++) {
        if (!put_value(t, key, type, v->u.array.items[i], err)) {
            return false;
        }
    }
    return true;
}

/* Refuses what the reader would, and remembers the name. */
static bool take_name(lg_gguf_writer *w, lg_value *names, const char *what, const char *name,
                      size_t max_bytes, lb_err *err) {
    size_t n = strlen(name);
    if (n == 0 || n > max_bytes) {
        return lb_err_set(err, LB_LIMIT, "%s '%.64s' has %zu bytes; 1 to %zu are allowed", what,
                          name, n, max_bytes);
    }
    if (lg_value_find(names, name) != NULL) {
        return lb_err_set(err, LB_DUPLICATE, "%s '%.64s' is there twice", what, name);
    }
    lg_build_set_bool(&w->names, names, name, true);
    return lg_build_done(&w->names, err);
}

bool lg_gguf_write_key(lg_gguf_writer *w, const char *key, const char *type, const lg_value *value,
                       lb_err *err) {
    size_t n = strlen(type);
    bool array = n > 2 && strcmp(type + n - 2, "[]") == 0;
    const type_row *row = find_type(type, array ? n - 2 : n);
    if (row == NULL) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%.64s': '%.20s' is not a type of value", key,
                          type);
    }
    if (!take_name(w, w->key_names, "key", key, LG_GGUF_MAX_KEY_BYTES, err)) {
        return false;
    }
    put_string(&w->keys, key, strlen(key));
    w->n_keys++;
    if (array) {
        return put_array(&w->keys, key, row, value, err) && lb_text_done(&w->keys, err);
    }
    put_le(&w->keys, (uint64_t)row->id, 4);
    return put_value(&w->keys, key, row, value, err) && lb_text_done(&w->keys, err);
}

bool lg_gguf_write_tensor(lg_gguf_writer *w, const char *name, lg_qtype type, uint32_t n_dims,
                          const uint64_t *ne, lb_err *err) {
    uint64_t n_bytes = 0;
    uint64_t end = 0;
    if (n_dims < 1 || !lg_qtype_tensor_bytes(type, n_dims, ne, NULL, &n_bytes, err)) {
        return n_dims < 1 ? lb_err_set(err, LB_BAD_SHAPE, "tensor '%.64s' has no dimension", name)
                          : lb_err_prefix(err, "tensor '%.64s'", name);
    }
    if (!lb_round_up(n_bytes, LG_GGUF_WRITE_ALIGNMENT, &n_bytes) ||
        !lb_add(w->data_bytes, n_bytes, &end)) {
        return lb_err_set(err, LB_OVERFLOW, "tensor '%.64s' takes the file past 2^64 bytes", name);
    }
    if (!take_name(w, w->tensor_names, "tensor", name, LG_GGUF_MAX_NAME_BYTES, err)) {
        return false;
    }
    put_string(&w->directory, name, strlen(name));
    put_le(&w->directory, n_dims, 4);
    for (uint32_t d = 0; d < n_dims; d++) {
        put_le(&w->directory, ne[d], 8);
    }
    put_le(&w->directory, (uint64_t)type, 4);
    put_le(&w->directory, w->data_bytes, 8);
    w->n_tensors++;
    w->data_bytes = end;
    return lb_text_done(&w->directory, err);
}

uint64_t lg_gguf_write_data_bytes(const lg_gguf_writer *w) {
    return w->data_bytes;
}

bool lg_gguf_write_header(lg_gguf_writer *w, lb_out *out, lb_err *err) {
    lb_text head;
    lb_text_init(&head, w->arena);
    lb_text_add_n(&head, "GGUF", 4);
    put_le(&head, 3, 4);
    put_le(&head, w->n_tensors, 8);
    put_le(&head, w->n_keys, 8);
    return lb_text_done(&head, err) && lb_out_write(out, head.data, head.n_bytes, err) &&
           lb_out_write(out, w->keys.data, w->keys.n_bytes, err) &&
           lb_out_write(out, w->directory.data, w->directory.n_bytes, err) &&
           lg_gguf_write_pad(out, err);
}

bool lg_gguf_write_pad(lb_out *out, lb_err *err) {
    static const uint8_t zeros[LG_GGUF_WRITE_ALIGNMENT];
    size_t over = (size_t)(out->n_bytes % LG_GGUF_WRITE_ALIGNMENT);
    return over == 0 || lb_out_write(out, zeros, LG_GGUF_WRITE_ALIGNMENT - over, err);
}
