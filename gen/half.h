/* half.h -- float <-> IEEE half and bfloat16 bit patterns, in integer arithmetic, so that every
 * machine gives the same bits. Narrowing rounds to nearest even; too large becomes infinity. */
#ifndef LG_HALF_H
#define LG_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t lg_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float lg_bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* value >> shift, rounded to nearest even; shift 1..31. */
static inline uint32_t lg_shift_even(uint32_t value, uint32_t shift) {
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1U << shift) - 1U);
    uint32_t tie = 1U << (shift - 1U);
    return kept + (rest > tie || (rest == tie && (kept & 1U) != 0));
}

static inline uint16_t lg_half_bits(float x) {
    uint32_t bits = lg_float_bits(x);
    uint32_t sign = (bits >> 16) & 0x8000U;
    uint32_t exp = (bits >> 23) & 0xFFU;
    uint32_t frac = bits & 0x7FFFFFU;
    if (exp == 0xFF) {
        return (uint16_t)(sign | 0x7C00U | (frac != 0 ? 0x200U | (frac >> 13) : 0));
    }
    if (exp < 102) { /* below half of the least subnormal half, 2^-25 */
        return (uint16_t)sign;
    }
    if (exp < 113) { /* a subnormal half: units of 2^-24 */
        return (uint16_t)(sign | lg_shift_even(frac | 0x800000U, 126 - exp));
    }
    uint32_t half = lg_shift_even((exp - 112) << 23 | frac, 13); /* a carry reaches the exponent */
    return (uint16_t)(sign | (half < 0x7C00U ? half : 0x7C00U));
}

static inline float lg_half_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t exp = (half >> 10) & 31U;
    uint32_t frac = half & 0x3FFU;
    if (exp == 0) {
        float value = (float)frac * 0x1p-24F; /* exact */
        return sign != 0 ? -value : value;
    }
    uint32_t wide = exp == 31 ? 0xFFU : exp + 112U;
    return lg_bits_float(sign | wide << 23 | frac << 13);
}

static inline uint16_t lg_bf16_bits(float x) {
    uint32_t bits = lg_float_bits(x);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
        return (uint16_t)(bits >> 16 | 64U); /* stays a NaN */
    }
    return (uint16_t)((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

#endif
