/* prove_sorted.c -- facts of data that choose places: experts' numbers, pairs in the order of their
 * experts, and the map of the tiles that they make (docs/kernels.md, "Experts"). What the data are
 * is for the kernels' tests to show; here, that who reads them reads what one launch has made, of
 * the size that the worst choice of experts needs, and that nothing they choose lies outside. */
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

enum { ENTRY_BYTES = 16, PAIR_BYTES = 4 };

/* Most tiles of `pairs` pairs: as many experts as there can be get one pair, which opens a tile;
 * from then on a tile takes s->tile more of them. */
static bool most_tiles(lg_prover *p, const lg_sorted *s, uint64_t pairs, uint64_t *out) {
    if (s->tile == 0 || s->groups == 0 || pairs == 0) {
        return lg_prove_fail(p, "pairs of a tile", s->pairs, s->tile, 1);
    }
    uint64_t opened = s->groups < pairs ? s->groups : pairs;
    *out = opened + (pairs - opened) / s->tile;
    return true;
}

static const lg_bound *bound_of(const lg_prover *p, const char *param) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        if (p->bound[i].arg != NULL && strcmp(p->bound[i].param, param) == 0) {
            return &p->bound[i];
        }
    }
    return NULL;
}

static bool is_list(const lg_bound *b) {
    return b != NULL && !b->shape.sized && b->shape.rows == LG_ROWS_T &&
           strcmp(b->shape.ctype, "int32_t") == 0;
}

/* The pairs of the step by the value that lists them, and the bytes of its map. */
static bool sizes(lg_prover *p, const lg_sorted *s, uint64_t *pairs, uint64_t *map_bytes) {
    const lg_bound *list = bound_of(p, s->pairs);
    const lg_bound *map = bound_of(p, s->map);
    if (!is_list(list) || !is_list(map) || list->shape.extra != 0) {
        return lg_prove_fail_text(p, "kind", s->pairs, "no list of pairs", "one, with a map");
    }
    return (lb_mul(p->T, list->shape.width, pairs) ||
            lg_prove_fail(p, "pairs", s->pairs, UINT64_MAX, UINT64_MAX)) &&
           most_tiles(p, s, *pairs, map_bytes) &&
           (lb_mul(*map_bytes, ENTRY_BYTES, map_bytes) ||
            lg_prove_fail(p, "bytes", s->map, UINT64_MAX, UINT64_MAX));
}

static bool declares(lg_prover *p, const char *param, uint64_t want) {
    uint64_t bytes = 0;
    return lg_prove_eval(p, bound_of(p, param)->operand->bytes, "bytes touched", param, &bytes) &&
           (bytes == want || lg_prove_fail(p, "bytes of the order", param, bytes, want));
}

static const lg_axis *axis_named(const lg_prover *p, const char *name) {
    for (uint32_t i = 0; i < p->kernel->n_axes; i++) {
        if (strcmp(p->kernel->axes[i].name, name) == 0) {
            return &p->kernel->axes[i];
        }
    }
    return NULL;
}

bool lg_prove_sorted(lg_prover *p, const lg_bound *b, uint64_t rows) {
    const lg_sorted *s = &b->cover->sorted;
    const lg_axis *axis = axis_named(p, b->cover->rows_axis);
    uint64_t pairs = 0;
    uint64_t map_bytes = 0;
    uint64_t bound = 0;
    if (!sizes(p, s, &pairs, &map_bytes) || axis == NULL ||
        !lg_prove_eval(p, axis->bound, "bound of axis", axis->name, &bound)) {
        return axis != NULL
                   ? false
                   : lg_prove_fail_text(p, "coverage: the axis", b->param, "absent", "on the grid");
    }
    if (pairs != rows || axis->tile != 1) {
        return lg_prove_fail(p, "coverage: pairs", b->param, rows, pairs);
    }
    if (bound != map_bytes / ENTRY_BYTES) {
        return lg_prove_fail(p, "coverage: tiles", b->param, bound, map_bytes / ENTRY_BYTES);
    }
    return declares(p, s->pairs, pairs * PAIR_BYTES) && declares(p, s->map, map_bytes);
}

