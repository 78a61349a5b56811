/* image.h -- the weight image: one permutation routine for packing and for loading.
 *
 * A layout is data made from a quant file (templates/quant/<type>.lua): how the bytes of a qblock are
 * cut into planes and words. docs/kernels.md has the picture: strips of 16 rows, atoms of 256 columns,
 * planes apart, word i of 16 rows adjacent, bits unchanged, missing rows zero. */
#ifndef LB_IMAGE_H
#define LB_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { LB_STRIP_ROWS = 16, LB_ATOM_COLS = 256, LB_MAX_PLANES = 8 };

/* Which scales a plane holds. */
typedef enum lb_check {
    LB_CHECK_NONE,
    LB_CHECK_HALVES,  /* IEEE halves, one after the other */
    LB_CHECK_E8M0,    /* bytes that are exponents; 255 stands for NaN */
    LB_CHECK_NIBBLES, /* one half in the high nibbles of four 16-bit words, lowest first */
    LB_N_CHECKS
} lb_check;

typedef struct lb_plane {
    uint16_t src_offset; /* first byte in the qblock */
    uint16_t n_bytes;    /* bytes taken from each qblock */
    uint16_t word_bytes; /* divides n_bytes */
    uint16_t check;      /* an lb_check: what must be finite, checked while packing */
} lb_plane;

typedef struct lb_layout {
    const char *type;      /* tensor type, for messages */
    uint32_t qblock_elems; /* divides 256 */
    uint32_t qblock_bytes; /* = sum of the planes' n_bytes */
    uint32_t n_planes;
    lb_plane planes[LB_MAX_PLANES];
} lb_layout;

/* Whether the planes hold every byte of a qblock exactly once, in whole words: otherwise the image would
 * leave bits of the weights out or shift what stands behind. Bytes, not bits: what shares a byte (two
 * nibbles, a scale and a minimum) is of one plane, and the quant file's decode takes it apart.
 * `names`, one a plane, are for messages. Fails with LB_BAD_VALUE, naming type, planes and bytes. */
bool lb_layout_check(const lb_layout *l, const char *const *names, lb_err *err);

/* Bytes of the image of one n_rows x n_cols matrix: whole strips. Fails with LB_BAD_SHAPE if n_cols
 * is not a positive multiple of the qblock or n_rows is 0, LB_OVERFLOW if the size does not fit. */
bool lb_image_bytes(const lb_layout *l, uint64_t n_rows, uint64_t n_cols, uint64_t *out, lb_err *err);

/* Packs strips [strip_begin, strip_end) of a matrix: `src` is the first byte of row
 * 16 * strip_begin as it stands in the model file (rows contiguous), `n_rows` the rows of the whole
 * matrix, `dst` the image's first byte of strip_begin. Fails with LB_BAD_VALUE naming row and column
 * where a scale is infinite or NaN. */
bool lb_image_pack(const lb_layout *l, const uint8_t *src, uint64_t n_rows, uint64_t n_cols,
                   uint64_t strip_begin, uint64_t strip_end, uint8_t *dst, lb_err *err);

#endif
