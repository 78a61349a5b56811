/* softgpu.c -- see softgpu.h. One scheduler per process: the stack of soft_run-> Every thread of a cta has a stack from a
 * mapping that lives until the process ends; there are two of them, because a launch may have begun while the one in
 * front of it still runs. */
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

enum { WARP = 32, STACK_BYTES = 128 * 1024, WARP_DATA_BYTES = 64, FRAME_WORDS = 22, COPIES_MAX = 128 };

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

void soft_wait(void);
void soft_let(void);
void soft_copy(void *to, const void *from, size_t n);
void soft_copy_close(void);
void soft_copy_wait(uint32_t n);

/* AT_COPY: it has more copies on their way than there is room for, or has ended with some. */
typedef enum state { READY, AT_BARRIER, AT_WARP, AT_WAIT, AT_COPY, DONE } state;

/* A copy that takes place when its group is waited for. */
typedef struct copy {
    void *to;
    const void *from;
    size_t n;
    uint32_t group;
} copy;

typedef struct fiber {
    void *top;  /* of its stack while it does not run */
    void *fake; /* ASan's own stack for it */
    state state;
    bool waited;      /* for the launch in front */
    soft_warp_op *op; /* that it waits in */
    copy copies[COPIES_MAX];
    uint32_t n_copies, n_groups;
} fiber;

/* What lanes of a warp have brought to the operation that they wait in. */
typedef struct warp {
    uint32_t n_here;
    _Alignas(16) unsigned char in[WARP * WARP_DATA_BYTES];
    _Alignas(16) unsigned char out[WARP * WARP_DATA_BYTES];
} warp;

/* A launch that runs. */
struct soft_overlap {
    const soft_launch *launch;
    bool taken, overlaps;
    unsigned char *stacks;
    void *top, *fake; /* of the scheduler */
    const void *own_stack;
    size_t own_stack_bytes;
    uint32_t cta[3];
    void *smem;
    uint32_t *ctas; /* in the order of their turns */
    fiber fibers[SOFT_BLOCK_MAX];
    warp warps[SOFT_BLOCK_MAX / WARP];
    uint32_t order[SOFT_BLOCK_MAX];
};
static soft_overlap launches[2];
static soft_overlap *run = &launches[0]; /* whose threads have their turns now */

/* ---- switching */

static unsigned char *stack_of(uint32_t thread) {
    return run->stacks + (size_t)thread * STACK_BYTES;
}

/* From the scheduler into a thread, until it gives way. */
static void enter(uint32_t thread) {
    soft_now = (soft_thread){thread, {run->cta[0], run->cta[1], run->cta[2]}, run->smem};
#if WITH_ASAN
    __sanitizer_start_switch_fiber(&run->fake, stack_of(thread), STACK_BYTES);
#endif
    soft_switch(&run->top, run->fibers[thread].top);
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(run->fake, NULL, NULL);
#endif
}

/* From a thread back to the scheduler. */
static void give_way(state s) {
    fiber *f = &run->fibers[soft_now.thread];
    f->state = s;
#if WITH_ASAN
    __sanitizer_start_switch_fiber(s == DONE ? NULL : &f->fake, run->own_stack, run->own_stack_bytes);
#endif
    soft_switch(&f->top, run->top);
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(f->fake, NULL, NULL);
#endif
}

static void first_lines(void) {
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(NULL, &run->own_stack, &run->own_stack_bytes);
#endif
    run->launch->kernel(run->launch->params);
    give_way(run->fibers[soft_now.thread].n_copies > 0 ? AT_COPY : DONE);
}

/* A frame as soft_switch leaves one, which goes on at first_lines. */
static void new_stack(uint32_t thread) {
    void **end = (void **)(void *)(stack_of(thread) + STACK_BYTES);
    void **frame = end - FRAME_WORDS;
    void (*start)(void) = first_lines;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
#if defined(__aarch64__)
    memcpy(&frame[11], &start, sizeof start);
    run->fibers[thread].top = frame;
#else
    memcpy(&frame[12], &start, sizeof start); /* leaves the stack as a call would: 8 past a multiple of 16 */
    run->fibers[thread].top = &frame[6];
#endif
    run->fibers[thread].state = READY;
    run->fibers[thread].waited = false;
    run->fibers[thread].n_copies = run->fibers[thread].n_groups = 0;
}

/* ---- what kernels call */

void soft_barrier(void) {
    give_way(AT_BARRIER);
}

