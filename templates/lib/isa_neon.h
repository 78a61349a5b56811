/* isa_neon.h -- the instruction layer on AArch64 with the dot-product instructions (FEAT_DotProd).
 * isa_plain.h says what each function does. */
#ifndef ISA_NEON_H
#define ISA_NEON_H

#include <arm_neon.h>

#include "isa_soft.h"

enum { ISA_N = 4, ISA_TOKENS = 8, ISA_ACCS = 16, ISA_S8_BIAS = 0 };

typedef float32x4_t isa_f;
typedef uint32x4_t isa_i;
typedef uint32x4_t isa_m;

ISA_FN isa_m isa_first(uint32_t n) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    return vcgtq_u32(vdupq_n_u32(n), vld1q_u32(lane));
}

ISA_FN isa_f isa_set1(float x) {
    return vdupq_n_f32(x);
}

ISA_FN isa_f isa_load(const float *p) {
    return vld1q_f32(p);
}

ISA_FN void isa_store(float *p, isa_f a) {
    vst1q_f32(p, a);
}

ISA_FN isa_f isa_load_n(const float *p, uint32_t n) {
    float lane[4] = {0};
    for (uint32_t i = 0; i < n && i < 4; i++) {
        lane[i] = p[i];
    }
    return vld1q_f32(lane);
}

ISA_FN void isa_store_n(float *p, isa_f a, uint32_t n) {
    float lane[4];
    vst1q_f32(lane, a);
    for (uint32_t i = 0; i < n && i < 4; i++) {
        p[i] = lane[i];
    }
}

ISA_FN isa_f isa_add(isa_f a, isa_f b) {
    return vaddq_f32(a, b);
}

ISA_FN isa_f isa_sub(isa_f a, isa_f b) {
    return vsubq_f32(a, b);
}

ISA_FN isa_f isa_mul(isa_f a, isa_f b) {
    return vmulq_f32(a, b);
}

ISA_FN isa_f isa_div(isa_f a, isa_f b) {
    return vdivq_f32(a, b);
}

ISA_FN isa_f isa_fma(isa_f a, isa_f b, isa_f c) {
    return vfmaq_f32(c, a, b);
}

ISA_FN float isa_fma1(float a, float b, float c) {
    return vget_lane_f32(vfma_f32(vdup_n_f32(c), vdup_n_f32(a), vdup_n_f32(b)), 0);
}

ISA_FN float isa_sqrt1(float a) {
    return vget_lane_f32(vsqrt_f32(vdup_n_f32(a)), 0);
}

ISA_FN isa_m isa_gt(isa_f a, isa_f b) {
    return vcgtq_f32(a, b);
}

ISA_FN isa_f isa_sel(isa_m m, isa_f a, isa_f b) {
    return vbslq_f32(m, a, b);
}

ISA_FN isa_f isa_neg(isa_f a) {
    return vnegq_f32(a);
}

/* vmaxq_f32 would pass a NaN of either side on. */
ISA_FN isa_f isa_max(isa_f a, isa_f b) {
    return isa_sel(isa_gt(a, b), a, b);
}

ISA_FN isa_i isa_cvt_i(isa_f a) {
    return vreinterpretq_u32_s32(vcvtnq_s32_f32(a));
}

ISA_FN isa_f isa_cvt_f(isa_i a) {
    return vcvtq_f32_s32(vreinterpretq_s32_u32(a));
}

ISA_FN isa_f isa_as_f(isa_i a) {
    return vreinterpretq_f32_u32(a);
}

ISA_FN isa_i isa_as_i(isa_f a) {
    return vreinterpretq_u32_f32(a);
}

ISA_FN float16x4_t isa_four_halves(const void *p) {
    uint16_t h[4];
    memcpy(h, p, sizeof h);
    return vreinterpret_f16_u16(vld1_u16(h));
}

ISA_FN float isa_half1(const void *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}

ISA_FN isa_f isa_load_half(const void *p) {
    return vcvt_f32_f16(isa_four_halves(p));
}

ISA_FN isa_f isa_cvt_half(isa_i a) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(a)));
}

ISA_FN void isa_store_half(void *p, isa_f a) {
    uint16_t h[4];
    vst1_u16(h, vreinterpret_u16_f16(vcvt_f16_f32(a)));
    memcpy(p, h, sizeof h);
}

ISA_FN isa_f isa_load_bf16(const void *p) {
    uint16_t h[4];
    memcpy(h, p, sizeof h);
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(h), 16));
}

ISA_FN uint8x8_t isa_four_bytes(const void *p) {
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return vreinterpret_u8_u32(vdup_n_u32(u));
}

ISA_FN isa_i isa_load_u8(const void *p) {
    return vmovl_u16(vget_low_u16(vmovl_u8(isa_four_bytes(p))));
}

ISA_FN isa_i isa_load_s8(const void *p) {
    int16x8_t h = vmovl_s8(vreinterpret_s8_u8(isa_four_bytes(p)));
    return vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(h)));
}

ISA_FN void isa_store_s8(int8_t *p, isa_i a) {
    int16x4_t h = vqmovn_s32(vreinterpretq_s32_u32(a));
    int8x8_t b = vqmovn_s16(vcombine_s16(h, h));
    uint32_t u = vget_lane_u32(vreinterpret_u32_s8(b), 0);
    memcpy(p, &u, sizeof u);
}

