/* graphs.h -- small graphs by hand for tests of op.c, graph_check.c and fuse.c.
 *
 *     graphs b;
 *     graphs_open(&b);
 *     uint32_t x = graphs_value(&b, "x", LG_ROWS_T, LG_ELEM_F32, 64);
 *     graphs_tensor(&b, "w", LG_QTYPE_F32, 64, 1);
 *     graphs_node(&b, LG_OP_RMS_NORM, -1, "x=%0 w=@0 y=%1", "{\"eps\": 1e-5}");
 *     ... &b.g ...
 *     graphs_close(&b);
 *
 * In a node's text %n is value n and @n is tensor n; access comes from op.def. Nothing is checked.
 */
#ifndef TESTS_GEN_GRAPHS_H
#define TESTS_GEN_GRAPHS_H

#include "graph.h"

enum { GRAPHS_MAX = 96, GRAPHS_OPERANDS_MAX = 16 };

typedef struct graphs {
    lb_arena arena;
    lg_graph g;
    lg_gvalue values[GRAPHS_MAX];
    lg_gtensor tensors[GRAPHS_MAX];
    lg_gguf_tensor files[GRAPHS_MAX];
    lg_gnode nodes[GRAPHS_MAX];
    lg_goperand operands[GRAPHS_MAX][GRAPHS_OPERANDS_MAX];
} graphs;

void graphs_open(graphs *b);
void graphs_close(graphs *b);

/* Each returns the number of what it adds. */
uint32_t graphs_value(graphs *b, const char *name, lg_rows rows, lg_elem elem, uint64_t width);
/* A cache of one slot and 256 positions, read whole. */
uint32_t graphs_state(graphs *b, const char *name, uint64_t bytes);
uint32_t graphs_tensor(graphs *b, const char *name, lg_qtype type, uint64_t cols, uint64_t rows);
uint32_t graphs_node(graphs *b, lg_op op, int32_t layer, const char *operands, const char *attrs);

/* Attributes from JSON text. */
const lg_value *graphs_attrs(graphs *b, const char *json);

/* A llama of one layer as its architecture file builds it: 64 wide, 4 heads of 16 over 2, all
 * matrices of `type`. Value 0 is the embedding, the logits are the last value. */
void graphs_llama(graphs *b, lg_qtype type);

#endif
