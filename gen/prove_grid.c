/* prove_grid.c -- facts of grids: inside the row's limits, as many positions as the axes have
 * tiles, and every element of an output written by exactly one cta. */
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

static const char *const DIM_NAMES[] = {"grid x", "grid y", "grid z"};

/* ---- the grid */

/* The dimension that an axis lies on; 3 for a loop inside the cta. */
static uint32_t dim_of(const lg_axis *a) {
    static const char *const names[] = {"x", "y", "z", "loop"};
    uint32_t d = 0;
    while (d < 4 && strcmp(a->on, names[d]) != 0) {
        d++;
    }
    return d;
}

static bool request_decides(const lg_expr *e) {
    return lg_expr_uses(e, "T") || lg_expr_uses(e, "L") || lg_expr_uses(e, "ctx");
}

/* A dimension has as many positions as its axis has tiles, one without an axis has one. Only x may
 * grow with a request. */
static bool axes_fill(lg_prover *p) {
    const lg_kernel *k = p->kernel;
    uint64_t want[3] = {1, 1, 1};
    bool taken[4] = {false};
    for (uint32_t i = 0; i < k->n_axes; i++) {
        const lg_axis *a = &k->axes[i];
        uint32_t d = dim_of(a);
        uint64_t bound = 0;
        if (d > 3 || (d < 3 && taken[d]) || a->tile == 0) {
            return lg_prove_fail_text(p, "axis", a->name, a->on,
                                      "alone on x, y or z, or a loop, with a tile");
        }
        taken[d] = true;
        if (!lg_prove_eval(p, a->bound, "bound of axis", a->name, &bound)) {
            return false;
        }
        if (d == 3 && strcmp(a->kind, "kv") == 0 && bound != p->plan->limits.ctx) {
            return lg_prove_fail(p, "bound of axis", a->name, bound, p->plan->limits.ctx);
        }
        if (d == 3) {
            continue;
        }
        if (d > 0 && a->base == NULL &&
            (request_decides(a->bound) || request_decides(k->grid[d]))) {
            return lg_prove_fail_text(p, "axis", a->name, "one that grows with the request",
                                      "on x, or cut");
        }
        want[d] = lb_ceil_div(bound, a->tile);
    }
    for (int d = 0; d < 3; d++) {
        if (p->grid[d] != want[d]) {
            return lg_prove_fail(p, "positions", DIM_NAMES[d], p->grid[d], want[d]);
        }
    }
    return true;
}

/* A dimension that is cut carries one axis, and that axis takes its first position as a parameter
 * (of 32 bits, as many as LG_CTAS_MAX positions have). */
static bool cut_names_base(lg_prover *p, uint32_t d) {
    const lg_kernel *k = p->kernel;
    uint64_t bases = 0;
    for (uint32_t i = 0; i < k->n_axes; i++) {
        bool here = dim_of(&k->axes[i]) == d && k->axes[i].base != NULL;
        for (uint32_t j = 0; here && j < k->n_params; j++) {
            bases += strcmp(k->params[j].name, k->axes[i].base) == 0 &&
                     strcmp(k->params[j].ctype, "uint32_t") == 0;
        }
    }
    return bases == 1 || lg_prove_fail(p, "bases of a cut dimension", DIM_NAMES[d], bases, 1);
}

/* Positions of the largest piece of dimension d that one launch gets. */
static bool piece_fits(lg_prover *p, uint32_t d, uint64_t limit, bool record) {
    uint64_t cut = p->kernel->per_launch[d];
    uint64_t piece = cut != 0 && p->grid[d] > cut ? cut : p->grid[d];
    if (piece == 0 || piece > limit) {
        return lg_prove_fail(p, "grid", DIM_NAMES[d], piece, limit);
    }
    return (cut == 0 || cut_names_base(p, d)) &&
           (!record || lg_prove_fact(p, "grid", DIM_NAMES[d], piece, limit));
}

