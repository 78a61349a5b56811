/* isa_avx512.h -- the instruction layer on AVX-512 (F, BW, DQ, VL), with VNNI where the compiler's
 * target has it. isa_plain.h says what each function does. */
#ifndef ISA_AVX512_H
#define ISA_AVX512_H

#include <immintrin.h>

#include "isa_soft.h"

#ifdef __AVX512VNNI__
enum { ISA_S8_BIAS = 128 };
#else
enum { ISA_S8_BIAS = 0 };
#endif
enum { ISA_N = 16, ISA_TOKENS = 16, ISA_ACCS = 16 };

typedef __m512 isa_f;
typedef __m512i isa_i;
typedef __mmask16 isa_m;

ISA_FN isa_m isa_first(uint32_t n) {
    return (isa_m)((1u << n) - 1u);
}

ISA_FN isa_f isa_set1(float x) {
    return _mm512_set1_ps(x);
}

ISA_FN isa_f isa_load(const float *p) {
    return _mm512_loadu_ps(p);
}

ISA_FN void isa_store(float *p, isa_f a) {
    _mm512_storeu_ps(p, a);
}

ISA_FN isa_f isa_load_n(const float *p, uint32_t n) {
    return _mm512_maskz_loadu_ps(isa_first(n), p);
}

ISA_FN void isa_store_n(float *p, isa_f a, uint32_t n) {
    _mm512_mask_storeu_ps(p, isa_first(n), a);
}

ISA_FN isa_f isa_add(isa_f a, isa_f b) {
    return _mm512_add_ps(a, b);
}

ISA_FN isa_f isa_sub(isa_f a, isa_f b) {
    return _mm512_sub_ps(a, b);
}

ISA_FN isa_f isa_mul(isa_f a, isa_f b) {
    return _mm512_mul_ps(a, b);
}

ISA_FN isa_f isa_div(isa_f a, isa_f b) {
    return _mm512_div_ps(a, b);
}

ISA_FN isa_f isa_fma(isa_f a, isa_f b, isa_f c) {
    return _mm512_fmadd_ps(a, b, c);
}

ISA_FN float isa_fma1(float a, float b, float c) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

ISA_FN float isa_sqrt1(float a) {
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}

