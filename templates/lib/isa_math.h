/* isa_math.h -- functions over the instruction layer, the same bits with every header of it: exp,
 * SiLU, sine and cosine, the sum over 256 lanes. No libm. docs/numerics.md states the arithmetic. */
#ifndef ISA_MATH_H
#define ISA_MATH_H

#include <stdint.h>

/* exp(r) on |r| <= ln 2 / 2 as a polynomial of degree 6 with exact 1 and 1 at the low end;
 * coefficients by weighted least squares over Chebyshev points, then rounded to f32 (tests/kernel
 * checks the error of the whole function: below 2 ulp). */
ISA_FN isa_f isa_exp(isa_f x) {
    isa_f low = isa_set1(-87.0f), high = isa_set1(88.0f);
    isa_m is_low = isa_gt(low, x);
    isa_f y = isa_sel(isa_gt(x, high), high, isa_sel(is_low, low, x));
    isa_i ki = isa_cvt_i(isa_mul(y, isa_set1(1.44269504f)));
    isa_f k = isa_cvt_f(ki);
    isa_f r = isa_fma(k, isa_set1(-0.693359375f), y);
    r = isa_fma(k, isa_set1(2.12194440e-4f), r);
    isa_f p = isa_set1(0x1.6a2352p-10f);
    p = isa_fma(p, r, isa_set1(0x1.123a6cp-7f));
    p = isa_fma(p, r, isa_set1(0x1.5558f4p-5f));
    p = isa_fma(p, r, isa_set1(0x1.55549p-3f));
    p = isa_fma(p, r, isa_set1(0x1.fffffcp-2f));
    p = isa_fma(p, r, isa_set1(1.0f));
    p = isa_fma(p, r, isa_set1(1.0f));
    isa_f scale = isa_as_f(isa_ishl(isa_iadd(ki, isa_iset1(127)), 23));
    return isa_sel(is_low, isa_set1(0.0f), isa_mul(p, scale));
}

/* x / (1 + exp(-x)) */
ISA_FN isa_f isa_silu(isa_f x) {
    isa_f e = isa_exp(isa_sub(isa_set1(0.0f), x));
    return isa_div(x, isa_add(isa_set1(1.0f), e));
}

/* Sum of 256 lanes held in 256 / ISA_N vectors: lane[i] += lane[i + s] for s = 128, 64 .. 1. */
ISA_FN float isa_lanes_sum(isa_f *v) {
    for (int s = 128 / ISA_N; s > 0; s /= 2) {
        for (int i = 0; i < s; i++) {
            v[i] = isa_add(v[i], v[i + s]);
        }
    }
    return isa_tree_sum(v[0]);
}

#endif
