/* pack.c -- see pack.h. Streams: one run of strips and one hash piece are in memory at a time. */
#include "pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/outfile.h"

enum { PIECE = LB_DIGEST_PIECE_BYTES, RUN_BYTES = 1 << 20 };

/* An image on its way to the file, cut into hash pieces. */
typedef struct image {
    const lg_pack_options *o;
    lb_out out;
    uint8_t *piece;    /* PIECE bytes */
    uint8_t *digests;  /* one per piece */
    uint64_t n_pieces; /* finished ones */
    uint64_t in_piece;
    uint64_t done, total;
    uint8_t *strips; /* a run of packed strips */
    lb_err *err;
} image;

static bool end_piece(image *im) {
    if (im->in_piece == 0) {
        return true;
    }
    if (!lb_out_write(&im->out, im->piece, im->in_piece, im->err) ||
        !lb_sha256(im->piece, im->in_piece, im->digests + im->n_pieces * LB_DIGEST_BYTES,
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

static bool keep_going(image *im) {
    if (im->o->stop != NULL && *im->o->stop != 0) {
        return lb_err_set(im->err, LB_CANCELLED,
                          "stopped while packing weights; nothing was left behind");
    }
    if (im->o->progress != NULL) {
        im->o->progress(im->o->progress_arg, "packing weights", im->done, im->total);
    }
    return true;
}

/* Bytes of a strip of tensor t as it stands in the model file, and in the image. */
static bool strip_bytes(const lg_gtensor *t, uint64_t *out, lb_err *err) {
    uint64_t row = 0;
    return lg_qtype_row_bytes(t->file->type, t->n_cols, &row, err) &&
           (lb_mul(row, LB_STRIP_ROWS, out) ||
            lb_err_set(err, LB_OVERFLOW, "tensor '%s': %" PRIu64 " bytes in a row", t->name, row));
}

static uint64_t strips_of_a_run(uint64_t strip) {
    return RUN_BYTES / strip + 1;
}

/* One matrix, in runs of strips of about a MiB. */
static bool pack_matrix(image *im, const lg_gtensor *t, const lb_layout *l, const uint8_t *src,
                        uint64_t strip) {
    uint64_t n_strips = lb_ceil_div(t->n_rows, LB_STRIP_ROWS);
    uint64_t run = strips_of_a_run(strip);
    for (uint64_t s = 0; s < n_strips; s += run) {
        uint64_t end = s + run < n_strips ? s + run : n_strips;
        if (!keep_going(im) ||
            !lb_image_pack(l, src + s * strip, t->n_rows, t->n_cols, s, end, im->strips, im->err) ||
            !append(im, im->strips, (end - s) * strip)) {
            return false;
        }
    }
    return true;
}

static bool pack_tensor(image *im, const lg_gtensor *t, const lg_weight *w) {
    uint64_t strip = 0;
    if (w->layout == NULL) {
        return keep_going(im) && append(im, t->file->data, w->bytes);
    }
    if (!strip_bytes(t, &strip, im->err)) {
        return false;
    }
    uint64_t matrix = t->file->n_bytes / t->n_mats;
    for (uint64_t m = 0; m < t->n_mats; m++) {
        if (!pack_matrix(im, t, w->layout, t->file->data + m * matrix, strip)) {
            if (im->err->code == LB_CANCELLED || im->err->code == LB_IO) {
                return false;
            }
            return t->n_mats == 1 ? lb_err_prefix(im->err, "tensor '%s'", t->name)
                                  : lb_err_prefix(im->err, "tensor '%s', expert %" PRIu64, t->name, m);
        }
    }
    return true;
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

static bool pack_all(image *im, const lg_plan *plan, lb_arena *arena) {
    uint32_t n = plan->graph->n_tensors;
    order_item *order = lb_alloc_n(arena, n, sizeof *order, im->err);
    if (order == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (order_item){plan->weights[i].offset, i};
    }
    qsort(order, n, sizeof *order, by_offset);
    for (uint32_t i = 0; i < n; i++) {
        const lg_gtensor *t = &plan->graph->tensors[order[i].tensor];
        if (order[i].offset < im->done) { /* the prover has seen that it is not so */
            return lb_err_set(im->err, LB_BAD_VALUE, "tensor '%s' begins inside the one before",
                              t->name);
        }
        if (!append(im, NULL, order[i].offset - im->done) ||
            !pack_tensor(im, t, &plan->weights[order[i].tensor])) {
            return false;
        }
    }
    return im->done <= im->total && append(im, NULL, im->total - im->done) && end_piece(im);
}

/* Room for the longest run of strips of any tensor. */
static bool room(image *im, const lg_plan *plan, lb_arena *arena) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        uint64_t strip = 0;
        uint64_t run = 0;
        if (!strip_bytes(&plan->graph->tensors[i], &strip, im->err)) {
            return false;
        }
        if (!lb_mul(strips_of_a_run(strip), strip, &run)) {
            return lb_err_set(im->err, LB_OVERFLOW, "a run of strips passes 64 bits");
        }
        most = run > most ? run : most;
    }
    im->strips = lb_alloc(arena, most, im->err);
    im->piece = im->strips == NULL ? NULL : lb_alloc(arena, PIECE, im->err);
    im->digests = im->piece == NULL ? NULL
                                    : lb_alloc_n(arena, lb_digest_n_pieces(im->total) + 1,
                                                 LB_DIGEST_BYTES, im->err);
    return im->digests != NULL;
}

bool lg_pack(const lg_plan *plan, const lg_pack_options *o, uint8_t digest[LB_DIGEST_BYTES],
             lb_err *err) {
    lb_arena arena;
    lb_err why = {0};
    uint8_t root[LB_DIGEST_BYTES];
    image im = {.o = o, .total = plan->arena_bytes[LG_ARENA_WEIGHTS], .err = &why};
    lb_arena_init(&arena, "pack", UINT64_C(1) << 32);
    bool ok = room(&im, plan, &arena) && 
              lb_out_open_as(o->path, o->name != NULL ? o->name : o->path, &arena, &im.out, &why);
    if (ok) {
        ok = pack_all(&im, plan, &arena) && lb_digest_root(im.digests, im.total, root, &why) &&
             lb_out_finish(&im.out, &why);
        lb_out_abort(&im.out); /* does nothing after a finished file */
    }
    lb_arena_reset(&arena);
    if (ok) {
        memcpy(digest, root, LB_DIGEST_BYTES);
    }
    return ok || lb_err_set(err, why.code, "%s", why.text);
}
