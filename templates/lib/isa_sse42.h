/* isa_sse42.h -- the instruction layer on SSE4.2: no fused multiply-add and no half conversions in
 * hardware, so both are emulated exactly. isa_plain.h says what each function does. */
#ifndef ISA_SSE42_H
#define ISA_SSE42_H

#include <nmmintrin.h>

#include "isa_soft.h"

enum { ISA_N = 4, ISA_TOKENS = 4, ISA_ACCS = 8, ISA_S8_BIAS = 0 };

typedef __m128 isa_f;
typedef __m128i isa_i;
typedef __m128i isa_m;

ISA_FN isa_m isa_first(uint32_t n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32((int32_t)n), _mm_setr_epi32(0, 1, 2, 3));
}

ISA_FN isa_f isa_set1(float x) {
    return _mm_set1_ps(x);
}

ISA_FN isa_f isa_load(const float *p) {
    return _mm_loadu_ps(p);
}

ISA_FN void isa_store(float *p, isa_f a) {
    _mm_storeu_ps(p, a);
}

ISA_FN isa_f isa_load_n(const float *p, uint32_t n) {
    float lane[4] = {0};
    for (uint32_t i = 0; i < n && i < 4; i++) {
        lane[i] = p[i];
    }
    return _mm_loadu_ps(lane);
}

ISA_FN void isa_store_n(float *p, isa_f a, uint32_t n) {
    float lane[4];
    _mm_storeu_ps(lane, a);
    for (uint32_t i = 0; i < n && i < 4; i++) {
        p[i] = lane[i];
    }
}

ISA_FN isa_f isa_add(isa_f a, isa_f b) {
    return _mm_add_ps(a, b);
}

ISA_FN isa_f isa_sub(isa_f a, isa_f b) {
    return _mm_sub_ps(a, b);
}

ISA_FN isa_f isa_mul(isa_f a, isa_f b) {
    return _mm_mul_ps(a, b);
}

ISA_FN isa_f isa_div(isa_f a, isa_f b) {
    return _mm_div_ps(a, b);
}

/* Two lanes of isa_soft_fma: the sum of a double product and z, rounded to odd, then to float. */
ISA_FN __m128 isa_round_odd(__m128d p, __m128d z, __m128d s) {
    const __m128d zero = _mm_setzero_pd();
    const __m128i one = _mm_set1_epi64x(1);
    __m128d v = _mm_sub_pd(s, p);
    __m128d e = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, v)), _mm_sub_pd(z, v));
    __m128i up = _mm_castpd_si128(_mm_cmpgt_pd(e, zero));
    __m128i down = _mm_castpd_si128(_mm_cmplt_pd(e, zero));
    __m128i positive = _mm_castpd_si128(_mm_cmpgt_pd(s, zero));
    __m128i bits = _mm_castpd_si128(s);
    __m128i even = _mm_cmpeq_epi64(_mm_and_si128(bits, one), _mm_setzero_si128());
    __m128i inexact = _mm_and_si128(_mm_or_si128(up, down), even);
    __m128i away = _mm_cmpeq_epi64(up, positive); /* the magnitude grows */
    __m128i step = _mm_or_si128(_mm_andnot_si128(away, _mm_set1_epi64x(-1)), one);
    bits = _mm_add_epi64(bits, _mm_and_si128(step, inexact));
    return _mm_cvtpd_ps(_mm_castsi128_pd(bits));
}

/* True if some of four sums may round to float otherwise than the exact sums would: one that lies
 * on the middle between two floats, or is so small that floats lie further apart. */
ISA_FN int isa_may_differ(__m128d s0, __m128d s1) {
    __m128 a = _mm_castpd_ps(s0), b = _mm_castpd_ps(s1);
    __m128i low = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
    __m128i high = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
    low = _mm_and_si128(low, _mm_set1_epi32(0x1fffffff));
    high = _mm_and_si128(high, _mm_set1_epi32(0x7fffffff));
    __m128i middle = _mm_cmpeq_epi32(low, _mm_set1_epi32(0x10000000));
    __m128i small = _mm_cmplt_epi32(high, _mm_set1_epi32((1023 - 126) << 20));
    small = _mm_andnot_si128(_mm_cmpeq_epi32(high, _mm_setzero_si128()), small);
    return _mm_movemask_epi8(_mm_or_si128(middle, small));
}

/* The product is exact in double; the sum is rounded there and again to float, which is what one
 * rounding gives unless isa_may_differ. */
ISA_FN isa_f isa_fma(isa_f a, isa_f b, isa_f c) {
    __m128d p0 = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
    __m128d p1 = _mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)));
    __m128d z0 = _mm_cvtps_pd(c), z1 = _mm_cvtps_pd(_mm_movehl_ps(c, c));
    __m128d s0 = _mm_add_pd(p0, z0), s1 = _mm_add_pd(p1, z1);
    if (__builtin_expect(isa_may_differ(s0, s1) != 0, 0)) {
        return _mm_movelh_ps(isa_round_odd(p0, z0, s0), isa_round_odd(p1, z1, s1));
    }
    return _mm_movelh_ps(_mm_cvtpd_ps(s0), _mm_cvtpd_ps(s1));
}

