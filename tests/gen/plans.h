/* plans.h -- proved plans of synthetic models for tests; they run in the repository's root.
 *
 *     plans p;
 *     plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .chunk = 7});
 *     ... p.r.plan, p.r.graph, p.r.proof ...
 *     plans_close(&p);
 *
 * Anything that goes wrong fails the test. */
#ifndef TESTS_GEN_PLANS_H
#define TESTS_GEN_PLANS_H

#include "pipeline.h"

typedef struct plans_request {
    const char *recipe; /* below models/ */
    const char *types;  /* NULL = the recipe's */
    const char *target; /* NULL = "x86-64-v3" */
    uint32_t layers;    /* 0 = the recipe's */
    uint64_t ctx, slots, chunk; /* 0: the model's, 1, lagen's choice */
    bool weights;       /* real weights; else the file is a hole */
} plans_request;

typedef struct plans {
    char path[64]; /* of the model file, removed by plans_close */
    lb_arena arena;
    lg_result r;
} plans;

void plans_open(plans *p, const plans_request *rq);
void plans_close(plans *p);

/* The prover objects to the plan, with an error that has `says` in it. */
void plans_refused(const lg_plan *plan, const char *says);

#endif
