/* isa_cuda.h -- the instruction layer of CUDA kernels: every intrinsic and every line of PTX that kernel
 * text uses. No system header is included, so nvcc and NVRTC take the same text; a plain C++ compiler
 * gets the host twins of isa_cuda_host.h instead, for softgpu. Vectors of isa_real.h are single floats
 * here: a thread is a lane.
 *
 * Lane l of a warp in the fragments of isa_mma_s8 (weights W 16 x 32, activations X 32 x 8 tokens):
 *   a[0], a[2]  W[l / 4][4 (l % 4) ..], the same row 16 columns on;  a[1], a[3]  8 rows on
 *   b[0], b[1]  X[4 (l % 4) ..][l / 4], 16 columns on
 *   d[0], d[1]  product [l / 4][2 (l % 4)], [l / 4][2 (l % 4) + 1];  d[2], d[3]  8 rows on
 * and of isa_mma_f16 (A 16 x 16, B 16 x 8 halves, two in a word):
 *   a[0], a[1]  A[l / 4][2 (l % 4) ..], 8 rows on;  a[2], a[3]  the same 8 columns on
 *   b[0], b[1]  B[2 (l % 4) ..][l / 4], 8 rows on;  d as above
 * Source: PTX ISA 9.0, "Matrix Fragments for mma.m16n8k32" and "mma.m16n8k16". */
#ifndef ISA_CUDA_H
#define ISA_CUDA_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef decltype(sizeof 0) size_t;

/* The step of model_abi.h in device memory; its arrays are device addresses. */
typedef struct rt_pick_change {
    uint32_t token, count;
    float bias;
} rt_pick_change;
typedef struct rt_pick {
    uint64_t random;
    double min_log;
    float temperature, top_p, min_p, repeat, frequency, presence;
    int32_t top_k;
    uint32_t min_keep, n_changes, pad;
    rt_pick_change changes[128];
} rt_pick;
typedef struct rt_step {
    uint32_t n_rows, n_seqs, n_logits, n_prompt;
    const uint32_t *token_of_row, *seq_of_row, *pos_of_row, *slot_of_seq, *logit_rows;
    const rt_pick *picks;
} rt_step;

/* Two words of one 8-byte access, four of one of 16 bytes. */
typedef struct alignas(8) isa_x2 {
    uint32_t w[2];
} isa_x2;
typedef struct alignas(16) isa_x4 {
    uint32_t w[4];
} isa_x4;

#ifdef __CUDACC__

#define ISA_FN static __device__ __forceinline__
#define ISA_TABLE static __device__ const

extern __shared__ __align__(1024) unsigned char isa_shared_bytes[];

/* ---- where a thread stands */

ISA_FN uint32_t isa_thread() {
    return threadIdx.x;
}

/* The same, but what is made of it is made where it stands, and not kept from before. */
ISA_FN uint32_t isa_thread_now() {
    uint32_t x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

ISA_FN uint32_t isa_cta_x() {
    return blockIdx.x;
}

ISA_FN uint32_t isa_cta_y() {
    return blockIdx.y;
}

ISA_FN uint32_t isa_cta_z() {
    return blockIdx.z;
}

/* Byte `offset` of the cta's dynamic shared memory. */
ISA_FN unsigned char *isa_smem(uint32_t offset) {
    return isa_shared_bytes + offset;
}

/* ---- waiting */

/* All threads of the cta. */
ISA_FN void isa_barrier() {
    __syncthreads();
}

/* Until the launch before this one is done and its writes are seen: before it, only weights may be
 * touched. Every thread calls it. Nothing where a launch cannot begin before its predecessor ends. */
ISA_FN void isa_wait_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next launch begin as far as its isa_wait_launch. */
ISA_FN void isa_let_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* ---- between ctas of one launch: what a thread writes before its fence, a cta that counts it afterwards may read behind a
 * fence of its own */

ISA_FN void isa_fence() {
    __threadfence();
}

/* ++*p in global memory; what it was. */
ISA_FN uint32_t isa_arrive(int32_t *p) {
    return (uint32_t)atomicAdd(p, 1);
}

/* 4 bytes, and the 128 around them to the L2 cache: for reads that walk through lines in small pieces. */
ISA_FN uint32_t isa_load_line(const void *p) {
    uint32_t x;
    asm volatile("ld.global.L2::128B.u32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}

/* What another cta may have written. */
ISA_FN float isa_load_other(const float *p) {
    float x;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(p));
    return x;
}

/* ---- weights: memory that no kernel writes */

ISA_FN uint32_t isa_load_w8(const uint8_t *p) {
    return __ldg(p);
}

ISA_FN uint32_t isa_load_w16(const uint8_t *p) {
    return __ldg((const unsigned short *)(const void *)p);
}

ISA_FN uint32_t isa_load_w32(const uint8_t *p) {
    return __ldg((const unsigned int *)(const void *)p);
}

/* The 128 bytes around p on their way to the L2 cache; p need not be readable. */
ISA_FN void isa_prefetch(const uint8_t *p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* ---- from memory to shared memory, past the registers: a thread's copies, in groups */

/* 16 bytes, both ends aligned to them. */
ISA_FN void isa_copy16(void *to, const void *from) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

/* Ends a group, which may be empty. */
ISA_FN void isa_copy_close() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until no more than the last n groups are on their way. */
template <int n>
ISA_FN void isa_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

/* ---- numbers */

ISA_FN float isa_float(uint32_t bits) {
    return __uint_as_float(bits);
}

ISA_FN uint32_t isa_bits(float x) {
    return __float_as_uint(x);
}

ISA_FN double isa_double(uint64_t bits) {
    return __longlong_as_double((long long)bits);
}

ISA_FN uint64_t isa_bits64(double x) {
    return (uint64_t)__double_as_longlong(x);
}

ISA_FN float isa_half(uint32_t h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)h));
    return f;
}

