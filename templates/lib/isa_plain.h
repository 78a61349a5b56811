/* isa_plain.h -- the instruction layer in plain C: 16 lanes, no intrinsics. It is the twin that the
 * other headers are tested against, and the list of what a header of this layer must give:
 *
 *   ISA_N        f32 lanes of a vector: 16, 8 or 4
 *   ISA_TOKENS   tokens of a matmul register tile
 *   ISA_ACCS     accumulators of an attention register tile
 *   ISA_S8_BIAS  what isa_s8_prep adds to a signed weight byte; the caller takes bias * sum(q) off
 *   isa_f isa_i isa_m   vectors of f32, of 32 bits, of lane masks
 * Floats follow IEEE single precision, nearest even, subnormals kept; isa_fma rounds once. `n`
 * variants touch n lanes of memory only. Code bytes of a 32-bit lane are those of 4 columns. */
#ifndef ISA_PLAIN_H
#define ISA_PLAIN_H

#include <math.h>

#include "isa_soft.h"

enum { ISA_N = 16, ISA_TOKENS = 2, ISA_ACCS = 2, ISA_S8_BIAS = 0 };

typedef struct isa_f {
    float lane[ISA_N];
} isa_f;
typedef struct isa_i {
    uint32_t lane[ISA_N];
} isa_i;
typedef isa_i isa_m;

#define ISA_EACH for (int l = 0; l < ISA_N; l++)

/* f32: memory */
ISA_FN isa_f isa_set1(float x) {
    isa_f r;
    ISA_EACH r.lane[l] = x;
    return r;
}

ISA_FN isa_f isa_load(const float *p) {
    isa_f r;
    memcpy(&r, p, sizeof r);
    return r;
}

ISA_FN void isa_store(float *p, isa_f a) {
    memcpy(p, &a, sizeof a);
}

ISA_FN isa_f isa_load_n(const float *p, uint32_t n) {
    isa_f r = isa_set1(0.0f);
    memcpy(&r, p, n * sizeof(float));
    return r;
}

ISA_FN void isa_store_n(float *p, isa_f a, uint32_t n) {
    memcpy(p, &a, n * sizeof(float));
}

/* f32: arithmetic */
ISA_FN isa_f isa_add(isa_f a, isa_f b) {
    ISA_EACH a.lane[l] += b.lane[l];
    return a;
}

ISA_FN isa_f isa_sub(isa_f a, isa_f b) {
    ISA_EACH a.lane[l] -= b.lane[l];
    return a;
}

ISA_FN isa_f isa_mul(isa_f a, isa_f b) {
    ISA_EACH a.lane[l] *= b.lane[l];
    return a;
}

ISA_FN isa_f isa_div(isa_f a, isa_f b) {
    ISA_EACH a.lane[l] /= b.lane[l];
    return a;
}

ISA_FN isa_f isa_fma(isa_f a, isa_f b, isa_f c) {
    ISA_EACH c.lane[l] = isa_soft_fma(a.lane[l], b.lane[l], c.lane[l]);
    return c;
}

ISA_FN float isa_fma1(float a, float b, float c) {
    return isa_soft_fma(a, b, c);
}

ISA_FN float isa_sqrt1(float a) {
    return sqrtf(a);
}

ISA_FN isa_f isa_neg(isa_f a) {
    ISA_EACH a.lane[l] = -a.lane[l];
    return a;
}

/* a > b ? a : b */
ISA_FN isa_f isa_max(isa_f a, isa_f b) {
    ISA_EACH b.lane[l] = a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l];
    return b;
}

ISA_FN isa_m isa_gt(isa_f a, isa_f b) {
    isa_m r;
    ISA_EACH r.lane[l] = a.lane[l] > b.lane[l] ? UINT32_MAX : 0;
    return r;
}

/* Lanes below n. */
ISA_FN isa_m isa_first(uint32_t n) {
    isa_m r;
    ISA_EACH r.lane[l] = (uint32_t)l < n ? UINT32_MAX : 0;
    return r;
}

ISA_FN isa_f isa_sel(isa_m m, isa_f a, isa_f b) {
    ISA_EACH b.lane[l] = m.lane[l] ? a.lane[l] : b.lane[l];
    return b;
}

/* conversions */
ISA_FN isa_i isa_cvt_i(isa_f a) { /* nearest even; |a| < 2^22 */
    isa_i r;
    ISA_EACH r.lane[l] =
        isa_soft_bits(a.lane[l] + 0x1.8p23f) - isa_soft_bits(0x1.8p23f);
    return r;
}

ISA_FN isa_f isa_cvt_f(isa_i a) {
    isa_f r;
    ISA_EACH r.lane[l] = (float)(int32_t)a.lane[l];
    return r;
}

