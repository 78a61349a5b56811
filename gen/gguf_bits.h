/* gguf_bits.h -- little-endian loads and small facts about GGUF value types; private to gguf*.c. */
#ifndef LG_GGUF_BITS_H
#define LG_GGUF_BITS_H

#include <string.h>

#include "gguf.h"

static inline uint16_t lg_bits_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t lg_bits_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t lg_bits_u64(const uint8_t *p) {
    return (uint64_t)lg_bits_u32(p) | (uint64_t)lg_bits_u32(p + 4) << 32;
}

/* Bytes of one element; 0 for strings and arrays. */
static inline uint64_t lg_bits_size(lg_gguf_type t) {
    static const uint8_t size[LG_GGUF_N_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return size[t];
}

static inline const char *lg_bits_type_name(lg_gguf_type t) {
    static const char *const name[LG_GGUF_N_TYPES] = {"u8",  "i8",   "u16",    "i16",   "u32",
                                                      "i32", "f32",  "bool",   "string", "array",
                                                      "u64", "i64",  "f64"};
    return name[t];
}

/* Bytes of a name that go into a message: for printf's %.*s. */
static inline int lg_bits_shown(lg_gguf_str s) {
    return s.n_bytes > 64 ? 64 : (int)s.n_bytes;
}

/* Order of two byte strings, a prefix first. */
static inline int lg_bits_compare(lg_gguf_str a, lg_gguf_str b) {
    uint64_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
    int c = n == 0 ? 0 : memcmp(a.data, b.data, n);
    if (c != 0) {
        return c;
    }
    return a.n_bytes == b.n_bytes ? 0 : a.n_bytes < b.n_bytes ? -1 : 1;
}

static inline bool lg_bits_equal(lg_gguf_str a, const char *b) {
    return lg_bits_compare(a, (lg_gguf_str){.data = b, .n_bytes = strlen(b)}) == 0;
}

#endif
