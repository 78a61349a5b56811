/* kernels.h -- what tests/gpu/prepare.py makes for kernels.cu: the kernels of every case. */
#ifndef GPU_KERNELS_H
#define GPU_KERNELS_H

#include <stdint.h>

/* The plain C twin on this machine; params: pointers to the operands in order, then the step. */
typedef struct plain_entry {
    const char *name;
    void (*call)(void *const *params, uint32_t cta_begin, uint32_t cta_end);
} plain_entry;

/* A CUDA kernel; params: device addresses in the same order. launch returns a CUDA error code. */
typedef struct gpu_entry {
    const char *name;
    int (*launch)(const void *params, const uint32_t grid[3]);
} gpu_entry;

extern const plain_entry plain_kernels[];
extern const gpu_entry gpu_kernels[];
extern const uint32_t n_plain_kernels, n_gpu_kernels;

#endif
