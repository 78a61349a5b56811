/* quantize.c -- plain and 32-element types, and the table of all; see quantize.h. The 256-element
 * types are in quantize_k.c, those with a codebook in quantize_code.c. */
#include "quantize.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "half.h"
#include "quantize_qblock.h"

static void f32(const float *x, uint8_t *out) {
    lg_put_u32(out, lg_float_bits(*x));
}

static void f16(const float *x, uint8_t *out) {
    lg_put_u16(out, lg_half_bits(*x));
}

static void bf16(const float *x, uint8_t *out) {
    lg_put_u16(out, lg_bf16_bits(*x));
}

/* The element of largest magnitude, sign kept; the first of equals. */
static float signed_max(const float *x, uint32_t n) {
    float best = 0.0F;
    for (uint32_t i = 0; i < n; i++) {
        best = fabsf(x[i]) > fabsf(best) ? x[i] : best;
    }
    return best;
}

static float reciprocal(float d) {
    return d != 0.0F ? 1.0F / d : 0.0F;
}

/* Nibble area of a 32-element type: element e in byte e mod 16, the first 16 in the low nibbles. */
static void put_nibbles(const uint8_t *q, uint8_t *out) {
    for (uint32_t i = 0; i < 16; i++) {
        out[i] = (uint8_t)((q[i] & 15U) | (q[i + 16] & 15U) << 4);
    }
}

/* Bit 4 of each of 32 codes, as one word. */
static uint32_t fifth_bits(const uint8_t *q) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 32; i++) {
        bits |= (uint32_t)((q[i] >> 4) & 1U) << i;
    }
    return bits;
}

/* Codes around zero: d = -max / half, level half stands for 0. Returns d's half bits. */
static uint16_t symmetric(const float *x, uint8_t half, uint8_t *q) {
    float d = signed_max(x, 32) / -(float)half;
    float inv = reciprocal(d);
    for (uint32_t i = 0; i < 32; i++) {
        q[i] = lg_level(x[i] * inv + ((float)half + 0.5F), (uint8_t)(2 * half - 1));
    }
    return lg_half_bits(d);
}

/* Codes from the minimum up: x = d * q + m. Writes the halves d and m. */
static void affine(const float *x, uint8_t top, uint8_t *q, uint8_t *out) {
    float lo = x[0];
    float hi = x[0];
    for (uint32_t i = 1; i < 32; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    float d = (hi - lo) / (float)top;
    float inv = reciprocal(d);
    for (uint32_t i = 0; i < 32; i++) {
        q[i] = lg_level((x[i] - lo) * inv + 0.5F, top);
    }
    lg_put_u16(out, lg_half_bits(d));
    lg_put_u16(out + 2, lg_half_bits(lo));
}

static void q4_0(const float *x, uint8_t *out) {
    uint8_t q[32];
    lg_put_u16(out, symmetric(x, 8, q));
    put_nibbles(q, out + 2);
}

static void q4_1(const float *x, uint8_t *out) {
    uint8_t q[32];
    affine(x, 15, q, out);
    put_nibbles(q, out + 4);
}

static void q5_0(const float *x, uint8_t *out) {
    uint8_t q[32];
    lg_put_u16(out, symmetric(x, 16, q));
    lg_put_u32(out + 2, fifth_bits(q));
    put_nibbles(q, out + 6);
}

static void q5_1(const float *x, uint8_t *out) {
    uint8_t q[32];
    affine(x, 31, q, out);
    lg_put_u32(out + 4, fifth_bits(q));
    put_nibbles(q, out + 8);
}

static void q8_0(const float *x, uint8_t *out) {
    float d = fabsf(signed_max(x, 32)) / 127.0F;
    float inv = reciprocal(d);
    lg_put_u16(out, lg_half_bits(d));
    for (uint32_t i = 0; i < 32; i++) {
        uint8_t q = lg_level(roundf(fabsf(x[i]) * inv), 127);
        out[2 + i] = (uint8_t)(x[i] < 0.0F ? 256U - q : q);
    }
}

typedef struct quantiser {
    lg_qtype type;
    float max_abs; /* largest magnitude that the type can hold */
    void (*qblock)(const float *x, uint8_t *out);
} quantiser;

/* A half holds no more; with halves as scales the types below hold at least this. */
#define HALF_MAX 65504.0F

static const quantiser *find(lg_qtype t) {
    static const quantiser table[] = {
        {LG_QTYPE_F32, INFINITY, f32},
        {LG_QTYPE_BF16, 0x1.FEp127F, bf16},
        {LG_QTYPE_F16, HALF_MAX, f16},
        {LG_QTYPE_Q4_0, HALF_MAX, q4_0},
        {LG_QTYPE_Q4_1, HALF_MAX, q4_1},
        {LG_QTYPE_Q5_0, HALF_MAX, q5_0},
        {LG_QTYPE_Q5_1, HALF_MAX, q5_1},
        {LG_QTYPE_Q8_0, HALF_MAX, q8_0},
        {LG_QTYPE_Q2_K, HALF_MAX, lg_qblock_q2_k},
        {LG_QTYPE_Q3_K, HALF_MAX, lg_qblock_q3_k},
        {LG_QTYPE_Q4_K, HALF_MAX, lg_qblock_q4_k},
        {LG_QTYPE_Q5_K, HALF_MAX, lg_qblock_q5_k},
        {LG_QTYPE_Q6_K, HALF_MAX, lg_qblock_q6_k},
        {LG_QTYPE_IQ4_NL, HALF_MAX, lg_qblock_iq4_nl},
        {LG_QTYPE_IQ4_XS, HALF_MAX, lg_qblock_iq4_xs},
        {LG_QTYPE_MXFP4, HALF_MAX, lg_qblock_mxfp4},
        {LG_QTYPE_NVFP4, HALF_MAX, lg_qblock_nvfp4},
    };
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].type == t) {
            return &table[i];
        }
    }
    return NULL;
}

bool lg_quantize_has(lg_qtype t) {
    return find(t) != NULL;
}

bool lg_quantize_row(lg_qtype t, const float *x, uint64_t n_elems, uint8_t *out, lb_err *err) {
    const quantiser *q = find(t);
    const lg_qtype_row *row = lg_qtype_get(t);
    uint64_t n_bytes = 0;
    if (q == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "type %s has no quantiser in lagen", row->name);
    }
    if (!lg_qtype_row_bytes(t, n_elems, &n_bytes, err)) {
        return false;
    }
    for (uint64_t i = 0; i < n_elems; i++) {
        if (!isfinite(x[i]) || fabsf(x[i]) > q->max_abs) {
            return lb_err_set(err, LB_BAD_VALUE, "column %" PRIu64 ": %g does not fit type %s", i,
                              (double)x[i], row->name);
        }
    }
    for (uint64_t i = 0; i < n_elems; i += row->qblock_elems) {
        q->qblock(x + i, out);
        out += row->qblock_bytes;
    }
    return true;
}
