/* memory.c -- step 8: a place for every weight, state and activation, at the largest T.
 *
 * Weights lie in the order in which the graph first uses them, so that a step reads them as one
 * stream. States lie one after the other. Activations share one arena: largest first, each at the
 * lowest offset where no activation with an overlapping lifetime lies. The logits have an arena of
 * their own: they are read after the step. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "at.h"
#include "base/num.h"
#include "op.h"
#include "plan.h"

const char *const LG_ARENA_NAMES[] = {[LG_ARENA_WEIGHTS] = "weights", [LG_ARENA_KV] = "kv",
                                      [LG_ARENA_SCRATCH] = "scratch", [LG_ARENA_IO] = "io", NULL};

static bool too_big(lb_err *err, const char *what) {
    return lb_err_set(err, LB_OVERFLOW, "memory plan: %s passes 64 bits", what);
}

/* Appends n bytes to an arena at the next aligned offset. */
static bool append(uint64_t *arena_bytes, uint64_t n, uint64_t *offset, lb_err *err) {
    uint64_t at = 0;
    uint64_t end = 0;
    if (!lb_round_up(*arena_bytes, LG_ALIGN_BYTES, &at) || !lb_add(at, n, &end)) {
        return too_big(err, "an arena");
    }
    *offset = at;
    *arena_bytes = end;
    return true;
}

/* ---- weights */

static bool read_plane(const lg_at *at, lb_plane *plane, const char **name, lb_err *err) {
    uint32_t v[4] = {0};
    static const char *const keys[] = {"src_offset", "n_bytes", "word_bytes", "check"};
    for (size_t i = 0; i < 4; i++) {
        if (!lg_at_u32(at, keys[i], &v[i], err)) {
            return false;
        }
        if (v[i] > UINT16_MAX) {
            return lg_at_fail(at, keys[i], err, LB_LIMIT, "is above 65535");
        }
    }
    *plane = (lb_plane){(uint16_t)v[0], (uint16_t)v[1], (uint16_t)v[2], (uint16_t)v[3]};
    return lg_at_string(at, "name", name, err);
}

/* Kernels find a plane by its name (templates/lib/plane.lua), so two of one name are one too few. */
static bool read_planes(const lg_at *list, lb_layout *l, const char **names, lb_err *err) {
    for (uint32_t i = 0; i < l->n_planes; i++) {
        const lg_at item = lg_at_item(list, i);
        if (!read_plane(&item, &l->planes[i], &names[i], err)) {
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0) {
                return lg_at_fail(&item, "name", err, LB_DUPLICATE,
                                  "'%s' is the name of plane %" PRIu32 " too", names[i], j);
            }
        }
    }
    return true;
}

/* The layout of a tensor type, from its quant file; one per type, kept in `known`. */
static bool layout_of(lg_qtype type, lg_host *host, lb_arena *arena, const lb_layout **known,
                      const lb_layout **out, lb_err *err) {
    if (known[type] != NULL) {
        *out = known[type];
        return true;
    }
    lg_builder b;
    lg_value *v = NULL;
    lg_at planes;
    const char *names[LB_MAX_PLANES] = {0};
    size_t n = 0;
    lg_build_init(&b, arena);
    lg_value *arg = lg_build_map(&b);
    lg_build_set_string(&b, arg, "type", lg_qtype_get(type)->name);
    lb_layout *l = lb_alloc(arena, sizeof *l, err);
    if (l == NULL || !lg_build_done(&b, err) ||
        !lg_host_call(host, "lib/layout.lua", "layout", arg, arena, &v, err)) {
        return false;
    }
    lg_at at = lg_at_root(lg_qtype_get(type)->name, v);
    if (!lg_at_string(&at, "type", &l->type, err) ||
        !lg_at_u32(&at, "qblock_elems", &l->qblock_elems, err) ||
        !lg_at_u32(&at, "qblock_bytes", &l->qblock_bytes, err) ||
        !lg_at_array(&at, "planes", &planes, &n, err)) {
        return false;
    }
    const lg_qtype_row *row = lg_qtype_get(type);
    if (n > LB_MAX_PLANES || l->qblock_elems != row->qblock_elems ||
        l->qblock_bytes != row->qblock_bytes) {
        return lg_at_fail(&at, NULL, err, LB_BAD_SHAPE,
                          "the quant file and qtype.def disagree on the qblock");
    }
    l->n_planes = (uint32_t)n;
    if (!read_planes(&planes, l, names, err) || !lb_layout_check(l, names, err)) {
        return lb_err_prefix(err, "templates/quant/%s.lua", lg_qtype_get(type)->name);
    }
    known[type] = l;
    *out = l;
    return true;
}

