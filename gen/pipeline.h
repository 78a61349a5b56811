/* pipeline.h -- the steps of design's flow in order, from a model file to a proved plan. */
#ifndef LG_PIPELINE_H
#define LG_PIPELINE_H

#include "need.h"
#include "prove.h"
#include "recipe.h"

typedef struct lg_request {
    const char *root;   /* lagen's own folder */
    const char *model;  /* path of the GGUF file, or of the first part */
    const char *target; /* row name, or "native" */
    uint64_t ctx;       /* 0: what the model file says */
    uint64_t slots;
    uint64_t chunk; /* 0: chosen (chunk.h) */
    lg_pools pools; /* what the chosen chunk has to leave room in */
    const char *kv;
    const char *rope_mscale, *rope_beta; /* as in lg_build_options */
    const char *attn; /* "f32" or "f16"; NULL: f16 where it may be (attn_type.h) */
    const char *dump; /* a step's name, or NULL */
    lb_text *dump_out;
} lg_request;

typedef struct lg_result {
    lg_gguf *file; /* to be closed by the caller */
    lg_host *host; /* likewise */
    const lg_hw_row *hw;
    lg_subject subject;    /* to plan again with other limits: lg_need_of, lg_run_again */
    const char *chunk_why; /* why the chunk was chosen; NULL: it was asked for */
    uint64_t ctx_train;    /* the largest --ctx */
    lg_recipe recipe;
    lg_graph *arch_graph, *graph;
    lg_plan *plan;
    lg_proof proof;
} lg_result;

/* The words that --dump takes. */
#define LG_DUMP_STEPS "graph|fuse|launch|memory|prove"

/* Runs the steps up to the proof, or up to the dumped one (plan is NULL then). Even on failure,
 * file and host may be set and must be closed with lg_result_close. */
bool lg_run(const lg_request *rq, lb_arena *arena, lg_result *out, lb_err *err);
void lg_result_close(lg_result *r);

/* Steps 3 to 9 with other limits, for the file and row of `s`. */
bool lg_run_again(const lg_subject *s, const lg_limits *limits, lb_arena *arena, lg_plan **out,
                  lb_err *err);

#endif
