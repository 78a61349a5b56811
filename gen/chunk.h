/* chunk.h -- the rows of a prefill step, where --chunk does not say them (`auto`, the default).
 *
 * A choice of the build, never of the running program: it stands in the manifest with its reason.
 * Results do not depend on it (docs/numerics.md), speed and memory do. */
#ifndef LG_CHUNK_H
#define LG_CHUNK_H

#include "need.h"

/* CPU: 512. GPU: 1,024; of a mixture of experts the power of two at which an expert sees 64 rows on
 * average, from 1,024 to 8,192: at 512 rows, ten of 256 experts, it would see 20, less than a tile
 * of its products, 32. No more than ctx. Halved, down to 64, if that makes it fit the pools
 * that were named.
 * *why: the reason in words, in `arena`. `tmp` is emptied. Fails as planning does. */
bool lg_chunk_choose(const lg_subject *s, uint64_t ctx, uint64_t slots, const lg_pools *pools,
                     lb_arena *arena, lb_arena *tmp, uint64_t *chunk, const char **why,
                     lb_err *err);

#endif
