/* prove_own.c -- facts of memory through which the ctas of one launch speak to each other, and of
 * outputs that the last of several ctas writes (docs/kernels.md, "Splits on ctas of their own"). That
 * a cta keeps to its own tiles, and that the counters find the last, the kernels' tests show; here,
 * that there is room for all of them, that nobody else relies on what lies there, and that each
 * output has a counter. */
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

enum { SPLIT = 256 }; /* docs/numerics.md, "Attention" */

static const lg_bound *bound_of(const lg_prover *p, const char *param) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        if (p->bound[i].arg != NULL && strcmp(p->bound[i].param, param) == 0) {
            return &p->bound[i];
        }
    }
    return NULL;
}

static bool equal(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Splits that what a row sees can touch: it sees the whole context, or a window that may begin at the
 * last position of one. */
static uint64_t most_splits(const lg_prover *p, const lg_gvalue *state) {
    uint64_t ctx = p->plan->limits.ctx;
    uint64_t all = lb_ceil_div(ctx, SPLIT);
    if (state->window == 0 || state->window >= ctx) {
        return all;
    }
    uint64_t touched = 1 + lb_ceil_div(state->window - 1, SPLIT);
    return touched < all ? touched : all;
}

static bool room_for_splits(lg_prover *p, const lg_bound *b, bool record) {
    const lg_own *own = &b->cover->own;
    const lg_bound *state = bound_of(p, own->of);
    if (state == NULL || state->arg->access != LG_STATE) {
        return lg_prove_fail_text(p, "splits", b->param, own->of, "a state of the launch");
    }
    uint64_t most = most_splits(p, &p->plan->graph->values[state->arg->id]);
    return most <= own->splits ? !record || lg_prove_fact(p, "splits", b->param, most, own->splits)
                               : lg_prove_fail(p, "splits", b->param, most, own->splits);
}

static bool counters(lg_prover *p, const lg_bound *b) {
    return (b->arg->access == LG_BOTH && strcmp(b->shape.ctype, "int32_t") == 0) ||
           lg_prove_fail_text(p, "kind", b->param, b->shape.ctype, "numbers that begin at 0");
}

/* A row is a cta's own, or that of those which share the axis of groups. */
static bool groups_of(lg_prover *p, const lg_bound *b, uint64_t *groups) {
    const lg_own *own = &b->cover->own;
    bool rows = false;
    for (uint32_t i = 0; own->axis != NULL && i < p->kernel->n_axes; i++) {
        const lg_axis *a = &p->kernel->axes[i];
        bool on_grid = strcmp(a->on, "loop") != 0 && a->tile == 1;
        rows = rows || (on_grid && strcmp(a->kind, "rows") == 0);
        if (on_grid && equal(a->name, own->axis)) {
            *groups = p->grid[a->on[0] - 'x'];
        }
    }
    return own->axis == NULL || (rows && *groups > 0) ||
           lg_prove_fail_text(p, "shared memory: the axis", b->param, own->axis, "on the grid");
}

static bool tiles_fill(lg_prover *p, const lg_bound *b) {
    const lg_own *own = &b->cover->own;
    uint64_t groups = 0;
    uint64_t elems = 0;
    if (!groups_of(p, b, &groups)) {
        return false;
    }
    if (!lb_mul(own->tile, own->splits, &elems) || elems == 0 || b->shape.width % elems != 0) {
        return lg_prove_fail(p, "shared memory: elements of a group", b->param, elems,
                             b->shape.width);
    }
    return own->axis == NULL || b->shape.width / elems == groups ||
           lg_prove_fail(p, "shared memory: groups", b->param, b->shape.width / elems, groups);
}

/* No other launch takes anything from what lies there; it may be written before. */
static bool nobody_reads(lg_prover *p, const lg_bound *b) {
    for (uint32_t i = 0; i < p->plan->n_launches; i++) {
        const lg_launch *l = &p->plan->launches[i];
        for (uint32_t a = 0; i != p->launch && a < l->n_args; a++) {
            if (l->args[a] != NULL && l->args[a]->id == b->arg->id &&
                (l->args[a]->access == LG_READ || l->args[a]->access == LG_BOTH)) {
                return lg_prove_fail_text(p, "shared memory", b->param, "read by another launch",
                                          "its own");
            }
        }
    }
    return true;
}

bool lg_prove_own(lg_prover *p, const lg_bound *b, bool record) {
    bool of_splits = b->cover->own.of != NULL;
    return tiles_fill(p, b) && (of_splits ? room_for_splits(p, b, record) : counters(p, b)) &&
           (!record || (nobody_reads(p, b) &&
                        lg_prove_fact(p, "shared", b->param, b->shape.width, b->shape.width)));
}

/* A counter for each position that tells outputs apart. */
bool lg_prove_last(lg_prover *p, const lg_bound *b, uint32_t *dim) {
    const lg_cover *c = b->cover;
    const lg_bound *count = bound_of(p, c->last_count);
    const lg_own *own = count == NULL || count->cover == NULL ? NULL : &count->cover->own;
    bool each = own != NULL && own->splits == 1 && own->tile == 1 && own->of == NULL &&
                c->n_cols > 0 && equal(own->axis, c->cols[0].axis);
    if (!each) {
        return lg_prove_fail_text(p, "coverage: the counter", b->param, c->last_count,
                                  "one of each group");
    }
    for (uint32_t i = 0; i < p->kernel->n_axes; i++) {
        const lg_axis *a = &p->kernel->axes[i];
        if (strcmp(a->on, "loop") != 0 && equal(a->name, c->last_axis)) {
            *dim = (uint32_t)(a->on[0] - 'x');
            return true;
        }
    }
    return lg_prove_fail_text(p, "coverage: the axis", b->param, c->last_axis, "on the grid");
}
