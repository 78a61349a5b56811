/* softgpu.h -- runs CUDA kernels on a CPU: kernel text compiled by a C++ compiler (templates/lib/
 * isa_cuda_host.h) is what one thread does; here the threads of a cta run in turns, each on a stack of its
 * own, and give way at barriers and warp-wide operations. Ctas run one after another. */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* In which order ctas, and the threads of a cta, get their turns: a kernel without a race computes the
 * same bytes in each. */
typedef enum soft_order { SOFT_FORWARD, SOFT_REVERSED, SOFT_SHUFFLED, SOFT_N_ORDERS } soft_order;

typedef struct soft_launch {
    void (*kernel)(const void *params); /* what one thread does */
    const void *params;
    uint32_t grid[3], block;
    size_t smem_bytes; /* dynamic shared memory of a cta; filled with 0xff (a NaN) before each */
    soft_order order;
} soft_launch;

enum { SOFT_BLOCK_MAX = 1024 };

/* Runs a whole grid; not reentrant. LB_BAD_VALUE for a block that is no multiple of a warp or too large,
 * LB_NO_MEMORY, and LB_PROOF, with the cta and the thread, where threads wait for each other in ways
 * that a GPU would not survive: a barrier that not all threads of the cta reach, a warp-wide operation
 * that not all lanes reach, or that lanes reach with different operations. */
bool soft_run(const soft_launch *l, lb_err *err);

#endif
