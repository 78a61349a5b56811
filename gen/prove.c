/* prove.c -- see prove.h. Facts of single launches; prove_memory.c has those of the plan as a whole. */
#include "prove_parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "op.h"

bool lg_prove_fail(lg_prover *p, uint32_t launch, const char *kind, const char *subject, uint64_t value,
                   uint64_t limit) {
    const char *label = launch == UINT32_MAX ? "the plan" : p->plan->launches[launch].label;
    return lb_err_set(p->err, LB_PROOF, "%s: %s of '%s' is %" PRIu64 ", the limit is %" PRIu64
                      " (T=%" PRIu64 ", L=%" PRIu64 ")", label, kind, subject, value, limit, p->T, p->L);
}

bool lg_prove_fact(lg_prover *p, const char *kind, uint32_t launch, const char *subject, uint64_t value,
                   uint64_t limit) {
    if (value > limit) {
        return lg_prove_fail(p, launch, kind, subject, value, limit);
    }
    if (p->n_facts == p->cap_facts) {
        return lb_err_set(p->err, LB_LIMIT, "prover: more than %" PRIu32 " facts", p->cap_facts);
    }
    p->facts[p->n_facts++] = (lg_fact){kind, launch, subject, value, limit};
    return true;
}

static bool eval(lg_prover *p, const lg_expr *e, uint64_t *out) {
    const lg_limits *l = &p->plan->limits;
    const lg_expr_var vars[] = {
        {"T", p->T}, {"L", p->L}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    return lg_expr_eval(e, vars, sizeof vars / sizeof *vars, out, p->err);
}

/* ---- grid and coverage */

/* The number of positions that axis `name` has in the grid, and its tile; exactly one axis lies on its dimension. */
static bool axis_positions(lg_prover *p, const lg_kernel *k, uint32_t launch, const char *name, uint64_t *count,
                           uint64_t *tile) {
    const lg_axis *found = NULL;
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (strcmp(k->axes[i].name, name) == 0) {
            found = &k->axes[i];
        }
    }
    if (found == NULL || strlen(found->on) != 1 || found->on[0] < 'x' || found->on[0] > 'z') {
        return lg_prove_fail(p, launch, "grid dimension", name, 0, 1);
    }
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (&k->axes[i] != found && strcmp(k->axes[i].on, found->on) == 0) {
            return lg_prove_fail(p, launch, "axes on one grid dimension", name, 2, 1);
        }
    }
    *tile = found->tile;
    return eval(p, k->grid[found->on[0] - 'x'], count);
}

/* Tiles of `tile` from 0 on reach exactly `n`: enough of them, and none begins behind the end. */
static bool tiles_reach(lg_prover *p, uint32_t launch, const char *what, uint64_t count, uint64_t tile,
                        uint64_t n) {
    uint64_t reach = 0;
    if (tile == 0 || count == 0 || !lb_mul(count, tile, &reach) || reach < n) {
        return lg_prove_fail(p, launch, "coverage: elements missed", what, n, reach);
    }
    if ((count - 1) * tile >= n) {
        return lg_prove_fail(p, launch, "coverage: a tile starts behind the end", what, (count - 1) * tile, n);
    }
    return true;
}

static bool rows_of_value(const lg_prover *p, const lg_gvalue *v, uint64_t *rows) {
    *rows = v->rows == LG_ROWS_L ? p->L : p->T;
    return v->rows != LG_ROWS_STATE;
}

static bool rows_covered(lg_prover *p, const lg_kernel *k, uint32_t launch, const lg_cover *c, const lg_gvalue *v) {
    uint64_t declared = 0;
    uint64_t rows = 0;
    uint64_t count = 0;
    uint64_t tile = 0;
    if (!eval(p, c->rows_n, &declared) || !rows_of_value(p, v, &rows)) {
        return false;
    }
    if (declared != rows) {
        return lg_prove_fail(p, launch, "rows written", c->param, declared, rows);
    }
    if (c->rows_axis == NULL || !axis_positions(p, k, launch, c->rows_axis, &count, &tile)) {
        return c->rows_axis != NULL ? false : lg_prove_fail(p, launch, "axis of rows", c->param, 0, 1);
    }
    if (tile != c->rows_tile) {
        return lg_prove_fail(p, launch, "row tile", c->param, c->rows_tile, tile);
    }
    return tiles_reach(p, launch, c->param, count, tile, rows);
}

