/* qtype.c -- looks tensor types up and multiplies their sizes out; see qtype.h. */
#include "qtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const lg_qtype_row rows[] = {
#define QTYPE(id, NAME, name, elems, bytes, computes) \
    {LG_QTYPE_##NAME, name, elems, bytes, computes != 0},
#include "qtype.def"
};

typedef struct named_id {
    uint32_t id;
    bool and_above;
    const char *name;
    const char *origin;
} named_id;

static const named_id named_ids[] = {
#define QTYPE_NAMED(id, name, origin) {id, false, name, origin},
#define QTYPE_NAMED_FROM(id, name, origin) {id, true, name, origin},
#include "qtype.def"
};

enum { N_ROWS = sizeof rows / sizeof rows[0], N_NAMED = sizeof named_ids / sizeof named_ids[0] };

const lg_qtype_row *lg_qtype_at(size_t i) {
    return i < N_ROWS ? &rows[i] : NULL;
}

static const lg_qtype_row *find_id(uint32_t id) {
    for (size_t i = 0; i < N_ROWS; i++) {
        if ((uint32_t)rows[i].id == id) {
            return &rows[i];
        }
    }
    return NULL;
}

const lg_qtype_row *lg_qtype_get(lg_qtype t) {
    return find_id((uint32_t)t);
}

bool lg_qtype_from_id(uint32_t id, lg_qtype *out, lb_err *err) {
    const lg_qtype_row *row = find_id(id);
    if (row != NULL) {
        *out = row->id;
        return true;
    }
    for (size_t i = 0; i < N_NAMED; i++) {
        const named_id *n = &named_ids[i];
        if (n->id == id || (n->and_above && id > n->id)) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "type %" PRIu32 " (%s: %s) is not supported by this lagen", id,
                              n->name, n->origin);
        }
    }
    return lb_err_set(err, LB_UNSUPPORTED,
                      "type %" PRIu32 " is unknown and not supported by this lagen", id);
}

/* ASCII only, so that no locale changes what a name means. */
static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_name(const char *name, const char *s, size_t n_bytes) {
    if (strlen(name) != n_bytes) {
        return false;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        if (name[i] != lower(s[i])) {
            return false;
        }
    }
    return true;
}

bool lg_qtype_from_name(const char *name, size_t n_bytes, lg_qtype *out, lb_err *err) {
    for (size_t i = 0; i < N_ROWS; i++) {
        if (same_name(rows[i].name, name, n_bytes)) {
            *out = rows[i].id;
            return true;
        }
    }
    int shown = n_bytes > 40 ? 40 : (int)n_bytes;
    return lb_err_set(err, LB_BAD_VALUE, "'%.*s' is not the name of a tensor type", shown, name);
}

bool lg_qtype_check_computes(lg_qtype t, lb_err *err) {
    const lg_qtype_row *row = lg_qtype_get(t);
    if (row->computes) {
        return true;
    }
    char list[160];
    size_t n = 0;
    list[0] = '\0';
    for (size_t i = 0; i < N_ROWS && n < sizeof list; i++) {
        if (rows[i].computes) {
            int put = snprintf(list + n, sizeof list - n, " %s", rows[i].name);
            n += put < 0 ? 0 : (size_t)put;
        }
    }
    return lb_err_set(err, LB_UNSUPPORTED,
                      "type %s (%d) is not supported by this lagen; supported:%s", row->name,
                      (int)row->id, list);
}

bool lg_qtype_row_bytes(lg_qtype t, uint64_t n_elems, uint64_t *out, lb_err *err) {
    const lg_qtype_row *row = lg_qtype_get(t);
    if (n_elems == 0 || n_elems % row->qblock_elems != 0) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "%" PRIu64 " columns is not a positive multiple of %" PRIu32
                          " (%s qblock)",
                          n_elems, row->qblock_elems, row->name);
    }
    if (!lb_mul(n_elems / row->qblock_elems, row->qblock_bytes, out)) {
        return lb_err_set(err, LB_OVERFLOW,
                          "a row of %" PRIu64 " %s elements has more than 2^64 bytes", n_elems,
                          row->name);
    }
    return true;
}

/* The product of the dimensions, each step checked; 1 for no dimensions. */
static bool count_elems(uint32_t n_dims, const uint64_t *ne, uint64_t *out, lb_err *err) {
    uint64_t total = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        if (ne[d] == 0) {
            return lb_err_set(err, LB_BAD_SHAPE, "dimension %" PRIu32 " is 0", d);
        }
        if (!lb_mul(total, ne[d], &total) || total > INT64_MAX) {
            return lb_err_set(err, LB_OVERFLOW,
                              "dimension %" PRIu32 " (%" PRIu64
                              ") takes the tensor past 2^63-1 elements",
                              d, ne[d]);
        }
    }
    *out = total;
    return true;
}

bool lg_qtype_tensor_bytes(lg_qtype t, uint32_t n_dims, const uint64_t *ne, uint64_t *n_elems,
                           uint64_t *n_bytes, lb_err *err) {
    if (n_dims > 4) {
        return lb_err_set(err, LB_BAD_SHAPE, "%" PRIu32 " dimensions; the limit is 4", n_dims);
    }
    uint64_t total = 0;
    uint64_t row = 0;
    uint64_t bytes = 0;
    uint64_t cols = n_dims == 0 ? 1 : ne[0];
    if (!count_elems(n_dims, ne, &total, err) || !lg_qtype_row_bytes(t, cols, &row, err)) {
        return false;
    }
    if (!lb_mul(row, total / cols, &bytes)) {
        return lb_err_set(err, LB_OVERFLOW, "%" PRIu64 " %s elements have more than 2^64 bytes",
                          total, lg_qtype_get(t)->name);
    }
    if (n_elems != NULL) {
        *n_elems = total;
    }
    *n_bytes = bytes;
    return true;
}
