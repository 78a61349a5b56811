/* cuda.c -- a GPU program's memory: one allocation for each arena, made once at start; and the way
 * of the weights there. */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/num.h"
#include "memory.h"

static rt_cuda *of(const rt_memory *mem) {
    return (rt_cuda *)(void *)mem->arenas[RT_DEVICE];
}

uint8_t *rt_cuda_arena(const rt_cuda *c, rt_arena_kind kind) {
    return (uint8_t *)(uintptr_t)c->arenas[kind];
}

const rt_step *rt_cuda_step_on_device(const rt_cuda *c) {
    return (const rt_step *)(uintptr_t)(c->arenas[RT_ARENA_IO] + c->model->gpu->step_offset_bytes);
}

uint64_t rt_cuda_room(bool shared, uint64_t free_bytes, uint64_t available) {
    return shared && available != UINT64_MAX ? available : free_bytes;
}

/* Fails, before anything is allocated, unless all arenas fit what is there. */
static bool check_sum(rt_cuda *c, lb_err *err) {
    uint64_t sum = 0;
    size_t have = 0;
    size_t total = 0;
    int shared = 0;
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (!lb_add(sum, c->model->arena_bytes[k], &sum)) {
            return lb_err_set(err, LB_RESOURCES, "the sum of the arenas passes 64 bits");
        }
    }
    if (!RT_CU_CALL(&c->d, err, cuMemGetInfo_v2, &have, &total) ||
        !RT_CU_CALL(&c->d, err, cuDeviceGetAttribute, &shared, RT_CU_DEV_INTEGRATED, c->device)) {
        return false;
    }
    uint64_t available = rt_memory_available();
    c->free_before = have;
    c->shared = shared != 0;
    if (sum <= rt_cuda_room(c->shared, have, available)) {
        return true;
    }
    lb_err_set(err, LB_RESOURCES,
               "the program needs %" PRIu64 " bytes on device %d (%s); %zu of %zu are free", sum,
               c->board.index, c->board.name, have, total);
    return c->shared ? lb_err_prefix(err, "the system can give %" PRIu64 " bytes", available)
                     : false;
}

static bool allocate(rt_cuda *c, lb_err *err) {
    for (int k = 0; k < RT_N_ARENAS; k++) {
        uint64_t n = c->model->arena_bytes[k];
        if (n == 0) {
            continue;
        }
        if (!RT_CU_CALL(&c->d, err, cuMemAlloc_v2, &c->arenas[k], n) ||
            !RT_CU_CALL(&c->d, err, cuMemsetD8_v2, c->arenas[k], 0, n)) {
            return lb_err_prefix(err, "%" PRIu64 " bytes for %s", n,
                                 rt_arena_name((rt_arena_kind)k));
        }
    }
    return RT_CU_CALL(&c->d, err, cuMemHostAlloc, (void **)&c->io,
                      c->model->arena_bytes[RT_ARENA_IO], 0) ||
           lb_err_prefix(err, "pinned memory for logits");
}

static bool allocate_stages(rt_cuda *c, lb_err *err) {
    for (int i = 0; i < RT_CUDA_STAGES; i++) {
        if (!RT_CU_CALL(&c->d, err, cuMemHostAlloc, (void **)&c->stages[i], RT_STAGE_BYTES, 0)) {
            return lb_err_prefix(err, "pinned memory for loading");
        }
    }
    return true;
}

static bool free_stages(rt_cuda *c, lb_err *err) {
    bool ok = true;
    for (int i = 0; i < RT_CUDA_STAGES; i++) {
        if (c->stages[i] != NULL && RT_CU_CALL(&c->d, err, cuMemFreeHost, c->stages[i])) {
            c->stages[i] = NULL;
        }
        ok = ok && c->stages[i] == NULL;
    }
    return ok;
}

static bool start(rt_cuda *c, const char *wanted, lb_err *err) {
    return rt_cuda_env(c->env, sizeof c->env, err) &&
           rt_cuda_driver_open(&c->d, (int)c->model->gpu->driver_min, err) &&
           rt_cuda_choose(c, wanted, err) &&
           RT_CU_CALL(&c->d, err, cuCtxCreate_v4, &c->context, NULL, 0, c->device) &&
           RT_CU_CALL(&c->d, err, cuStreamCreate, &c->stream, RT_CU_STREAM_NON_BLOCKING) &&
           check_sum(c, err) && allocate(c, err) && rt_cuda_load_functions(c, err) &&
           allocate_stages(c, err);
}

/* What can still be released is; the context takes the rest with it. Errors are of no interest any
 * more. */