/* Segments of columns follow each other without gap or overlap, in columns and in positions of their axis. */
static bool cols_covered(lg_prover *p, const lg_kernel *k, uint32_t launch, const lg_cover *c, uint64_t width,
                         bool whole) {
    uint64_t next_col = 0;
    uint64_t next_pos = 0;
    const char *axis = c->n_cols > 0 ? c->cols[0].axis : NULL;
    for (uint32_t i = 0; i < c->n_cols; i++) {
        const lg_cover_cols *s = &c->cols[i];
        bool same_axis = (s->axis == NULL) == (axis == NULL) && (axis == NULL || strcmp(axis, s->axis) == 0);
        if (!same_axis || s->begin != next_col || s->tile == 0 || s->n == 0 || s->n > width - next_col) {
            return lg_prove_fail(p, launch, "coverage: a column segment begins", c->param, s->begin, next_col);
        }
        if (s->axis != NULL && s->first != next_pos) {
            return lg_prove_fail(p, launch, "coverage: a segment's first position", c->param, s->first, next_pos);
        }
        if (s->axis == NULL && s->tile < s->n) {
            return lg_prove_fail(p, launch, "coverage: columns without axis", c->param, s->n, s->tile);
        }
        next_col += s->n;
        next_pos += lb_ceil_div(s->n, s->tile);
    }
    if (whole && next_col != width) {
        return lg_prove_fail(p, launch, "coverage: columns missed", c->param, width, next_col);
    }
    if (axis == NULL) {
        return true;
    }
    uint64_t count = 0;
    uint64_t tile = 0;
    return axis_positions(p, k, launch, axis, &count, &tile) &&
           (count == next_pos || lg_prove_fail(p, launch, "positions of axis", axis, count, next_pos));
}

static const lg_cover *cover_of(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_covers; i++) {
        if (strcmp(k->covers[i].param, param) == 0) {
            return &k->covers[i];
        }
    }
    return NULL;
}

/* An output that is no state is covered; one written for the first time, wholly. */
static bool output_covered(lg_prover *p, uint32_t launch, const lg_kernel *k, uint32_t param,
                           const lg_goperand *arg) {
    const lg_gvalue *v = &p->plan->graph->values[arg->id];
    const lg_cover *c = cover_of(k, k->params[param].name);
    if (c == NULL) {
        return lg_prove_fail(p, launch, "coverage declared", k->params[param].name, 0, 1);
    }
    return rows_covered(p, k, launch, c, v) && cols_covered(p, k, launch, c, v->width, arg->access == LG_WRITE);
}

/* A dimension that is cut carries one axis, and that axis takes its first position as a parameter (of 32 bits, as many
 * as LG_CTAS_MAX positions have). */
static bool cut_names_base(lg_prover *p, uint32_t launch, const lg_kernel *k, int d) {
    uint64_t axes = 0;
    uint64_t bases = 0;
    for (uint32_t i = 0; i < k->n_axes; i++) {
        bool here = k->axes[i].on[0] == 'x' + d && k->axes[i].on[1] == '\0';
        axes += here;
        for (uint32_t j = 0; here && k->axes[i].base != NULL && j < k->n_params; j++) {
            bases += strcmp(k->params[j].name, k->axes[i].base) == 0 && strcmp(k->params[j].ctype, "uint32_t") == 0;
        }
    }
    return (axes == 1 && bases == 1) || lg_prove_fail(p, launch, "axes with a base on a cut dimension", k->name, axes, bases);
}

static bool grid_fits(lg_prover *p, uint32_t launch, const lg_kernel *k) {
    uint64_t ctas = 1;
    static const char *const names[] = {"grid x", "grid y", "grid z"};
    uint64_t limit[3];
    lg_hw_grid_max(p->plan->hw, limit);
    for (int d = 0; d < 3; d++) {
        uint64_t n = 0;
        if (!eval(p, k->grid[d], &n)) {
            return false;
        }
        uint64_t piece = k->per_launch[d] != 0 && n > k->per_launch[d] ? k->per_launch[d] : n;
        if (piece == 0 || piece > limit[d]) {
            return lg_prove_fail(p, launch, "grid", names[d], piece, limit[d]);
        }
        if (k->per_launch[d] != 0 && !cut_names_base(p, launch, k, d)) {
            return false;
        }
        if (!lb_mul(ctas, n, &ctas) || ctas > LG_CTAS_MAX) {
            return lg_prove_fail(p, launch, "ctas", k->name, ctas, LG_CTAS_MAX);
        }
    }
    p->most_ctas = ctas > p->most_ctas ? ctas : p->most_ctas;
    return true;
}

