/* rng.c -- see rng.h; names of constants as in the paper. */
#include "rng.h"

enum { N = RT_RNG_WORDS, M = 397 };

void rt_rng_seed(rt_rng *r, uint32_t seed) {
    r->word[0] = seed;
    for (uint32_t i = 1; i < N; i++) {
        uint32_t before = r->word[i - 1];
        r->word[i] = 1812433253U * (before ^ before >> 30) + i;
    }
    r->next = N;
}

static void refill(rt_rng *r) {
    for (uint32_t i = 0; i < N; i++) {
        uint32_t y = (r->word[i] & 0x80000000U) | (r->word[(i + 1) % N] & 0x7FFFFFFFU);
        r->word[i] = r->word[(i + M) % N] ^ y >> 1 ^ ((y & 1U) != 0 ? 0x9908B0DFU : 0U);
    }
    r->next = 0;
}

uint32_t rt_rng_u32(rt_rng *r) {
    if (r->next >= N) {
        refill(r);
    }
    uint32_t y = r->word[r->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680U;
    y ^= y << 15 & 0xEFC60000U;
    return y ^ y >> 18;
}

uint64_t rt_rng_u64(rt_rng *r) {
    uint64_t low = rt_rng_u32(r);
    return low | (uint64_t)rt_rng_u32(r) << 32;
}
