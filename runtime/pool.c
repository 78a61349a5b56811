/* pool.c -- see pool.h. Linux: futexes for the sleeping part.
 *
 * The barrier is sense-reversing with a generation number in place of the sense: arrivals count up,
 * the last one resets the count and the tickets and publishes the next generation. Count and
 * generation share a cache line: the last arriver already owns it when it publishes.
 *
 * Sleeping: a waiter announces itself in n_asleep, then lets the kernel compare the generation; the
 * publisher stores the generation, then reads n_asleep. All four are sequentially consistent, so
 * either the publisher sees the sleeper or the kernel sees the new generation. */
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
    SPIN_STEP_NS = 200 * 1000, /* longer than sampling takes between two steps */
    SPIN_CROWDED_NS = 2 * 1000 /* more threads than CPUs: the awaited one may need this core */
};

/* An event that waiters see as a changed generation. */
typedef struct gate {
    _Atomic uint32_t n_arrived;
    _Atomic uint32_t generation;
    _Atomic uint32_t n_asleep;
} gate;

typedef struct ticket_line {
    _Alignas(LINE_BYTES) _Atomic uint32_t next;
} ticket_line;

typedef struct member {
    rt_pool *pool;
    pthread_t thread;
    uint32_t worker;
} member;

struct rt_pool {
    _Alignas(LINE_BYTES) gate start; /* rt_pool_run has published fn and arg */
    _Alignas(LINE_BYTES) gate all;   /* the barrier */
    ticket_line tickets[RT_POOL_TICKETS];
    _Alignas(LINE_BYTES) rt_pool_fn fn;
    void *arg;
    bool stopping;
    uint32_t n_workers;
    int64_t spin_ns;
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

/* True once the generation has left `old`, false when the time is over. */
static bool spin(gate *g, uint32_t old, int64_t spin_ns) {
    for (int64_t end = 0;;) {
        for (int i = 0; i < SPIN_CHECK; i++) {
            if (atomic_load_explicit(&g->generation, memory_order_acquire) != old) {
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
    while (atomic_load(&g->generation) == old) {
        futex(&g->generation, FUTEX_WAIT, old);
    }
    atomic_fetch_sub(&g->n_asleep, 1);
}

static void publish(gate *g) {
    atomic_store(&g->generation, atomic_load_explicit(&g->generation, memory_order_relaxed) + 1);
    if (atomic_load(&g->n_asleep) > 0) {
        futex(&g->generation, FUTEX_WAKE, INT32_MAX);
    }
}

static void reset_tickets(rt_pool *p) {
    for (int i = 0; i < RT_POOL_TICKETS; i++) {
        if (atomic_load_explicit(&p->tickets[i].next, memory_order_relaxed) != 0) {
            atomic_store_explicit(&p->tickets[i].next, 0, memory_order_relaxed);
        }
    }
}

void rt_pool_barrier(rt_pool *p, uint32_t worker) {
    (void)worker;
    /* Read before arriving: the generation cannot change until this worker has arrived. */
    uint32_t old = atomic_load_explicit(&p->all.generation, memory_order_relaxed);
    uint32_t n = atomic_fetch_add_explicit(&p->all.n_arrived, 1, memory_order_acq_rel) + 1;
    if (n < p->n_workers) {
        wait_change(&p->all, old, p->spin_ns);
        return;
    }
    reset_tickets(p);
    atomic_store_explicit(&p->all.n_arrived, 0, memory_order_relaxed);
    publish(&p->all);
}

bool rt_pool_take(rt_pool *p, uint32_t ticket, uint32_t n_ctas, uint32_t grain, uint32_t *begin,
                  uint32_t *end) {
    _Atomic uint32_t *next = &p->tickets[ticket].next;
    uint32_t at = atomic_load_explicit(next, memory_order_relaxed);
    uint32_t to = 0;
    do {
        if (at >= n_ctas) {
            return false;
        }
        to = grain < n_ctas - at ? at + grain : n_ctas;
    } while (!atomic_compare_exchange_weak_explicit(next, &at, to, memory_order_relaxed,
                                                    memory_order_relaxed));
    *begin = at;
    *end = to;
    return true;
}

uint32_t rt_pool_size(const rt_pool *p) {
    return p->n_workers;
}

void rt_pool_run(rt_pool *p, rt_pool_fn fn, void *arg) {
    p->fn = fn;
    p->arg = arg;
    reset_tickets(p);
    if (p->n_workers > 1) {
        publish(&p->start);
    }
    fn(arg, p, 0, p->n_workers);
    rt_pool_barrier(p, 0);
}

static void *work(void *arg) {
    const member *m = arg;
    rt_pool *p = m->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_change(&p->start, seen, p->spin_ns);
        if (p->stopping) {
            return NULL;
        }
        p->fn(p->arg, p, m->worker, p->n_workers);
        rt_pool_barrier(p, m->worker);
    }
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
    publish(&p->start);
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
    p->spin_ns = n > cpus ? SPIN_CROWDED_NS : SPIN_STEP_NS;
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