/* Norm weights, factors and biases are plain vectors; everything else is a matrix in the image's layout. */
static bool is_vector_role(const lg_gnode *n, const char *role) {
    return n->op == LG_OP_NORM_QUANT || n->op == LG_OP_ROPE_KV || role[0] == 'f' ||
           role[0] == 'g' || role[0] == 'b';
}

static bool place_weight(lg_plan *plan, uint32_t id, bool vector, lg_host *host, lb_arena *arena,
                         const lb_layout **known, lb_err *err) {
    const lg_gtensor *t = &plan->graph->tensors[id];
    lg_weight *w = &plan->weights[id];
    if (vector && t->file->type != LG_QTYPE_F32) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "tensor '%s' is %s; norm weights and biases must be f32", t->name,
                          lg_qtype_get(t->file->type)->name);
    }
    if (w->bytes != 0) {
        return (w->layout == NULL) == vector ||
               lb_err_set(err, LB_UNSUPPORTED, "tensor '%s' is used as matrix and as vector",
                          t->name);
    }
    if (vector) {
        w->bytes = t->file->n_bytes;
    } else {
        uint64_t one = 0;
        if (!layout_of(t->file->type, host, arena, known, &w->layout, err) ||
            !lb_image_bytes(w->layout, t->n_rows, t->n_cols, &one, err)) {
            return lb_err_prefix(err, "tensor '%s'", t->name);
        }
        if (!lb_mul(one, t->n_mats, &w->bytes)) {
            return too_big(err, t->name);
        }
    }
    return append(&plan->arena_bytes[LG_ARENA_WEIGHTS], w->bytes, &w->offset, err);
}

static bool place_weights(lg_plan *plan, lg_host *host, lb_arena *arena, lb_err *err) {
    const lb_layout *known[LG_QTYPE_LIMIT] = {0};
    const lg_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->access == LG_TENSOR &&
                !place_weight(plan, p->id, is_vector_role(n, p->role), host, arena, known, err)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- values */

static bool size_of_value(const lg_plan *plan, uint32_t id, uint64_t *bytes, lb_err *err) {
    const lg_gvalue *v = &plan->graph->values[id];
    if (v->rows == LG_ROWS_STATE) {
        *bytes = v->state_bytes;
        return true;
    }
    uint64_t rows = v->rows == LG_ROWS_L ? plan->limits.logit_rows_max : plan->limits.t_max;
    rows = v->rows == LG_ROWS_FEW && rows > LG_FEW_ROWS ? LG_FEW_ROWS : rows;
    return (lb_mul(rows, v->width, bytes) && lb_add(*bytes, v->extra, bytes) &&
            lb_mul(*bytes, lg_elem_bytes(v->elem), bytes)) ||
           too_big(err, v->name);
}

static void lifetimes(lg_plan *plan) {
    const lg_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        plan->places[i].first = UINT32_MAX;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        for (uint32_t o = 0; o < g->nodes[i].n_operands; o++) {
            const lg_goperand *p = &g->nodes[i].operands[o];
            if (p->access != LG_TENSOR) {
                lg_place *place = &plan->places[p->id];
                place->first = i < place->first ? i : place->first;
                place->last = i;
            }
        }
    }
}

typedef struct order_item {
    uint64_t bytes;
    uint32_t id;
} order_item;

static int larger_first(const void *a, const void *b) {
    const order_item *x = a;
    const order_item *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->id < y->id ? -1 : 1;
}

static bool alive_together(const lg_place *a, const lg_place *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest aligned offset at which `id` meets no placed value of an overlapping lifetime. Offsets
 * tried: 0 and the ends of such values, so the search ends. */
static bool place_activation(lg_plan *plan, const order_item *placed, uint32_t n_placed,
                             uint32_t id, lb_err *err) {
    lg_place *me = &plan->places[id];
    uint64_t at = 0;
    uint64_t end = me->bytes;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n_placed; i++) {
            const lg_place *other = &plan->places[placed[i].id];
            uint64_t other_end = other->offset + other->bytes; /* checked when it was placed */
            if (!alive_together(me, other) || at >= other_end || other->offset >= end) {
                continue;
            }
            if (!lb_round_up(other_end, LG_ALIGN_BYTES, &at) || !lb_add(at, me->bytes, &end)) {
                return too_big(err, "scratch");
            }
            moved = true;
        }
    }
    me->offset = at;
    if (end > plan->arena_bytes[LG_ARENA_SCRATCH]) {
        plan->arena_bytes[LG_ARENA_SCRATCH] = end;
    }
    return true;
}