ISA_FN float isa_fma1(float a, float b, float c) {
    return isa_soft_fma(a, b, c);
}

ISA_FN float isa_sqrt1(float a) {
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}

ISA_FN isa_f isa_neg(isa_f a) {
    return _mm_xor_ps(a, _mm_set1_ps(-0.0f));
}

ISA_FN isa_f isa_max(isa_f a, isa_f b) {
    return _mm_max_ps(a, b);
}

ISA_FN isa_m isa_gt(isa_f a, isa_f b) {
    return _mm_castps_si128(_mm_cmpgt_ps(a, b));
}

ISA_FN isa_f isa_sel(isa_m m, isa_f a, isa_f b) {
    return _mm_blendv_ps(b, a, _mm_castsi128_ps(m));
}

ISA_FN isa_i isa_cvt_i(isa_f a) {
    return _mm_cvtps_epi32(a);
}

ISA_FN isa_f isa_cvt_f(isa_i a) {
    return _mm_cvtepi32_ps(a);
}

ISA_FN isa_f isa_as_f(isa_i a) {
    return _mm_castsi128_ps(a);
}

ISA_FN isa_i isa_as_i(isa_f a) {
    return _mm_castps_si128(a);
}

ISA_FN float isa_half1(const void *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return isa_soft_half(h);
}

/* isa_soft_half on four lanes. */
ISA_FN isa_f isa_cvt_half(isa_i h) {
    __m128i sign = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x8000)), 16);
    __m128i magnitude = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x7fff)), 13);
    __m128 value = _mm_mul_ps(_mm_castsi128_ps(magnitude), _mm_set1_ps(0x1p112f));
    __m128i special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x0f7fffff));
    __m128i nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x0f800000));
    __m128i full = _mm_or_si128(magnitude, _mm_set1_epi32(0x7f800000));
    full = _mm_or_si128(full, _mm_and_si128(nan, _mm_set1_epi32(0x00400000)));
    __m128i bits = _mm_blendv_epi8(_mm_castps_si128(value), full, special);
    return _mm_castsi128_ps(_mm_or_si128(bits, sign));
}

ISA_FN isa_f isa_load_half(const void *p) {
    return isa_cvt_half(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

ISA_FN void isa_store_half(void *p, isa_f a) {
    float lane[4];
    uint16_t h[4];
    _mm_storeu_ps(lane, a);
    for (int i = 0; i < 4; i++) {
        h[i] = isa_soft_to_half(lane[i]);
    }
    memcpy(p, h, sizeof h);
}

ISA_FN isa_f isa_load_bf16(const void *p) {
    __m128i u = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p));
    return _mm_castsi128_ps(_mm_slli_epi32(u, 16));
}

ISA_FN __m128i isa_four_bytes(const void *p) {
    int32_t u;
    memcpy(&u, p, sizeof u);
    return _mm_cvtsi32_si128(u);
}

ISA_FN isa_i isa_load_u8(const void *p) {
    return _mm_cvtepu8_epi32(isa_four_bytes(p));
}

ISA_FN isa_i isa_load_s8(const void *p) {
    return _mm_cvtepi8_epi32(isa_four_bytes(p));
}

ISA_FN void isa_store_s8(int8_t *p, isa_i a) {
    __m128i h = _mm_packs_epi32(a, a);
    int32_t u = _mm_cvtsi128_si32(_mm_packs_epi16(h, h));
    memcpy(p, &u, sizeof u);
}

