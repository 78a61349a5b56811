/* refusals.c -- makes each call of runtime/recorder/refusals.def that a driver must refuse, and
 * prints the code that it gave.
 *
 *   refusals OWN.cubin OTHER.cubin     both from refusals.cu; OTHER for an architecture that is not
 * the device's On hardware it says whether the table holds; on the recorder it says whether the
 * recorder follows its table. Exit status 1 if a code differs. Needs no part of lagen but
 * runtime/cuda/driver.c and runtime/base/err.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"

typedef struct world {
    rt_cuda_driver d;
    rt_cu_context context;
    rt_cu_stream stream;
    rt_cu_function bound, wide, free;
    rt_cu_ptr memory;
    void *own, *other;
    int clusters; /* whether the device has them */
} world;

enum { MEMORY_BYTES = 4 << 20 };
static const rt_cu_ptr FAR = (rt_cu_ptr)1 << 45;

/* A launch with everything in order; cases bend one thing. */
static rt_cu_launch_config good(const world *w) {
    return (rt_cu_launch_config){.grid = {4, 1, 1}, .block = {128, 1, 1}, .stream = w->stream};
}

static rt_cu_result launch(const world *w, const rt_cu_launch_config *c, rt_cu_function f) {
    const struct {
        rt_cu_ptr x, y;
        unsigned n;
    } params = {w->memory, w->memory + MEMORY_BYTES / 2, 128};
    void *list[] = {(void *)(size_t)&params};
    return w->d.cuLaunchKernelEx(c, f, list, NULL);
}

static rt_cu_result with_grid(const world *w, unsigned x, unsigned y) {
    rt_cu_launch_config c = good(w);
    c.grid[0] = x;
    c.grid[1] = y;
    return launch(w, &c, w->bound);
}

static rt_cu_result with_block(const world *w, rt_cu_function f, unsigned n) {
    rt_cu_launch_config c = good(w);
    c.block[0] = n;
    return launch(w, &c, f);
}

static rt_cu_result with_attr(const world *w, unsigned grid, rt_cu_launch_attr a) {
    rt_cu_launch_config c = good(w);
    c.grid[0] = grid;
    c.attrs = &a;
    c.n_attrs = 1;
    return launch(w, &c, w->bound);
}

static rt_cu_result with_cluster(const world *w, unsigned grid, unsigned n) {
    return with_attr(w, grid,
                     (rt_cu_launch_attr){.id = RT_CU_ATTR_CLUSTER, .value.cluster = {n, 1, 1}});
}

/* ---- before a context */

static rt_cu_result not_initialized(world *w) {
    int n = 0;
    return w->d.cuDeviceGetCount(&n);
}

static rt_cu_result no_such_device(world *w) {
    rt_cu_device d = 0;
    return w->d.cuDeviceGet(&d, 1000);
}

static rt_cu_result no_context(world *w) {
    rt_cu_ptr p = 0;
    return w->d.cuMemAlloc_v2(&p, 1024);
}

/* ---- modules */

static rt_cu_result bad_image(world *w) {
    static const char text[256] = "this is no cubin";
    rt_cu_module m = NULL;
    return w->d.cuModuleLoadData(&m, text);
}

static rt_cu_result other_architecture(world *w) {
    rt_cu_module m = NULL;
    return w->d.cuModuleLoadData(&m, w->other);
}

static rt_cu_result no_such_kernel(world *w) {
    rt_cu_module m = NULL;
    rt_cu_function f = NULL;
    rt_cu_result r = w->d.cuModuleLoadData(&m, w->own);
    return r != RT_CU_SUCCESS ? r : w->d.cuModuleGetFunction(&f, m, "k_of_no_one");
}

static rt_cu_result no_such_parameter(world *w) {
    size_t offset = 0;
    size_t n = 0;
    return w->d.cuFuncGetParamInfo(w->bound, 1, &offset, &n);
}

/* ---- memory */

static rt_cu_result alloc_zero(world *w) {
    rt_cu_ptr p = 0;
    return w->d.cuMemAlloc_v2(&p, 0);
}

static rt_cu_result alloc_too_much(world *w) {
    rt_cu_ptr p = 0;
    return w->d.cuMemAlloc_v2(&p, (size_t)1 << 44);
}

static rt_cu_result free_twice(world *w) {
    rt_cu_ptr p = 0;
    rt_cu_result r = w->d.cuMemAlloc_v2(&p, 1024);
    r = r != RT_CU_SUCCESS ? r : w->d.cuMemFree_v2(p);
    return r != RT_CU_SUCCESS ? r : w->d.cuMemFree_v2(p);
}

