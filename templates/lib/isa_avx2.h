/* isa_avx2.h -- the instruction layer on AVX2, FMA and F16C. isa_plain.h says what each function
 * does. */
#ifndef ISA_AVX2_H
#define ISA_AVX2_H

#include <immintrin.h>

#include "isa_soft.h"

enum { ISA_N = 8, ISA_TOKENS = 4, ISA_ACCS = 8, ISA_S8_BIAS = 0 };

typedef __m256 isa_f;
typedef __m256i isa_i;
typedef __m256i isa_m;

ISA_FN isa_m isa_first(uint32_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), lane);
}

ISA_FN isa_f isa_set1(float x) {
    return _mm256_set1_ps(x);
}

ISA_FN isa_f isa_load(const float *p) {
    return _mm256_loadu_ps(p);
}

ISA_FN void isa_store(float *p, isa_f a) {
    _mm256_storeu_ps(p, a);
}

ISA_FN isa_f isa_load_n(const float *p, uint32_t n) {
    return n == ISA_N ? isa_load(p) : _mm256_maskload_ps(p, isa_first(n));
}

/* A masked store takes some 20 cycles on Zen, so whole vectors go the plain way. */
ISA_FN void isa_store_n(float *p, isa_f a, uint32_t n) {
    if (n == ISA_N) {
        isa_store(p, a);
        return;
    }
    _mm256_maskstore_ps(p, isa_first(n), a);
}

ISA_FN isa_f isa_add(isa_f a, isa_f b) {
    return _mm256_add_ps(a, b);
}

ISA_FN isa_f isa_sub(isa_f a, isa_f b) {
    return _mm256_sub_ps(a, b);
}

ISA_FN isa_f isa_mul(isa_f a, isa_f b) {
    return _mm256_mul_ps(a, b);
}

ISA_FN isa_f isa_div(isa_f a, isa_f b) {
    return _mm256_div_ps(a, b);
}

ISA_FN isa_f isa_fma(isa_f a, isa_f b, isa_f c) {
    return _mm256_fmadd_ps(a, b, c);
}

ISA_FN float isa_fma1(float a, float b, float c) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

ISA_FN float isa_sqrt1(float a) {
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}

ISA_FN isa_f isa_neg(isa_f a) {
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

ISA_FN isa_f isa_max(isa_f a, isa_f b) {
    return _mm256_max_ps(a, b);
}

ISA_FN isa_m isa_gt(isa_f a, isa_f b) {
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

ISA_FN isa_f isa_sel(isa_m m, isa_f a, isa_f b) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m));
}

ISA_FN isa_i isa_cvt_i(isa_f a) {
    return _mm256_cvtps_epi32(a);
}

ISA_FN isa_f isa_cvt_f(isa_i a) {
    return _mm256_cvtepi32_ps(a);
}

ISA_FN isa_f isa_as_f(isa_i a) {
    return _mm256_castsi256_ps(a);
}

ISA_FN isa_i isa_as_i(isa_f a) {
    return _mm256_castps_si256(a);
}