ISA_FN isa_i isa_iload(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

ISA_FN isa_i isa_iset1(int32_t x) {
    return _mm_set1_epi32(x);
}

ISA_FN isa_i isa_iadd(isa_i a, isa_i b) {
    return _mm_add_epi32(a, b);
}

ISA_FN isa_i isa_iand(isa_i a, isa_i b) {
    return _mm_and_si128(a, b);
}

ISA_FN isa_i isa_ior(isa_i a, isa_i b) {
    return _mm_or_si128(a, b);
}

ISA_FN isa_i isa_ixor(isa_i a, isa_i b) {
    return _mm_xor_si128(a, b);
}

ISA_FN isa_i isa_ishl(isa_i a, uint32_t n) {
    return _mm_slli_epi32(a, (int)n);
}

ISA_FN isa_i isa_ishr(isa_i a, uint32_t n) {
    return _mm_srli_epi32(a, (int)n);
}

ISA_FN isa_i isa_imax(isa_i a, isa_i b) {
    return _mm_max_epi32(a, b);
}

ISA_FN isa_i isa_table16(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

ISA_FN isa_i isa_lookup16(isa_i table, isa_i at) {
    return _mm_shuffle_epi8(table, at);
}

/* Entry by entry. */
ISA_FN isa_i isa_lookup_u16(const uint16_t *table, uint32_t n, isa_i at) {
    uint16_t i[8], r[8];
    (void)n;
    _mm_storeu_si128((__m128i *)(void *)i, at);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        r[k] = table[i[k]];
    }
    return _mm_loadu_si128((const __m128i *)(const void *)r);
}

/* Byte i of each lane in all of its four. */
ISA_FN isa_i isa_byte4(isa_i a, uint32_t i) {
    const __m128i first = _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    const __m128i at = _mm_set1_epi32((int32_t)(i * 0x01010101u));
    return _mm_shuffle_epi8(a, _mm_add_epi32(first, at));
}

ISA_FN isa_i isa_spread4(isa_i a, uint32_t i, uint32_t to) {
    const __m128i bits = _mm_set1_epi32((int32_t)(0x08040201u << (i % 2 * 4)));
    __m128i set = _mm_cmpeq_epi8(_mm_and_si128(isa_byte4(a, i / 2), bits), bits);
    return _mm_and_si128(set, _mm_set1_epi8((char)(1u << to)));
}

/* The same 4 activations in every lane. */
ISA_FN isa_i isa_four(const int8_t *q) {
    int32_t u;
    memcpy(&u, q, sizeof u);
    return _mm_set1_epi32(u);
}

/* Pairs of products go through 16 bits: codes below 128 cannot saturate, and `per` words fit. */
ISA_FN isa_i isa_dot_wide(isa_i acc, const isa_i *w, const int8_t *q, int n, int per) {
    const __m128i one = _mm_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i += per) {
        __m128i pairs = _mm_maddubs_epi16(w[i], isa_four(q + 4 * i));
        for (int j = i + 1; j < i + per && j < n; j++) {
            pairs = _mm_add_epi16(pairs, _mm_maddubs_epi16(w[j], isa_four(q + 4 * j)));
        }
        acc = _mm_add_epi32(acc, _mm_madd_epi16(pairs, one));
    }
    return acc;
}

ISA_FN isa_i isa_dot_u4(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    return isa_dot_wide(acc, w, q, n, 8); /* 8 * 2 * 15 * 127 < 2^15 */
}

ISA_FN isa_i isa_dot_u5(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    return isa_dot_wide(acc, w, q, n, 4); /* 4 * 2 * 31 * 127 < 2^15 */
}

ISA_FN isa_i isa_dot_u6(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    return isa_dot_wide(acc, w, q, n, 2); /* 2 * 2 * 63 * 127 < 2^15 */
}

ISA_FN isa_i isa_dot_u7(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    return isa_dot_wide(acc, w, q, n, 1); /* 2 * 127 * 127 < 2^15 */
}

/* |w| <= 128 as unsigned, its sign moved to q: 2 * 128 * 127 < 2^15. */
ISA_FN isa_i isa_dot_s8(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    const __m128i one = _mm_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        __m128i x = _mm_sign_epi8(isa_four(q + 4 * i), w[i]);
        __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8(w[i]), x);
        acc = _mm_add_epi32(acc, _mm_madd_epi16(pairs, one));
    }
    return acc;
}

ISA_FN isa_i isa_s8_prep(isa_i w) {
    return w;
}

ISA_FN float isa_tree_sum(isa_f a) {
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

ISA_FN float isa_top(isa_f a) {
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

ISA_FN uint32_t isa_itop(isa_i a) {
    a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(a, _mm_shuffle_epi32(a, 0xb1)));
}

/* Bytes made unsigned by + 128 are summed by eights. */
ISA_FN int32_t isa_sum16(const int8_t *q) {
    __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)q), _mm_set1_epi8((char)-128));
    __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
    return _mm_cvtsi128_si32(sums) - 16 * 128;
}

ISA_FN void isa_unzip(isa_f a, isa_f b, isa_f *even, isa_f *odd) {
    *even = _mm_shuffle_ps(a, b, 0x88);
    *odd = _mm_shuffle_ps(a, b, 0xdd);
}

ISA_FN void isa_zip(isa_f even, isa_f odd, isa_f *a, isa_f *b) {
    *a = _mm_unpacklo_ps(even, odd);
    *b = _mm_unpackhi_ps(even, odd);
}

/* Sums of 4 pairs. */
ISA_FN __m128i isa_sum4(const int16_t *s) {
    return _mm_madd_epi16(_mm_loadu_si128((const __m128i *)s), _mm_set1_epi16(1));
}

ISA_FN void isa_sum8_scaled(const int16_t *s, const float *d, float *out) {
    for (int i = 0; i < 8; i += 4) {
        __m128 sum = _mm_cvtepi32_ps(isa_sum4(s + 2 * i));
        _mm_storeu_ps(out + i, _mm_mul_ps(sum, _mm_loadu_ps(d + i)));
    }
}

ISA_FN void isa_sum8_times(const int16_t *s, int32_t factor, int32_t *out) {
    for (int i = 0; i < 8; i += 4) {
        __m128i product = _mm_mullo_epi32(isa_sum4(s + 2 * i), _mm_set1_epi32(factor));
        _mm_storeu_si128((__m128i *)(out + i), product);
    }
}

/* As on AVX2. */
ISA_FN void isa_ahead(const uint8_t *p, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 64) {
        _mm_prefetch((const char *)p + 4096 + i, _MM_HINT_T0);
    }
}

#endif
