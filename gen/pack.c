/* pack.c -- see pack.h. Streams: one strip and one hash piece are in memory at a time. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"

enum { PATH_BYTES = 4096, PIECE = LB_DIGEST_PIECE_BYTES };

/* An image on its way to the file, cut into hash pieces. */
typedef struct image {
    const lg_pack_options *o;
    FILE *file;
    uint8_t *piece;    /* PIECE bytes */
    uint8_t *digests;  /* one per piece */
    uint64_t n_pieces; /* finished ones */
    uint64_t in_piece;
    uint64_t done, total;
    lb_err *err;
} image;

static bool end_piece(image *im) {
    if (im->in_piece == 0) {
        return true;
    }
    if (fwrite(im->piece, 1, im->in_piece, im->file) != im->in_piece) {
        return lb_err_set(im->err, LB_IO, "%s: cannot write: %s", im->o->path, strerror(errno));
    }
    if (!lb_sha256(im->piece, im->in_piece, im->digests + im->n_pieces * LB_DIGEST_BYTES,
                   im->err)) {
        return false;
    }
    im->n_pieces++;
    im->in_piece = 0;
    return true;
}

/* Appends n bytes; NULL stands for zeros. */
static bool append(image *im, const uint8_t *data, uint64_t n) {
    while (n > 0) {
        uint64_t room = PIECE - im->in_piece;
        uint64_t part = n < room ? n : room;
        if (data != NULL) {
            memcpy(im->piece + im->in_piece, data, part);
            data += part;
        } else {
            memset(im->piece + im->in_piece, 0, part);
        }
        im->in_piece += part;
        im->done += part;
        n -= part;
        if (im->in_piece == PIECE && !end_piece(im)) {
            return false;
        }
    }
    return true;
}

static bool stopped(image *im) {
    if (im->o->stop != NULL && *im->o->stop != 0) {
        lb_err_set(im->err, LB_CANCELLED, "stopped while packing weights; nothing was left behind");
        return true;
    }
    if (im->o->progress != NULL) {
        im->o->progress(im->o->progress_arg, "packing weights", im->done, im->total);
    }
    return false;
}

/* One matrix, in runs of strips of about a MiB. */
static bool pack_matrix(image *im, const lg_gtensor *t, const lb_layout *l, const uint8_t *src,
                        uint64_t row_bytes, uint8_t *buffer, uint64_t run) {
    uint64_t n_strips = lb_ceil_div(t->n_rows, LB_STRIP_ROWS);
    for (uint64_t s = 0; s < n_strips; s += run) {
        uint64_t end = s + run < n_strips ? s + run : n_strips;
        if (stopped(im) ||
            !lb_image_pack(l, src + s * LB_STRIP_ROWS * row_bytes, t->n_rows, t->n_cols, s, end,
                           buffer, im->err) ||
            !append(im, buffer, (end - s) * LB_STRIP_ROWS * row_bytes)) {
            return false;
        }
    }
    return true;
}

static bool pack_tensor(image *im, const lg_gtensor *t, const lg_weight *w) {
    if (w->layout == NULL) {
        return append(im, t->file->data, w->bytes);
    }
    uint64_t row_bytes = 0;
    uint64_t strip_bytes = 0;
    if (!lg_qtype_row_bytes(t->file->type, t->n_cols, &row_bytes, im->err) ||
        !lb_mul(row_bytes, LB_STRIP_ROWS, &strip_bytes)) {
        return false;
    }
    uint64_t run = (1 << 20) / strip_bytes + 1;
    uint8_t *buffer = malloc(run * strip_bytes);
    if (buffer == NULL) {
        return lb_err_set(im->err, LB_NO_MEMORY, "no memory for %" PRIu64 " bytes",
                          run * strip_bytes);
    }
    bool ok = true;
    for (uint64_t m = 0; ok && m < t->n_mats; m++) {
        ok = pack_matrix(im, t, w->layout, t->file->data + m * t->n_rows * row_bytes, row_bytes,
                         buffer, run);
    }
    free(buffer);
    return ok || lb_err_prefix(im->err, "tensor '%s'", t->name);
}

typedef struct order_item {
    uint64_t offset;
    uint32_t tensor;
} order_item;

static int by_offset(const void *a, const void *b) {
    const order_item *x = a;
    const order_item *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool pack_all(image *im, const lg_plan *plan) {
    uint32_t n = plan->graph->n_tensors;
    order_item *order = calloc(n, sizeof *order);
    if (order == NULL) {
        return lb_err_set(im->err, LB_NO_MEMORY, "no memory for %" PRIu32 " weights", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (order_item){plan->weights[i].offset, i};
    }
    qsort(order, n, sizeof *order, by_offset);
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        const lg_weight *w = &plan->weights[order[i].tensor];
        ok = append(im, NULL, w->offset - im->done) &&
             pack_tensor(im, &plan->graph->tensors[order[i].tensor], w);
    }
    free(order);
    return ok && append(im, NULL, im->total - im->done) && end_piece(im);
}

static bool write_image(image *im, const lg_plan *plan, const char *temp,
                        uint8_t digest[LB_DIGEST_BYTES]) {
    im->file = fopen(temp, "wb");
    if (im->file == NULL) {
        return lb_err_set(im->err, LB_IO, "%s: %s", temp, strerror(errno));
    }
    bool ok = pack_all(im, plan) && lb_digest_root(im->digests, im->total, digest, im->err);
    if (ok && (fflush(im->file) != 0 || fsync(fileno(im->file)) != 0)) {
        ok = lb_err_set(im->err, LB_IO, "%s: %s", temp, strerror(errno));
    }
    if (fclose(im->file) != 0 && ok) {
        ok = lb_err_set(im->err, LB_IO, "%s: %s", temp, strerror(errno));
    }
    if (ok && rename(temp, im->o->path) != 0) {
        ok = lb_err_set(im->err, LB_IO, "%s: %s", im->o->path, strerror(errno));
    }
    if (!ok) {
        unlink(temp);
    }
    return ok;
}

bool lg_pack(const lg_plan *plan, const lg_pack_options *o, uint8_t digest[LB_DIGEST_BYTES],
             lb_err *err) {
    char temp[PATH_BYTES];
    int n = snprintf(temp, sizeof temp, "%s.tmp%ld", o->path, (long)getpid());
    if (n < 0 || n >= PATH_BYTES) {
        return lb_err_set(err, LB_LIMIT, "%s: path of more than %d bytes", o->path, PATH_BYTES);
    }
    image im = {.o = o, .total = plan->arena_bytes[LG_ARENA_WEIGHTS], .err = err};
    uint64_t n_pieces = lb_digest_n_pieces(im.total);
    im.piece = malloc(PIECE);
    im.digests = calloc(n_pieces + 1, LB_DIGEST_BYTES);
    bool ok = im.piece != NULL && im.digests != NULL;
    if (ok) {
        ok = write_image(&im, plan, temp, digest);
    } else {
        lb_err_set(err, LB_NO_MEMORY, "no memory for a piece of %d bytes", PIECE);
    }
    free(im.piece);
    free(im.digests);
    return ok;
}
