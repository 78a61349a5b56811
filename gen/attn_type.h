/* attn_type.h -- what attention of prompts computes with: chains of f32, or products of halves on
 * tensor cores (docs/numerics.md, "Attention of prompts in f16"). */
#ifndef LG_ATTN_TYPE_H
#define LG_ATTN_TYPE_H

#include "base/err.h"
#include "gguf.h"
#include "hw.h"

/* Whether all tensors of a file are F32: its weights are read without rounding then, and halves in
 * attention would show. */
bool lg_attn_weights_exact(const lg_gguf *file);

/* "f32" or "f16": what was asked for, or, with NULL, f16 where the row has the instructions, keys and
 * values are cached as f16 and weights are not exact. Fails with LB_USAGE for another name, and where f16 was asked
 * for and cannot be. */
bool lg_attn_choose(const char *asked, const lg_hw_row *hw, const char *kv, bool exact_weights,
                    const char **out, lb_err *err);

#endif
