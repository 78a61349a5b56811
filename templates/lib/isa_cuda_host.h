/* isa_cuda_host.h -- the host twins of isa_cuda.h, for a C++ compiler without CUDA: kernel text then is
 * what one thread does, and softgpu (tests/softgpu) runs the threads of a cta in turns. Each function
 * does what the instruction of its name does on a device. */
#ifndef ISA_CUDA_HOST_H
#define ISA_CUDA_HOST_H

#include "isa_soft.h"

#define ISA_TABLE static const

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)

/* Where the thread that runs now stands. Owned by softgpu. */
typedef struct soft_thread {
    uint32_t thread, cta[3];
    unsigned char *smem; /* of its cta */
} soft_thread;

extern "C" {
extern soft_thread soft_now;
/* Gives way until all threads of the cta have come here. */
void soft_barrier(void);
/* Waits until memory is as the launch in front leaves it; says that the next launch may begin. */
void soft_wait(void);
void soft_let(void);
/* Copies of the thread that runs: they take place when it waits for them, and not before. */
void soft_copy(void *to, const void *from, size_t n);
void soft_copy_close(void);
void soft_copy_wait(uint32_t n);
/* Gives way until all lanes of the warp have come with the same `op`, which then once turns their inputs in[32]
 * into outputs out[32], n_in and n_out bytes each (at most 64); every lane leaves with its own. */
void soft_warp(void (*op)(const void *in, void *out), const void *in, size_t n_in, void *out, size_t n_out);
}

ISA_FN uint32_t isa_thread() {
    return soft_now.thread;
}

ISA_FN uint32_t isa_thread_now() {
    return soft_now.thread;
}

ISA_FN uint32_t isa_cta_x() {
    return soft_now.cta[0];
}

ISA_FN uint32_t isa_cta_y() {
    return soft_now.cta[1];
}

ISA_FN uint32_t isa_cta_z() {
    return soft_now.cta[2];
}

ISA_FN unsigned char *isa_smem(uint32_t offset) {
    return soft_now.smem + offset;
}

ISA_FN void isa_barrier() {
    soft_barrier();
}

ISA_FN void isa_wait_launch() {
    soft_wait();
}

ISA_FN void isa_let_launch() {
    soft_let();
}

/* Ctas run one after the other here. */
ISA_FN void isa_fence() {
}

ISA_FN uint32_t isa_arrive(int32_t *p) {
    return (uint32_t)(*p)++;
}

ISA_FN uint32_t isa_load_line(const void *p) {
    return *(const uint32_t *)p;
}

ISA_FN float isa_load_other(const float *p) {
    return *p;
}

ISA_FN uint32_t isa_load_w8(const uint8_t *p) {
    return *p;
}

ISA_FN uint32_t isa_load_w16(const uint8_t *p) {
    return *(const uint16_t *)(const void *)p;
}

ISA_FN uint32_t isa_load_w32(const uint8_t *p) {
    return *(const uint32_t *)(const void *)p;
}

ISA_FN void isa_prefetch(const uint8_t *p) {
    (void)p;
}

ISA_FN void isa_copy16(void *to, const void *from) {
    soft_copy(to, from, 16);
}

ISA_FN void isa_copy_close() {
    soft_copy_close();
}

template <int n>
ISA_FN void isa_copy_wait() {
    soft_copy_wait(n);
}

ISA_FN float isa_float(uint32_t bits) {
    return isa_soft_float(bits);
}

ISA_FN uint32_t isa_bits(float x) {
    return isa_soft_bits(x);
}

ISA_FN double isa_double(uint64_t bits) {
    return isa_soft_double(bits);
}

ISA_FN uint64_t isa_bits64(double x) {
    return isa_soft_bits64(x);
}

ISA_FN float isa_half(uint32_t h) {
    return isa_soft_half((uint16_t)h);
}

ISA_FN uint16_t isa_to_half(float x) {
    return isa_soft_to_half(x);
}

ISA_FN float isa_fma(float a, float b, float c) {
    return isa_soft_fma(a, b, c);
}

ISA_FN uint32_t isa_halves(float low, float high) {
    return isa_soft_to_half(low) | (uint32_t)isa_soft_to_half(high) << 16;
}

