/* pool.h -- a fixed team of threads that runs one function together.
 *
 * rt_pool_run lets every worker (the caller is worker 0) run `fn`; inside, rt_pool_barrier waits for
 * all of them. Workers spin briefly, then sleep, so an idle program uses no CPU. No memory is
 * allocated after rt_pool_start. */
#ifndef RT_POOL_H
#define RT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct rt_pool rt_pool;

typedef void (*rt_pool_fn)(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers);

/* n_threads 1..1024; 0 = the CPUs this process may run on. */
bool rt_pool_start(uint32_t n_threads, rt_pool **out, lb_err *err);
void rt_pool_stop(rt_pool *pool);
uint32_t rt_pool_size(const rt_pool *pool);

/* Runs fn on all workers and returns when all have returned. */
void rt_pool_run(rt_pool *pool, rt_pool_fn fn, void *arg);

/* Called by every worker inside fn. Everything written before it is visible after it. */
void rt_pool_barrier(rt_pool *pool, uint32_t worker);

#endif
