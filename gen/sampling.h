/* sampling.h -- launches that choose tokens from logits on the device, behind those of the model:
 * for targets whose logits are far from the host. What they compute: docs/sampling.md, "On a
 * device". */
#ifndef LG_SAMPLING_H
#define LG_SAMPLING_H

#include "graph.h"

/* Adds them to a LAUNCH graph that has none; graph->choices is then what the step hands to the
 * host. The widths of what lies between them are those of templates/lib/sample_parts.lua, which
 * refuses a vocabulary that is too large. */
bool lg_add_sampling(lg_graph *g, lg_host *host, lb_arena *arena, lb_err *err);

#endif
