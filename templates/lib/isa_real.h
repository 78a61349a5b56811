/* isa_real.h -- exp, SiLU, softplus, sine and cosine over an instruction layer, the same bits with
 * every header of it, on a CPU and on a GPU. No libm, no includes: the including header has the types.
 * docs/numerics.md states the arithmetic. */
#ifndef ISA_REAL_H
#define ISA_REAL_H

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
    isa_f e = isa_exp(isa_neg(x));
    return isa_div(x, isa_add(isa_set1(1.0f), e));
}

/* ln(1 + exp(x)) = max(x, 0) + ln(1 + e), e = exp(-|x|) in [0, 1]: ln(1 + e) = 2 artanh(s) with
 * s = e / (2 + e) at most 1/3, by its series; the first term left out is below 2^-29 of the sum. */
ISA_FN isa_f isa_softplus(isa_f x) {
    isa_f zero = isa_set1(0.0f);
    isa_m up = isa_gt(x, zero);
    isa_f e = isa_exp(isa_sel(up, isa_neg(x), x));
    isa_f s = isa_div(e, isa_add(isa_set1(2.0f), e));
    isa_f z = isa_mul(s, s);
    isa_f p = isa_set1(2.0f / 15.0f);
    p = isa_fma(p, z, isa_set1(2.0f / 13.0f));
    p = isa_fma(p, z, isa_set1(2.0f / 11.0f));
    p = isa_fma(p, z, isa_set1(2.0f / 9.0f));
    p = isa_fma(p, z, isa_set1(2.0f / 7.0f));
    p = isa_fma(p, z, isa_set1(2.0f / 5.0f));
    p = isa_fma(p, z, isa_set1(2.0f / 3.0f));
    p = isa_fma(p, z, isa_set1(2.0f));
    return isa_add(isa_sel(up, x, zero), isa_mul(s, p));
}

/* Cosine and sine of phi >= 0 in double, without fma. phi = k pi/2 + r with pi/2 in three parts; two
 * have 33 bits, so that k times them is exact up to k = 2^20. Then the Taylor polynomials: below
 * pi/4 the first term left out is under 1e-16. */
ISA_FN void isa_cos_sin(double phi, double *c, double *s) {
    double k = (phi * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52; /* nearest integer */
    double r = ((phi - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
    double z = r * r;
    double p = -1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    double sine = r + r * (z * p);
    p = 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    p = p * z - 0.5;
    double cosine = 1.0 + z * p;
    uint64_t quarter = (uint64_t)k & 3u;
    double a = quarter & 1u ? sine : cosine, b = quarter & 1u ? cosine : sine;
    *c = quarter == 1u || quarter == 2u ? -a : a;
    *s = quarter >= 2u ? -b : b;
}

#endif
