/* qtype.h -- tensor types: numbers, names, sizes; the rows are in qtype.def. */
#ifndef LG_QTYPE_H
#define LG_QTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The value is the number that a GGUF file carries. */
typedef enum lg_qtype {
#define QTYPE(id, NAME, name, elems, bytes, computes) LG_QTYPE_##NAME = id,
#include "qtype.def"
} lg_qtype;

enum { LG_QTYPE_LIMIT = 64 }; /* every type's number is below: for tables indexed by type */

typedef struct lg_qtype_row {
    lg_qtype id;
    const char *name;       /* lower case, as in "q4_k" */
    uint32_t qblock_elems;  /* elements in one qblock, 1 for plain numbers */
    uint32_t qblock_bytes;
    bool computes;          /* lagen can run it, not only measure it */
} lg_qtype_row;

/* Row `i` in order of qtype.def, or NULL from the end on: for loops over all types. */
const lg_qtype_row *lg_qtype_at(size_t i);

/* The row of a type. `t` must be a value of the enum. */
const lg_qtype_row *lg_qtype_get(lg_qtype t);

/* The type with number `id`. Fails with LB_UNSUPPORTED for every other number; the message names
 * the number, and the type where it is a removed one or one of another program. */
bool lg_qtype_from_id(uint32_t id, lg_qtype *out, lb_err *err);

/* The type spelled by `n_bytes` bytes at `name`, in either case. LB_BAD_VALUE if there is none. */
bool lg_qtype_from_name(const char *name, size_t n_bytes, lg_qtype *out, lb_err *err);

/* True if lagen can run weights of type `t`; else LB_UNSUPPORTED, and the message names the types
 * that it can run. */
bool lg_qtype_check_computes(lg_qtype t, lb_err *err);

/* Bytes of one row of a weight matrix.
 *   n_elems  elements in the row; a positive multiple of t's qblock size
 *   out      receives bytes (>= 1)
 * Fails with LB_BAD_SHAPE if n_elems is 0 or not a multiple, LB_OVERFLOW if the product does not
 * fit 64 bits. */
bool lg_qtype_row_bytes(lg_qtype t, uint64_t n_elems, uint64_t *out, lb_err *err);

/* Elements and bytes of a whole tensor, rows of ne[0] elements one after the other, unpadded.
 *   n_dims    0..4; ne[n_dims..3] are not read and count as 1
 *   n_elems   receives the product of the dimensions, 1..2^63-1; may be NULL
 * Fails with LB_BAD_SHAPE for a zero dimension, more than 4 of them or a row that is no whole
 * number of qblocks, LB_OVERFLOW for a product beyond 2^63-1. The message names the dimension. */
bool lg_qtype_tensor_bytes(lg_qtype t, uint32_t n_dims, const uint64_t *ne, uint64_t *n_elems,
                           uint64_t *n_bytes, lb_err *err);

#endif
