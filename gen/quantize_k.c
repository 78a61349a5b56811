/* quantize_k.c -- the 256-element types: a super-scale over 8 or 16 sub-blocks with integer scales
 * of their own; see quantize.h. Each sub-block's scale comes from its extremes, without search. */
#include <math.h>
#include <string.h>

#include "half.h"
#include "quantize_qblock.h"

enum { QBLOCK = 256, MAX_SUBS = 16 };

/* What a qblock holds before its bits are packed. */
typedef struct k_code {
    uint16_t d;                /* halves */
    uint16_t d_min;
    int16_t scale[MAX_SUBS];   /* integer scale of each sub-block */
    uint8_t minimum[MAX_SUBS]; /* integer minimum, affine types only */
    uint8_t q[QBLOCK];
} k_code;

/* v rounded to nearest, halves away from zero, in lo..hi. NaN gives 0: it arises only as 0 / 0. */
static int16_t nearest(float v, int16_t lo, int16_t hi) {
    if (v <= (float)lo) {
        return lo;
    }
    if (v >= (float)hi) {
        return hi;
    }
    return isnan(v) ? 0 : (int16_t)roundf(v);
}

/* Types with x = d * scale * q - d_min * minimum: sub-blocks of n, codes 0..q_top, scales and
 * minimums 0..s_top. */
static void affine(const float *x, uint32_t n, int16_t q_top, int16_t s_top, k_code *c) {
    float step[MAX_SUBS];
    float below[MAX_SUBS]; /* minus the minimum, >= 0 */
    float max_step = 0.0F;
    float max_below = 0.0F;
    for (uint32_t s = 0; s < QBLOCK / n; s++) {
        float lo = 0.0F;
        float hi = x[s * n];
        for (uint32_t i = s * n; i < s * n + n; i++) {
            lo = fminf(lo, x[i]);
            hi = fmaxf(hi, x[i]);
        }
        step[s] = (hi - lo) / (float)q_top;
        below[s] = -lo;
        max_step = fmaxf(max_step, step[s]);
        max_below = fmaxf(max_below, below[s]);
    }
    c->d = lg_half_bits(max_step / (float)s_top);
    c->d_min = lg_half_bits(max_below / (float)s_top);
    float d = lg_half_float(c->d);
    float d_min = lg_half_float(c->d_min);
    for (uint32_t s = 0; s < QBLOCK / n; s++) {
        c->scale[s] = d != 0.0F ? nearest(step[s] / d, 0, s_top) : 0;
        c->minimum[s] = d_min != 0.0F ? (uint8_t)nearest(below[s] / d_min, 0, s_top) : 0;
        float unit = d * (float)c->scale[s];
        for (uint32_t i = s * n; i < s * n + n; i++) {
            float up = x[i] + d_min * (float)c->minimum[s];
            c->q[i] = unit != 0.0F ? (uint8_t)nearest(up / unit, 0, q_top) : 0;
        }
    }
}

/* Types with x = d * scale * (q - half): 16 sub-blocks of 16, scales -s_half..s_half - 1. */
static void symmetric(const float *x, int16_t half, int16_t s_half, k_code *c) {
    float step[MAX_SUBS];
    float widest = 0.0F;
    for (uint32_t s = 0; s < 16; s++) {
        float far = 0.0F;
        for (uint32_t i = s * 16; i < s * 16 + 16; i++) {
            far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
        }
        step[s] = -far / (float)half;
        widest = fabsf(step[s]) > fabsf(widest) ? step[s] : widest;
    }
    c->d = lg_half_bits(-widest / (float)s_half);
    float d = lg_half_float(c->d);
    for (uint32_t s = 0; s < 16; s++) {
        int16_t last = (int16_t)(s_half - 1);
        c->scale[s] = d != 0.0F ? nearest(step[s] / d, (int16_t)-s_half, last) : 0;
        float unit = d * (float)c->scale[s];
        for (uint32_t i = s * 16; i < s * 16 + 16; i++) {
            int16_t top = (int16_t)(half - 1);
            int16_t q = unit != 0.0F ? nearest(x[i] / unit, (int16_t)-half, top) : 0;
            c->q[i] = (uint8_t)(q + half);
        }
    }
}

/* Eight 6-bit scales and minimums in 12 bytes: the first four pairs whole, of the others the low
 * four bits together and the high two on top of the first four. */