static bool place_values(lg_plan *plan, lb_arena *arena, lb_err *err) {
    const lg_graph *g = plan->graph;
    order_item *order = lb_alloc_n(arena, g->n_values, sizeof *order, err);
    uint32_t n = 0;
    if (order == NULL) {
        return false;
    }
    lifetimes(plan);
    for (uint32_t i = 0; i < g->n_values; i++) {
        lg_place *p = &plan->places[i];
        if (p->first == UINT32_MAX) {
            continue; /* nobody uses it */
        }
        if (!size_of_value(plan, i, &p->bytes, err)) {
            return false;
        }
        p->arena = g->values[i].rows == LG_ROWS_STATE ? LG_ARENA_KV : LG_ARENA_SCRATCH;
        if (i == g->logits || (g->samples && i == g->choices)) {
            p->arena = LG_ARENA_IO;
        }
        if (p->arena == LG_ARENA_SCRATCH) {
            order[n++] = (order_item){p->bytes, i};
        } else if (!append(&plan->arena_bytes[p->arena], p->bytes, &p->offset, err)) {
            return false;
        }
        if (p->arena != LG_ARENA_SCRATCH) {
            p->first = 0;
            p->last = plan->n_launches - 1;
        }
    }
    qsort(order, n, sizeof *order, larger_first);
    for (uint32_t i = 0; i < n; i++) {
        if (!place_activation(plan, order, i, order[i].id, err)) {
            return false;
        }
    }
    return true;
}

/* Room for the largest step's block, beside the logits. */
static bool place_step(lg_plan *plan, lb_err *err) {
    const lg_limits *l = &plan->limits;
    uint64_t words = 3 * l->t_max + l->slots + l->logit_rows_max; /* limits are far below 2^32 */
    plan->step_bytes = (LG_STEP_HEAD_BYTES + 4 * words + 7) / 8 * 8;
    plan->step_bytes += plan->graph->samples ? LG_PICK_BYTES * l->logit_rows_max : 0;
    return append(&plan->arena_bytes[LG_ARENA_IO], plan->step_bytes, &plan->step_offset, err);
}

bool lg_plan_memory(lg_plan *plan, lg_host *host, lb_arena *arena, lb_err *err) {
    const lg_graph *g = plan->graph;
    plan->places = lb_alloc_n(arena, g->n_values, sizeof *plan->places, err);
    plan->weights = lb_alloc_n(arena, g->n_tensors, sizeof *plan->weights, err);
    if (plan->places == NULL || plan->weights == NULL) {
        return false;
    }
    return place_weights(plan, host, arena, err) && place_values(plan, arena, err) &&
           (!plan->hw->gpu || place_step(plan, err));
}

bool lg_plan_sizes(const lg_graph *graph, const lg_hw_row *hw, const lg_limits *limits,
                   lg_host *host, lb_arena *arena, lg_plan **out, lb_err *err) {
    lg_plan *plan = lb_alloc(arena, sizeof *plan, err);
    if (plan == NULL) {
        return false;
    }
    *plan = (lg_plan){
        .graph = graph, .hw = hw, .limits = *limits, .n_launches = graph->n_nodes};
    *out = plan;
    return lg_plan_memory(plan, host, arena, err);
}

void lg_plan_ring(const lg_plan *plan, uint64_t *ring, uint64_t *spare) {
    const lg_graph *g = plan->graph;
    *ring = 0;
    *spare = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        if (v->rows != LG_ROWS_STATE || v->window == 0 || v->positions >= plan->limits.ctx) {
            continue;
        }
        uint64_t beside = v->positions - (v->window - 1); /* proved to be above 0 */
        *spare = *ring == 0 || beside < *spare ? beside : *spare;
        *ring = *ring == 0 || v->positions < *ring ? v->positions : *ring;
    }
}
