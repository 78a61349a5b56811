/* emit_value.h -- a plan as the parameters of the program templates. */
#ifndef LG_EMIT_VALUE_H
#define LG_EMIT_VALUE_H

#include "emit.h"

/* Everything that templates/program/ *.lua read, in one map: model, arch_row, dims, limits,
 * kernels, launches, layouts, weights, files, arenas, sampling, target, ... image_digest: hex, or "" while there is no image. */
bool lg_emit_params(const lg_plan *plan, const lg_emit_options *o, const char *image_digest,
                    lb_arena *arena, const lg_value **out, lb_err *err);

#endif