ISA_FN uint16_t isa_to_half(float x) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

ISA_FN float isa_fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}

/* Two halves in a word, `low` in the low one. */
ISA_FN uint32_t isa_halves(float low, float high) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* 2^x to about 22 bits: 1 at 0, 0 for -inf and below 2^-126; NaN stays. Its last bits are the unit's own. */
ISA_FN float isa_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The greater one; of a number and a NaN the number. */
ISA_FN float isa_max(float a, float b) {
    return fmaxf(a, b);
}

ISA_FN float isa_div(float a, float b) {
    return __fdiv_rn(a, b);
}

ISA_FN float isa_sqrt(float a) {
    return __fsqrt_rn(a);
}

/* Nearest even. */
ISA_FN int32_t isa_cvt_i(float a) {
    return __float2int_rn(a);
}

/* c + the sum of four products of signed bytes. */
ISA_FN int32_t isa_dot4(uint32_t a, uint32_t b, int32_t c) {
    return __dp4a((int)a, (int)b, c);
}

/* Byte i is that of the eight bytes a (0..3), b (4..7) which nibble i of `at` names; nibbles 0..3 are below 8. */
ISA_FN uint32_t isa_pick(uint32_t a, uint32_t b, uint32_t at) {
    uint32_t r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(at));
    return r;
}

/* ++*p in shared memory, whatever other threads of the cta add to it. */
ISA_FN void isa_count(uint32_t *p) {
    atomicAdd(p, 1u);
}

ISA_FN uint32_t isa_popcount(uint32_t x) {
    return (uint32_t)__popc(x);
}

/* ---- whole warps: all 32 lanes call together and all get the result */

/* The sum by lane[l] += lane[l + s], s = 16, 8 .. 1. (Adding lane l ^ s gives every lane those bits.) */
ISA_FN float isa_warp_sum(float x) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, s);
    }
    return x;
}

/* The greatest; which one is given where NaNs are among them is not fixed. */
ISA_FN float isa_warp_max(float x) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, x, s);
        x = x > other ? x : other;
    }
    return x;
}

/* The greatest of `first` and the numbers of lanes 0..l-1. */
ISA_FN float isa_warp_max_before(float first, float x) {
    x = __shfl_up_sync(0xffffffffu, x, 1);
    x = threadIdx.x % 32 == 0 ? first : x;
#pragma unroll
    for (unsigned s = 1; s < 32; s *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, x, s);
        x = threadIdx.x % 32 >= s && other > x ? other : x;
    }
    return x;
}

ISA_FN uint32_t isa_warp_umax(uint32_t x) {
    return __reduce_max_sync(0xffffffffu, x);
}

ISA_FN int32_t isa_warp_isum(int32_t x) {
    return __reduce_add_sync(0xffffffffu, x);
}

/* Memory that lanes have written before is as they left it for all of them after. */
ISA_FN void isa_warp_sync() {
    __syncwarp();
}

/* The 8 numbers of lane l ^ s. */
ISA_FN void isa_warp_xor8(const float (&x)[8], uint32_t s, float (&out)[8]) {
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        out[i] = __shfl_xor_sync(0xffffffffu, x[i], (int)s);
    }
}

/* Both words of lane l ^ s. */
ISA_FN void isa_warp_xor2(const uint64_t x[2], uint32_t s, uint64_t out[2]) {
    out[0] = __shfl_xor_sync(0xffffffffu, (unsigned long long)x[0], (int)s);
    out[1] = __shfl_xor_sync(0xffffffffu, (unsigned long long)x[1], (int)s);
}

