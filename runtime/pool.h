/* pool.h -- a fixed team of threads that runs one function together.
 *
 * rt_pool_run lets every worker (the caller is worker 0) run `fn`. Inside, work comes as a
 * sequence of grids of ctas, the same sequence for every worker: each takes pieces of a grid
 * until none is left (rt_pool_take) and closes it (rt_pool_close), which waits until all its ctas
 * are done. It does not wait for workers: one that the system does not let run holds up nobody
 * unless it holds a piece, and finds its place in the sequence later. So a team with fewer free
 * cores than threads still advances. Who runs which cta is chance; kernels give the same bytes
 * for every split.
 *
 * For work with fixed shares there are rt_share and rt_pool_barrier. Workers spin briefly, then
 * sleep: an idle program uses no CPU. No memory is allocated after rt_pool_start. */
#ifndef RT_POOL_H
#define RT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct rt_pool rt_pool;

typedef void (*rt_pool_fn)(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers);

enum { RT_POOL_MAX_THREADS = 1024 };

/* n_threads 1..1024; 0 = the CPUs this process may run on. Fails with LB_BAD_VALUE outside of that
 * and with LB_RESOURCES when the system has no more threads. */
bool rt_pool_start(uint32_t n_threads, rt_pool **out, lb_err *err);
void rt_pool_stop(rt_pool *pool); /* NULL is allowed */
uint32_t rt_pool_size(const rt_pool *pool);

/* Runs fn on all workers and returns when the caller has returned from it and no other is inside.
 * A worker that was never scheduled meanwhile does not run it: fn must leave no part to a certain
 * worker without a barrier. Not from inside fn. */
void rt_pool_run(rt_pool *pool, rt_pool_fn fn, void *arg);

/* The next piece [*begin, *end) of the grid that `worker` is at, at most `grain` (>= 1) of n_ctas;
 * false when nothing is left. All workers name the same n_ctas for the same grid. */
bool rt_pool_take(rt_pool *pool, uint32_t worker, uint32_t n_ctas, uint32_t grain, uint32_t *begin,
                  uint32_t *end);

/* Moves `worker` on to the next grid once all n_ctas of this one are done. Everything that was
 * written by them is visible after it. */
void rt_pool_close(rt_pool *pool, uint32_t worker, uint32_t n_ctas);

/* Waits for all workers; each calls it. Everything written before it is visible after it. */
void rt_pool_barrier(rt_pool *pool, uint32_t worker);

/* Worker's contiguous share [*begin, *end) of n_ctas: sizes differ by at most one, in order. */
static inline void rt_share(uint32_t n_ctas, uint32_t worker, uint32_t n_workers, uint32_t *begin,
                            uint32_t *end) {
    *begin = (uint32_t)((uint64_t)n_ctas * worker / n_workers);
    *end = (uint32_t)((uint64_t)n_ctas * (worker + 1) / n_workers);
}

/* A grain for rt_pool_take: about eight pieces per worker. */
static inline uint32_t rt_grain(uint32_t n_ctas, uint32_t n_workers) {
    uint32_t g = n_ctas / (n_workers * 8U);
    return g == 0 ? 1 : g;
}

#endif
