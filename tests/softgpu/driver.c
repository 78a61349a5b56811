/* driver.c -- an emulated CUDA driver: the recorder's entry points in front, softgpu behind. Device
 * memory is host memory; a launch runs the emitted kernel's own text, compiled for this machine.
 * One that may overlap the launch in front of it begins first: its first cta runs as far as its
 * wait, then the launch in front runs, then the rest. So at most one launch is still to be done
 * when a call returns; copies and waits of the host come behind it.
 *
 * Linked with librec.a, softgpu and the kernels of one program (a table as harness.h has it) into a
 * library that a program loads by LAGEN_CUDA_DRIVER. LAGEN_SOFTGPU_ORDER: forward, reversed or
 * shuffled turns. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"
#include "recorder/backend.h"
#include "softgpu.h"

/* Addresses in front of and behind an allocation can be touched by nobody. */
enum { GUARD_BYTES = 1 << 16 };

static size_t pages(size_t n_bytes) {
    return (n_bytes + 4095) / 4096 * 4096;
}

static void *take(size_t n_bytes) {
    size_t total = pages(n_bytes) + 2 * GUARD_BYTES;
    char *at = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED ||
        mprotect(at + GUARD_BYTES, pages(n_bytes), PROT_READ | PROT_WRITE) != 0) {
        return NULL;
    }
    return at + GUARD_BYTES;
}

static void release(void *at, size_t n_bytes) {
    munmap((char *)at - GUARD_BYTES, pages(n_bytes) + 2 * GUARD_BYTES);
}

static rt_cu_result load(const void *cubin, size_t n_bytes) {
    (void)cubin;
    (void)n_bytes;
    return RT_CU_SUCCESS;
}

static const soft_entry *find(const char *name) {
    for (uint32_t i = 0; i < n_soft_kernels; i++) {
        if (strcmp(soft_kernels[i].name, name) == 0) {
            return &soft_kernels[i];
        }
    }
    return NULL;
}

static soft_order order(void) {
    const char *name = getenv("LAGEN_SOFTGPU_ORDER");
    return name == NULL || strcmp(name, "forward") == 0 ? SOFT_FORWARD
           : strcmp(name, "reversed") == 0              ? SOFT_REVERSED
                                                        : SOFT_SHUFFLED;
}

/* A launch that has begun, with its own copy of the parameters. */
typedef struct begun {
    const char *kernel;
    soft_launch l;
    void *params;
    soft_overlap *at;
} begun;

static begun pending[2]; /* in turns: one is finished only when the next has begun */
static begun *last;      /* NULL: none is pending */

static rt_cu_result failed(const char *kernel, const lb_err *err) {
    fprintf(stderr, "softgpu: %s: %s\n", kernel, err->text);
    return RT_CU_LAUNCH_FAILED;
}

static rt_cu_result finish(begun *b) {
    lb_err err = {0};
    if (b == NULL) {
        return RT_CU_SUCCESS;
    }
    bool ok = soft_finish(b->at, &err);
    free(b->params);
    b->params = NULL;
    return ok ? RT_CU_SUCCESS : failed(b->kernel, &err);
}

static rt_cu_result finish_last(void) {
    begun *b = last;
    last = NULL;
    return finish(b);
}

static rt_cu_result begin(const rec_launch *l, const soft_launch *s) {
    lb_err err = {0};
    begun *front = last;
    begun *b = last == &pending[0] ? &pending[1] : &pending[0];
    *b = (begun){.kernel = l->kernel, .l = *s, .params = malloc(l->facts->param_bytes + 1)};
    last = NULL;
    if (b->params == NULL) {
        finish(front);
        return RT_CU_OUT_OF_MEMORY;
    }
    memcpy(b->params, l->params, l->facts->param_bytes);
    b->l.params = b->params;
    bool ok = soft_begin(&b->l, &b->at, &err);
    rt_cu_result r = finish(front);
    if (!ok) {
        free(b->params);
        return failed(b->kernel, &err);
    }
    last = b;
    return r;
}

static rt_cu_result launch(const rec_launch *l) {
    const soft_entry *k = find(l->kernel);
    lb_err err = {0};
    if (k == NULL) {
        fprintf(stderr, "softgpu: no kernel %s\n", l->kernel);
        return RT_CU_NOT_FOUND;
    }
    const soft_launch s = {.kernel = k->kernel,
                           .params = l->params,
                           .grid = {l->grid[0], l->grid[1], l->grid[2]},
                           .block = l->block[0],
                           .smem_bytes = l->smem_bytes,
                           .order = order()};
    if (l->overlaps) {
        return begin(l, &s);
    }
    rt_cu_result r = finish_last();
    return r != RT_CU_SUCCESS || soft_run(&s, &err) ? r : failed(l->kernel, &err);
}

static rt_cu_result run(const rec_op *op) {
    void *device = (void *)(uintptr_t)op->device;
    if (op->kind == REC_LAUNCH) {
        return launch(&op->launch);
    }
    rt_cu_result r = finish_last();
    switch (op->kind) {
    case REC_TO_DEVICE: memcpy(device, op->host, op->n_bytes); break;
    case REC_TO_HOST: memcpy(op->host, device, op->n_bytes); break;
    default: memset(device, op->value, op->n_bytes);
    }
    return r;
}

static rt_cu_result sync(void) {
    return finish_last();
}

const rec_backend *rec_backend_here(void) {
    static const rec_backend soft = {take, release, load, run, sync};
    return &soft;
}
