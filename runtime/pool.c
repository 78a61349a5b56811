/* pool.c -- see pool.h. Linux: futexes for the sleeping part.
 *
 * Grids are numbered; the number of the open one is in a gate that waiters watch. The ticket holds
 * the same number beside the next cta, so that a worker that comes late, with an old number, takes
 * nothing from a newer grid. A worker counts the ctas it ran and adds them up once, when it closes; who
 * completes the sum opens the next grid.
 *
 * Sleeping: a waiter announces itself in n_asleep, then lets the kernel compare the number; the
 * publisher stores the number, then reads n_asleep. All four are sequentially consistent, so either
 * the publisher sees the sleeper or the kernel sees the new number. */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"

enum {
    LINE_BYTES = 128, /* two 64-byte lines: adjacent-line prefetch, and Arm cores with 128 */
    SPIN_CHECK = 64,  /* polls between two looks at the clock */
    SPIN_GRID_NS = 20 * 1000,  /* longer than a piece of a small grid */
    SPIN_RUN_NS = 200 * 1000,  /* longer than sampling takes between two steps */
    SPIN_CROWDED_NS = 2 * 1000 /* more threads than CPUs: the awaited one may need this core */
};

/* A number that waiters watch, and what is counted towards its next change. */
typedef struct gate {
    _Alignas(LINE_BYTES) _Atomic uint32_t number;
    _Atomic uint32_t count;
    _Atomic uint32_t n_asleep;
} gate;

typedef struct member {
    _Alignas(LINE_BYTES) rt_pool *pool;
    pthread_t thread;
    uint32_t worker;
    uint32_t grid;   /* the number of the grid this worker is at */
    uint32_t n_done; /* ctas of it that this worker ran */
} member;

