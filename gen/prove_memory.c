/* prove_memory.c -- the prover's facts about places: sizes, arenas, lifetimes, overlaps, order.
 *
 * Lifetimes are taken from the launches' arguments, not from the memory planner. A value lives from the launch
 * that writes it to the last that reads it; states, weights and the logits live for the whole step. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

typedef struct span {
    uint64_t begin, end; /* bytes in the arena */
    uint32_t first, last; /* launches */
    uint32_t value;
    bool used;
} span;

static bool value_bytes(lg_prover *p, const lg_gvalue *v, uint64_t *out) {
    if (v->rows == LG_ROWS_STATE) {
        *out = v->state_bytes;
        return true;
    }
    uint64_t rows = v->rows == LG_ROWS_L ? p->plan->limits.logit_rows_max : p->plan->limits.t_max;
    return (lb_mul(rows, v->width, out) && lb_mul(*out, lg_elem_bytes(v->elem), out)) ||
           lg_prove_fail(p, UINT32_MAX, "bytes", v->name, UINT64_MAX, UINT64_MAX);
}

/* First and last use of every value, and that writes come first. */
static bool lifetimes(lg_prover *p, span *spans) {
    const lg_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        const lg_launch *l = &plan->launches[i];
        for (uint32_t a = 0; a < plan->kernels[l->kernel].n_params; a++) {
            const lg_goperand *arg = l->args[a];
            if (arg == NULL || arg->access == LG_TENSOR) {
                continue;
            }
            span *s = &spans[arg->id];
            if (!s->used && (arg->access == LG_READ || arg->access == LG_BOTH)) {
                return lg_prove_fail(p, i, "writes before the first read", plan->graph->values[arg->id].name, 0, 1);
            }
            s->first = s->used ? s->first : i;
            s->last = i;
            s->used = true;
        }
    }
    return true;
}

static bool place_fits(lg_prover *p, uint32_t id, span *s) {
    const lg_gvalue *v = &p->plan->graph->values[id];
    const lg_place *place = &p->plan->places[id];
    uint64_t bytes = 0;
    if (!value_bytes(p, v, &bytes) || !lg_prove_fact(p, "place", UINT32_MAX, v->name, bytes, place->bytes)) {
        return false;
    }
    uint64_t end = 0;
    if (place->arena >= LG_N_ARENAS || !lb_add(place->offset, place->bytes, &end) ||
        end > p->plan->arena_bytes[place->arena]) {
        return lg_prove_fail(p, UINT32_MAX, "end in its arena", v->name, end, p->plan->arena_bytes[place->arena % LG_N_ARENAS]);
    }
    s->begin = place->offset;
    s->end = end;
    if (v->rows == LG_ROWS_STATE || id == p->plan->graph->logits) {
        s->first = 0;
        s->last = UINT32_MAX;
    }
    return true;
}

static bool apart(lg_prover *p, const span *a, const span *b) {
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->begin < b->end && b->begin < a->end;
    if (in_time && in_space) {
        const char *name = p->plan->graph->values[b->value].name;
        return lg_prove_fail(p, a->first, "bytes shared with a live value", name, a->end, b->begin);
    }
    return true;
}

static bool values_apart(lg_prover *p, const span *spans, uint32_t n) {
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            if (!spans[i].used || !spans[j].used ||
                p->plan->places[i].arena != p->plan->places[j].arena) {
                continue;
            }
            pairs++;
            if (!apart(p, &spans[i], &spans[j])) {
                return false;
            }
        }
    }
    return lg_prove_fact(p, "overlap", UINT32_MAX, "pairs of values found apart", pairs, UINT64_MAX);
}

static int by_offset(const void *a, const void *b) {
    const lg_weight *x = *(const lg_weight *const *)a;
    const lg_weight *y = *(const lg_weight *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Weights: each as large as its tensor (or larger, in whole strips), one after the other, inside the arena. */
static bool weights_apart(lg_prover *p) {
    const lg_plan *plan = p->plan;
    uint32_t n = plan->graph->n_tensors;
    const lg_weight **order = lb_alloc_n(p->arena, n, sizeof *order, p->err);
    if (order == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = &plan->weights[i];
    }
    qsort(order, n, sizeof *order, by_offset);
    uint64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = plan->graph->tensors[order[i] - plan->weights].name;
        if (order[i]->offset < end) {
            return lg_prove_fail(p, UINT32_MAX, "end of the weight before", name, end, order[i]->offset);
        }
        if (!lb_add(order[i]->offset, order[i]->bytes, &end)) {
            return lg_prove_fail(p, UINT32_MAX, "end", name, UINT64_MAX, UINT64_MAX);
        }
    }
    return lg_prove_fact(p, "arena", UINT32_MAX, "weights", end, plan->arena_bytes[LG_ARENA_WEIGHTS]);
}

/* The step's block on a GPU: behind everything else in the IO arena, large enough for the largest step. */
static bool step_apart(lg_prover *p) {
    const lg_plan *plan = p->plan;
    const lg_limits *l = &plan->limits;
    uint64_t words = 0;
    uint64_t end = 0;
    if (!plan->hw->gpu) {
        return true;
    }
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        const lg_place *v = &plan->places[i];
        if (v->arena == LG_ARENA_IO && v->bytes > 0 && plan->step_offset < v->offset + v->bytes) {
            return lg_prove_fail(p, UINT32_MAX, "end before the step", plan->graph->values[i].name, v->offset + v->bytes, plan->step_offset);
        }
    }
    if (!lb_mul(l->t_max, 3, &words) || !lb_add(words, l->slots, &words) || !lb_add(words, l->logit_rows_max, &words) ||
        !lb_mul(words, 4, &words) || !lb_add(words, 64, &words) || plan->step_offset % LG_ALIGN_BYTES != 0) {
        return lg_prove_fail(p, UINT32_MAX, "bytes", "step", UINT64_MAX, UINT64_MAX);
    }
    return lg_prove_fact(p, "place", UINT32_MAX, "step", words, plan->step_bytes) &&
           (lb_add(plan->step_offset, plan->step_bytes, &end) || lg_prove_fail(p, UINT32_MAX, "end", "step", UINT64_MAX, UINT64_MAX)) &&
           lg_prove_fact(p, "arena", UINT32_MAX, "step", end, plan->arena_bytes[LG_ARENA_IO]);
}

bool lg_prove_memory(lg_prover *p) {
    uint32_t n = p->plan->graph->n_values;
    span *spans = lb_alloc_n(p->arena, n, sizeof *spans, p->err);
    if (spans == NULL || !lifetimes(p, spans)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        spans[i].value = i;
        if (spans[i].used && !place_fits(p, i, &spans[i])) {
            return false;
        }
    }
    return values_apart(p, spans, n) && weights_apart(p) && step_apart(p);
}