/* ---- operands */

static const lg_operand *operand_of(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_operands; i++) {
        if (strcmp(k->operands[i].param, param) == 0) {
            return &k->operands[i];
        }
    }
    return NULL;
}

/* Bytes that are really there for this argument at the current T and L: for an activation those of its rows, as
 * the graph has them, not those of its buffer, which may be shared. */
static bool bytes_there(lg_prover *p, const lg_goperand *arg, uint64_t *out) {
    if (arg->access == LG_TENSOR) {
        *out = p->plan->weights[arg->id].bytes;
        return true;
    }
    const lg_gvalue *v = &p->plan->graph->values[arg->id];
    uint64_t rows = 0;
    if (!rows_of_value(p, v, &rows)) {
        *out = p->plan->places[arg->id].bytes;
        return true;
    }
    return lb_mul(rows, v->width, out) && lb_mul(*out, lg_elem_bytes(v->elem), out);
}

static bool access_matches(const lg_operand *o, const lg_goperand *arg) {
    switch (arg->access) {
    case LG_TENSOR:
    case LG_READ: return o->access == LG_READ;
    case LG_WRITE: return o->access == LG_WRITE;
    case LG_BOTH: return o->access == LG_BOTH;
    case LG_STATE: return true;
    }
    return false;
}

static bool operand_in_range(lg_prover *p, uint32_t launch, const lg_kernel *k, uint32_t param,
                             const lg_goperand *arg) {
    const char *name = k->params[param].name;
    const lg_operand *o = operand_of(k, name);
    uint64_t bytes = 0;
    uint64_t there = 0;
    uint64_t index = 0;
    if (o == NULL || !access_matches(o, arg)) {
        return lg_prove_fail(p, launch, "declared access", name, 0, 1);
    }
    if (!eval(p, o->bytes, &bytes) || !eval(p, o->max_index, &index)) {
        return false;
    }
    if (!bytes_there(p, arg, &there) || bytes > there) {
        return lg_prove_fail(p, launch, "bytes touched", name, bytes, there);
    }
    uint64_t most = o->index_bits == 32 ? INT32_MAX : INT64_MAX;
    if ((o->index_bits != 32 && o->index_bits != 64) || index > most) {
        return lg_prove_fail(p, launch, "largest index", name, index, most);
    }
    return true;
}

