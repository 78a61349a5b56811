/* need.h -- what a program needs of each memory at given limits, by planning for them: graph,
 * fusion and memory, never a formula beside the planner.
 *
 * A GPU row has two pools, the device's memory and the host's. A CPU row has the host's alone,
 * and so has a board whose CPU and GPU share one memory. */
#ifndef LG_NEED_H
#define LG_NEED_H

#include "plan.h"

/* What is planned; limits aside. */
typedef struct lg_subject {
    const lg_gguf *file;
    lg_host *host;
    const lg_hw_row *hw;
    const char *kv, *rope_mscale, *rope_beta, *attn; /* as in lg_build_options */
} lg_subject;

/* What the user has of each pool; 0: not said. */
typedef struct lg_pools {
    uint64_t vram, ram;
} lg_pools;

/* Bytes. Those of pools that a row does not have are 0. */
typedef struct lg_need {
    lg_limits limits;
    uint64_t arenas[LG_N_ARENAS];
    uint64_t kv_full, kv_window; /* of the KV arena: layers that see everything, or a window */
    uint64_t driver; /* bound for what a GPU's driver keeps beside the arenas (base/budget.h) */
    uint64_t mirror; /* pinned host memory: the I/O arena's other half */
    uint64_t stages; /* pinned until the weights are there */
    uint64_t heap;   /* bound for all other host memory */
    uint64_t vram, ram; /* all of a pool */
} lg_need;

/* What an architecture file is told of the subject at these limits. */
lg_build_options lg_options_of(const lg_subject *s, const lg_limits *limits);

/* Whether CPU and GPU share the pool that --ram names. */
bool lg_one_pool(const lg_hw_row *hw);

/* Fails with LB_USAGE for a pool that the row does not have. */
bool lg_pools_check(const lg_pools *pools, const lg_hw_row *hw, lb_err *err);

/* The sums over a plan whose places are known. */
bool lg_need_sum(const lg_plan *plan, lg_need *out, lb_err *err);

/* Plans for `limits` up to the memory and sums. `tmp` is emptied before and after. */
bool lg_need_of(const lg_subject *s, const lg_limits *limits, lb_arena *tmp, lg_need *out,
                lb_err *err);

/* No pool that was named is too small. */
bool lg_need_fits(const lg_need *need, const lg_pools *pools);

#endif
