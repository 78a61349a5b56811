/* num.h -- checked size arithmetic. Every product or sum of sizes goes through these; each returns
 * false on overflow and leaves *out untouched. (gcc 12 has no <stdckdint.h>.) */
#ifndef LB_NUM_H
#define LB_NUM_H

#include <stdbool.h>
#include <stdint.h>

static inline bool lb_add(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}

static inline bool lb_mul(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}

/* ceil(a / b); b must not be 0. Never overflows. */
static inline uint64_t lb_ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* The smallest multiple of `to` (not 0) that is >= a. */
static inline bool lb_round_up(uint64_t a, uint64_t to, uint64_t *out) {
    return lb_mul(lb_ceil_div(a, to), to, out);
}

static inline bool lb_to_u32(uint64_t a, uint32_t *out) {
    if (a > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)a;
    return true;
}

static inline bool lb_is_pow2(uint64_t a) {
    return a != 0 && (a & (a - 1)) == 0;
}

#endif