/* All that depends on T and L, for one launch at the current T and L. */
static bool launch_at(lg_prover *p, uint32_t launch) {
    const lg_launch *l = &p->plan->launches[launch];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    if (!grid_fits(p, launch, k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->n_params; i++) {
        const lg_goperand *arg = l->args[i];
        if (arg == NULL) {
            continue;
        }
        if (!operand_in_range(p, launch, k, i, arg)) {
            return false;
        }
        if ((arg->access == LG_WRITE || arg->access == LG_BOTH) && !output_covered(p, launch, k, i, arg)) {
            return false;
        }
    }
    return true;
}

/* Where an argument begins must have the declared alignment; arenas begin at multiples of LG_ALIGN_BYTES. */
static bool aligned(lg_prover *p, uint32_t launch) {
    const lg_launch *l = &p->plan->launches[launch];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    for (uint32_t i = 0; i < k->n_params; i++) {
        const lg_goperand *arg = l->args[i];
        if (arg == NULL) {
            continue;
        }
        uint64_t offset = arg->access == LG_TENSOR ? p->plan->weights[arg->id].offset
                                                   : p->plan->places[arg->id].offset;
        uint64_t align = operand_of(k, k->params[i].name)->align;
        if (align > LG_ALIGN_BYTES || offset % align != 0) {
            return lg_prove_fail(p, launch, "offset modulo alignment", k->params[i].name, offset % align, 0);
        }
    }
    return true;
}

/* True if another launch of the same kernel, with arguments of the same shapes, was proved before: layers
 * differ in offsets only, and those are checked for every launch. */
static bool same_shapes(const lg_prover *p, const lg_launch *a, const lg_launch *b) {
    if (a->kernel != b->kernel) {
        return false;
    }
    const lg_kernel *k = &p->plan->kernels[a->kernel];
    for (uint32_t i = 0; i < k->n_params; i++) {
        const lg_goperand *x = a->args[i];
        const lg_goperand *y = b->args[i];
        if ((x == NULL) != (y == NULL) || (x != NULL && x->access != y->access)) {
            return false;
        }
        if (x == NULL) {
            continue;
        }
        if (x->access == LG_TENSOR) {
            if (p->plan->weights[x->id].bytes != p->plan->weights[y->id].bytes) {
                return false;
            }
            continue;
        }
        const lg_gvalue *v = &p->plan->graph->values[x->id];
        const lg_gvalue *w = &p->plan->graph->values[y->id];
        if (v->rows != w->rows || v->width != w->width || v->elem != w->elem ||
            p->plan->places[x->id].bytes != p->plan->places[y->id].bytes) {
            return false;
        }
    }
    return true;
}

static bool proved_before(const lg_prover *p, uint32_t launch, uint32_t *like) {
    for (uint32_t i = 0; i < launch; i++) {
        if (p->like[i] == i && same_shapes(p, &p->plan->launches[i], &p->plan->launches[launch])) {
            *like = i;
            return true;
        }
    }
    return false;
}

/* Whether the kernel's expressions name L. */
static bool uses(const lg_kernel *k, const char *symbol) {
    bool yes = false;
    for (int d = 0; d < 3; d++) {
        yes = yes || lg_expr_uses(k->grid[d], symbol);
    }
    for (uint32_t i = 0; i < k->n_operands; i++) {
        yes = yes || lg_expr_uses(k->operands[i].bytes, symbol);
    }
    return yes;
}

/* Every T (and, for a kernel over logit rows, every L with the largest T) is tried: no appeal to monotony. */
static bool launch_always(lg_prover *p, uint32_t launch) {
    const lg_launch *l = &p->plan->launches[launch];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    p->most_ctas = 0;
    if (!proved_before(p, launch, &p->like[launch])) {
        p->like[launch] = launch;
        for (p->T = 1; p->T <= p->plan->limits.t_max; p->T++) {
            p->L = p->T < p->plan->limits.logit_rows_max ? p->T : p->plan->limits.logit_rows_max;
            if (!launch_at(p, launch)) {
                return false;
            }
        }
        p->T = p->plan->limits.t_max;
        for (p->L = 1; uses(k, "L") && p->L <= p->plan->limits.logit_rows_max; p->L++) {
            if (!launch_at(p, launch)) {
                return false;
            }
        }
    }
    p->T = p->plan->limits.t_max;
    p->L = p->plan->limits.logit_rows_max;
    p->most_ctas = 0;
    return launch_at(p, launch) && lg_prove_fact(p, "ctas", launch, k->name, p->most_ctas, LG_CTAS_MAX) &&
           lg_prove_fact(p, "scratch", launch, k->name, k->scratch_bytes, LG_SCRATCH_MAX) && aligned(p, launch) &&
           (!p->plan->hw->gpu || lg_prove_gpu(p, launch));
}

/* The largest byte ranges, as facts with numbers. */
static bool range_facts(lg_prover *p, uint32_t launch) {
    const lg_launch *l = &p->plan->launches[launch];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    for (uint32_t i = 0; i < k->n_params; i++) {
        uint64_t bytes = 0;
        uint64_t there = 0;
        if (l->args[i] == NULL) {
            continue;
        }
        if (!eval(p, operand_of(k, k->params[i].name)->bytes, &bytes) || !bytes_there(p, l->args[i], &there) ||
            !lg_prove_fact(p, "range", launch, k->params[i].name, bytes, there)) {
            return false;
        }
    }
    return true;
}

bool lg_prove(const lg_plan *plan, lb_arena *arena, lg_proof *out, lb_err *err) {
    lg_prover p = {.plan = plan, .err = err, .arena = arena};
    p.cap_facts = plan->n_launches * 32 + plan->graph->n_values + plan->graph->n_tensors + 64;
    p.facts = lb_alloc_n(arena, p.cap_facts, sizeof *p.facts, err);
    p.like = lb_alloc_n(arena, plan->n_launches, sizeof *p.like, err);
    if (p.facts == NULL || p.like == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        if (plan->launches[i].kernel >= plan->n_kernels || !launch_always(&p, i) || !range_facts(&p, i)) {
            return false;
        }
    }
    if (!lg_prove_memory(&p)) {
        return false;
    }
    *out = (lg_proof){p.facts, p.n_facts};
    return true;
}
