/* image.c -- applies a quant type's layout: rows of a model file in, strips of the image out.
 * The layout is data; this is the only code that knows the picture in docs/kernels.md. */
#include "base/image.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"

/* The plane that holds `byte` of a qblock and is not `but`; n_planes where there is none. */
static uint32_t plane_of(const lb_layout *l, uint32_t byte, uint32_t but) {
    uint32_t i = 0;
    while (i < l->n_planes && (i == but || byte < l->planes[i].src_offset ||
                               byte - l->planes[i].src_offset >= l->planes[i].n_bytes)) {
        i++;
    }
    return i;
}

static bool check_plane(const lb_layout *l, const char *name, const lb_plane *p, lb_err *err) {
    if (p->n_bytes == 0 || p->word_bytes == 0 || p->n_bytes % p->word_bytes != 0 ||
        p->check >= LB_N_CHECKS) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "%s: plane '%s' is %u bytes in words of %u, check %u; it holds whole "
                          "words, and checks are below %d",
                          l->type, name, p->n_bytes, p->word_bytes, p->check, LB_N_CHECKS);
    }
    if ((uint32_t)p->src_offset + p->n_bytes > l->qblock_bytes) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "%s: plane '%s', bytes %u to %u, ends past the qblock's %" PRIu32 " bytes",
                          l->type, name, p->src_offset, p->src_offset + p->n_bytes - 1U,
                          l->qblock_bytes);
    }
    return true;
}

/* No plane holds `byte`: the gap ends where a plane begins, or with the qblock. */
static bool gap_at(const lb_layout *l, uint32_t byte, lb_err *err) {
    uint32_t end = byte + 1;
    while (end < l->qblock_bytes && plane_of(l, end, l->n_planes) == l->n_planes) {
        end++;
    }
    return lb_err_set(err, LB_BAD_VALUE,
                      "%s: no plane holds bytes %" PRIu32 " to %" PRIu32 " of the qblock's %" PRIu32
                      "; planes hold each byte once",
                      l->type, byte, end - 1, l->qblock_bytes);
}

static bool overlap_at(const lb_layout *l, const char *const *names, uint32_t byte, lb_err *err) {
    const uint32_t i = plane_of(l, byte, l->n_planes), j = plane_of(l, byte, i);
    const lb_plane *one = &l->planes[i], *other = &l->planes[j];
    return lb_err_set(err, LB_BAD_VALUE,
                      "%s: plane '%s', bytes %u to %u, and plane '%s', bytes %u to %u, both hold "
                      "byte %" PRIu32 " of the qblock; planes hold each byte once",
                      l->type, names[i], one->src_offset, one->src_offset + one->n_bytes - 1U,
                      names[j], other->src_offset, other->src_offset + other->n_bytes - 1U, byte);
}

bool lb_layout_check(const lb_layout *l, const char *const *names, lb_err *err) {
    if (l->n_planes > LB_MAX_PLANES) {
        return lb_err_set(err, LB_LIMIT, "%s: %" PRIu32 " planes; at most %d are possible", l->type,
                          l->n_planes, LB_MAX_PLANES);
    }
    for (uint32_t i = 0; i < l->n_planes; i++) {
        if (!check_plane(l, names[i], &l->planes[i], err)) {
            return false;
        }
    }
    for (uint32_t byte = 0; byte < l->qblock_bytes; byte++) {
        const uint32_t one = plane_of(l, byte, l->n_planes);
        if (one == l->n_planes) {
            return gap_at(l, byte, err);
        }
        if (plane_of(l, byte, one) != l->n_planes) {
            return overlap_at(l, names, byte, err);
        }
    }
    return true;
}

static bool check_shape(const lb_layout *l, uint64_t n_rows, uint64_t n_cols, lb_err *err) {
    if (n_rows == 0) {
        return lb_err_set(err, LB_BAD_SHAPE, "a %s matrix of 0 rows", l->type);
    }
    if (n_cols == 0 || n_cols % l->qblock_elems != 0) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "%" PRIu64 " columns is not a positive multiple of %" PRIu32
                          " (%s qblock)",
                          n_cols, l->qblock_elems, l->type);
    }
    return true;
}

/* Bytes of one row, which is also 1/16 of a strip: an image has exactly the bytes of its qblocks.
 */
static bool row_bytes(const lb_layout *l, uint64_t n_cols, uint64_t *out) {
    return lb_mul(n_cols / l->qblock_elems, l->qblock_bytes, out);
}

bool lb_image_bytes(const lb_layout *l, uint64_t n_rows, uint64_t n_cols, uint64_t *out,
                    lb_err *err) {
    if (!check_shape(l, n_rows, n_cols, err)) {
        return false;
    }
    uint64_t row, padded_rows, bytes;
    if (!row_bytes(l, n_cols, &row) || !lb_round_up(n_rows, LB_STRIP_ROWS, &padded_rows) ||
        !lb_mul(row, padded_rows, &bytes)) {
        return lb_err_set(err, LB_OVERFLOW,
                          "%" PRIu64 " x %" PRIu64 " of %s: size overflows 64 bits", n_rows, n_cols,
                          l->type);
    }
    *out = bytes;
    return true;
}

/* One row's share of one plane of an atom: n_words words of each qblock, scattered 16 words apart.
 */