ISA_FN isa_f isa_neg(isa_f a) {
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

ISA_FN isa_f isa_max(isa_f a, isa_f b) {
    return _mm512_max_ps(a, b);
}

ISA_FN isa_m isa_gt(isa_f a, isa_f b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

ISA_FN isa_f isa_sel(isa_m m, isa_f a, isa_f b) {
    return _mm512_mask_blend_ps(m, b, a);
}

ISA_FN isa_i isa_cvt_i(isa_f a) {
    return _mm512_cvtps_epi32(a);
}

ISA_FN isa_f isa_cvt_f(isa_i a) {
    return _mm512_cvtepi32_ps(a);
}

ISA_FN isa_f isa_as_f(isa_i a) {
    return _mm512_castsi512_ps(a);
}

ISA_FN isa_i isa_as_i(isa_f a) {
    return _mm512_castps_si512(a);
}

ISA_FN float isa_half1(const void *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

ISA_FN isa_f isa_load_half(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

ISA_FN isa_f isa_cvt_half(isa_i a) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
}

ISA_FN void isa_store_half(void *p, isa_f a) {
    __m256i h = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)p, h);
}

ISA_FN isa_f isa_load_bf16(const void *p) {
    __m512i u = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
}

ISA_FN isa_i isa_load_u8(const void *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

ISA_FN isa_i isa_load_s8(const void *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}

ISA_FN void isa_store_s8(int8_t *p, isa_i a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtsepi32_epi8(a));
}

ISA_FN isa_i isa_iload(const void *p) {
    return _mm512_loadu_si512(p);
}

ISA_FN isa_i isa_iset1(int32_t x) {
    return _mm512_set1_epi32(x);
}

ISA_FN isa_i isa_iadd(isa_i a, isa_i b) {
    return _mm512_add_epi32(a, b);
}

ISA_FN isa_i isa_iand(isa_i a, isa_i b) {
    return _mm512_and_si512(a, b);
}

ISA_FN isa_i isa_ior(isa_i a, isa_i b) {
    return _mm512_or_si512(a, b);
}

ISA_FN isa_i isa_ixor(isa_i a, isa_i b) {
    return _mm512_xor_si512(a, b);
}

ISA_FN isa_i isa_ishl(isa_i a, uint32_t n) {
    return _mm512_slli_epi32(a, n);
}

ISA_FN isa_i isa_ishr(isa_i a, uint32_t n) {
    return _mm512_srli_epi32(a, n);
}

ISA_FN isa_i isa_imax(isa_i a, isa_i b) {
    return _mm512_max_epi32(a, b);
}

ISA_FN isa_i isa_table16(const void *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}

ISA_FN isa_i isa_lookup16(isa_i table, isa_i at) {
    return _mm512_shuffle_epi8(table, at);
}

/* 64 entries lie in two vectors, between which one permutation chooses; among runs of 64 the higher
 * bits of the index do, pair by pair. */
ISA_FN isa_i isa_look_64(const uint16_t *table, isa_i at) {
    return _mm512_permutex2var_epi16(isa_iload(table), at, isa_iload(table + 32));
}

ISA_FN isa_i isa_look_bit(isa_i low, isa_i high, isa_i at, int bit) {
    return _mm512_mask_mov_epi16(low, _mm512_test_epi16_mask(at, _mm512_set1_epi16((short)bit)),
        high);
}

ISA_FN isa_i isa_look_256(const uint16_t *table, isa_i at) {
    isa_i low = isa_look_bit(isa_look_64(table, at), isa_look_64(table + 64, at), at, 64);
    isa_i high = isa_look_bit(isa_look_64(table + 128, at), isa_look_64(table + 192, at), at, 64);
    return isa_look_bit(low, high, at, 128);
}

ISA_FN isa_i isa_look_1024(const uint16_t *table, isa_i at) {
    isa_i low = isa_look_bit(isa_look_256(table, at), isa_look_256(table + 256, at), at, 256);
    isa_i high = isa_look_bit(isa_look_256(table + 512, at), isa_look_256(table + 768, at), at, 256);
    return isa_look_bit(low, high, at, 512);
}

ISA_FN isa_i isa_lookup_u16(const uint16_t *table, uint32_t n, isa_i at) {
    if (n == 256) {
        return isa_look_256(table, at);
    }
    if (n == 512) {
        return isa_look_bit(isa_look_256(table, at), isa_look_256(table + 256, at), at, 256);
    }
    if (n == 1024) {
        return isa_look_1024(table, at);
    }
    return isa_look_bit(isa_look_1024(table, at), isa_look_1024(table + 1024, at), at, 1024);
}

/* Byte i of each lane in all of its four. */
ISA_FN isa_i isa_byte4(isa_i a, uint32_t i) {
    const __m512i first = _mm512_broadcast_i32x4(
        _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    const __m512i at = _mm512_set1_epi32((int32_t)(i * 0x01010101u));
    return _mm512_shuffle_epi8(a, _mm512_add_epi32(first, at));
}

ISA_FN isa_i isa_spread4(isa_i a, uint32_t i, uint32_t to) {
    const __m512i bits = _mm512_set1_epi32((int32_t)(0x08040201u << (i % 2 * 4)));
    __mmask64 m = _mm512_test_epi8_mask(isa_byte4(a, i / 2), bits);
    return _mm512_maskz_mov_epi8(m, _mm512_set1_epi8((char)(1u << to)));
}

/* The same 4 activations in every lane. */
ISA_FN isa_i isa_four(const int8_t *q) {
    int32_t u;
    memcpy(&u, q, sizeof u);
    return _mm512_set1_epi32(u);
}

#ifdef __AVX512VNNI__

ISA_FN isa_i isa_dot_bytes(isa_i acc, const isa_i *w, const int8_t *q, int n) {
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        acc = _mm512_dpbusd_epi32(acc, w[i], isa_four(q + 4 * i));
    }
    return acc;
}
#define isa_dot_u4 isa_dot_bytes
#define isa_dot_u5 isa_dot_bytes
#define isa_dot_u6 isa_dot_bytes
#define isa_dot_u7 isa_dot_bytes
#define isa_dot_s8 isa_dot_bytes

/* To unsigned: + 128 = ISA_S8_BIAS. */
ISA_FN isa_i isa_s8_prep(isa_i w) {
    return _mm512_xor_si512(w, _mm512_set1_epi8((char)-128));
}

#else

/* Pairs of products go through 16 bits: codes below 128 cannot saturate, and `per` words fit. */
ISA_FN isa_i isa_dot_wide(isa_i acc, const isa_i *w, const int8_t *q, int n, int per) {
    const __m512i one = _mm512_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i += per) {
        __m512i pairs = _mm512_maddubs_epi16(w[i], isa_four(q + 4 * i));
        for (int j = i + 1; j < i + per && j < n; j++) {
            __m512i more = _mm512_maddubs_epi16(w[j], isa_four(q + 4 * j));
            pairs = _mm512_add_epi16(pairs, more);
        }
        acc = _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, one));
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
    const __m512i one = _mm512_set1_epi16(1), zero = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        __m512i x = isa_four(q + 4 * i);
        __m512i x_signed = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w[i]), zero, x);
        __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w[i]), x_signed);
        acc = _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, one));
    }
    return acc;
}

ISA_FN isa_i isa_s8_prep(isa_i w) {
    return w;
}

#endif

ISA_FN float isa_tree_sum(isa_f a) {
    __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

ISA_FN float isa_top(isa_f a) {
    return _mm512_reduce_max_ps(a);
}

ISA_FN uint32_t isa_itop(isa_i a) {
    return (uint32_t)_mm512_reduce_max_epi32(a);
}

/* Bytes made unsigned by + 128 are summed by eights. */
ISA_FN int32_t isa_sum16(const int8_t *q) {
    __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)q), _mm_set1_epi8((char)-128));
    __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
    return _mm_cvtsi128_si32(sums) - 16 * 128;
}

ISA_FN void isa_unzip(isa_f a, isa_f b, isa_f *even, isa_f *odd) {
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, at, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(at, _mm512_set1_epi32(1)), b);
}

ISA_FN void isa_zip(isa_f even, isa_f odd, isa_f *a, isa_f *b) {
    const __m512i at = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *a = _mm512_permutex2var_ps(even, at, odd);
    *b = _mm512_permutex2var_ps(even, _mm512_add_epi32(at, _mm512_set1_epi32(8)), odd);
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

/* Nothing: a group of 16 rows in a few instructions looks far enough ahead by itself. Fetching cost
 * a fifth of q4_1 and q8_0 decode on Zen 4. */
ISA_FN void isa_ahead(const uint8_t *p, uint32_t n) {
    (void)p, (void)n;
}

#endif
