/* hash.h -- the hash of tables that one side writes and another reads: the generator fills the
 * tokenizer's tables, the emitted program looks things up in them. Not for untrusted keys: the
 * tables are of fixed content, and what is looked up is compared in full. */
#ifndef LB_HASH_H
#define LB_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tables and hashes are those of little-endian machines, which all targets are"
#endif

/* Multiplies by the golden ratio and folds the well-mixed upper half down. */
static inline uint64_t lb_hash_mix(uint64_t x) {
    x *= UINT64_C(0x9E3779B97F4A7C15);
    return x ^ x >> 32;
}

/* The 1..8 bytes at `p` as one number; different bytes of one length give different numbers. */
static inline uint64_t lb_hash_word(const uint8_t *p, size_t n_bytes) {
    uint32_t first, last;
    if (n_bytes < 4) {
        return (uint64_t)p[0] | (uint64_t)p[n_bytes / 2] << 8 | (uint64_t)p[n_bytes - 1] << 16;
    }
    memcpy(&first, p, 4);
    memcpy(&last, p + n_bytes - 4, 4);
    return (uint64_t)last << 32 | first;
}

/* Eight bytes at a time; `n_bytes` at least 1. */
static inline uint64_t lb_hash_bytes(const void *bytes, size_t n_bytes) {
    const uint8_t *p = bytes;
    uint64_t h = n_bytes;
    for (; n_bytes > 8; n_bytes -= 8, p += 8) {
        h = lb_hash_mix(h ^ lb_hash_word(p, 8));
    }
    return lb_hash_mix(h ^ lb_hash_word(p, n_bytes));
}

static inline uint64_t lb_hash_pair(uint32_t a, uint32_t b) {
    return lb_hash_mix((uint64_t)a << 32 | b);
}

/* A table is an array of slots, a power of two of them, at most half of them taken; an entry stands
 * in the first free slot from its hash on. A slot is 0 or holds the entry's index and 9 bits of its
 * hash, which spare most comparisons. */
enum { LB_SLOT_INDEX_BITS = 23, LB_SLOT_INDEX_MAX = (1 << LB_SLOT_INDEX_BITS) - 2 };

static inline uint32_t lb_slot(uint64_t hash, uint32_t index) {
    return (uint32_t)(hash >> 55) << LB_SLOT_INDEX_BITS | (index + 1);
}

static inline uint32_t lb_slot_index(uint32_t slot) {
    return (slot & ((UINT32_C(1) << LB_SLOT_INDEX_BITS) - 1)) - 1;
}

/* The slot's entry may have this hash. */
static inline bool lb_slot_fits(uint32_t slot, uint64_t hash) {
    return slot >> LB_SLOT_INDEX_BITS == hash >> 55;
}

#endif