/* Memory before a wait is another matter only where a hook or a launch in front says so. */
static bool waits_matter(void) {
    return run->overlaps || run->launch->wait != NULL;
}

void soft_wait(void) {
    if (waits_matter()) {
        give_way(AT_WAIT);
    }
    run->fibers[soft_now.thread].waited = true;
}

void soft_let(void) {
    if (waits_matter() && !run->fibers[soft_now.thread].waited) {
        give_way(AT_WARP); /* for ever: nobody wakes it, and the scheduler says where it stands */
    }
}

void soft_warp(soft_warp_op *op, const void *in, size_t n_in, void *out, size_t n_out) {
    const uint32_t lane = soft_now.thread % WARP, first = soft_now.thread - lane;
    warp *w = &run->warps[soft_now.thread / WARP];
    memcpy(w->in + lane * n_in, in, n_in);
    run->fibers[soft_now.thread].op = op;
    w->n_here++;
    if (w->n_here < WARP) {
        give_way(AT_WARP);
    } else {
        bool same = true;
        for (uint32_t l = 0; l < WARP; l++) {
            same = same && run->fibers[first + l].op == op;
        }
        if (!same) {
            give_way(AT_WARP); /* for ever: the scheduler says why */
        }
        op(w->in, w->out);
        w->n_here = 0;
        for (uint32_t l = 0; l < WARP; l++) {
            run->fibers[first + l].state = READY;
        }
    }
    memcpy(out, w->out + lane * n_out, n_out);
}

/* What is copied must be readable at once, whenever it is read. */
void soft_copy(void *to, const void *from, size_t n) {
    fiber *f = &run->fibers[soft_now.thread];
    const volatile unsigned char *bytes = from;
    (void)bytes[0], (void)bytes[n - 1];
    if (f->n_copies == COPIES_MAX) {
        give_way(AT_COPY); /* for ever */
    }
    f->copies[f->n_copies++] = (copy){to, from, n, f->n_groups};
}

void soft_copy_close(void) {
    run->fibers[soft_now.thread].n_groups++;
}

void soft_copy_wait(uint32_t n) {
    fiber *f = &run->fibers[soft_now.thread];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->n_copies; i++) {
        if (f->copies[i].group + n < f->n_groups) {
            memcpy(f->copies[i].to, f->copies[i].from, f->copies[i].n);
        } else {
            f->copies[kept++] = f->copies[i];
        }
    }
    f->n_copies = kept;
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
    for (uint32_t t = 0; t < run->launch->block; t++) {
        n += run->fibers[t].state == s;
    }
    return n;
}

static bool stuck(lb_err *err) {
    static const char *const where[] = {"runs", "waits at a barrier",
                                        "waits in a warp-wide operation, or lets a launch begin before its own wait",
                                        "waits for the launch in front",
                                        "has too many copies on their way, or ends with some", "has ended"};
    uint32_t other = 0;
    while (other + 1 < run->launch->block && run->fibers[other].state == run->fibers[0].state) {
        other++;
    }
    return lb_err_set(err, LB_PROOF, "cta %u,%u,%u: thread 0 %s, thread %u %s", run->cta[0], run->cta[1],
                      run->cta[2], where[run->fibers[0].state], other, where[run->fibers[other].state]);
}

static void wake(state from) {
    for (uint32_t t = 0; t < run->launch->block; t++) {
        run->fibers[t].state = run->fibers[t].state == from ? READY : run->fibers[t].state;
    }
}

/* Turns until all threads have come to the wait (*at_wait) or to their end. */
static bool turns(bool *at_wait, lb_err *err) {
    const uint32_t block = run->launch->block;
    *at_wait = false;
    while (count(DONE) < block) {
        bool moved = false;
        for (uint32_t i = 0; i < block; i++) {
            if (run->fibers[run->order[i]].state == READY) {
                enter(run->order[i]);
                moved = true;
            }
        }
        if (!moved && count(AT_WAIT) == block) {
            *at_wait = true;
            return true;
        }
        if (!moved && count(AT_BARRIER) < block) {
            return stuck(err);
        }
        if (!moved) {
            wake(AT_BARRIER);
        }
    }
    return true;
}

