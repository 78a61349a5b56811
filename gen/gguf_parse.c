/* gguf_parse.c -- walks the header of one GGUF file: magic, counts, keys, tensor directory.
 *
 * Takes a map of the whole file; gives positions, keys and tensors that point into it. Refuses
 * whatever does not fit: each length is held against the bytes that remain before it is used. */
#include "gguf_parse.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "gguf_bits.h"

enum {
    HEADER_BYTES = 24,    /* magic, version, two counts */
    MIN_KEY_BYTES = 14,   /* length, one character, type, one byte of value */
    MIN_TENSOR_BYTES = 25 /* length, one character, n_dims, type, offset */
};

typedef struct cursor {
    const uint8_t *data;
    uint64_t pos;
    uint64_t end;
    bool at_limit; /* end is the limit on headers, not the end of the file */
} cursor;

/* Moves over n bytes and says where they were. */
static bool take(cursor *c, uint64_t n, const uint8_t **at, lb_err *err) {
    uint64_t left = c->end - c->pos;
    if (n > left && c->at_limit) {
        return lb_err_set(err, LB_LIMIT,
                          "%" PRIu64 " bytes at offset %" PRIu64
                          " pass the limit of %d bytes for a header",
                          n, c->pos, (int)LG_GGUF_MAX_HEADER_BYTES);
    }
    if (n > left) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "truncated: %" PRIu64 " bytes needed at offset %" PRIu64 ", %" PRIu64
                          " left",
                          n, c->pos, left);
    }
    *at = c->data + c->pos;
    c->pos += n;
    return true;
}

static bool take_u32(cursor *c, uint32_t *out, lb_err *err) {
    const uint8_t *p = NULL;
    if (!take(c, 4, &p, err)) {
        return false;
    }
    *out = lg_bits_u32(p);
    return true;
}

static bool take_u64(cursor *c, uint64_t *out, lb_err *err) {
    const uint8_t *p = NULL;
    if (!take(c, 8, &p, err)) {
        return false;
    }
    *out = lg_bits_u64(p);
    return true;
}

static bool take_str(cursor *c, lg_gguf_str *out, lb_err *err) {
    uint64_t n = 0;
    const uint8_t *p = NULL;
    if (!take_u64(c, &n, err) || !take(c, n, &p, err)) {
        return false;
    }
    *out = (lg_gguf_str){.data = (const char *)p, .n_bytes = n};
    return true;
}

/* A key's or tensor's name: printable ASCII, so that it can stand in a message and in a comment. */
static bool take_name(cursor *c, uint64_t max_bytes, lg_gguf_str *out, lb_err *err) {
    lg_gguf_str s = {0};
    if (!take_str(c, &s, err)) {
        return false;
    }
    if (s.n_bytes == 0) {
        return lb_err_set(err, LB_BAD_FORMAT, "the name is empty");
    }
    if (s.n_bytes > max_bytes) {
        return lb_err_set(err, LB_LIMIT,
                          "a name of %" PRIu64 " bytes; the limit is %" PRIu64, s.n_bytes,
                          max_bytes);
    }
    for (uint64_t i = 0; i < s.n_bytes; i++) {
        if (s.data[i] < 0x20 || s.data[i] > 0x7E) {
            return lb_err_set(err, LB_BAD_FORMAT,
                              "byte %" PRIu64 " of the name is 0x%02x; names are printable ASCII",
                              i, (unsigned)(unsigned char)s.data[i]);
        }
    }
    *out = s;
    return true;
}

static bool take_type(cursor *c, lg_gguf_type *out, lb_err *err) {
    uint32_t id = 0;
    if (!take_u32(c, &id, err)) {
        return false;
    }
    if (id >= LG_GGUF_N_TYPES) {
        return lb_err_set(err, LB_BAD_FORMAT, "value type %" PRIu32 "; the types are 0 to 12", id);
    }
    *out = (lg_gguf_type)id;
    return true;
}

/* Moves over n elements, n within the limits on arrays but not yet held against the file. */
static bool take_elems(cursor *c, lg_gguf_type type, uint64_t n, lb_err *err) {
    if (type != LG_GGUF_STR) {
        const uint8_t *p = NULL;
        return take(c, n * lg_bits_size(type), &p, err); /* at most 2^24 x 8 */
    }
    lg_gguf_str s;
    for (uint64_t i = 0; i < n; i++) {
        if (!take_str(c, &s, err)) {
            return lb_err_prefix(err, "string %" PRIu64, i);
        }
    }
    return true;
}