struct rt_pool {
    gate run;    /* odd while a run is open; count: workers inside, but for the caller */
    gate left;   /* changes when a worker leaves */
    gate grid;   /* count: ctas done */
    gate all;    /* the barrier; count: workers that arrived */
    _Alignas(LINE_BYTES) _Atomic uint64_t ticket; /* grid number << 32 | next cta */
    _Alignas(LINE_BYTES) rt_pool_fn fn;
    void *arg;
    uint32_t first_grid; /* of this run */
    bool stopping;
    uint32_t n_workers;
    int64_t spin_grid_ns, spin_run_ns;
    member members[]; /* [n_workers]; 0 is the caller and has no thread */
};

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value) {
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* True once the number has left `old`, false when the time is over. */
static bool spin(gate *g, uint32_t old, int64_t spin_ns) {
    for (int64_t end = 0;;) {
        for (int i = 0; i < SPIN_CHECK; i++) {
            if (atomic_load_explicit(&g->number, memory_order_acquire) != old) {
                return true;
            }
            relax();
        }
        int64_t t = now_ns();
        if (end == 0) {
            end = t + spin_ns;
        }
        if (t >= end) {
            return false;
        }
    }
}

static void wait_change(gate *g, uint32_t old, int64_t spin_ns) {
    if (spin(g, old, spin_ns)) {
        return;
    }
    atomic_fetch_add(&g->n_asleep, 1);
    while (atomic_load(&g->number) == old) {
        futex(&g->number, FUTEX_WAIT, old);
    }
    atomic_fetch_sub(&g->n_asleep, 1);
}

static void publish(gate *g) {
    atomic_fetch_add(&g->number, 1);
    if (atomic_load(&g->n_asleep) > 0) {
        futex(&g->number, FUTEX_WAKE, INT32_MAX);
    }
}

/* ---- grids ---- */

static uint64_t first_ticket(uint32_t grid) {
    return (uint64_t)grid << 32;
}

bool rt_pool_take(rt_pool *p, uint32_t worker, uint32_t n_ctas, uint32_t grain, uint32_t *begin,
                  uint32_t *end) {
    member *m = &p->members[worker];
    uint64_t old = atomic_load_explicit(&p->ticket, memory_order_acquire);
    uint32_t at = 0;
    uint32_t to = 0;
    do {
        at = (uint32_t)old;
        if (old >> 32 != m->grid || at >= n_ctas) {
            return false;
        }
        to = grain < n_ctas - at ? at + grain : n_ctas;
    } while (!atomic_compare_exchange_weak_explicit(&p->ticket, &old, old - at + to,
                                                    memory_order_acquire, memory_order_acquire));
    m->n_done += to - at;
    *begin = at;
    *end = to;
    return true;
}

/* True for the one worker that finishes the grid: it then opens the next. The ticket before the number:
 * who sees the number must find it there. */
static bool finish_grid(rt_pool *p, uint32_t grid, uint32_t n_done, uint32_t n_ctas) {
    uint64_t ticket = first_ticket(grid);
    if (n_ctas == 0) { /* no cta can finish it: whoever comes first does */
        return atomic_compare_exchange_strong(&p->ticket, &ticket, first_ticket(grid + 1));
    }
    if (n_done == 0 ||
        atomic_fetch_add_explicit(&p->grid.count, n_done, memory_order_acq_rel) + n_done != n_ctas) {
        return false;
    }
    atomic_store_explicit(&p->grid.count, 0, memory_order_relaxed);
    atomic_store_explicit(&p->ticket, first_ticket(grid + 1), memory_order_release);
    return true;
}

void rt_pool_close(rt_pool *p, uint32_t worker, uint32_t n_ctas) {
    member *m = &p->members[worker];
    uint32_t grid = m->grid++;
    uint32_t n_done = m->n_done;
    m->n_done = 0;
    if (finish_grid(p, grid, n_done, n_ctas)) {
        publish(&p->grid);
    } else {
        wait_change(&p->grid, grid, p->spin_grid_ns);
    }
}

void rt_pool_barrier(rt_pool *p, uint32_t worker) {
    (void)worker;
    /* Read before arriving: the number cannot change until this worker has arrived. */
    uint32_t old = atomic_load_explicit(&p->all.number, memory_order_relaxed);
    uint32_t n = atomic_fetch_add_explicit(&p->all.count, 1, memory_order_acq_rel) + 1;
    if (n < p->n_workers) {
        wait_change(&p->all, old, p->spin_grid_ns);
        return;
    }
    atomic_store_explicit(&p->all.count, 0, memory_order_relaxed);
    publish(&p->all);
}

uint32_t rt_pool_size(const rt_pool *p) {
    return p->n_workers;
}

/* ---- runs ---- */

/* Waits until no other worker is inside: what fn and arg point to is then the caller's again. */
static void wait_empty(rt_pool *p) {
    for (;;) {
        uint32_t seen = atomic_load(&p->left.number);
        if (atomic_load(&p->run.count) == 0) {
            return;
        }
        wait_change(&p->left, seen, p->spin_grid_ns);
    }
}

void rt_pool_run(rt_pool *p, rt_pool_fn fn, void *arg) {
    p->fn = fn;
    p->arg = arg;
    p->first_grid = p->members[0].grid;
    publish(&p->run);
    fn(arg, p, 0, p->n_workers);
    atomic_fetch_add(&p->run.number, 1);
    wait_empty(p);
}

/* Runs fn if a run is open still: being counted as inside before looking keeps it so. Returns false
 * when the team is dissolved. */
static bool join_run(member *m, uint32_t *number) {
    rt_pool *p = m->pool;
    bool stopping = false;
    atomic_fetch_add(&p->run.count, 1);
    *number = atomic_load(&p->run.number);
    if (*number % 2 == 1) {
        stopping = p->stopping;
        m->grid = p->first_grid;
        if (!stopping) {
            p->fn(p->arg, p, m->worker, p->n_workers);
        }
    }
    atomic_fetch_sub(&p->run.count, 1);
    publish(&p->left);
    return !stopping;
}

static void *work(void *arg) {
    member *m = arg;
    rt_pool *p = m->pool;
    uint32_t seen = 0;
    bool go = true;
    while (go) {
        wait_change(&p->run, seen, p->spin_run_ns);
        seen = atomic_load(&p->run.number);
        if (seen % 2 == 1) {
            go = join_run(m, &seen);
        }
    }
    return NULL;
}

/* CPUs this process may run on; 0 if the system does not say. */
static uint32_t usable_cpus(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (uint32_t)CPU_COUNT(&set);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t holds */
    return n < 1 ? 0 : n > RT_POOL_MAX_THREADS ? RT_POOL_MAX_THREADS : (uint32_t)n;
}

/* Signals belong to the caller's thread: workers start with all of them blocked. */
static uint32_t start_members(rt_pool *p, int *why) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    uint32_t n = 1;
    for (; n < p->n_workers; n++) {
        p->members[n] = (member){.pool = p, .worker = n};
        *why = pthread_create(&p->members[n].thread, NULL, work, &p->members[n]);
        if (*why != 0) {
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n;
}

static void end_members(rt_pool *p, uint32_t n_started) {
    p->stopping = true;
    publish(&p->run);
    for (uint32_t i = 1; i < n_started; i++) {
        pthread_join(p->members[i].thread, NULL);
    }
    free(p);
}

bool rt_pool_start(uint32_t n_threads, rt_pool **out, lb_err *err) {
    uint32_t cpus = usable_cpus();
    uint32_t n = n_threads != 0 ? n_threads : cpus == 0 ? 1 : cpus;
    if (n > RT_POOL_MAX_THREADS) {
        return lb_err_set(err, LB_BAD_VALUE, "%u threads; 1 to %d are possible", n,
                          RT_POOL_MAX_THREADS);
    }
    uint64_t bytes = 0;
    rt_pool *p = NULL;
    if (lb_mul(n, sizeof(member), &bytes) && lb_add(bytes, sizeof *p, &bytes) &&
        lb_round_up(bytes, LINE_BYTES, &bytes)) {
        p = aligned_alloc(LINE_BYTES, bytes);
    }
    if (p == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for a team of %u threads", n);
    }
    memset(p, 0, bytes);
    p->n_workers = n;
    p->spin_grid_ns = n > cpus ? SPIN_CROWDED_NS : SPIN_GRID_NS;
    p->spin_run_ns = n > cpus ? SPIN_CROWDED_NS : SPIN_RUN_NS;
    int why = 0;
    uint32_t started = start_members(p, &why);
    if (started < n) {
        end_members(p, started);
        return lb_err_set(err, LB_RESOURCES, "thread %u of %u cannot be started: %s", started + 1,
                          n, strerror(why));
    }
    *out = p;
    return true;
}

void rt_pool_stop(rt_pool *p) {
    if (p != NULL) {
        end_members(p, p->n_workers);
    }
}
