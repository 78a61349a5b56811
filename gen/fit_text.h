/* fit_text.h -- what `lagen plan` says of memory, for people and as JSON. */
#ifndef LG_FIT_TEXT_H
#define LG_FIT_TEXT_H

#include "fit.h"

/* If a pool was named: whether it fits, the nearest that does or what stands against any, and the
 * largest of each number alone; a blank line behind. */
void lg_fit_verdict(const lg_fit *fit, const lg_pools *pools, const lg_hw_row *hw, lb_text *out);

/* The pools, their parts, and costs. */
void lg_fit_text(const lg_fit *fit, const lg_hw_row *hw, lb_text *out);

/* Sets "memory" (arenas and their total), "pools", "cost" and, if a pool was named, "fit". */
void lg_fit_value(lg_builder *b, lg_value *root, const lg_fit *fit, const lg_pools *pools,
                  const lg_hw_row *hw);

#endif
