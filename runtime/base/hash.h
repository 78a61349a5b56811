/* hash.h -- the hash of tables that one side writes and another reads: the generator fills the
 * tokenizer's tables, the emitted program looks things up in them. Not for untrusted keys: the
 * tables are of fixed content, and what is looked up is compared in full. */
#ifndef LB_HASH_H
#define LB_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Spreads the bits of `x` (the finaliser of MurmurHash3, public domain). */
static inline uint64_t lb_hash_mix(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xFF51AFD7ED558CCD);
    x ^= x >> 33;
    x *= UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

/* FNV-1a over bytes, mixed: short keys, any alignment, the same on every machine. */
static inline uint64_t lb_hash_bytes(const void *bytes, size_t n_bytes) {
    const uint8_t *p = bytes;
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < n_bytes; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    }
    return lb_hash_mix(h);
}

static inline uint64_t lb_hash_pair(uint32_t a, uint32_t b) {
    return lb_hash_mix((uint64_t)a << 32 | b);
}

#endif