static void stop(rt_cuda *c) {
    if (c->context != NULL) {
        c->d.cuCtxSetCurrent(c->context);
        for (uint32_t i = 0; i < 2 * RT_CUDA_GRAPHS; i++) {
            rt_cu_graph_exec graph = c->graphs[i / RT_CUDA_GRAPHS][i % RT_CUDA_GRAPHS].exec;
            if (graph != NULL) {
                c->d.cuGraphExecDestroy(graph);
            }
        }
        free_stages(c, NULL);
        if (c->io != NULL) {
            c->d.cuMemFreeHost(c->io);
        }
        for (uint32_t i = 0; c->modules != NULL && i < c->model->gpu->n_kernels; i++) {
            if (c->modules[i] != NULL) {
                c->d.cuModuleUnload(c->modules[i]);
            }
        }
        for (int k = 0; k < RT_N_ARENAS; k++) {
            if (c->arenas[k] != 0) {
                c->d.cuMemFree_v2(c->arenas[k]);
            }
        }
        if (c->stream != NULL) {
            c->d.cuStreamDestroy_v2(c->stream);
        }
        c->d.cuCtxDestroy_v2(c->context);
    }
    rt_cuda_driver_close(&c->d);
    free(c->modules);
    free(c->functions);
    free(c);
}

static bool map(const rt_model *m, const char *wanted, rt_memory *mem, lb_err *err) {
    rt_cuda *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for the device's state");
    }
    c->model = m;
    if (!start(c, wanted, err)) {
        stop(c);
        return false;
    }
    for (int k = 0; k < RT_N_ARENAS; k++) {
        mem->arenas[k] = rt_cuda_arena(c, (rt_arena_kind)k);
    }
    mem->arenas[RT_ARENA_IO] = c->io;
    mem->arenas[RT_DEVICE] = (uint8_t *)c;
    return true;
}

static void unmap(rt_memory *mem) {
    if (of(mem) != NULL) {
        stop(of(mem));
    }
    for (int k = 0; k < RT_N_PLACES; k++) {
        mem->arenas[k] = NULL;
    }
}

static uint8_t *stage(const rt_memory *mem, uint32_t index) {
    return index < RT_CUDA_STAGES ? of(mem)->stages[index] : NULL;
}

static bool put(const rt_memory *mem, uint32_t index, uint64_t offset, uint64_t n_bytes,
                lb_err *err) {
    rt_cuda *c = of(mem);
    return RT_CU_CALL(&c->d, err, cuCtxSetCurrent, c->context) &&
           (RT_CU_CALL(&c->d, err, cuMemcpyHtoD_v2, c->arenas[RT_ARENA_WEIGHTS] + offset,
                       c->stages[index], n_bytes) ||
            lb_err_prefix(err, "%" PRIu64 " bytes of weights at %" PRIu64, n_bytes, offset));
}

static bool get(const rt_memory *mem, rt_arena_kind kind, uint64_t offset, void *to,
                uint64_t n_bytes, lb_err *err) {
    rt_cuda *c = of(mem);
    return RT_CU_CALL(&c->d, err, cuCtxSetCurrent, c->context) &&
           RT_CU_CALL(&c->d, err, cuMemcpyDtoH_v2, to, c->arenas[kind] + offset, n_bytes);
}

static bool set(const rt_memory *mem, rt_arena_kind kind, uint64_t offset, const void *from,
                uint64_t n_bytes, lb_err *err) {
    rt_cuda *c = of(mem);
    return RT_CU_CALL(&c->d, err, cuCtxSetCurrent, c->context) &&
           RT_CU_CALL(&c->d, err, cuMemcpyHtoD_v2, c->arenas[kind] + offset, from, n_bytes) &&
           RT_CU_CALL(&c->d, err, cuCtxSynchronize); /* the stream of steps does not wait for it */
}

static bool clear(const rt_memory *mem, rt_arena_kind kind, lb_err *err) {
    rt_cuda *c = of(mem);
    return c->arenas[kind] == 0 || (RT_CU_CALL(&c->d, err, cuCtxSetCurrent, c->context) &&
                                    RT_CU_CALL(&c->d, err, cuMemsetD8_v2, c->arenas[kind], 0,
                                               c->model->arena_bytes[kind]) &&
                                    RT_CU_CALL(&c->d, err, cuCtxSynchronize));
}

static bool ready(const rt_model *m, rt_memory *mem, lb_err *err) {
    rt_cuda *c = of(mem);
    size_t total = 0;
    size_t have = 0;
    (void)m;
    bool ok = RT_CU_CALL(&c->d, err, cuCtxSetCurrent, c->context) && free_stages(c, err) &&
              rt_cuda_warm(c, err) && RT_CU_CALL(&c->d, err, cuMemGetInfo_v2, &have, &total);
    c->free_after = have;
    return ok;
}

static void measured(const rt_memory *mem, rt_device_memory *out) {
    const rt_cuda *c = of(mem);
    *out = (rt_device_memory){c->board.total_bytes, c->free_before, c->free_after, c->shared};
}

const rt_device_ops rt_cuda_ops = {map, unmap, stage, put,   get,
                                   set, clear, rt_cuda_describe, ready, measured};