ISA_FN uint64_t isa_warp_min64(uint64_t x) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
        const uint64_t other = __shfl_xor_sync(0xffffffffu, (unsigned long long)x, s);
        x = x < other ? x : other;
    }
    return x;
}

/* The sum over lanes 0..l. */
ISA_FN uint64_t isa_warp_scan64(uint64_t x) {
#pragma unroll
    for (unsigned s = 1; s < 32; s *= 2) {
        const uint64_t other = __shfl_up_sync(0xffffffffu, (unsigned long long)x, s);
        x += threadIdx.x % 32 >= s ? other : 0;
    }
    return x;
}

/* What lane l ^ s brings. */
ISA_FN uint32_t isa_warp_xor(uint32_t x, uint32_t s) {
    return __shfl_xor_sync(0xffffffffu, x, (int)s);
}

/* Bit l: what lane l says. */
ISA_FN uint32_t isa_ballot(bool yes) {
    return __ballot_sync(0xffffffffu, yes);
}

/* b of 8 activation rows, bytes q .. q + 31 of the first and `stride` (a multiple of 16) from one to the next, in shared
 * memory; x2: of 16 rows, b and then b. */
ISA_FN void isa_load_b(uint32_t b[2], const int8_t *q, uint32_t stride) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(q + lane % 8 * stride + lane / 8 % 2 * 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at));
}

ISA_FN void isa_load_b_x2(uint32_t b[4], const int8_t *q, uint32_t stride) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(q + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(at));
}

/* Four 8 x 8 tiles of halves in shared memory, row l % 8 of tile l / 8 at the address that lane l brings: of tile i this lane
 * gets numbers 2 (l % 4), 2 (l % 4) + 1 of row l / 4 in f[i]; `turned`: of column l / 4. */
ISA_FN void isa_load_tiles(uint32_t (&f)[4], const void *row) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
                 : "r"(at) : "memory");
}

ISA_FN void isa_load_tiles_turned(uint32_t (&f)[4], const void *row) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
                 : "r"(at) : "memory");
}

/* d += A B in halves, summed in f32 as the tensor cores do it: their order and last bits are their own. */
ISA_FN void isa_mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* d += W X for one group of 32 columns: fragments as above. */
ISA_FN void isa_mma_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d = W X + c for one group of 32 columns, c in every place. */
ISA_FN void isa_mma_s8_on(int32_t d[4], const uint32_t a[4], const uint32_t b[2], int32_t c) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c));
}

ISA_FN void isa_mma_s8_half_on(int32_t d[4], uint32_t a0, uint32_t a1, uint32_t b, int32_t c) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(c));
}

