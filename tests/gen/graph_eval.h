/* graph_eval.h -- computes a graph in double precision, for tests that compare two graphs.
 *
 * One sequence of T tokens from an empty context; weights are numbers drawn from the tensor's name,
 * so two graphs over the same tensors have the same. Quantised planes are not rounded: a value's q
 * plane holds the value itself. */
#ifndef TESTS_GEN_GRAPH_EVAL_H
#define TESTS_GEN_GRAPH_EVAL_H

#include "graph.h"

typedef struct graph_inputs {
    const uint32_t *tokens;
    uint32_t n_tokens;
    const uint32_t *logit_rows;
    uint32_t n_logits;
} graph_inputs;

/* Logits [n_logits][n_vocab] in the arena; the graph must have passed lg_graph_check. */
const double *graph_eval(const lg_graph *g, const graph_inputs *in, lb_arena *arena);

#endif