static void put_pairs(const k_code *c, uint8_t *out) {
    memset(out, 0, 12);
    for (uint32_t g = 0; g < 8; g++) {
        uint32_t sc = (uint32_t)c->scale[g];
        uint32_t m = c->minimum[g];
        if (g < 4) {
            out[g] |= (uint8_t)sc;
            out[g + 4] |= (uint8_t)m;
        } else {
            out[g + 4] |= (uint8_t)((sc & 15U) | (m & 15U) << 4);
            out[g - 4] |= (uint8_t)(sc >> 4 << 6);
            out[g] |= (uint8_t)(m >> 4 << 6);
        }
    }
}

/* Low nibbles of 8 groups of 32: groups 2i and 2i + 1 share 32 bytes. */
static void put_group_nibbles(const uint8_t *q, uint8_t *out) {
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t l = 0; l < 32; l++) {
            out[32 * i + l] = (uint8_t)((q[64 * i + l] & 15U) | (q[64 * i + 32 + l] & 15U) << 4);
        }
    }
}

/* Two bits of each element, those above `shift`: four groups of 32 share 32 bytes. */
static void put_pairs_of_bits(const uint8_t *q, uint32_t shift, uint8_t *out) {
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t bits = 0;
            for (uint32_t j = 0; j < 4; j++) {
                bits |= (uint32_t)((q[128 * n + 32 * j + l] >> shift) & 3U) << (2 * j);
            }
            out[32 * n + l] = (uint8_t)bits;
        }
    }
}

/* One bit of each element, number `shift`: bit g of byte l is element 32 g + l. */
static void put_bit_of_groups(const uint8_t *q, uint32_t shift, uint8_t *out) {
    for (uint32_t l = 0; l < 32; l++) {
        uint32_t bits = 0;
        for (uint32_t g = 0; g < 8; g++) {
            bits |= (uint32_t)((q[32 * g + l] >> shift) & 1U) << g;
        }
        out[l] = (uint8_t)bits;
    }
}

void lg_qblock_q2_k(const float *x, uint8_t *out) {
    k_code c = {0};
    affine(x, 16, 3, 15, &c);
    for (uint32_t s = 0; s < 16; s++) {
        out[s] = (uint8_t)((uint32_t)c.scale[s] | (uint32_t)c.minimum[s] << 4);
    }
    put_pairs_of_bits(c.q, 0, out + 16);
    lg_put_u16(out + 80, c.d);
    lg_put_u16(out + 82, c.d_min);
}

void lg_qblock_q3_k(const float *x, uint8_t *out) {
    k_code c = {0};
    symmetric(x, 4, 32, &c);
    put_bit_of_groups(c.q, 2, out);
    put_pairs_of_bits(c.q, 0, out + 32);
    uint8_t *packed = out + 96;
    memset(packed, 0, 12);
    for (uint32_t s = 0; s < 16; s++) {
        uint32_t v = (uint32_t)(c.scale[s] + 32);
        packed[s % 8] |= (uint8_t)((v & 15U) << (s < 8 ? 0 : 4));
        packed[8 + s % 4] |= (uint8_t)(v >> 4 << (2 * (s / 4)));
    }
    lg_put_u16(out + 108, c.d);
}

void lg_qblock_q4_k(const float *x, uint8_t *out) {
    k_code c = {0};
    affine(x, 32, 15, 63, &c);
    lg_put_u16(out, c.d);
    lg_put_u16(out + 2, c.d_min);
    put_pairs(&c, out + 4);
    put_group_nibbles(c.q, out + 16);
}

void lg_qblock_q5_k(const float *x, uint8_t *out) {
    k_code c = {0};
    affine(x, 32, 31, 63, &c);
    lg_put_u16(out, c.d);
    lg_put_u16(out + 2, c.d_min);
    put_pairs(&c, out + 4);
    put_bit_of_groups(c.q, 4, out + 16);
    put_group_nibbles(c.q, out + 48);
}

void lg_qblock_q6_k(const float *x, uint8_t *out) {
    k_code c = {0};
    symmetric(x, 32, 128, &c);
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t l = 0; l < 64; l++) {
            const uint8_t *q = c.q + 128 * n + l;
            out[64 * n + l] = (uint8_t)((q[0] & 15U) | (q[64] & 15U) << 4);
        }
    }
    put_pairs_of_bits(c.q, 4, out + 128);
    for (uint32_t s = 0; s < 16; s++) {
        out[192 + s] = (uint8_t)(c.scale[s] & 0xFF);
    }
    lg_put_u16(out + 208, c.d);
}