/* A cta as far as its wait, if waits matter; else to its end. */
static bool begin_cta(lb_err *err) {
    const uint32_t block = run->launch->block;
    const soft_wait_hooks *hooks = run->launch->wait;
    bool at_wait = false;
    for (uint32_t t = 0; t < block; t++) {
        new_stack(t);
    }
    for (uint32_t w = 0; w < block / WARP; w++) {
        run->warps[w].n_here = 0;
    }
    if (hooks != NULL) {
        hooks->early(hooks->arg);
    }
    bool ok = turns(&at_wait, err);
    if (hooks != NULL) {
        hooks->there(hooks->arg);
    }
    if (ok && waits_matter() && !at_wait) {
        return lb_err_set(err, LB_PROOF, "cta %u,%u,%u: ends without waiting for the launch in front", run->cta[0],
                          run->cta[1], run->cta[2]);
    }
    return ok;
}

/* From the wait to the end. */
static bool end_cta(lb_err *err) {
    bool at_wait = false;
    wake(AT_WAIT);
    if (!turns(&at_wait, err)) {
        return false;
    }
    return !at_wait || lb_err_set(err, LB_PROOF, "cta %u,%u,%u: waits twice", run->cta[0], run->cta[1], run->cta[2]);
}

/* ---- the grid */

static bool stacks_there(lb_err *err) {
    if (run->stacks == NULL) {
        void *p = mmap(NULL, (size_t)SOFT_BLOCK_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for stacks");
        }
        run->stacks = p;
    }
    return true;
}

/* Shared memory and place of a cta, and its first half. */
static bool begin_at(uint32_t cta, lb_err *err) {
    const uint32_t *grid = run->launch->grid;
    run->cta[0] = cta % grid[0];
    run->cta[1] = cta / grid[0] % grid[1];
    run->cta[2] = cta / grid[0] / grid[1];
    run->smem = NULL;
    if (posix_memalign(&run->smem, 1024, run->launch->smem_bytes) != 0) {
        return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for shared memory");
    }
    memset(run->smem, 0xff, run->launch->smem_bytes);
    return begin_cta(err);
}

static bool end_at(lb_err *err) {
    bool ok = end_cta(err);
    free(run->smem);
    run->smem = NULL;
    return ok;
}

static void give_back(void) {
    free(run->smem);
    free(run->ctas);
    run->smem = NULL;
    run->ctas = NULL;
    run->taken = false;
}

/* Takes a launch in hand, in a place where none has begun. */
static bool take(const soft_launch *l, bool overlaps, lb_err *err) {
    const uint32_t n = l->grid[0] * l->grid[1] * l->grid[2];
    if (l->block == 0 || l->block > SOFT_BLOCK_MAX || l->block % WARP != 0) {
        return lb_err_set(err, LB_BAD_VALUE, "softgpu: a cta of %u threads", l->block);
    }
    run = launches[0].taken ? &launches[1] : &launches[0];
    if (run->taken) {
        return lb_err_set(err, LB_BAD_VALUE, "softgpu: two launches have begun already");
    }
    run->ctas = malloc(n * sizeof *run->ctas + 1);
    if (run->ctas == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "softgpu: no memory for %u ctas", n);
    }
    run->launch = l;
    run->overlaps = overlaps;
    run->taken = true;
    fill_order(l->order, l->block, 1, run->order);
    fill_order(l->order, n, 2, run->ctas);
    if (!stacks_there(err)) {
        give_back();
        return false;
    }
    return true;
}

/* All ctas from the second on. */
static bool others(lb_err *err) {
    const uint32_t *grid = run->launch->grid;
    bool ok = true;
    for (uint32_t i = 1; ok && i < grid[0] * grid[1] * grid[2]; i++) {
        ok = begin_at(run->ctas[i], err) && end_at(err);
    }
    return ok;
}

bool soft_run(const soft_launch *l, lb_err *err) {
    bool empty = l->grid[0] * l->grid[1] * l->grid[2] == 0;
    if (!take(l, false, err)) {
        return false;
    }
    bool ok = empty || (begin_at(run->ctas[0], err) && end_at(err) && others(err));
    give_back();
    return ok;
}

bool soft_begin(const soft_launch *l, soft_overlap **out, lb_err *err) {
    if (!take(l, true, err)) {
        return false;
    }
    if (!begin_at(run->ctas[0], err)) {
        give_back();
        return false;
    }
    *out = run;
    return true;
}

bool soft_finish(soft_overlap *o, lb_err *err) {
    run = o;
    bool ok = end_at(err) && others(err);
    give_back();
    return ok;
}