bool lg_prove_grid(lg_prover *p, bool record) {
    uint64_t limit[3];
    uint64_t ctas = 1;
    lg_hw_grid_max(p->plan->hw, limit);
    for (uint32_t d = 0; d < 3; d++) {
        if (!lg_prove_eval(p, p->kernel->grid[d], "grid", DIM_NAMES[d], &p->grid[d]) ||
            !piece_fits(p, d, limit[d], record)) {
            return false;
        }
        if (!lb_mul(ctas, p->grid[d], &ctas) || ctas > LG_CTAS_MAX) {
            return lg_prove_fail(p, "ctas", p->kernel->name, ctas, LG_CTAS_MAX);
        }
    }
    return axes_fill(p) &&
           (!record || lg_prove_fact(p, "ctas", p->kernel->name, ctas, LG_CTAS_MAX));
}

/* ---- coverage */

/* The axis of this name and its dimension; fails unless it lies on the grid. */
static const lg_axis *grid_axis(lg_prover *p, const char *name, const char *param, uint32_t *dim) {
    for (uint32_t i = 0; name != NULL && i < p->kernel->n_axes; i++) {
        const lg_axis *a = &p->kernel->axes[i];
        if (strcmp(a->name, name) == 0 && dim_of(a) < 3) {
            *dim = dim_of(a);
            return a;
        }
    }
    lg_prove_fail_text(p, "coverage: the axis", param, name == NULL ? "absent" : name,
                       "on the grid");
    return NULL;
}

/* Rows of a cover: those of the value, or as many times more as the value's rows have equal parts;
 * *width is that of one. */
static bool rows_of_cover(lg_prover *p, const lg_bound *b, uint64_t *rows, uint64_t *width) {
    uint64_t there = b->shape.rows == LG_ROWS_L ? p->L : p->T;
    if (b->cover->rows_n == NULL) {
        return lg_prove_fail_text(p, "coverage: rows", b->param, "absent", "a number");
    }
    if (!lg_prove_eval(p, b->cover->rows_n, "rows", b->param, rows)) {
        return false;
    }
    if (*rows == 0 || *rows % there != 0 || b->shape.width % (*rows / there) != 0) {
        return lg_prove_fail(p, "coverage: rows", b->param, *rows, there);
    }
    *width = b->shape.width / (*rows / there);
    return b->shape.extra == 0 ||
           lg_prove_fail(p, "coverage: elements behind the rows", b->param, b->shape.extra, 0);
}

/* Rows: tiles from 0 on reach exactly the rows that the value has, and none begins behind its end.
 */
static bool rows_covered(lg_prover *p, const lg_bound *b, uint64_t rows, uint32_t *dim) {
    const lg_cover *c = b->cover;
    uint64_t bound = 0;
    uint64_t reach = 0;
    const lg_axis *axis = grid_axis(p, c->rows_axis, b->param, dim);
    if (axis == NULL || !lg_prove_eval(p, axis->bound, "bound of axis", axis->name, &bound)) {
        return false;
    }
    if (c->rows_tile != axis->tile) {
        return lg_prove_fail(p, "coverage: row tile", b->param, c->rows_tile, axis->tile);
    }
    if (c->sorted.pairs != NULL) {
        return lg_prove_sorted(p, b, rows) &&
               (p->grid[*dim] == bound ||
                lg_prove_fail(p, "coverage: positions of tiles", b->param, p->grid[*dim], bound));
    }
    if (bound != rows) {
        return lg_prove_fail(p, "bound of axis", axis->name, bound, rows);
    }
    uint64_t count = p->grid[*dim];
    if (!lb_mul(count, c->rows_tile, &reach) || reach < rows) {
        return lg_prove_fail(p, "coverage: rows missed", b->param, rows, reach);
    }
    return (count - 1) * c->rows_tile < rows ||
           lg_prove_fail(p, "coverage: first row of the last tile", b->param,
                         (count - 1) * c->rows_tile, rows - 1);
}

