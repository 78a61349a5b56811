/* rng.h -- MT19937, the 32-bit Mersenne Twister.
 *
 * Source: M. Matsumoto, T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998), with the seeding of
 * the authors' 2002 version (as in C++ std::mt19937: the 10000th output for seed 5489 is
 * 4123659995). */
#ifndef RT_RNG_H
#define RT_RNG_H

#include <stdint.h>

enum { RT_RNG_WORDS = 624 };

typedef struct rt_rng {
    uint32_t word[RT_RNG_WORDS];
    uint32_t next; /* index of the next word to give out */
} rt_rng;

void rt_rng_seed(rt_rng *r, uint32_t seed);

/* Uniform in 0 .. 2^32 - 1. */
uint32_t rt_rng_u32(rt_rng *r);

/* Uniform in 0 .. 2^64 - 1: two outputs, the first one in the low half. */
uint64_t rt_rng_u64(rt_rng *r);

#endif
