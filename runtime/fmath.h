/* fmath.h -- exp and log for sampling, the same on every machine.
 *
 * Doubles, additions, multiplications and one division only, each rounded once, never contracted:
 * libm differs between versions and CPUs, a device has its own, and a different last bit could
 * pick a different token. Relative error below 1e-14. */
#ifndef RT_FMATH_H
#define RT_FMATH_H

#include <stdint.h>
#include <string.h>

/* e^x for x <= 0 (above 0 only as far as 1); 0 below -708. NaN gives 0. Reduction by ln 2 in two
 * parts (fdlibm's constants: k * LN2_HIGH is exact), then the Taylor series to r^11, |r| <= ln 2
 * / 2. */
static inline double rt_exp(double x) {
    double y = x > -708.0 ? x : -708.0;
    double shifted = y * 1.44269504088896338700 + 0x1.8p52; /* rounds to an integer */
    double k = shifted - 0x1.8p52;
    double r = (y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52; /* 2^k: the low bits of `shifted` are k */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return x > -708.0 ? p * scale : 0.0;
}

/* ln x for a normal x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), then 2 artanh((m - 1) / (m +
 * 1)) as a series to s^23, |s| <= 0.172. */
static inline double rt_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t offset = bits - 0x3FE6A09E667F3BCDU; /* bits of sqrt(1/2) */
    double e = (double)((int64_t)offset >> 52);
    bits -= offset & 0xFFF0000000000000U;
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double p = 0.0;
    for (int i = 23; i >= 3; i -= 2) {
        p = (p + 1.0 / (double)i) * z;
    }
    return e * 6.93147180369123816490e-01 + (e * 1.90821492927058770002e-10 + 2.0 * (s + s * p));
}

#endif