/* Rounded from double, so mostly not the bits of a device. */
ISA_FN float isa_exp2(float x) {
    const float y = (float)__builtin_exp2(x);
    return y < 0x1p-126f ? 0.0f : y;
}

ISA_FN float isa_max(float a, float b) {
    return a > b || b != b ? a : b;
}

ISA_FN float isa_div(float a, float b) {
    return a / b;
}

ISA_FN float isa_sqrt(float a) {
    return __builtin_sqrtf(a);
}

ISA_FN int32_t isa_cvt_i(float a) { /* |a| < 2^22 */
    return (int32_t)(isa_soft_bits(a + 0x1.8p23f) - isa_soft_bits(0x1.8p23f));
}

ISA_FN int32_t isa_dot4(uint32_t a, uint32_t b, int32_t c) {
    for (int i = 0; i < 32; i += 8) {
        c += (int8_t)(a >> i) * (int8_t)(b >> i);
    }
    return c;
}

ISA_FN uint32_t isa_pick(uint32_t a, uint32_t b, uint32_t at) {
    const uint64_t both = a | (uint64_t)b << 32;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        r |= (uint32_t)(both >> 8 * (at >> 4 * i & 7u) & 255u) << 8 * i;
    }
    return r;
}

/* Threads of a cta take turns, and give way nowhere here. */
ISA_FN void isa_count(uint32_t *p) {
    ++*p;
}

ISA_FN uint32_t isa_popcount(uint32_t x) {
    return (uint32_t)__builtin_popcount(x);
}

/* ---- whole warps */

static inline void isa_host_sum(const void *in, void *out) {
    float lane[32], *all = (float *)out;
    memcpy(lane, in, sizeof lane);
    for (int s = 16; s > 0; s /= 2) {
        for (int l = 0; l < s; l++) {
            lane[l] += lane[l + s];
        }
    }
    for (int l = 0; l < 32; l++) {
        all[l] = lane[0];
    }
}

static inline void isa_host_max(const void *in, void *out) {
    const float *lane = (const float *)in;
    float best = lane[0], *all = (float *)out;
    for (int l = 1; l < 32; l++) {
        best = best > lane[l] ? best : lane[l];
    }
    for (int l = 0; l < 32; l++) {
        all[l] = best;
    }
}

/* in: what each lane has, then `first` of each. */
static inline void isa_host_max_before(const void *in, void *out) {
    const float(*lane)[2] = (const float(*)[2])in;
    float best = lane[0][1], *all = (float *)out;
    for (int l = 0; l < 32; l++) {
        all[l] = best;
        best = best > lane[l][0] ? best : lane[l][0];
    }
}

static inline void isa_host_umax(const void *in, void *out) {
    const uint32_t *lane = (const uint32_t *)in;
    uint32_t best = lane[0], *all = (uint32_t *)out;
    for (int l = 1; l < 32; l++) {
        best = best > lane[l] ? best : lane[l];
    }
    for (int l = 0; l < 32; l++) {
        all[l] = best;
    }
}

static inline void isa_host_isum(const void *in, void *out) {
    const uint32_t *lane = (const uint32_t *)in;
    uint32_t sum = 0, *all = (uint32_t *)out;
    for (int l = 0; l < 32; l++) {
        sum += lane[l];
    }
    for (int l = 0; l < 32; l++) {
        all[l] = sum;
    }
}

static inline void isa_host_ballot(const void *in, void *out) {
    const uint32_t *lane = (const uint32_t *)in;
    uint32_t bits = 0, *all = (uint32_t *)out;
    for (int l = 0; l < 32; l++) {
        bits |= lane[l] << l;
    }
    for (int l = 0; l < 32; l++) {
        all[l] = bits;
    }
}

