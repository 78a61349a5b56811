/* isa_math.h -- functions over the vectors of the CPU instruction layers, the same bits with every
 * header of them: those of isa_real.h, the sum over 256 lanes, activations to bytes.
 * docs/numerics.md states the arithmetic. */
#ifndef ISA_MATH_H
#define ISA_MATH_H

#include <stdint.h>

#include "isa_real.h"

/* Sum of 256 lanes held in 256 / ISA_N vectors: lane[i] += lane[i + s] for s = 128, 64 .. 1. */
ISA_FN float isa_lanes_sum(isa_f *v) {
    for (int s = 128 / ISA_N; s > 0; s /= 2) {
        for (int i = 0; i < s; i++) {
            v[i] = isa_add(v[i], v[i + s]);
        }
    }
    return isa_tree_sum(v[0]);
}

/* Activations to bytes, one group of 32 held in 32 / ISA_N vectors: q, their scale d, the sums s of
 * q over elements 0..15 and 16..31. The greatest magnitude is found on the bits, so a NaN or an
 * infinity anywhere in the group ends in d. Below 2^-100 the reciprocal could overflow: q is 0. */
ISA_FN void isa_q8_group(const isa_f *x, int8_t *q, float *d, int16_t *s) {
    isa_i top = isa_iset1(0);
    for (int i = 0; i < 32 / ISA_N; i++) {
        top = isa_imax(top, isa_iand(isa_as_i(x[i]), isa_iset1(0x7fffffff)));
    }
    float amax = isa_soft_float(isa_itop(top));
    float inv = amax > 0x1p-100f ? 127.0f / amax : 0.0f;
    *d = amax / 127.0f;
    for (int i = 0; i < 32 / ISA_N; i++) {
        isa_store_s8(q + i * ISA_N, isa_cvt_i(isa_mul(x[i], isa_set1(inv))));
    }
    s[0] = (int16_t)isa_sum16(q);
    s[1] = (int16_t)isa_sum16(q + 16);
}

#endif
