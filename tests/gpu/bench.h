/* bench.h -- what tests/gpu/bench.py makes for bench.cu: the kernels to time. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdint.h>

/* params: device addresses of the operands in order, then of the step; stream: a cudaStream_t. launch
 * returns a CUDA error code. */
typedef struct bench_entry {
    const char *name;
    uint32_t n_operands;
    int (*launch)(const void *params, const uint32_t grid[3], void *stream);
} bench_entry;

#ifdef __cplusplus
extern "C" {
#endif
extern const bench_entry bench_kernels[];
extern const uint32_t n_bench_kernels;
#ifdef __cplusplus
}
#endif

#endif
