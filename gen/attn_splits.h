/* attn_splits.h -- attention of few rows with its splits on ctas of their own, for targets that have
 * far more ctas than such a step has heads. */
#ifndef LG_ATTN_SPLITS_H
#define LG_ATTN_SPLITS_H

#include "graph.h"

/* Every attn of a LAUNCH graph becomes two: one for steps of many rows, and one for those of few that
 * has memory which its ctas share, `part` (room for the splits of a row) and `count` (who has brought
 * his), which the rope_kv in front sets to 0. The widths are those of templates/lib/attn_parts.lua.
 * What is computed stays the same (docs/numerics.md, "Attention"). Fails with LB_BAD_SHAPE where an
 * attn has no rope_kv on its keys in front. */
bool lg_add_attn_splits(lg_graph *g, lg_host *host, lb_arena *arena, lb_err *err);

#endif