ISA_FN float isa_half1(const void *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

ISA_FN isa_f isa_load_half(const void *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

ISA_FN isa_f isa_cvt_half(isa_i a) {
    __m128i low = _mm256_castsi256_si128(a), high = _mm256_extracti128_si256(a, 1);
    return _mm256_cvtph_ps(_mm_packus_epi32(low, high));
}

ISA_FN void isa_store_half(void *p, isa_f a) {
    __m128i h = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128((__m128i *)p, h);
}

ISA_FN isa_f isa_load_bf16(const void *p) {
    __m256i u = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}

ISA_FN isa_i isa_load_u8(const void *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

ISA_FN isa_i isa_load_s8(const void *p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

ISA_FN void isa_store_s8(int8_t *p, isa_i a) {
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(h, h));
}

ISA_FN isa_i isa_iload(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

ISA_FN isa_i isa_iset1(int32_t x) {
    return _mm256_set1_epi32(x);
}

ISA_FN isa_i isa_iadd(isa_i a, isa_i b) {
    return _mm256_add_epi32(a, b);
}

ISA_FN isa_i isa_iand(isa_i a, isa_i b) {
    return _mm256_and_si256(a, b);
}

ISA_FN isa_i isa_ior(isa_i a, isa_i b) {
    return _mm256_or_si256(a, b);
}

ISA_FN isa_i isa_ixor(isa_i a, isa_i b) {
    return _mm256_xor_si256(a, b);
}

ISA_FN isa_i isa_ishl(isa_i a, uint32_t n) {
    return _mm256_slli_epi32(a, (int)n);
}

ISA_FN isa_i isa_ishr(isa_i a, uint32_t n) {
    return _mm256_srli_epi32(a, (int)n);
}

ISA_FN isa_i isa_imax(isa_i a, isa_i b) {
    return _mm256_max_epi32(a, b);
}

ISA_FN isa_i isa_table16(const void *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

ISA_FN isa_i isa_lookup16(isa_i table, isa_i at) {
    return _mm256_shuffle_epi8(table, at);
}

/* Gathers take 32 bits from where the entry begins. */
ISA_FN isa_i isa_lookup_u16(const uint16_t *table, uint32_t n, isa_i at) {
    const int *from = (const int *)(const void *)table;
    const __m256i half = _mm256_set1_epi32(0xffff);
    (void)n;
    __m256i low = _mm256_i32gather_epi32(from, _mm256_and_si256(at, half), 2);
    __m256i high = _mm256_i32gather_epi32(from, _mm256_srli_epi32(at, 16), 2);
    return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
}

/* Byte i of each lane in all of its four. */
ISA_FN isa_i isa_byte4(isa_i a, uint32_t i) {
    const __m256i first = _mm256_broadcastsi128_si256(
        _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    const __m256i at = _mm256_set1_epi32((int32_t)(i * 0x01010101u));
    return _mm256_shuffle_epi8(a, _mm256_add_epi32(first, at));
}

ISA_FN isa_i isa_spread4(isa_i a, uint32_t i, uint32_t to) {
    const __m256i bits = _mm256_set1_epi32((int32_t)(0x08040201u << (i % 2 * 4)));
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(isa_byte4(a, i / 2), bits), bits);
    return _mm256_and_si256(set, _mm256_set1_epi8((char)(1u << to)));
}

/* The same 4 activations in every lane. */
ISA_FN isa_i isa_four(const int8_t *q) {
    int32_t u;
    memcpy(&u, q, sizeof u);
    return _mm256_set1_epi32(u);
}

/* Pairs of products go through 16 bits: codes below 128 cannot saturate, and `per` words fit. */
ISA_FN isa_i isa_dot_wide(isa_i acc, const isa_i *w, const int8_t *q, int n, int per) {
    const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i += per) {
        __m256i pairs = _mm256_maddubs_epi16(w[i], isa_four(q + 4 * i));
        for (int j = i + 1; j < i + per && j < n; j++) {
            __m256i more = _mm256_maddubs_epi16(w[j], isa_four(q + 4 * j));
            pairs = _mm256_add_epi16(pairs, more);
        }
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, one));
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
    const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        __m256i x = _mm256_sign_epi8(isa_four(q + 4 * i), w[i]);
        __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w[i]), x);
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, one));
    }
    return acc;
}

ISA_FN isa_i isa_s8_prep(isa_i w) {
    return w;
}

ISA_FN float isa_tree_sum(isa_f a) {
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

ISA_FN float isa_top(isa_f a) {
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

ISA_FN uint32_t isa_itop(isa_i a) {
    __m128i c = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    c = _mm_max_epi32(c, _mm_shuffle_epi32(c, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}

/* Bytes made unsigned by + 128 are summed by eights. */
ISA_FN int32_t isa_sum16(const int8_t *q) {
    __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)q), _mm_set1_epi8((char)-128));
    __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
    return _mm_cvtsi128_si32(sums) - 16 * 128;
}

/* Swaps the middle quarters: 0 1 2 3 -> 0 2 1 3 in units of 64 bits. */
ISA_FN isa_f isa_swap_middle(isa_f a) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(a), 0xd8));
}

ISA_FN void isa_unzip(isa_f a, isa_f b, isa_f *even, isa_f *odd) {
    *even = isa_swap_middle(_mm256_shuffle_ps(a, b, 0x88));
    *odd = isa_swap_middle(_mm256_shuffle_ps(a, b, 0xdd));
}

ISA_FN void isa_zip(isa_f even, isa_f odd, isa_f *a, isa_f *b) {
    isa_f low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}

/* Sums of 8 pairs. */
ISA_FN __m256i isa_sum8(const int16_t *s) {
    return _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)s), _mm256_set1_epi16(1));
}

ISA_FN void isa_sum8_scaled(const int16_t *s, const float *d, float *out) {
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(isa_sum8(s)), _mm256_loadu_ps(d)));
}

ISA_FN void isa_sum8_times(const int16_t *s, int32_t factor, int32_t *out) {
    __m256i product = _mm256_mullo_epi32(isa_sum8(s), _mm256_set1_epi32(factor));
    _mm256_storeu_si256((__m256i *)out, product);
}

/* 4096 bytes ahead: on Zen 4, decode of q8_0 from 9 to 29 GB/s, of q4_1 from 16 to 28. */
ISA_FN void isa_ahead(const uint8_t *p, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 64) {
        _mm_prefetch((const char *)p + 4096 + i, _MM_HINT_T0);
    }
}

#endif