/* The launch makes both the list and its map, of one order. */
static bool makes_both(lg_prover *p, const lg_bound *b, const lg_sorted *s) {
    const char *const params[] = {s->pairs, s->map};
    for (int i = 0; i < 2; i++) {
        const lg_bound *other = bound_of(p, params[i]);
        const lg_cover *c = other == NULL ? NULL : other->cover;
        bool same = c != NULL && c->scattered != NULL && c->sorted.pairs != NULL &&
                    strcmp(c->sorted.pairs, s->pairs) == 0 && strcmp(c->sorted.map, s->map) == 0 &&
                    c->sorted.tile == s->tile && c->sorted.groups == s->groups;
        if (!same) {
            return lg_prove_fail_text(p, "coverage: order", b->param, "not that of all its parts",
                                      "one");
        }
    }
    return true;
}

/* Where ctas share the scattering, each has groups of its own and none is left out: they lie on the
 * one axis of the grid. */
static bool groups_have_ctas(lg_prover *p, const lg_bound *b) {
    const char *name = NULL;
    for (uint32_t i = 0; i < p->kernel->n_axes; i++) {
        const lg_axis *a = &p->kernel->axes[i];
        uint64_t bound = 0;
        if (strcmp(a->on, "loop") == 0) {
            continue;
        }
        if (!lg_prove_eval(p, a->bound, "bound of axis", a->name, &bound)) {
            return false;
        }
        if (name != NULL || bound != b->cover->sorted.groups) {
            return lg_prove_fail(p, "coverage: groups", b->param, bound, b->cover->sorted.groups);
        }
        name = a->name;
    }
    return true;
}

bool lg_prove_scattered(lg_prover *p, const lg_bound *b, uint64_t *bytes) {
    const lg_sorted *s = &b->cover->sorted;
    uint64_t pairs = 0;
    uint64_t map_bytes = 0;
    if (s->pairs == NULL || s->map == NULL) {
        return lg_prove_fail_text(p, "coverage: order", b->param, "absent", "pairs and their map");
    }
    if (!makes_both(p, b, s) || !groups_have_ctas(p, b) || !sizes(p, s, &pairs, &map_bytes)) {
        return false;
    }
    bool list = strcmp(b->param, s->pairs) == 0;
    if (!list && strcmp(b->param, s->map) != 0) {
        return lg_prove_fail_text(p, "coverage: scattered", b->param, "neither",
                                  "the pairs or their map");
    }
    *bytes = list ? pairs * PAIR_BYTES : map_bytes;
    return declares(p, b->param, *bytes);
}

/* ---- who made it */

/* The launch before this one that writes the value, for the steps in which this one is; its cover
 * of it. UINT32_MAX if none does. (That all steps have one is a fact of prove_memory.c.) */
static uint32_t writer_of(const lg_prover *p, uint32_t value, const lg_cover **cover,
                          const lg_operand **operand) {
    const lg_plan *plan = p->plan;
    lg_when mine = plan->launches[p->launch].when;
    for (uint32_t i = p->launch; i-- > 0;) {
        const lg_launch *l = &plan->launches[i];
        const lg_kernel *k = &plan->kernels[l->kernel];
        if (l->when != LG_WHEN_ANY && l->when != mine) {
            continue;
        }
        for (uint32_t a = 0; a < l->n_args && a < k->n_params; a++) {
            const lg_goperand *arg = l->args[a];
            if (arg == NULL || arg->access != LG_WRITE || arg->id != value) {
                continue;
            }
            *cover = NULL;
            *operand = NULL;
            for (uint32_t c = 0; c < k->n_covers; c++) {
                *cover =
                    strcmp(k->covers[c].param, k->params[a].name) == 0 ? &k->covers[c] : *cover;
            }
            for (uint32_t o = 0; o < k->n_operands; o++) {
                *operand = strcmp(k->operands[o].param, k->params[a].name) == 0 ? &k->operands[o]
                                                                                : *operand;
            }
            return i;
        }
    }
    return UINT32_MAX;
}