static bool same_name(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Segments of columns follow each other without gap or overlap, in columns and in positions of
 * their one axis; *end and *positions are where they stop. */
static bool segments_follow(lg_prover *p, const lg_bound *b, uint64_t width, uint64_t *end,
                            uint64_t *positions) {
    const lg_cover *c = b->cover;
    *end = 0;
    *positions = 0;
    for (uint32_t i = 0; i < c->n_cols; i++) {
        const lg_cover_cols *s = &c->cols[i];
        if (s->begin != *end || s->first != *positions || !same_name(s->axis, c->cols[0].axis)) {
            return lg_prove_fail(p, "coverage: begin of a column segment", b->param, s->begin,
                                 *end);
        }
        if (s->n == 0 || s->n > width - *end) {
            return lg_prove_fail(p, "coverage: columns of a segment", b->param, s->n,
                                 width - *end);
        }
        if (s->tile == 0 || (s->axis == NULL && s->tile != s->n)) {
            return lg_prove_fail(p, "coverage: column tile", b->param, s->tile, s->n);
        }
        *end += s->n;
        *positions += s->axis == NULL ? 0 : lb_ceil_div(s->n, s->tile);
    }
    return *end > 0 || lg_prove_fail(p, "coverage: columns", b->param, 0, width);
}

bool lg_prove_cover_end(lg_prover *p, const lg_bound *b, uint64_t *out) {
    uint64_t end = 0;
    uint64_t positions = 0;
    uint64_t rows = 0;
    uint64_t width = 0;
    if (!rows_of_cover(p, b, &rows, &width) || !segments_follow(p, b, width, &end, &positions)) {
        return false;
    }
    return (lb_mul(rows - 1, width, out) && lb_add(*out, end, out) &&
            lb_mul(*out, b->shape.elem_bytes, out)) ||
           lg_prove_fail(p, "coverage: bytes", b->param, UINT64_MAX, UINT64_MAX);
}

/* Every dimension of more than one position tells ctas apart by row or by column: otherwise two of
 * them would write the same element, if it is not said which of them does. */
static bool no_cta_twice(lg_prover *p, const lg_bound *b, uint32_t rows_dim, uint32_t cols_dim) {
    uint32_t last_dim = 3;
    if (b->cover->last_axis != NULL && !lg_prove_last(p, b, &last_dim)) {
        return false;
    }
    if (last_dim < 3 && (last_dim == rows_dim || last_dim == cols_dim)) {
        return lg_prove_fail_text(p, "coverage: the axis", b->param, b->cover->last_axis,
                                  "apart from rows and columns");
    }
    for (uint32_t d = 0; d < 3; d++) {
        if (d != last_dim && d != rows_dim && d != cols_dim && p->grid[d] != 1) {
            return lg_prove_fail(p, "coverage: ctas that write one element", b->param, p->grid[d],
                                 1);
        }
    }
    return true;
}

bool lg_prove_cover(lg_prover *p, const lg_bound *b, bool record) {
    uint32_t rows_dim = 3;
    uint32_t cols_dim = 3;
    uint64_t end = 0;
    uint64_t positions = 0;
    uint64_t rows = 0;
    uint64_t width = 0;
    if (b->cover->own.splits != 0) {
        return lg_prove_own(p, b, record);
    }
    if (b->cover->scattered != NULL) {
        return lg_prove_scattered(p, b, &end) &&
               (!record || lg_prove_fact(p, "scattered bytes", b->param, end, end));
    }
    if (!rows_of_cover(p, b, &rows, &width) || !rows_covered(p, b, rows, &rows_dim) ||
        !segments_follow(p, b, width, &end, &positions)) {
        return false;
    }
    if (b->cover->partial && (b->arg->access != LG_BOTH || end == width)) {
        return lg_prove_fail(p, "coverage: columns left as they were", b->param, 0, 1);
    }
    if (!b->cover->partial && end != width) {
        return lg_prove_fail(p, "coverage: columns", b->param, end, width);
    }
    const char *name = b->cover->cols[0].axis;
    if (name != NULL) {
        const lg_axis *axis = grid_axis(p, name, b->param, &cols_dim);
        if (axis == NULL) {
            return false;
        }
        if (axis->tile != 1 || p->grid[cols_dim] != positions || cols_dim == rows_dim) {
            return lg_prove_fail(p, "coverage: positions of columns", b->param, p->grid[cols_dim],
                                 positions);
        }
    }
    return no_cta_twice(p, b, rows_dim, cols_dim) &&
           (!record || lg_prove_fact(p, "coverage", b->param, end, width));
}