static void scatter_words(const lb_layout *l, const lb_plane *p, const uint8_t *src,
                          uint64_t n_qblocks, uint8_t *dst) {
    size_t n_words = p->n_bytes / p->word_bytes;
    for (uint64_t q = 0; q < n_qblocks; q++) {
        const uint8_t *from = src + q * l->qblock_bytes + p->src_offset;
        uint8_t *to = dst + q * n_words * LB_STRIP_ROWS * p->word_bytes;
        for (size_t i = 0; i < n_words; i++) {
            memcpy(to, from, p->word_bytes);
            from += p->word_bytes;
            to += (size_t)LB_STRIP_ROWS * p->word_bytes;
        }
    }
}

/* Whether the half with this high byte is infinite or NaN: its exponent is all ones. */
static bool not_finite(uint32_t high_byte) {
    return (high_byte & 0x7c) == 0x7c;
}

/* True if all scales in one qblock's share of a plane are finite. */
static bool scales_finite(const lb_plane *p, const uint8_t *from) {
    bool bad = false;
    switch ((lb_check)p->check) {
    case LB_CHECK_HALVES:
        for (size_t i = 0; i + 1 < p->n_bytes; i += 2) {
            bad = bad || not_finite(from[i + 1]);
        }
        break;
    case LB_CHECK_E8M0:
        for (size_t i = 0; i < p->n_bytes; i++) {
            bad = bad || from[i] == 255;
        }
        break;
    case LB_CHECK_NIBBLES:
        for (size_t i = 0; i + 7 < p->n_bytes; i += 8) {
            bad = bad || not_finite((from[i + 7] & 0xf0U) | from[i + 5] >> 4);
        }
        break;
    case LB_CHECK_NONE:
    case LB_N_CHECKS: break;
    }
    return !bad;
}

/* True if every scale of this row's plane is finite; else *bad_qblock is the first that is not. */
static bool plane_finite(const lb_layout *l, const lb_plane *p, const uint8_t *src,
                         uint64_t n_qblocks, uint64_t *bad_qblock) {
    for (uint64_t q = 0; q < n_qblocks; q++) {
        if (!scales_finite(p, src + q * l->qblock_bytes + p->src_offset)) {
            *bad_qblock = q;
            return false;
        }
    }
    return true;
}

/* One row of an atom of n_qblocks; `r` is the row inside its strip, `atom` the atom's first byte.
 */
static bool pack_row(const lb_layout *l, const uint8_t *src, uint64_t n_qblocks, uint32_t r,
                     uint8_t *atom, uint64_t *bad_qblock) {
    for (uint32_t i = 0; i < l->n_planes; i++) {
        const lb_plane *p = &l->planes[i];
        if (p->check != LB_CHECK_NONE && !plane_finite(l, p, src, n_qblocks, bad_qblock)) {
            return false;
        }
        scatter_words(l, p, src, n_qblocks, atom + (size_t)r * p->word_bytes);
        atom += n_qblocks * p->n_bytes * LB_STRIP_ROWS;
    }
    return true;
}

/* All atoms of one strip; `row0` is the strip's first row, src its bytes, n_here the rows present.
 */
static bool pack_strip(const lb_layout *l, const uint8_t *src, uint64_t row0, uint32_t n_here,
                       uint64_t n_cols, uint8_t *dst, lb_err *err) {
    uint64_t row_size = n_cols / l->qblock_elems * l->qblock_bytes;
    for (uint64_t col = 0; col < n_cols; col += LB_ATOM_COLS) {
        uint64_t n_here_cols = n_cols - col < LB_ATOM_COLS ? n_cols - col : LB_ATOM_COLS;
        uint64_t n_qblocks = n_here_cols / l->qblock_elems;
        const uint8_t *from = src + col / l->qblock_elems * l->qblock_bytes;
        for (uint32_t r = 0; r < n_here; r++) {
            uint64_t bad;
            if (!pack_row(l, from + r * row_size, n_qblocks, r, dst, &bad)) {
                return lb_err_set(err, LB_BAD_VALUE,
                                  "row %" PRIu64 ", column %" PRIu64 ": a %s scale is not finite",
                                  row0 + r, col + bad * l->qblock_elems, l->type);
            }
        }
        dst += n_qblocks * l->qblock_bytes * LB_STRIP_ROWS;
    }
    return true;
}

bool lb_image_pack(const lb_layout *l, const uint8_t *src, uint64_t n_rows, uint64_t n_cols,
                   uint64_t strip_begin, uint64_t strip_end, uint8_t *dst, lb_err *err) {
    uint64_t bytes;
    if (!lb_image_bytes(l, n_rows, n_cols, &bytes, err)) {
        return false;
    }
    if (strip_begin > strip_end || strip_end > lb_ceil_div(n_rows, LB_STRIP_ROWS)) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "strips %" PRIu64 "..%" PRIu64 " of a matrix of %" PRIu64 " rows",
                          strip_begin, strip_end, n_rows);
    }
    uint64_t strip_bytes = n_cols / l->qblock_elems * l->qblock_bytes * LB_STRIP_ROWS;
    for (uint64_t s = strip_begin; s < strip_end; s++) {
        uint64_t row0 = s * LB_STRIP_ROWS;
        uint64_t left = n_rows - row0;
        uint32_t n_here = left < LB_STRIP_ROWS ? (uint32_t)left : (uint32_t)LB_STRIP_ROWS;
        if (n_here < LB_STRIP_ROWS) {
            memset(dst, 0, strip_bytes);
        }
        if (!pack_strip(l, src, row0, n_here, n_cols, dst, err)) {
            return false;
        }
        src += strip_bytes;
        dst += strip_bytes;
    }
    return true;
}