static bool take_array(cursor *c, lg_gguf_kv *kv, lb_err *err) {
    if (!take_type(c, &kv->elem_type, err) || !take_u64(c, &kv->n_elems, err)) {
        return false;
    }
    if (kv->elem_type == LG_GGUF_ARRAY) {
        return lb_err_set(err, LB_UNSUPPORTED, "an array of arrays is not supported");
    }
    uint64_t limit = kv->elem_type == LG_GGUF_STR ? LG_GGUF_MAX_STRS : LG_GGUF_MAX_ELEMS;
    if (kv->n_elems > limit) {
        return lb_err_set(err, LB_LIMIT, "an array of %" PRIu64 " elements; the limit is %" PRIu64,
                          kv->n_elems, limit);
    }
    kv->data = c->data + c->pos;
    return take_elems(c, kv->elem_type, kv->n_elems, err);
}

static bool take_value(cursor *c, lg_gguf_kv *kv, lb_err *err) {
    if (!take_type(c, &kv->type, err)) {
        return false;
    }
    kv->elem_type = kv->type;
    kv->n_elems = 1;
    kv->data = c->data + c->pos;
    bool ok = false;
    if (kv->type == LG_GGUF_ARRAY) {
        ok = take_array(c, kv, err);
    } else if (kv->type == LG_GGUF_STR) {
        lg_gguf_str s;
        ok = take_str(c, &s, err);
    } else {
        ok = take_elems(c, kv->type, 1, err);
    }
    kv->n_bytes = ok ? (uint64_t)(c->data + c->pos - kv->data) : 0;
    return ok;
}

static bool take_key(cursor *c, uint64_t i, lg_gguf_kv *out, lb_err *err) {
    lg_gguf_kv kv = {0};
    if (!take_name(c, LG_GGUF_MAX_KEY_BYTES, &kv.key, err)) {
        return lb_err_prefix(err, "key %" PRIu64, i);
    }
    if (!take_value(c, &kv, err)) {
        return lb_err_prefix(err, "key '%.*s'", lg_bits_shown(kv.key), kv.key.data);
    }
    *out = kv;
    return true;
}

static bool take_dims(cursor *c, lg_gguf_tensor *t, lb_err *err) {
    if (!take_u32(c, &t->n_dims, err)) {
        return false;
    }
    if (t->n_dims > 4) {
        return lb_err_set(err, LB_BAD_SHAPE, "%" PRIu32 " dimensions; the limit is 4", t->n_dims);
    }
    for (uint32_t d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims && !take_u64(c, &t->ne[d], err)) {
            return false;
        }
        if (t->ne[d] > INT64_MAX) {
            return lb_err_set(err, LB_BAD_SHAPE, "dimension %" PRIu32 " is negative (%" PRId64 ")",
                              d, (int64_t)t->ne[d]);
        }
    }
    return true;
}

static bool take_shape(cursor *c, lg_gguf_tensor *t, lb_err *err) {
    uint32_t id = 0;
    return take_dims(c, t, err) && take_u32(c, &id, err) && take_u64(c, &t->offset, err) &&
           lg_qtype_from_id(id, &t->type, err) &&
           lg_qtype_tensor_bytes(t->type, t->n_dims, t->ne, &t->n_elems, &t->n_bytes, err);
}

/* One entry of the directory; t->offset is still relative to the data part. */
static bool take_tensor(cursor *c, uint64_t i, lg_gguf_tensor *out, lb_err *err) {
    lg_gguf_tensor t = {0};
    if (!take_name(c, LG_GGUF_MAX_NAME_BYTES, &t.name, err)) {
        return lb_err_prefix(err, "tensor %" PRIu64, i);
    }
    if (!take_shape(c, &t, err)) {
        return lb_err_prefix(err, "tensor '%.*s'", lg_bits_shown(t.name), t.name.data);
    }
    *out = t;
    return true;
}

static cursor cursor_at(const lg_gguf_part *part, uint64_t pos) {
    bool at_limit = part->map.n_bytes > LG_GGUF_MAX_HEADER_BYTES;
    return (cursor){
        .data = part->map.data,
        .pos = pos,
        .end = at_limit ? LG_GGUF_MAX_HEADER_BYTES : part->map.n_bytes,
        .at_limit = at_limit,
    };
}

static bool check_version(uint32_t v, lb_err *err) {
    if (v == 2 || v == 3) {
        return true;
    }
    if (v != 0 && (v & 0xFFFFU) == 0) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "version 0x%08" PRIx32 ": a big-endian file; lagen reads little-endian "
                          "ones",
                          v);
    }
    return lb_err_set(err, LB_UNSUPPORTED, "GGUF version %" PRIu32 "; lagen reads 2 and 3", v);
}

/* `n` things of at least `each` bytes, said to lie in what remains. */
static bool check_count(const cursor *c, const char *what, uint64_t n, uint64_t each,
                        uint64_t limit, lb_err *err) {
    uint64_t left = c->end - c->pos;
    if (n > left / each) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "%s count %" PRIu64 ": at least %" PRIu64 " bytes each, %" PRIu64
                          " bytes left",
                          what, n, each, left);
    }
    if (n > limit) {
        return lb_err_set(err, LB_LIMIT, "%s count %" PRIu64 "; the limit is %" PRIu64, what, n,
                          limit);
    }
    return true;
}

