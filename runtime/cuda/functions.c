/* functions.c -- the kernels of a program: loaded all at once, never later, and compared with what
 * was proved about them. */
#include "cuda/cuda.h"

#include <stdlib.h>

enum {
    SMEM_WITHOUT_OPT_IN = 48 * 1024
}; /* CUDA C++ Programming Guide 13.0, "Shared Memory" of 8.x and later */

/* One number of a loaded function against its bound. */
static bool at_most(const rt_cuda *c, uint32_t i, rt_cu_func_attr which, const char *what,
                    uint32_t most, lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[i];
    int have = 0;
    if (!RT_CU_CALL(&c->d, err, cuFuncGetAttribute, &have, which, c->functions[i])) {
        return false;
    }
    return (have >= 0 && (uint32_t)have <= most) ||
           lb_err_set(err, LB_DAMAGED, "kernel %s has %d %s; proved was %u", k->name, have, what,
                      most);
}

static bool threads_fit(const rt_cuda *c, uint32_t i, lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[i];
    int have = 0;
    return RT_CU_CALL(&c->d, err, cuFuncGetAttribute, &have, RT_CU_FUNC_THREADS, c->functions[i]) &&
           ((have > 0 && (uint32_t)have >= k->block) ||
            lb_err_set(err, LB_DAMAGED, "kernel %s takes %d threads; proved was %u", k->name, have,
                       k->block));
}

/* One parameter, the struct, of the size that the host passes. */
static bool params_fit(const rt_cuda *c, uint32_t i, lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[i];
    size_t offset = 0;
    size_t n = 0;
    if (!RT_CU_CALL(&c->d, err, cuFuncGetParamInfo, c->functions[i], 0, &offset, &n)) {
        return false;
    }
    return (offset == 0 && n == k->param_bytes) ||
           lb_err_set(err, LB_DAMAGED,
                      "kernel %s takes a parameter of %zu bytes; the program passes %u", k->name, n,
                      k->param_bytes);
}

/* Room for the kernel's shared memory, and as many ctas on an SM as were proved to fit. */
static bool shared_fits(const rt_cuda *c, uint32_t i, lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[i];
    int n = 0;
    if (k->smem_bytes > SMEM_WITHOUT_OPT_IN &&
        !RT_CU_CALL(&c->d, err, cuFuncSetAttribute, c->functions[i],
                    RT_CU_FUNC_DYNAMIC_SHARED_BYTES, (int)k->smem_bytes)) {
        return false;
    }
    if (!RT_CU_CALL(&c->d, err, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, c->functions[i],
                    (int)k->block, k->smem_bytes)) {
        return false;
    }
    return (n > 0 && (uint32_t)n >= k->ctas_per_sm) ||
           lb_err_set(err, LB_DAMAGED, "kernel %s fits an SM %d times; proved were %u", k->name, n,
                      k->ctas_per_sm);
}

static bool load_one(rt_cuda *c, uint32_t i, lb_err *err) {
    const rt_gpu_kernel *k = &c->model->gpu->kernels[i];
    return RT_CU_CALL(&c->d, err, cuModuleLoadData, &c->modules[i], k->cubin) &&
           RT_CU_CALL(&c->d, err, cuModuleGetFunction, &c->functions[i], c->modules[i], k->name) &&
           RT_CU_CALL(&c->d, err, cuFuncLoad, c->functions[i]) && threads_fit(c, i, err) &&
           params_fit(c, i, err) && at_most(c, i, RT_CU_FUNC_REGS, "registers", k->reg_cap, err) &&
           at_most(c, i, RT_CU_FUNC_LOCAL_BYTES, "bytes of local memory", 0, err) &&
           at_most(c, i, RT_CU_FUNC_SHARED_BYTES, "bytes of static shared memory", 0, err) &&
           shared_fits(c, i, err);
}

bool rt_cuda_load_functions(rt_cuda *c, lb_err *err) {
    uint32_t n = c->model->gpu->n_kernels;
    c->modules = calloc(n, sizeof *c->modules);
    c->functions = calloc(n, sizeof *c->functions);
    if (c->modules == NULL || c->functions == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for %u kernels", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!load_one(c, i, err)) {
            return lb_err_prefix(err, "kernel %s", c->model->gpu->kernels[i].name);
        }
    }
    return true;
}
