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

/* What happens to memory around a cta's wait for the launch in front (isa_wait_launch): `early` is called before it
 * begins, `there` when all its threads have come to the wait. Without these a wait does nothing. */
typedef struct soft_wait_hooks {
    void (*early)(void *arg);
    void (*there)(void *arg);
    void *arg;
} soft_wait_hooks;

typedef struct soft_launch {
    void (*kernel)(const void *params); /* what one thread does */
    const void *params;
    uint32_t grid[3], block;
    size_t smem_bytes; /* dynamic shared memory of a cta; filled with 0xff (a NaN) before each */
    soft_order order;
    const soft_wait_hooks *wait; /* may be NULL */
} soft_launch;

enum { SOFT_BLOCK_MAX = 1024 };

/* Runs a whole grid; not reentrant. LB_BAD_VALUE for a block that is no multiple of a warp or too large,
 * LB_NO_MEMORY, and LB_PROOF, with the cta and the thread, where threads wait for each other in ways
 * that a GPU would not survive: a barrier that not all threads of the cta reach, a warp-wide operation
 * that not all lanes reach, or that lanes reach with different operations. */
bool soft_run(const soft_launch *l, lb_err *err);

/* A launch that overlaps the one in front of it, in two halves (programmatic dependent launch): soft_begin runs its first
 * cta as far as the wait, soft_finish the rest of it and all others. In between, one other launch may be begun, and any
 * be finished. `l` and its parameters are the caller's until the end. LB_PROOF besides: a thread that ends without
 * waiting, or lets the next launch begin before it has waited. */
typedef struct soft_overlap soft_overlap;
bool soft_begin(const soft_launch *l, soft_overlap **out, lb_err *err);
bool soft_finish(soft_overlap *o, lb_err *err);

#endif