static rt_cu_result copy_outside(world *w) {
    char bytes[64] = "";
    return w->d.cuMemcpyHtoD_v2(w->memory + FAR, bytes, sizeof bytes);
}

static rt_cu_result set_outside(world *w) {
    return w->d.cuMemsetD8_v2(w->memory + FAR, 0, 64);
}

/* ---- launches */

static rt_cu_result grid_zero(world *w) {
    return with_grid(w, 0, 1);
}

static rt_cu_result grid_too_large(world *w) {
    return with_grid(w, 1, 65536);
}

static rt_cu_result block_zero(world *w) {
    return with_block(w, w->bound, 0);
}

static rt_cu_result block_too_large(world *w) {
    return with_block(w, w->bound, 1025);
}

static rt_cu_result block_above_launch_bounds(world *w) {
    return with_block(w, w->bound, 160);
}

static rt_cu_result too_many_registers(world *w) {
    return with_block(w, w->wide, 1024);
}

static rt_cu_result with_shared(const world *w, unsigned n) {
    rt_cu_launch_config c = good(w);
    c.smem_bytes = n;
    return launch(w, &c, w->bound);
}

static rt_cu_result shared_above_attribute(world *w) {
    return with_shared(w, 49153);
}

static rt_cu_result shared_attribute_above_limit(world *w) {
    return w->d.cuFuncSetAttribute(w->bound, RT_CU_FUNC_DYNAMIC_SHARED_BYTES, 300 * 1024);
}

static rt_cu_result cluster_too_large(world *w) {
    return with_cluster(w, 64, 32);
}

static rt_cu_result cluster_no_divisor(world *w) {
    return with_cluster(w, 5, 2);
}

static rt_cu_result cooperative_too_large(world *w) {
    return with_attr(w, 1 << 20,
                     (rt_cu_launch_attr){.id = RT_CU_ATTR_COOPERATIVE, .value.cooperative = 1});
}

static rt_cu_result null_function(world *w) {
    rt_cu_launch_config c = good(w);
    return launch(w, &c, NULL);
}

/* ---- captures: each leaves none behind */

static rt_cu_result in_capture(world *w, rt_cu_result (*call)(world *), rt_cu_result *end) {
    rt_cu_graph g = NULL;
    rt_cu_result r = w->d.cuStreamBeginCapture_v2(w->stream, RT_CU_CAPTURE_THREAD_LOCAL);
    r = r != RT_CU_SUCCESS ? r : call(w);
    *end = w->d.cuStreamEndCapture(w->stream, &g);
    if (g != NULL) {
        w->d.cuGraphDestroy(g);
    }
    return r;
}

static rt_cu_result sync_stream(world *w) {
    return w->d.cuStreamSynchronize(w->stream);
}

static rt_cu_result copy_now(world *w) {
    char bytes[64] = "";
    return w->d.cuMemcpyHtoD_v2(w->memory, bytes, sizeof bytes);
}

static rt_cu_result sync_during_capture(world *w) {
    rt_cu_result end = RT_CU_SUCCESS;
    return in_capture(w, sync_stream, &end);
}

static rt_cu_result end_of_spoilt_capture(world *w) {
    rt_cu_result end = RT_CU_SUCCESS;
    in_capture(w, sync_stream, &end);
    return end;
}

static rt_cu_result copy_not_async_during_capture(world *w) {
    rt_cu_result end = RT_CU_SUCCESS;
    return in_capture(w, copy_now, &end);
}

static rt_cu_result alloc_one(world *w) {
    rt_cu_ptr p = 0;
    rt_cu_result r = w->d.cuMemAlloc_v2(&p, 256);
    if (r == RT_CU_SUCCESS) {
        w->d.cuMemFree_v2(p);
    }
    return r;
}

static rt_cu_result alloc_during_capture(world *w) {
    rt_cu_result end = RT_CU_SUCCESS;
    return in_capture(w, alloc_one, &end);
}

static rt_cu_result end_without_capture(world *w) {
    rt_cu_graph g = NULL;
    return w->d.cuStreamEndCapture(w->stream, &g);
}

/* ---- the run */

typedef struct refusal {
    const char *name;
    rt_cu_result want;
    rt_cu_result (*call)(world *);
} refusal;

static const refusal CASES[] = {
#define REC_REFUSAL(name, code) {#name, code, name},
#include "recorder/refusals.def"
};
enum { N_CASES = sizeof CASES / sizeof *CASES, BEFORE_INIT = 1, BEFORE_CONTEXT = 3 };

