/* bend.h -- visits every number, name, expression and argument of a plan, and bends one at a time.
 *
 * A spot is a place in the plan's data; its path tells what it is, without numbers, as in
 * "kernel.operand.align". bend_all calls `bent` once for each spot and way of bending it, with the
 * plan bent, and puts it right again. Expressions that keep their value for every T and L are left
 * out, for the plan would not be bent. */
#ifndef TESTS_GEN_BEND_H
#define TESTS_GEN_BEND_H

#include "plan.h"

typedef struct bend_spot {
    char path[96];    /* with the way behind it: "kernel.operand.align -1" */
    uint32_t kernel;  /* UINT32_MAX: of none */
    uint32_t launch;  /* UINT32_MAX: of none */
} bend_spot;

typedef void (*bend_fn)(void *arg, const bend_spot *spot);

/* Every `stride`-th way only, from `first` on. `plan` is changed and restored. */
void bend_all(lg_plan *plan, lb_arena *arena, uint32_t first, uint32_t stride, bend_fn bent,
              void *arg);

#endif