ISA_FN isa_f isa_as_f(isa_i a) {
    isa_f r;
    memcpy(&r, &a, sizeof r);
    return r;
}

ISA_FN isa_i isa_as_i(isa_f a) {
    isa_i r;
    memcpy(&r, &a, sizeof r);
    return r;
}

/* Halves, bfloat16 and bytes of ISA_N consecutive elements. */
ISA_FN uint16_t isa_plain_u16(const void *p, size_t i) {
    uint16_t h;
    memcpy(&h, (const char *)p + 2 * i, sizeof h);
    return h;
}

ISA_FN float isa_half1(const void *p) {
    return isa_soft_half(isa_plain_u16(p, 0));
}

ISA_FN isa_f isa_load_half(const void *p) {
    isa_f r;
    ISA_EACH r.lane[l] = isa_soft_half(isa_plain_u16(p, (size_t)l));
    return r;
}

/* Halves as integers, one a lane. */
ISA_FN isa_f isa_cvt_half(isa_i a) {
    isa_f r;
    ISA_EACH r.lane[l] = isa_soft_half((uint16_t)a.lane[l]);
    return r;
}

ISA_FN void isa_store_half(void *p, isa_f a) {
    ISA_EACH {
        uint16_t h = isa_soft_to_half(a.lane[l]);
        memcpy((char *)p + 2 * l, &h, sizeof h);
    }
}

ISA_FN isa_f isa_load_bf16(const void *p) {
    isa_f r;
    ISA_EACH r.lane[l] = isa_soft_float((uint32_t)isa_plain_u16(p, (size_t)l) << 16);
    return r;
}

ISA_FN isa_i isa_load_u8(const void *p) {
    isa_i r;
    ISA_EACH r.lane[l] = ((const uint8_t *)p)[l];
    return r;
}

ISA_FN isa_i isa_load_s8(const void *p) {
    isa_i r;
    ISA_EACH r.lane[l] = (uint32_t)(int32_t)((const int8_t *)p)[l];
    return r;
}

ISA_FN void isa_store_s8(int8_t *p, isa_i a) { /* lanes within -128..127 */
    ISA_EACH p[l] = (int8_t)a.lane[l];
}

/* 32-bit lanes */
ISA_FN isa_i isa_iload(const void *p) {
    isa_i r;
    memcpy(&r, p, sizeof r);
    return r;
}

ISA_FN isa_i isa_iset1(int32_t x) {
    isa_i r;
    ISA_EACH r.lane[l] = (uint32_t)x;
    return r;
}

ISA_FN isa_i isa_iadd(isa_i a, isa_i b) {
    ISA_EACH a.lane[l] += b.lane[l];
    return a;
}

ISA_FN isa_i isa_iand(isa_i a, isa_i b) {
    ISA_EACH a.lane[l] &= b.lane[l];
    return a;
}

ISA_FN isa_i isa_ior(isa_i a, isa_i b) {
    ISA_EACH a.lane[l] |= b.lane[l];
    return a;
}

ISA_FN isa_i isa_ixor(isa_i a, isa_i b) {
    ISA_EACH a.lane[l] ^= b.lane[l];
    return a;
}

ISA_FN isa_i isa_ishl(isa_i a, uint32_t n) {
    ISA_EACH a.lane[l] <<= n;
    return a;
}

ISA_FN isa_i isa_ishr(isa_i a, uint32_t n) { /* logical */
    ISA_EACH a.lane[l] >>= n;
    return a;
}

ISA_FN isa_i isa_imax(isa_i a, isa_i b) { /* signed */
    ISA_EACH a.lane[l] = (int32_t)a.lane[l] > (int32_t)b.lane[l] ? a.lane[l] : b.lane[l];
    return a;
}

/* A table of 16 bytes, and what it has for each byte of the lanes; those are below 16. */
ISA_FN isa_i isa_table16(const void *p) {
    isa_i r;
    ISA_EACH memcpy(&r.lane[l], (const char *)p + 4 * (l % 4), 4);
    return r;
}

ISA_FN isa_i isa_lookup16(isa_i table, isa_i at) {
    ISA_EACH {
        uint32_t r = 0;
        for (int b = 0; b < 32; b += 8) {
            uint32_t i = at.lane[l] >> b & 15u;
            r |= (table.lane[i / 4] >> (i % 4 * 8) & 255u) << b;
        }
        at.lane[l] = r;
    }
    return at;
}

/* A table of n 16-bit entries (n a power of two, 256 to 2048, known to the compiler; one entry more can be
 * read), and what it has for the two 16-bit halves of each lane; those are below n. */
