/* softgpu.c -- see softgpu.h. One scheduler per process: the stack of soft_run; every thread of a cta
 * has a stack from one mapping that lives until the process ends. */
#define _DEFAULT_SOURCE
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define WITH_ASAN 1
#else
#define WITH_ASAN 0
#endif

enum { WARP = 32, STACK_BYTES = 128 * 1024, WARP_DATA_BYTES = 64, FRAME_WORDS = 22 };

/* isa_cuda_host.h has these too. */
typedef struct soft_thread {
    uint32_t thread, cta[3];
    unsigned char *smem;
} soft_thread;
typedef void soft_warp_op(const void *in, void *out);
extern soft_thread soft_now;
soft_thread soft_now;
void soft_barrier(void);
void soft_warp(soft_warp_op *op, const void *in, size_t n_in, void *out, size_t n_out);
void soft_switch(void **save, void *to);

typedef enum state { READY, AT_BARRIER, AT_WARP, DONE } state;

typedef struct fiber {
    void *top;  /* of its stack while it does not run */
    void *fake; /* ASan's own stack for it */
    state state;
    soft_warp_op *op; /* that it waits in */
} fiber;

/* What lanes of a warp have brought to the operation that they wait in. */
typedef struct warp {
    uint32_t n_here;
    _Alignas(16) unsigned char in[WARP * WARP_DATA_BYTES];
    _Alignas(16) unsigned char out[WARP * WARP_DATA_BYTES];
} warp;

static struct {
    const soft_launch *launch;
    unsigned char *stacks;
    void *top, *fake; /* of the scheduler */
    const void *own_stack;
    size_t own_stack_bytes;
    fiber fibers[SOFT_BLOCK_MAX];
    warp warps[SOFT_BLOCK_MAX / WARP];
    uint32_t order[SOFT_BLOCK_MAX];
} run;

/* ---- switching */

static unsigned char *stack_of(uint32_t thread) {
    return run.stacks + (size_t)thread * STACK_BYTES;
}

/* From the scheduler into a thread, until it gives way. */
static void enter(uint32_t thread) {
    soft_now.thread = thread;
#if WITH_ASAN
    __sanitizer_start_switch_fiber(&run.fake, stack_of(thread), STACK_BYTES);
#endif
    soft_switch(&run.top, run.fibers[thread].top);
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(run.fake, NULL, NULL);
#endif
}

/* From a thread back to the scheduler. */
static void give_way(state s) {
    fiber *f = &run.fibers[soft_now.thread];
    f->state = s;
#if WITH_ASAN
    __sanitizer_start_switch_fiber(s == DONE ? NULL : &f->fake, run.own_stack, run.own_stack_bytes);
#endif
    soft_switch(&f->top, run.top);
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(f->fake, NULL, NULL);
#endif
}

static void first_lines(void) {
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(NULL, &run.own_stack, &run.own_stack_bytes);
#endif
    run.launch->kernel(run.launch->params);
    give_way(DONE);
}

/* A frame as soft_switch leaves one, which goes on at first_lines. */
static void new_stack(uint32_t thread) {
    void **end = (void **)(void *)(stack_of(thread) + STACK_BYTES);
    void **frame = end - FRAME_WORDS;
    void (*start)(void) = first_lines;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
#if defined(__aarch64__)
    memcpy(&frame[11], &start, sizeof start);
    run.fibers[thread].top = frame;
#else
    memcpy(&frame[12], &start, sizeof start); /* leaves the stack as a call would: 8 past a multiple of 16 */
    run.fibers[thread].top = &frame[6];
#endif
    run.fibers[thread].state = READY;
}

/* ---- what kernels call */

void soft_barrier(void) {
    give_way(AT_BARRIER);
}

