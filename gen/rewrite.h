/* rewrite.h -- step 5 whole: fusion, and what only some targets want of a graph. */
#ifndef LG_REWRITE_H
#define LG_REWRITE_H

#include "graph.h"
#include "hw.h"

/* The LAUNCH graph of `in` for this row. Errors are those of fuse.h, attn_splits.h, sampling.h. */
bool lg_rewrite(const lg_graph *in, const lg_hw_row *hw, lg_host *host, lb_arena *arena,
                lg_graph **out, lb_err *err);

#endif
