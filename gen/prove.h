/* prove.h -- step 9: shows, by formulas of its own, that no launch of a plan can go wrong.
 *
 * The prover reads the plan as data and recomputes everything: limits of the hardware row, coverage
 * of every output, byte ranges of every operand against the shape of its argument, index widths,
 * sizes and places of values and weights, lifetimes and overlaps in the arenas, the order of writes
 * and reads. It shares no formula with the planner. What it assumes: that a kernel touches what its
 * descriptor declares (shown by running the kernels between guard pages).
 *
 * Tried are every T from 1 to t_max with L = min(T, logit_rows_max), and, for launches in which L
 * occurs, also L = 1 at every T and every L at t_max; no appeal to monotony. */
#ifndef LG_PROVE_H
#define LG_PROVE_H

#include "plan.h"

/* A proved fact: what, about which launch (UINT32_MAX: the whole plan), with the numbers at the
 * largest T and L. Kinds: limits, grid, ctas, block, scratch, coverage, range, index, align, place,
 * ring, arena, weight, overlap. */
typedef struct lg_fact {
    const char *kind;
    uint32_t launch;
    const char *subject;   /* axis, operand, value or tensor */
    uint64_t value, limit; /* value <= limit */
    uint32_t kernel;       /* with which the launch was proved */
} lg_fact;

/* Facts of launches in launch order, those of the plan before and behind them. */
typedef struct lg_proof {
    const lg_fact *facts;
    uint32_t n_facts;
} lg_proof;

/* Fails with LB_PROOF: the launch, the operand or axis, the value, the limit, and the T and L at
 * which it breaks. The plan may be of any origin; numbers of kernels, values and tensors in it are
 * checked. */
bool lg_prove(const lg_plan *plan, lb_arena *arena, lg_proof *out, lb_err *err);

/* The registers that ptxas may give a thread under __launch_bounds__(threads, ctas_per_sm); 0 if
 * nothing fits. */
uint64_t lg_prove_reg_cap(const lg_hw_row *hw, uint64_t threads, uint64_t ctas_per_sm);

/* sizeof a kernel's parameter struct; LB_PROOF for a type that is neither pointer nor uint32_t. */
bool lg_prove_param_bytes(const lg_kernel *k, uint64_t *out, lb_err *err);

#endif
