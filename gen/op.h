/* op.h -- shape rules of ops; the table itself is op.def. */
#ifndef LG_OP_H
#define LG_OP_H

#include "graph.h"

/* The access letter of `role` in op's role list: 'r' 'w' 'b' 's' 't', or 0 if the op has no such
 * role.
 * `*optional` and `*numbered` (may be NULL) receive its marks. */
char lg_op_role(lg_op op, const char *role, bool *optional, bool *numbered);

/* The op's shape rule over its operands' widths, row kinds and element types. */
bool lg_op_shapes(const lg_graph *g, const lg_gnode *n, lb_err *err);

#endif