ISA_FN isa_i isa_lookup_u16(const uint16_t *table, uint32_t n, isa_i at) {
    (void)n;
    ISA_EACH at.lane[l] =
        table[at.lane[l] & 0xffffu] | (uint32_t)table[at.lane[l] >> 16] << 16;
    return at;
}

/* Byte i of each lane in all of its four. */
ISA_FN isa_i isa_byte4(isa_i a, uint32_t i) {
    ISA_EACH a.lane[l] = (a.lane[l] >> (8 * i) & 255u) * 0x01010101u;
    return a;
}

/* Bits 4i..4i+3 of each lane become bit `to` of its bytes 0..3. */
ISA_FN isa_i isa_spread4(isa_i a, uint32_t i, uint32_t to) {
    ISA_EACH {
        uint32_t x = (a.lane[l] >> (4 * i)) & 15u;
        a.lane[l] = ((x * 0x00204081u) & 0x01010101u) << to;
    }
    return a;
}

/* Dot products of n words: acc + sum over i < n of the 4 code bytes of w[i] times the 4 activations
 * q[4i..4i+3]; exact. _u4 .. _u7: codes below 16, 32, 64, 128; _s8: signed bytes as isa_s8_prep
 * left them. */
ISA_FN isa_i isa_plain_dot(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    for (int i = 0; i < n; i++) {
        ISA_EACH for (int b = 0; b < 4; b++) {
            int32_t code = (int8_t)(w[i].lane[l] >> (8 * b));
            acc.lane[l] += (uint32_t)(code * q[4 * i + b]);
        }
    }
    return acc;
}
#define isa_dot_u4 isa_plain_dot
#define isa_dot_u5 isa_plain_dot
#define isa_dot_u6 isa_plain_dot
#define isa_dot_u7 isa_plain_dot
#define isa_dot_s8 isa_plain_dot

ISA_FN isa_i isa_s8_prep(isa_i w) {
    return w;
}

/* across lanes: halves added (lane l + lane l + s, s = N/2 .. 1); greatest lane; sum of 16 bytes */
ISA_FN float isa_tree_sum(isa_f a) {
    for (int s = ISA_N / 2; s > 0; s /= 2) {
        for (int l = 0; l < s; l++) {
            a.lane[l] += a.lane[l + s];
        }
    }
    return a.lane[0];
}

ISA_FN float isa_top(isa_f a) {
    for (int l = 1; l < ISA_N; l++) {
        a.lane[0] = a.lane[0] > a.lane[l] ? a.lane[0] : a.lane[l];
    }
    return a.lane[0];
}

ISA_FN uint32_t isa_itop(isa_i a) { /* signed */
    for (int l = 1; l < ISA_N; l++) {
        a.lane[0] = (int32_t)a.lane[0] > (int32_t)a.lane[l] ? a.lane[0] : a.lane[l];
    }
    return a.lane[0];
}

ISA_FN int32_t isa_sum16(const int8_t *q) {
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += q[i];
    }
    return sum;
}

/* a0 a1 .. b0 b1 ..  ->  even elements and odd elements, and back */
ISA_FN void isa_unzip(isa_f a, isa_f b, isa_f *even, isa_f *odd) {
    for (int l = 0; l < ISA_N / 2; l++) {
        even->lane[l] = a.lane[2 * l];
        odd->lane[l] = a.lane[2 * l + 1];
        even->lane[ISA_N / 2 + l] = b.lane[2 * l];
        odd->lane[ISA_N / 2 + l] = b.lane[2 * l + 1];
    }
}

ISA_FN void isa_zip(isa_f even, isa_f odd, isa_f *a, isa_f *b) {
    for (int l = 0; l < ISA_N / 2; l++) {
        a->lane[2 * l] = even.lane[l];
        a->lane[2 * l + 1] = odd.lane[l];
        b->lane[2 * l] = even.lane[ISA_N / 2 + l];
        b->lane[2 * l + 1] = odd.lane[ISA_N / 2 + l];
    }
}

/* Of 8 groups: the sums of their two halves, times d as floats, or times an integer. */
ISA_FN void isa_sum8_scaled(const int16_t *s, const float *d, float *out) {
    for (int g = 0; g < 8; g++) {
        out[g] = (float)(s[2 * g] + s[2 * g + 1]) * d[g];
    }
}

ISA_FN void isa_sum8_times(const int16_t *s, int32_t factor, int32_t *out) {
    for (int g = 0; g < 8; g++) {
        out[g] = (s[2 * g] + s[2 * g + 1]) * factor;
    }
}

/* Told before n bytes at p of a long read in order: fetch what comes later, where that pays. */
ISA_FN void isa_ahead(const uint8_t *p, uint32_t n) {
    (void)p, (void)n;
}

#endif
