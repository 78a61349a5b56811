/* quantize.h -- simple quantisers: rows of floats to qblocks of a tensor type, for synthetic models
 * and tests. Weights of real files are never quantised by lagen.
 *
 * One pass per qblock, no search: the error is at most some percent above that of ggml's own
 * quantisers, and Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 MXFP4 give ggml's very bits. Plain float arithmetic in a
 * fixed order, so that equal rows give equal bytes on every machine. */
#ifndef LG_QUANTIZE_H
#define LG_QUANTIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "qtype.h"

/* Whether `t` has a quantiser here. */
bool lg_quantize_has(lg_qtype t);

/* Quantises one row.
 *   t        type; LB_UNSUPPORTED if it has no quantiser
 *   x        float[n_elems], finite, at most 65504 in magnitude save for f32 and bf16
 *   n_elems  a positive multiple of t's qblock size, else LB_BAD_SHAPE
 *   out      the row's bytes, as many as lg_qtype_row_bytes says; no alignment needed
 * Fails with LB_BAD_VALUE for a value outside that range, naming its column. All checks come before
 * the first byte is written. */
bool lg_quantize_row(lg_qtype t, const float *x, uint64_t n_elems, uint8_t *out, lb_err *err);

#endif