ISA_FN isa_i isa_iload(const void *p) {
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

ISA_FN isa_i isa_iset1(int32_t x) {
    return vdupq_n_u32((uint32_t)x);
}

ISA_FN isa_i isa_iadd(isa_i a, isa_i b) {
    return vaddq_u32(a, b);
}

ISA_FN isa_i isa_iand(isa_i a, isa_i b) {
    return vandq_u32(a, b);
}

ISA_FN isa_i isa_ior(isa_i a, isa_i b) {
    return vorrq_u32(a, b);
}

ISA_FN isa_i isa_ixor(isa_i a, isa_i b) {
    return veorq_u32(a, b);
}

ISA_FN isa_i isa_ishl(isa_i a, uint32_t n) {
    return vshlq_u32(a, vdupq_n_s32((int32_t)n));
}

ISA_FN isa_i isa_ishr(isa_i a, uint32_t n) {
    return vshlq_u32(a, vdupq_n_s32(-(int32_t)n));
}

ISA_FN isa_i isa_imax(isa_i a, isa_i b) {
    return vreinterpretq_u32_s32(
        vmaxq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)));
}

ISA_FN isa_i isa_table16(const void *p) {
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

ISA_FN isa_i isa_lookup16(isa_i table, isa_i at) {
    return vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(table), vreinterpretq_u8_u32(at)));
}

/* Entry by entry. */
ISA_FN isa_i isa_lookup_u16(const uint16_t *table, uint32_t n, isa_i at) {
    uint16_t i[8], r[8];
    (void)n;
    vst1q_u16(i, vreinterpretq_u16_u32(at));
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        r[k] = table[i[k]];
    }
    return vreinterpretq_u32_u16(vld1q_u16(r));
}

/* Byte i of each lane in all of its four. */
ISA_FN isa_i isa_byte4(isa_i a, uint32_t i) {
    const uint32_t first[4] = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    isa_i at = vaddq_u32(vld1q_u32(first), vdupq_n_u32(i * 0x01010101u));
    return vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(a), vreinterpretq_u8_u32(at)));
}

ISA_FN isa_i isa_spread4(isa_i a, uint32_t i, uint32_t to) {
    uint8x16_t bits = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u << (i % 2 * 4)));
    uint8x16_t set = vtstq_u8(vreinterpretq_u8_u32(isa_byte4(a, i / 2)), bits);
    return vreinterpretq_u32_u8(vandq_u8(set, vdupq_n_u8((uint8_t)(1u << to))));
}

/* Codes are below 128, so unsigned ones are signed bytes too. */
ISA_FN isa_i isa_dot_bytes(isa_i acc, const isa_i *w, const int8_t *q, int n) {
    int32x4_t sum = vreinterpretq_s32_u32(acc);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        int32_t four;
        memcpy(&four, q + 4 * i, sizeof four);
        int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four));
        sum = vdotq_s32(sum, vreinterpretq_s8_u32(w[i]), x);
    }
    return vreinterpretq_u32_s32(sum);
}
#define isa_dot_u4 isa_dot_bytes
#define isa_dot_u5 isa_dot_bytes
#define isa_dot_u6 isa_dot_bytes
#define isa_dot_u7 isa_dot_bytes
#define isa_dot_s8 isa_dot_bytes

ISA_FN isa_i isa_s8_prep(isa_i w) {
    return w;
}

ISA_FN float isa_tree_sum(isa_f a) {
    float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}

ISA_FN float isa_top(isa_f a) {
    return vmaxvq_f32(a);
}

ISA_FN uint32_t isa_itop(isa_i a) {
    return (uint32_t)vmaxvq_s32(vreinterpretq_s32_u32(a));
}

ISA_FN int32_t isa_sum16(const int8_t *q) {
    return vaddlvq_s8(vld1q_s8(q));
}

ISA_FN void isa_unzip(isa_f a, isa_f b, isa_f *even, isa_f *odd) {
    *even = vuzp1q_f32(a, b);
    *odd = vuzp2q_f32(a, b);
}

ISA_FN void isa_zip(isa_f even, isa_f odd, isa_f *a, isa_f *b) {
    *a = vzip1q_f32(even, odd);
    *b = vzip2q_f32(even, odd);
}

ISA_FN void isa_sum8_scaled(const int16_t *s, const float *d, float *out) {
    for (int i = 0; i < 8; i += 4) {
        float32x4_t sum = vcvtq_f32_s32(vpaddlq_s16(vld1q_s16(s + 2 * i)));
        vst1q_f32(out + i, vmulq_f32(sum, vld1q_f32(d + i)));
    }
}

ISA_FN void isa_sum8_times(const int16_t *s, int32_t factor, int32_t *out) {
    for (int i = 0; i < 8; i += 4) {
        vst1q_s32(out + i, vmulq_n_s32(vpaddlq_s16(vld1q_s16(s + 2 * i)), factor));
    }
}

/* Nothing: not measured on such a machine. */
ISA_FN void isa_ahead(const uint8_t *p, uint32_t n) {
    (void)p, (void)n;
}

#endif
