/* pool.h -- a fixed team of threads that runs one function together.
 *
 * rt_pool_run lets every worker (the caller is worker 0) run `fn`; inside, rt_pool_barrier waits
 * for all of them. Workers spin briefly, then sleep, so an idle program uses no CPU, and a team
 * with more threads than free cores still advances. No memory is allocated after rt_pool_start.
 *
 * A grid of ctas is split either by rt_share (contiguous, fixed) or by rt_pool_take (whoever is
 * free takes the next piece). Kernels give the same bytes for every split, so neither changes a
 * result. */
#ifndef RT_POOL_H
#define RT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct rt_pool rt_pool;

typedef void (*rt_pool_fn)(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers);

enum {
    RT_POOL_MAX_THREADS = 1024,
    RT_POOL_TICKETS = 4 /* grids that may be shared out between two barriers */
};

/* n_threads 1..1024; 0 = the CPUs this process may run on. Fails with LB_BAD_VALUE outside of that
 * and with LB_RESOURCES when the system has no more threads. */
bool rt_pool_start(uint32_t n_threads, rt_pool **out, lb_err *err);
void rt_pool_stop(rt_pool *pool); /* NULL is allowed */
uint32_t rt_pool_size(const rt_pool *pool);

/* Runs fn on all workers and returns when all have returned. Not from inside fn. */
void rt_pool_run(rt_pool *pool, rt_pool_fn fn, void *arg);

/* Called by every worker inside fn. Everything written before it is visible after it. */
void rt_pool_barrier(rt_pool *pool, uint32_t worker);

/* The next piece [*begin, *end) of a grid of n_ctas, at most `grain` long (>= 1); false when
 * nothing is left. `ticket` < RT_POOL_TICKETS names the grid among those between two barriers;
 * all workers name the same grids. Tickets start again at every barrier and at every rt_pool_run.
 */
bool rt_pool_take(rt_pool *pool, uint32_t ticket, uint32_t n_ctas, uint32_t grain, uint32_t *begin,
                  uint32_t *end);

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