void soft_warp(soft_warp_op *op, const void *in, size_t n_in, void *out, size_t n_out) {
    const uint32_t lane = soft_now.thread % WARP, first = soft_now.thread - lane;
    warp *w = &run.warps[soft_now.thread / WARP];
    memcpy(w->in + lane * n_in, in, n_in);
    run.fibers[soft_now.thread].op = op;
    w->n_here++;
    if (w->n_here < WARP) {
        give_way(AT_WARP);
    } else {
        bool same = true;
        for (uint32_t l = 0; l < WARP; l++) {
            same = same && run.fibers[first + l].op == op;
        }
        if (!same) {
            give_way(AT_WARP); /* for ever: the scheduler says why */
        }
        op(w->in, w->out);
        w->n_here = 0;
        for (uint32_t l = 0; l < WARP; l++) {
            run.fibers[first + l].state = READY;
        }
    }
    memcpy(out, w->out + lane * n_out, n_out);
}

/* ---- one cta */

static uint32_t pseudo_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill_order(soft_order order, uint32_t n, uint32_t seed, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = order == SOFT_REVERSED ? n - 1 - i : i;
    }
    for (uint32_t i = n; order == SOFT_SHUFFLED && i > 1; i--) {
        uint32_t j = pseudo_random(&seed) % i, kept = out[i - 1];
        out[i - 1] = out[j];
        out[j] = kept;
    }
}

static uint32_t count(state s) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < run.launch->block; t++) {
        n += run.fibers[t].state == s;
    }
    return n;
}

static bool stuck(lb_err *err) {
    static const char *const where[] = {"runs", "waits at a barrier", "waits in a warp-wide operation", "has ended"};
    uint32_t other = 0;
    while (other + 1 < run.launch->block && run.fibers[other].state == run.fibers[0].state) {
        other++;
    }
    return lb_err_set(err, LB_PROOF, "cta %u,%u,%u: thread 0 %s, thread %u %s", soft_now.cta[0], soft_now.cta[1],
                      soft_now.cta[2], where[run.fibers[0].state], other, where[run.fibers[other].state]);
}

static bool run_cta(lb_err *err) {
    const uint32_t block = run.launch->block;
    for (uint32_t t = 0; t < block; t++) {
        new_stack(t);
    }
    for (uint32_t w = 0; w < block / WARP; w++) {
        run.warps[w].n_here = 0;
    }
    while (count(DONE) < block) {
        bool moved = false;
        for (uint32_t i = 0; i < block; i++) {
            if (run.fibers[run.order[i]].state == READY) {
                enter(run.order[i]);
                moved = true;
            }
        }
        if (!moved && count(AT_BARRIER) < block) {
            return stuck(err);
        }
        for (uint32_t t = 0; !moved && t < block; t++) {
            run.fibers[t].state = READY;
        }
    }
    return true;
}

/* ---- the grid */

static bool stacks_there(lb_err *err) {
    if (run.stacks == NULL) {
        void *p = mmap(NULL, (size_t)SOFT_BLOCK_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for stacks");
        }
        run.stacks = p;
    }
    return true;
}

static bool run_at(uint32_t cta, lb_err *err) {
    const uint32_t *grid = run.launch->grid;
    soft_now.cta[0] = cta % grid[0];
    soft_now.cta[1] = cta / grid[0] % grid[1];
    soft_now.cta[2] = cta / grid[0] / grid[1];
    void *smem = NULL;
    if (posix_memalign(&smem, 1024, run.launch->smem_bytes) != 0) {
        return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for shared memory");
    }
    memset(smem, 0xff, run.launch->smem_bytes);
    soft_now.smem = smem;
    bool ok = run_cta(err);
    free(smem);
    return ok;
}

bool soft_run(const soft_launch *l, lb_err *err) {
    const uint32_t n = l->grid[0] * l->grid[1] * l->grid[2];
    if (l->block == 0 || l->block > SOFT_BLOCK_MAX || l->block % WARP != 0) {
        return lb_err_set(err, LB_BAD_VALUE, "softgpu: a cta of %u threads", l->block);
    }
    if (!stacks_there(err)) {
        return false;
    }
    uint32_t *ctas = malloc(n * sizeof *ctas + 1);
    if (ctas == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for %u ctas", n);
    }
    run.launch = l;
    fill_order(l->order, l->block, 1, run.order);
    fill_order(l->order, n, 2, ctas);
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = run_at(ctas[i], err);
    }
    free(ctas);
    return ok;
}