/* The same for 16 columns: a[0], a[1] and b as their first halves above. */
ISA_FN void isa_mma_s8_half(int32_t d[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
}

#else

#include "isa_cuda_host.h"

#endif

/* ---- what both sides share */

ISA_FN uint32_t isa_lane() {
    return isa_thread() % 32;
}

ISA_FN uint32_t isa_warp() {
    return isa_thread() / 32;
}

ISA_FN float isa_half_at(const uint8_t *p) {
    return isa_half(isa_load_w16(p));
}

ISA_FN float isa_float_at(const uint8_t *p) {
    return isa_float(isa_load_w32(p));
}

/* Weights that a kernel has brought to shared memory. */
ISA_FN uint32_t isa_smem_w8(const uint8_t *p) {
    return *p;
}

ISA_FN uint32_t isa_smem_w16(const uint8_t *p) {
    return *(const uint16_t *)(const void *)p;
}

ISA_FN uint32_t isa_smem_w32(const uint8_t *p) {
    return *(const uint32_t *)(const void *)p;
}

/* 4, 8 and 16 bytes of activations, aligned alike. */
ISA_FN uint32_t isa_load_x1(const void *p) {
    return *(const uint32_t *)p;
}

ISA_FN isa_x2 isa_load_x2(const void *p) {
    return *(const isa_x2 *)p;
}

ISA_FN isa_x4 isa_load_x4(const void *p) {
    return *(const isa_x4 *)p;
}

ISA_FN void isa_store_x4(void *p, isa_x4 v) {
    *(isa_x4 *)p = v;
}

ISA_FN void isa_store_x2(void *p, isa_x2 v) {
    *(isa_x2 *)p = v;
}

/* What a group of 32 activations is beside its bytes: scale, sums over the halves, and scale times sum, of the
 * whole and of the halves. */
typedef struct isa_act {
    float d;
    int32_t s[2];
    float m, m_half[2];
} isa_act;

/* `both` holds the two sums as they lie in memory. */
ISA_FN isa_act isa_act_of(float d, int32_t both) {
    isa_act x;
    x.d = d;
    x.s[0] = (int16_t)both;
    x.s[1] = both >> 16;
    x.m = (float)(x.s[0] + x.s[1]) * d;
    x.m_half[0] = (float)x.s[0] * d;
    x.m_half[1] = (float)x.s[1] * d;
    return x;
}

/* Of a table of 16 bytes, those that the low nibbles (lo) and the high ones (hi) of the bytes of x name. */
ISA_FN void isa_lookup16(uint32_t t0, uint32_t t1, uint32_t t2, uint32_t t3, uint32_t x, uint32_t *lo, uint32_t *hi) {
    const uint32_t at = x & 0x77777777u, upper = 0x32103210u | (x >> 1 & 0x44444444u);
    const uint32_t a = isa_pick(isa_pick(t0, t1, at), isa_pick(t2, t3, at), upper);
    const uint32_t b = isa_pick(isa_pick(t0, t1, at >> 16), isa_pick(t2, t3, at >> 16), upper >> 16);
    *lo = isa_pick(a, b, 0x6420u);
    *hi = isa_pick(a, b, 0x7531u);
}

/* The bits of 1.5 * 2^23: integers below 2^22 on top of them are floats that much greater. */
enum { ISA_TOP = 0x4b400000 };
#define ISA_TOP_F 0x1.8p23f

/* The bytes of x, each below 128, less k. */
ISA_FN uint32_t isa_minus4(uint32_t x, uint32_t k) {
    return ((x | 0x80808080u) - k * 0x01010101u) ^ 0x80808080u;
}

/* Bits 4i..4i+3 of x become bit `to` of bytes 0..3. */
ISA_FN uint32_t isa_spread4(uint32_t x, uint32_t i, uint32_t to) {
    return ((x >> 4 * i & 15u) * 0x00204081u & 0x01010101u) << to;
}

/* The layer that isa_real.h is written over. */
typedef float isa_f;
typedef int32_t isa_i;
typedef bool isa_m;

ISA_FN float isa_set1(float x) {
    return x;
}

ISA_FN int32_t isa_iset1(int32_t x) {
    return x;
}

ISA_FN float isa_add(float a, float b) {
    return a + b;
}

ISA_FN float isa_mul(float a, float b) {
    return a * b;
}

ISA_FN float isa_neg(float a) {
    return -a;
}

ISA_FN bool isa_gt(float a, float b) {
    return a > b;
}

ISA_FN float isa_sel(bool m, float a, float b) {
    return m ? a : b;
}

ISA_FN float isa_cvt_f(int32_t a) {
    return (float)a;
}

ISA_FN float isa_as_f(int32_t a) {
    return isa_float((uint32_t)a);
}

ISA_FN int32_t isa_iadd(int32_t a, int32_t b) {
    return a + b;
}

ISA_FN int32_t isa_ishl(int32_t a, int n) {
    return (int32_t)((uint32_t)a << n);
}

#include "isa_real.h"
#include "isa_sample.h"

/* ---- sums over a row and activations to bytes (docs/numerics.md) */

/* The sum over 256 lanes in one warp, whose lane l has lanes l, l + 32, .. in v. */
ISA_FN float isa_warp_lanes_sum(const float (&v)[8]) {
    const float even = (v[0] + v[4]) + (v[2] + v[6]), odd = (v[1] + v[5]) + (v[3] + v[7]);
    return isa_warp_sum(even + odd);
}

/* The sum over 256 lanes, which lie in shared memory since a barrier; all lanes of a warp call, and all get it. */
ISA_FN float isa_lanes_sum(const float *lane) {
    float v[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        v[i] = lane[32 * i + isa_lane()];
    }
    return isa_warp_lanes_sum(v);
}

/* A warp's 32 numbers become a group: element l of lane l, its place q, the group's d and s. */
ISA_FN void isa_q8_group(float x, int8_t *q, float *d, int16_t *s) {
    const float amax = isa_float(isa_warp_umax(isa_bits(x) & 0x7fffffffu));
    const float inv = amax > 0x1p-100f ? isa_div(127.0f, amax) : 0.0f;
    const int32_t v = isa_cvt_i(x * inv);
    const int32_t both = isa_warp_isum(isa_lane() < 16 ? v : v * 65536);
    *q = (int8_t)v;
    if (isa_lane() == 0) {
        const int32_t low = (int16_t)both;
        *d = isa_div(amax, 127.0f);
        s[0] = (int16_t)low;
        s[1] = (int16_t)((both - low) >> 16);
    }
}

#endif