static int try(world *w, int i) {
    const char *name = NULL;
    rt_cu_result got = CASES[i].call(w);
    if (w->d.cuGetErrorName(got, &name) != RT_CU_SUCCESS || name == NULL) {
        name = "?";
    }
    int same = got == CASES[i].want;
    printf("%s %s %u %s", same ? "ok " : "DIFFERS", CASES[i].name, got, name);
    printf(same ? "\n" : ", the table says %u\n", CASES[i].want);
    return !same;
}

/* The last size that is not refused. */
static int taken(const world *w, const char *what, rt_cu_result got) {
    const char *name = NULL;
    if (w->d.cuGetErrorName(got, &name) != RT_CU_SUCCESS || name == NULL) {
        name = "?";
    }
    printf("%s %s: %u %s\n", got == RT_CU_SUCCESS ? "ok " : "DIFFERS", what, got, name);
    return got != RT_CU_SUCCESS;
}

static void *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *data = calloc(1, 1 << 22);
    size_t n = f == NULL || data == NULL ? 0 : fread(data, 1, 1 << 22, f);
    if (f != NULL) {
        fclose(f);
    }
    if (n == 0) {
        fprintf(stderr, "refusals: %s cannot be read\n", path);
        free(data);
        return NULL;
    }
    return data;
}

static int begin(world *w) {
    rt_cu_device device = 0;
    rt_cu_module m = NULL;
    lb_err err = {0};
    int major = 0;
    if (!RT_CU_CALL(&w->d, &err, cuDeviceGet, &device, 0) ||
        !RT_CU_CALL(&w->d, &err, cuDeviceGetAttribute, &major, RT_CU_DEV_MAJOR, device) ||
        !RT_CU_CALL(&w->d, &err, cuCtxCreate_v4, &w->context, NULL, 0, device) ||
        !RT_CU_CALL(&w->d, &err, cuStreamCreate, &w->stream, RT_CU_STREAM_NON_BLOCKING) ||
        !RT_CU_CALL(&w->d, &err, cuModuleLoadData, &m, w->own) ||
        !RT_CU_CALL(&w->d, &err, cuModuleGetFunction, &w->bound, m, "k_bound") ||
        !RT_CU_CALL(&w->d, &err, cuModuleGetFunction, &w->wide, m, "k_wide") ||
        !RT_CU_CALL(&w->d, &err, cuModuleGetFunction, &w->free, m, "k_free") ||
        !RT_CU_CALL(&w->d, &err, cuMemAlloc_v2, &w->memory, MEMORY_BYTES)) {
        fprintf(stderr, "refusals: %s\n", err.text);
        return 1;
    }
    w->clusters = major == 9 || major == 10;
    return 0;
}

/* The driver as it is found, before cuInit. */
static int before_init(void) {
    world w = {0};
    lb_err err = {0};
    if (!rt_cuda_driver_find(&w.d, &err)) {
        fprintf(stderr, "refusals: %s\n", err.text);
        return 1;
    }
    int bad = try(&w, 0);
    rt_cuda_driver_close(&w.d);
    return bad;
}

int main(int argc, char **argv) {
    world w = {0};
    lb_err err = {0};
    int bad = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: refusals OWN.cubin OTHER.cubin\n");
        return 2;
    }
    w.own = read_file(argv[1]);
    w.other = read_file(argv[2]);
    bad += before_init();
    if (w.own == NULL || w.other == NULL || !rt_cuda_driver_open(&w.d, 0, &err)) {
        fprintf(stderr, "refusals: %s\n", err.text);
        return 1;
    }
    for (int i = BEFORE_INIT; i < BEFORE_CONTEXT; i++) {
        bad += try(&w, i);
    }
    if (begin(&w) != 0) {
        return 1;
    }
    for (int i = BEFORE_CONTEXT; i < N_CASES; i++) {
        if (!w.clusters && strncmp(CASES[i].name, "cluster", 7) == 0) {
            printf("--  %s not tried: no clusters here\n", CASES[i].name);
            continue;
        }
        bad += try(&w, i);
    }
    bad += taken(&w, "65535 rows on y", with_grid(&w, 1, 65535));
    bad += taken(&w, "1024 threads", with_block(&w, w.free, 1024));
    bad += taken(&w, "49152 bytes of shared memory", with_shared(&w, 49152));
    rt_cu_result last = w.d.cuCtxSynchronize();
    printf("%s after all of them the context is %s (%u)\n", last == 0 ? "ok " : "DIFFERS",
           last == 0 ? "sound" : "lost", last);
    w.d.cuCtxDestroy_v2(w.context);
    rt_cuda_driver_close(&w.d);
    free(w.own);
    free(w.other);
    return bad != 0 || last != 0;
}
