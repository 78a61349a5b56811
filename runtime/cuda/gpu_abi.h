/* gpu_abi.h -- what a program for a GPU hands to the runtime beside rt_model (model_abi.h), and the
 * one call that its emitted step makes. Programs for a CPU have none of it: their rt_model.gpu is
 * NULL. */
#ifndef RT_GPU_ABI_H
#define RT_GPU_ABI_H

#include "model_abi.h"

typedef struct rt_cuda rt_cuda; /* the device with the program's memory on it: cuda/cuda.h */

/* One kernel: its cubin, embedded, and what was proved about it. */
typedef struct rt_gpu_kernel {
    const char *name;
    const uint8_t *cubin, *cubin_end;
    uint32_t block;       /* threads of a cta, on x */
    uint32_t smem_bytes;  /* dynamic, of a cta */
    uint32_t ctas_per_sm; /* that fit an SM together */
    uint32_t reg_cap;     /* most registers of a thread */
    uint32_t param_bytes; /* of the parameter struct */
    bool overlaps; /* it may begin before the launch in front has ended, and waits itself (programmatic
                      dependent launch) */
} rt_gpu_kernel;

/* What the proof took as given; a device that has less is refused. */
typedef struct rt_gpu_limits {
    uint32_t grid[3];
    uint32_t cta_threads, warp_threads, threads_per_sm, ctas_per_sm;
    uint32_t smem_per_cta_bytes, smem_per_sm_bytes; /* per cta: with opt-in */
    uint32_t regs_per_cta, regs_per_sm;
} rt_gpu_limits;

typedef struct rt_gpu {
    uint32_t compute_major, compute_minor; /* the device's must be these */
    uint32_t driver_min;                   /* 13000: CUDA 13.0 */
    rt_gpu_limits limits;
    const rt_gpu_kernel *kernels;
    uint32_t n_kernels, n_launches; /* of a step */
    uint32_t few_rows; /* with more rows than these a step uses other kernels; at most 62 */
    uint64_t step_offset_bytes; /* of the step's block in RT_ARENA_IO: cuda/step.h */
    uint64_t step_bytes;

    /* Makes all launches of one step, in order, through rt_cuda_launch. */
    bool (*launches)(rt_cuda *c, const rt_step *step, lb_err *err);
} rt_gpu;

/* What emitted code gets from the device: where an arena begins there, and where rt_step lies
 * there. */
uint8_t *rt_cuda_arena(const rt_cuda *c, rt_arena_kind kind);
const rt_step *rt_cuda_step_on_device(const rt_cuda *c);

typedef struct rt_gpu_launch {
    uint32_t kernel; /* index */
    uint32_t grid[3];
    const char *what; /* e.g. "matmul of ffn_down" */
    int32_t layer;    /* -1: none */
} rt_gpu_launch;

/* One launch; `params` is the kernel's parameter struct, copied before the call returns. A failure
 * names the launch, its layer, its grid and T, the call and CUDA's error. */
bool rt_cuda_launch(rt_cuda *c, const rt_gpu_launch *l, const void *params, const rt_step *step,
                    lb_err *err);

/* Between layers: waits and shows layer `layer`'s hidden states to whoever traces the step. */
bool rt_cuda_show(rt_cuda *c, uint32_t layer, uint64_t offset, lb_err *err);

/* One whole step: uploads the step's block, makes the launches (or replays a graph of them), brings
 * the logits back into RT_ARENA_IO. `arenas` as in rt_model.step. T = 0 runs nothing. */
bool rt_cuda_step(uint8_t *const *arenas, const rt_step *step, lb_err *err);

/* How a program for a GPU takes memory and loads weights: what rt_model.device is then. */
extern const rt_device_ops rt_cuda_ops;

#endif