ISA_FN float isa_warp_sum(float x) {
    float y;
    soft_warp(isa_host_sum, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN float isa_warp_max(float x) {
    float y;
    soft_warp(isa_host_max, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN float isa_warp_max_before(float first, float x) {
    const float in[2] = {x, first};
    float y;
    soft_warp(isa_host_max_before, in, sizeof in, &y, sizeof y);
    return y;
}

ISA_FN uint32_t isa_warp_umax(uint32_t x) {
    uint32_t y;
    soft_warp(isa_host_umax, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN int32_t isa_warp_isum(int32_t x) {
    int32_t y;
    soft_warp(isa_host_isum, &x, sizeof x, &y, sizeof y);
    return y;
}

/* What a lane brings to an exchange with lane l ^ s; s is the same in all. */
template <typename T, uint32_t n>
struct isa_host_given {
    T x[n];
    uint32_t s;
};

template <typename T, uint32_t n>
static void isa_host_exchange(const void *in, void *out) {
    const isa_host_given<T, n> *lane = (const isa_host_given<T, n> *)in;
    for (uint32_t l = 0; l < 32; l++) {
        memcpy((T *)out + n * l, lane[l ^ lane[l].s].x, n * sizeof(T));
    }
}

template <typename T, uint32_t n>
static void isa_host_xor(const T *x, uint32_t s, T *out) {
    isa_host_given<T, n> mine = {{}, s};
    memcpy(mine.x, x, n * sizeof(T));
    soft_warp(isa_host_exchange<T, n>, &mine, sizeof mine, out, n * sizeof(T));
}

static inline void isa_host_min64(const void *in, void *out) {
    const uint64_t *lane = (const uint64_t *)in;
    uint64_t best = lane[0], *all = (uint64_t *)out;
    for (int l = 1; l < 32; l++) {
        best = best < lane[l] ? best : lane[l];
    }
    for (int l = 0; l < 32; l++) {
        all[l] = best;
    }
}

static inline void isa_host_scan64(const void *in, void *out) {
    const uint64_t *lane = (const uint64_t *)in;
    uint64_t sum = 0;
    for (int l = 0; l < 32; l++) {
        ((uint64_t *)out)[l] = sum += lane[l];
    }
}

ISA_FN uint32_t isa_ballot(bool yes) {
    uint32_t x = yes, y;
    soft_warp(isa_host_ballot, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN void isa_warp_xor8(const float (&x)[8], uint32_t s, float (&out)[8]) {
    isa_host_xor<float, 8>(x, s, out);
}

ISA_FN void isa_warp_sync() {
    isa_ballot(true);
}

ISA_FN void isa_warp_xor2(const uint64_t x[2], uint32_t s, uint64_t out[2]) {
    isa_host_xor<uint64_t, 2>(x, s, out);
}

ISA_FN uint64_t isa_warp_min64(uint64_t x) {
    uint64_t y;
    soft_warp(isa_host_min64, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN uint64_t isa_warp_scan64(uint64_t x) {
    uint64_t y;
    soft_warp(isa_host_scan64, &x, sizeof x, &y, sizeof y);
    return y;
}

ISA_FN uint32_t isa_warp_xor(uint32_t x, uint32_t s) {
    uint32_t y;
    isa_host_xor<uint32_t, 1>(&x, s, &y);
    return y;
}

/* ---- matrix products: the fragments of all lanes, put together and taken apart again */

/* Byte k of four. */
ISA_FN int32_t isa_host_byte(uint32_t w, int k) {
    return (int8_t)(w >> 8 * k);
}

/* What a lane brings: its parts of the accumulator, of W and of X. */
typedef struct isa_host_fragment {
    int32_t d[4];
    uint32_t a[4], b[2];
} isa_host_fragment;

/* `n_words` words of 4 columns from each lane. */
static inline void isa_host_mma(const void *in, void *out, int n_words) {
    const isa_host_fragment *lanes = (const isa_host_fragment *)in;
    for (int l = 0; l < 32; l++) {
        for (int e = 0; e < 4; e++) {
            const int row = l / 4 + e / 2 * 8, token = 2 * (l % 4) + e % 2;
            int32_t sum = lanes[l].d[e];
            for (int k = 0; k < 16 * n_words; k++) {
                const isa_host_fragment *w = &lanes[row % 8 * 4 + k % 16 / 4];
                const isa_host_fragment *x = &lanes[token * 4 + k % 16 / 4];
                sum += isa_host_byte(w->a[row / 8 + k / 16 * 2], k % 4) * isa_host_byte(x->b[k / 16], k % 4);
            }
            ((int32_t *)out)[4 * l + e] = sum;
        }
    }
}

static inline void isa_host_mma_32(const void *in, void *out) {
    isa_host_mma(in, out, 2);
}

static inline void isa_host_mma_16(const void *in, void *out) {
    isa_host_mma(in, out, 1);
}

ISA_FN void isa_load_b(uint32_t b[2], const int8_t *q, uint32_t stride) {
    const uint32_t lane = soft_now.thread % 32;
    memcpy(&b[0], q + lane / 4 * stride + lane % 4 * 4, 4);
    memcpy(&b[1], q + lane / 4 * stride + lane % 4 * 4 + 16, 4);
}

ISA_FN void isa_load_b_x2(uint32_t b[4], const int8_t *q, uint32_t stride) {
    isa_load_b(b, q, stride);
    isa_load_b(b + 2, q + 8 * stride, stride);
}

/* Rows come when all lanes have brought their addresses. */
template <bool turned>
static void isa_host_tiles(const void *in, void *out) {
    const uint16_t *const *row = (const uint16_t *const *)in;
    for (uint32_t l = 0; l < 32; l++) {
        uint16_t *f = (uint16_t *)out + 8 * l;
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t at = l % 4 * 2 + i % 2;
            f[i] = turned ? row[i / 2 * 8 + at][l / 4] : row[i / 2 * 8 + l / 4][at];
        }
    }
}

ISA_FN void isa_load_tiles(uint32_t (&f)[4], const void *row) {
    soft_warp(isa_host_tiles<false>, &row, sizeof row, f, sizeof f);
}

ISA_FN void isa_load_tiles_turned(uint32_t (&f)[4], const void *row) {
    soft_warp(isa_host_tiles<true>, &row, sizeof row, f, sizeof f);
}

/* What a lane brings to a product of halves. */
typedef struct isa_host_halves {
    float d[4];
    uint16_t a[4][2], b[2][2];
} isa_host_halves;

/* Products exact, their sum in double, one rounding at its end: devices keep fewer bits on the way. */
static inline void isa_host_mma_f16(const void *in, void *out) {
    const isa_host_halves *lanes = (const isa_host_halves *)in;
    double a[16][16], b[16][8];
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < 8; i++) {
            a[l / 4 + i / 2 % 2 * 8][l % 4 * 2 + i % 2 + i / 4 * 8] = (double)isa_soft_half(lanes[l].a[i / 2][i % 2]);
        }
        for (int i = 0; i < 4; i++) {
            b[l % 4 * 2 + i % 2 + i / 2 * 8][l / 4] = (double)isa_soft_half(lanes[l].b[i / 2][i % 2]);
        }
    }
    for (int l = 0; l < 32; l++) {
        for (int e = 0; e < 4; e++) {
            const int row = l / 4 + e / 2 * 8, col = l % 4 * 2 + e % 2;
            double sum = (double)lanes[l].d[e];
            for (int k = 0; k < 16; k++) {
                sum += a[row][k] * b[k][col];
            }
            ((float *)out)[4 * l + e] = (float)sum;
        }
    }
}

ISA_FN void isa_mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    uint32_t in[10];
    memcpy(in, d, 16);
    memcpy(in + 4, a, 16);
    in[8] = b0;
    in[9] = b1;
    soft_warp(isa_host_mma_f16, in, sizeof in, d, 16);
}

ISA_FN void isa_mma_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2]) {
    uint32_t in[10];
    memcpy(in, d, 16);
    memcpy(in + 4, a, 16);
    memcpy(in + 8, b, 8);
    soft_warp(isa_host_mma_32, in, sizeof in, d, 16);
}

ISA_FN void isa_mma_s8_half(int32_t d[4], uint32_t a0, uint32_t a1, uint32_t b) {
    uint32_t in[10] = {0, 0, 0, 0, a0, a1, 0, 0, b, 0};
    memcpy(in, d, 16);
    soft_warp(isa_host_mma_16, in, sizeof in, d, 16);
}

ISA_FN void isa_mma_s8_on(int32_t d[4], const uint32_t a[4], const uint32_t b[2], int32_t c) {
    d[0] = d[1] = d[2] = d[3] = c;
    isa_mma_s8(d, a, b);
}

ISA_FN void isa_mma_s8_half_on(int32_t d[4], uint32_t a0, uint32_t a1, uint32_t b, int32_t c) {
    d[0] = d[1] = d[2] = d[3] = c;
    isa_mma_s8_half(d, a0, a1, b);
}

#endif