static bool scan_header(cursor *c, lg_gguf_part *part, lb_err *err) {
    if (c->end < HEADER_BYTES) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "not a GGUF file: %" PRIu64 " bytes, a header has %d", c->end,
                          (int)HEADER_BYTES);
    }
    if (memcmp(c->data, "GGUF", 4) != 0) {
        return lb_err_set(err, LB_BAD_FORMAT, "not a GGUF file: it starts with %02x %02x %02x %02x",
                          c->data[0], c->data[1], c->data[2], c->data[3]);
    }
    c->pos = 4;
    return take_u32(c, &part->info.version, err) && check_version(part->info.version, err) &&
           take_u64(c, &part->info.n_tensors, err) && take_u64(c, &part->n_keys, err) &&
           check_count(c, "key", part->n_keys, MIN_KEY_BYTES, LG_GGUF_MAX_KEYS, err) &&
           check_count(c, "tensor", part->info.n_tensors, MIN_TENSOR_BYTES, LG_GGUF_MAX_TENSORS,
                       err);
}

static bool read_alignment(const lg_gguf_kv *kv, uint64_t *out, lb_err *err) {
    if (kv->type != LG_GGUF_U32) {
        return lb_err_set(err, LB_BAD_TYPE, "key 'general.alignment': %s where u32 is needed",
                          lg_bits_type_name(kv->type));
    }
    uint32_t a = lg_bits_u32(kv->data);
    if (!lb_is_pow2(a) || a > LG_GGUF_MAX_ALIGNMENT) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'general.alignment': %" PRIu32
                          " is not a power of two from 1 to %d",
                          a, (int)LG_GGUF_MAX_ALIGNMENT);
    }
    *out = a;
    return true;
}

bool lg_gguf_scan(lg_gguf_part *part, lb_err *err) {
    cursor c = cursor_at(part, 0);
    part->info.n_bytes = part->map.n_bytes;
    part->info.alignment = 32; /* the specification's default */
    if (!scan_header(&c, part, err)) {
        return false;
    }
    part->keys_pos = c.pos;
    for (uint64_t i = 0; i < part->n_keys; i++) {
        lg_gguf_kv kv;
        if (!take_key(&c, i, &kv, err) ||
            (lg_bits_equal(kv.key, "general.alignment") &&
             !read_alignment(&kv, &part->info.alignment, err))) {
            return false;
        }
    }
    part->tensors_pos = c.pos;
    for (uint64_t i = 0; i < part->info.n_tensors; i++) {
        lg_gguf_tensor t;
        if (!take_tensor(&c, i, &t, err)) {
            return false;
        }
    }
    /* c.pos <= 64 MiB and alignment <= 1 MiB: this cannot overflow. */
    return lb_round_up(c.pos, part->info.alignment, &part->info.data_start);
}

bool lg_gguf_read_keys(const lg_gguf_part *part, lg_gguf_kv *out, lb_err *err) {
    cursor c = cursor_at(part, part->keys_pos);
    for (uint64_t i = 0; i < part->n_keys; i++) {
        if (!take_key(&c, i, &out[i], err)) {
            return false;
        }
    }
    return true;
}

/* Turns the offset in the data part into one in the file, and holds it against the file's size. */
static bool place(const lg_gguf_part *part, lg_gguf_tensor *t, lb_err *err) {
    uint64_t size = part->map.n_bytes;
    uint64_t at = 0;
    if (t->offset % part->info.alignment != 0) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
                          t->offset, part->info.alignment);
    }
    if (!lb_add(part->info.data_start, t->offset, &at) || at > size || t->n_bytes > size - at) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "truncated or damaged file: %" PRIu64 " bytes at %" PRIu64 " + %" PRIu64
                          ", but the file ends at %" PRIu64,
                          t->n_bytes, part->info.data_start, t->offset, size);
    }
    t->offset = at;
    t->data = part->map.data + at;
    return true;
}

bool lg_gguf_read_tensors(const lg_gguf_part *part, uint32_t file_index, lg_gguf_tensor *out,
                          lb_err *err) {
    cursor c = cursor_at(part, part->tensors_pos);
    for (uint64_t i = 0; i < part->info.n_tensors; i++) {
        lg_gguf_tensor *t = &out[i];
        if (!take_tensor(&c, i, t, err)) {
            return false;
        }
        if (!place(part, t, err)) {
            return lb_err_prefix(err, "tensor '%.*s'", lg_bits_shown(t->name), t->name.data);
        }
        t->file_index = file_index;
    }
    return true;
}
