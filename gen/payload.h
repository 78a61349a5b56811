/* payload.h -- random qblocks of the types in payload.def, for synthetic models. */
#ifndef LG_PAYLOAD_H
#define LG_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "qtype.h"

/* Whether `t` has a row in payload.def. */
bool lg_payload_has(lg_qtype t);

/* One row of random weights.
 *   t        a type that lg_payload_has, else LB_UNSUPPORTED
 *   stream   of the tensor (synth_random.h)
 *   row      its number in the tensor: the bits are a function of stream, row and place in it
 *   n_elems  a positive multiple of t's qblock size, else LB_BAD_SHAPE
 *   std      deviation of the weights, mean 0. Scales spread from half of what gives it to three halves.
 *            LB_BAD_VALUE if it is negative or the largest would not fit a half
 *   out      the row's bytes, as many as lg_qtype_row_bytes says; no alignment needed */
bool lg_payload_row(lg_qtype t, uint64_t stream, uint64_t row, uint64_t n_elems, double std,
                    uint8_t *out, lb_err *err);

#endif
