/* fit.h -- whether a program fits what the user has, the largest that does, the nearest that would,
 * and what more context and more rows cost: the answers of `lagen plan`. */
#ifndef LG_FIT_H
#define LG_FIT_H

#include "pipeline.h"

/* The largest value that fits with all else as asked (0: none does), and what stands against one
 * more. */
typedef struct lg_most {
    uint64_t value;
    const char *binds;
} lg_most;

/* What 1,024 tokens more cost, in all pools together; at a limit, what the last 1,024 cost. `there`
 * is false where there are no 1,024 to tell from. */
typedef struct lg_cost {
    bool there;
    uint64_t bytes;
} lg_cost;

typedef struct lg_fit {
    lg_need need;
    lg_cost ctx_cost, chunk_cost;
    bool asked, fits; /* a pool was named; all that were suffice. The rest only if one was: */
    lg_most ctx, chunk, slots;
    bool near;       /* it does not fit, and `nearest` does */
    lg_need nearest; /* asked's slots and context with a smaller chunk of at least 64, else with less
                        context, else one slot; with as much of what is made smaller as fits */
    lg_need least;   /* one slot of one token: no program of this model needs less */
} lg_fit;

/* Fills everything for a planned result. Combinations that it says fit have been planned and
 * proved whole. Texts lie in `arena`. */
bool lg_fit_find(const lg_result *r, const lg_pools *pools, lb_arena *arena, lg_fit *out,
                 lb_err *err);

/* The words of "no": which pool, what it needs, what it has, the nearest yes. */
const char *lg_fit_refusal(const lg_fit *fit, const lg_pools *pools, lb_arena *arena, lb_err *err);

#endif
