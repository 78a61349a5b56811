/* isa_soft.h -- what some instruction sets lack, in exact portable C: the fused multiply-add and
 * half-precision conversions. The results are those of the hardware instructions, bit for bit
 * (round to nearest even, subnormals kept, NaN stays NaN). */
#ifndef ISA_SOFT_H
#define ISA_SOFT_H

#include <stdint.h>
#include <string.h>

#define ISA_FN static inline __attribute__((always_inline, unused))

ISA_FN uint32_t isa_soft_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

ISA_FN float isa_soft_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

ISA_FN uint64_t isa_soft_bits64(double f) {
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

ISA_FN double isa_soft_double(uint64_t u) {
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* a * b + c rounded once. The product of two floats is exact in double; the sum is rounded to odd
 * there (the error of the addition decides the last bit), so that the final rounding to float sees
 * on which side of a tie the true sum lies. 53 bits >= 2 * 24 + 2 make this exact.
 * Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008. */
ISA_FN float isa_soft_fma(float a, float b, float c) {
    double p = (double)a * (double)b;
    double z = (double)c;
    double s = p + z;
    double v = s - p;
    double e = (p - (s - v)) + (z - v);
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    if ((e > 0.0 || e < 0.0) && (u & 1) == 0) {
        u += (e > 0.0) == (s > 0.0) ? 1 : UINT64_MAX;
        memcpy(&s, &u, sizeof s);
    }
    return (float)s;
}

/* Half to float. Exponent and mantissa move to their places and 2^112 mends the bias, subnormals
 * included; infinities and NaN get the full exponent, NaN its quiet bit. */
ISA_FN float isa_soft_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) {
        uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0;
        return isa_soft_float(sign | magnitude | 0x7f800000u | quiet);
    }
    return isa_soft_float(sign | isa_soft_bits(isa_soft_float(magnitude) * 0x1p112f));
}

/* Float to half, nearest even. */
ISA_FN uint16_t isa_soft_to_half(float f) {
    uint32_t u = isa_soft_bits(f);
    uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | ((u >> 13) & 0x3ffu)); /* NaN, made quiet */
    }
    if (u >= 0x477ff000u) {
        return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    }
    if (u < 0x38800000u) { /* subnormal half: 0.5 more puts its last bit at the float's last */
        uint32_t r = isa_soft_bits(isa_soft_float(u) + 0.5f) - 0x3f000000u;
        return (uint16_t)(sign | r);
    }
    return (uint16_t)(sign | ((u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13));
}

#endif