/* Pairs and map are of one launch, which sorts into the same tiles of as many experts. */
static bool made_by_one(lg_prover *p, const lg_sorted *s) {
    uint32_t maker[2];
    const char *const params[] = {s->pairs, s->map};
    for (int i = 0; i < 2; i++) {
        const lg_cover *c = NULL;
        const lg_operand *unused = NULL;
        maker[i] = writer_of(p, bound_of(p, params[i])->arg->id, &c, &unused);
        if (maker[i] == UINT32_MAX || c == NULL || c->scattered == NULL) {
            return lg_prove_fail_text(p, "order", params[i], "made by no sorting launch", "made");
        }
        if (c->sorted.tile != s->tile || c->sorted.groups != s->groups) {
            return c->sorted.tile != s->tile
                       ? lg_prove_fail(p, "pairs of a tile", params[i], s->tile, c->sorted.tile)
                       : lg_prove_fail(p, "experts", params[i], s->groups, c->sorted.groups);
        }
    }
    if (maker[0] != maker[1]) {
        return lg_prove_fail(p, "launch that made the map of", s->pairs, maker[1], maker[0]);
    }
    return lg_prove_fact(p, "order", s->pairs, maker[0], p->launch);
}

bool lg_prove_order(lg_prover *p) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_cover *c = p->bound[i].cover;
        if (c != NULL && c->scattered == NULL && c->sorted.pairs != NULL &&
            !made_by_one(p, &c->sorted)) {
            return false;
        }
    }
    return true;
}

/* ---- what is chosen */

/* A list's elements are as small as its reader relies on, and as its writer says. */
static bool below(lg_prover *p, const lg_bound *b) {
    uint64_t said = b->operand->below;
    uint64_t holds = b->shape.below;
    if (b->arg->access == LG_WRITE && holds > 0) {
        return (said > 0 || lg_prove_fail(p, "bound of the elements", b->param, said, holds)) &&
               lg_prove_fact(p, "below", b->param, said, holds);
    }
    if (b->arg->access != LG_READ || said == 0) {
        return said == 0 || lg_prove_fail(p, "bound of the elements", b->param, said, holds);
    }
    return (holds > 0 || lg_prove_fail(p, "bound of the elements", b->param, holds, said)) &&
           lg_prove_fact(p, "below", b->param, holds, said);
}

/* The order whose list or map is this parameter of the launch. */
static const lg_sorted *order_with(const lg_prover *p, const char *param, bool map) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_cover *c = p->bound[i].cover;
        if (c != NULL && c->sorted.pairs != NULL &&
            strcmp(map ? c->sorted.map : c->sorted.pairs, param) == 0) {
            return &c->sorted;
        }
    }
    return NULL;
}

/* Matrices are chosen by a list of numbers below theirs, or by the map of an order, whose last
 * group may be a shared expert's; rows by the pairs of an order. */
static bool chosen(lg_prover *p, const lg_bound *b) {
    const char *by = b->operand->index_by;
    const lg_bound *list = bound_of(p, by);
    const lg_sorted *order = order_with(p, by, b->arg->access == LG_TENSOR);
    if (!is_list(list)) {
        return lg_prove_fail_text(p, "what chooses", b->param, by, "a list of numbers");
    }
    if (b->arg->access != LG_TENSOR) {
        return order != NULL ||
               lg_prove_fail_text(p, "what chooses", b->param, by, "pairs in an order");
    }
    const lg_gtensor *t = &p->plan->graph->tensors[b->arg->id];
    bool vector = p->plan->weights[b->arg->id].layout == NULL; /* a number for each matrix */
    uint64_t mats = vector ? t->n_cols : t->n_mats;
    uint64_t most = order == NULL ? list->operand->below : order->groups;
    if (most == 0 || (order == NULL ? most != mats : most != mats && most != mats + 1)) {
        return lg_prove_fail(p, "matrices to choose from", b->param, mats, most);
    }
    return lg_prove_fact(p, "matrices", b->param, mats, most);
}

bool lg_prove_indexed(lg_prover *p) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_bound *b = &p->bound[i];
        if (b->arg == NULL) {
            continue;
        }
        if ((is_list(b) || b->operand->below != 0) && !below(p, b)) {
            return false;
        }
        if (b->operand->index_by != NULL && !chosen(p, b)) {
            return false;
        }
    }
    return true;
}
