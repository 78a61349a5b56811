/* synth_random.h -- the random numbers of synthetic models: a function of seed, tensor name and
 * element number, so that any tensor can be made alone, in any order, on any machine.
 *
 *   stream = mix(mix(seed + G) ^ fnv1a(name))
 *   bits_i = mix(stream + (i + 1) * G)          element i of the tensor, row by row
 * with mix and G = 0x9E3779B97F4A7C15 of SplitMix64 (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, 2014; finaliser of Stafford, variant 13) and 64-bit FNV-1a. A
 * value of mean 0 and deviation 1 is the centred sum of the four 16-bit fields of bits_i: near
 * normal, never beyond 3.47, and exact up to one multiplication. */
#ifndef LG_SYNTH_RANDOM_H
#define LG_SYNTH_RANDOM_H

#include <stdint.h>

/* The stream of one tensor; `name` is NUL-terminated. */
uint64_t lg_synth_stream(uint64_t seed, const char *name);

/* bits_i of a stream. */
uint64_t lg_synth_bits(uint64_t stream, uint64_t i);

/* float[n]: elements first .. first + n - 1 of a stream, mean + std * unit value. */
void lg_synth_normal(uint64_t stream, uint64_t first, uint64_t n, double mean, double std,
                     float *out);

#endif
