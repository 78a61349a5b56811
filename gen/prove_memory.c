/* prove_memory.c -- the prover's facts about places: sizes, arenas, lifetimes, overlaps, order.
 *
 * Lifetimes are taken from the launches' arguments, not from the memory planner. A value lives from
 * the launch that writes it to the last that reads it; states and the logits live for ever. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

enum {
    STRIP_ROWS = 16,    /* docs/kernels.md, "The weight image" */
    RING_POSITIONS = 256 /* docs/numerics.md, "Attention": a ring is whole splits */
};

typedef struct span {
    uint64_t begin, end;  /* bytes in the arena */
    uint32_t first, last; /* launches */
    bool used, kept;
    uint8_t written, read; /* bit 0: in steps of few rows, bit 1: in those of many */
} span;

enum { FEW = 1, MANY = 2, EVERY = FEW | MANY }; /* steps, as in `written` */

/* ---- order */

/* What a launch does with an argument. A state may be read and written; its kernel says which, and
 * the rows of a step are stored there before any of them looks back. */
static lg_access access_of(const lg_kernel *k, uint32_t param, const lg_goperand *arg) {
    for (uint32_t i = 0; arg->access == LG_STATE && i < k->n_operands; i++) {
        if (strcmp(k->operands[i].param, k->params[param].name) == 0) {
            return k->operands[i].access;
        }
    }
    return arg->access;
}

/* Notes the uses of launch i's arguments; reads come after the write, and each value and state is
 * written once: in steps of few rows, and in those of many. */
static bool note_uses(lg_prover *p, uint32_t i, span *spans, uint8_t *used) {
    const lg_launch *l = &p->plan->launches[i];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    uint8_t in = l->when == LG_WHEN_FEW ? FEW : l->when == LG_WHEN_MANY ? MANY : EVERY;
    p->launch = i;
    for (uint32_t a = 0; a < k->n_params; a++) {
        const lg_goperand *arg = l->args[a];
        if (arg == NULL) {
            continue;
        }
        if (arg->access == LG_TENSOR) {
            used[arg->id] |= in;
            continue;
        }
        span *s = &spans[arg->id];
        lg_access access = access_of(k, a, arg);
        const char *name = p->plan->graph->values[arg->id].name;
        if ((access == LG_READ || access == LG_BOTH) && (s->written & in) != in) {
            return lg_prove_fail(p, "order: writes before the first read", name, 0, 1);
        }
        if (access == LG_WRITE && (s->written & in) != 0) {
            return lg_prove_fail(p, "order: writes", name, 2, 1);
        }
        if (p->plan->graph->values[arg->id].rows == LG_ROWS_FEW && in != FEW) {
            return lg_prove_fail_text(p, "steps with the value", name, "not those of few rows",
                                      "those only");
        }
        s->written |= access == LG_WRITE ? in : 0;
        s->read |= access == LG_WRITE ? 0 : in;
        s->first = s->used ? s->first : i;
        s->last = i;
        s->used = true;
    }
    return true;
}

/* Launch i does node i of the graph, with that node's operands: no op is left out or moved. A plan
 * from JSON has no nodes, then there is nothing to compare. */
static bool launch_is_node(lg_prover *p, uint32_t i) {
    const lg_graph *g = p->plan->graph;
    const lg_launch *l = &p->plan->launches[i];
    const lg_kernel *k = &p->plan->kernels[l->kernel];
    if (g->n_nodes == 0) {
        return true;
    }
    uint32_t n_args = 0;
    p->launch = i;
    if (l->when != g->nodes[i].when) {
        return lg_prove_fail(p, "order: steps of the node", k->name, l->when, g->nodes[i].when);
    }
    if (l->node != i || l->layer != g->nodes[i].layer) {
        return lg_prove_fail(p, "order: node", k->name, l->node, i);
    }
    for (uint32_t a = 0; a < k->n_params; a++) {
        const lg_goperand *want = lg_node_operand(&g->nodes[i], k->params[a].name);
        const lg_goperand *got = l->args[a];
        n_args += got != NULL;
        if ((want == NULL) != (got == NULL) ||
            (want != NULL && (want->id != got->id || want->access != got->access))) {
            return lg_prove_fail(p, "order: number of the argument", k->params[a].name,
                                 got == NULL ? 0 : got->id, want == NULL ? 0 : want->id);
        }
    }
    return n_args == g->nodes[i].n_operands ||
           lg_prove_fail(p, "order: arguments", k->name, n_args, g->nodes[i].n_operands);
}

static bool launches_in_order(lg_prover *p, span *spans, uint8_t *used) {
    const lg_plan *plan = p->plan;
    if (plan->graph->n_nodes != 0 && plan->graph->n_nodes != plan->n_launches) {
        return lg_prove_fail(p, "order: launches", "all nodes", plan->n_launches,
                             plan->graph->n_nodes);
    }
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        if (!launch_is_node(p, i) || !note_uses(p, i, spans, used)) {
            return false;
        }
    }
    p->launch = UINT32_MAX;
    return true;
}

/* ---- values */

static bool value_bytes(lg_prover *p, const lg_gvalue *v, uint64_t *out) {
    uint64_t rows = v->rows == LG_ROWS_L ? p->plan->limits.logit_rows_max : p->plan->limits.t_max;
    rows = v->rows == LG_ROWS_FEW ? (rows < LG_FEW_ROWS ? rows : LG_FEW_ROWS) : rows;
    *out = v->state_bytes;
    return v->rows == LG_ROWS_STATE ||
           (lb_mul(rows, v->width, out) && lb_add(*out, v->extra, out) &&
            lb_mul(*out, lg_elem_bytes(v->elem), out)) ||
           lg_prove_fail(p, "bytes", v->name, UINT64_MAX, UINT64_MAX);
}

/* A state has a ring for each slot that can be in a step, and the ring holds what a row reads
 * beside the rows of the largest step: they are all stored before the first of them reads. It holds
 * no more than the rest of its last split, for kernels find a position's place by its length. */
static bool ring_holds(lg_prover *p, const lg_gvalue *v) {
    const lg_limits *l = &p->plan->limits;
    uint64_t cells = 0;
    uint64_t reach = l->ctx;
    uint64_t whole = 0;
    if (v->slots != l->slots || v->width != 0) {
        return v->width != 0 ? lg_prove_fail(p, "width", v->name, v->width, 0)
                             : lg_prove_fail(p, "slots", v->name, v->slots, l->slots);
    }
    if (!lb_mul(v->slots, v->positions, &cells) || cells == 0 || v->state_bytes % cells != 0) {
        return lg_prove_fail(p, "bytes modulo cells", v->name, v->state_bytes, cells);
    }
    if (v->window != 0 && v->window - 1 < l->ctx && v->window - 1 + l->t_max < l->ctx) {
        reach = v->window - 1 + l->t_max;
    }
    return lg_prove_fact(p, "ring", v->name, reach, v->positions) &&
           ((lb_round_up(reach, RING_POSITIONS, &whole) && whole == v->positions) ||
            lg_prove_fail(p, "positions of the ring", v->name, v->positions, whole));
}

/* States outlive the step, logits and choices are read after it, all else shares the scratch arena.
 */
static lg_arena_kind arena_of(const lg_graph *g, uint32_t id) {
    if (id == g->logits || (g->samples && id == g->choices)) {
        return LG_ARENA_IO;
    }
    return g->values[id].rows == LG_ROWS_STATE ? LG_ARENA_KV : LG_ARENA_SCRATCH;
}

/* The place is of the right arena, exactly as large as the value, and says the lifetime that the
 * launches show. */
static bool place_fits(lg_prover *p, uint32_t id, span *s, uint64_t *arena_end) {
    const lg_gvalue *v = &p->plan->graph->values[id];
    const lg_place *place = &p->plan->places[id];
    uint64_t bytes = 0;
    if (!s->used || place->arena != arena_of(p->plan->graph, id)) {
        return lg_prove_fail(p, s->used ? "arena" : "uses", v->name, s->used ? place->arena : 0,
                             s->used ? arena_of(p->plan->graph, id) : 1);
    }
    if (!value_bytes(p, v, &bytes) || place->bytes != bytes || bytes == 0) {
        return lg_prove_fail(p, "bytes of the place", v->name, place->bytes, bytes);
    }
    if (!lb_add(place->offset, place->bytes, &s->end)) {
        return lg_prove_fail(p, "end in its arena", v->name, UINT64_MAX, UINT64_MAX);
    }
    s->begin = place->offset;
    s->kept = place->arena != LG_ARENA_SCRATCH;
    s->first = s->kept ? 0 : s->first;
    s->last = s->kept ? p->plan->n_launches - 1 : s->last;
    if (place->first != s->first || place->last != s->last) {
        return lg_prove_fail(p, "last launch of the life", v->name, place->last, s->last);
    }
    if (v->rows == LG_ROWS_STATE && s->read != EVERY) {
        return lg_prove_fail(p, "order: reads in every step", v->name, 0, 1);
    }
    if (v->rows == LG_ROWS_STATE && !ring_holds(p, v)) {
        return false;
    }
    *arena_end = s->end > *arena_end ? s->end : *arena_end;
    return lg_prove_fact(p, "place", v->name, s->end, p->plan->arena_bytes[place->arena]);
}

static bool apart(const span *a, const span *b) {
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->begin < b->end && b->begin < a->end;
    return !(in_time && in_space);
}

static bool values_apart(lg_prover *p, const span *spans, uint32_t n) {
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            if (p->plan->places[i].arena != p->plan->places[j].arena) {
                continue;
            }
            pairs++;
            if (!apart(&spans[i], &spans[j])) {
                return lg_prove_fail_text(p, "bytes", p->plan->graph->values[i].name, "shared",
                                          p->plan->graph->values[j].name);
            }
        }
    }
    return lg_prove_fact(p, "overlap", "overlapping pairs, of those compared", 0, pairs);
}

static bool logits_written(lg_prover *p, const span *spans) {
    const lg_graph *g = p->plan->graph;
    if (g->samples && (g->choices >= g->n_values || spans[g->choices].written != EVERY)) {
        return lg_prove_fail(p, "writes", "choices", 0, 1);
    }
    if (g->logits >= g->n_values || spans[g->logits].written != EVERY) {
        return lg_prove_fail(p, "writes", "logits", 0, 1);
    }
    const lg_gvalue *v = &g->values[g->logits];
    return (v->rows == LG_ROWS_L && v->elem == LG_ELEM_F32) ||
           lg_prove_fail_text(p, "rows", v->name, LG_ROWS_NAMES[v->rows], "L, of floats");
}

/* ---- weights */

bool lg_prove_weight_bytes(lg_prover *p, uint32_t tensor, uint64_t *out) {
    const lg_gtensor *t = &p->plan->graph->tensors[tensor];
    const lb_layout *layout = p->plan->weights[tensor].layout;
    const lg_qtype_row *type = lg_qtype_get(t->file->type);
    uint64_t rows = t->n_rows;
    if (type == NULL) {
        return lg_prove_fail(p, "type", t->name, (uint64_t)t->file->type, LG_QTYPE_LIMIT);
    }
    if (layout != NULL && strcmp(layout->type, type->name) != 0) {
        return lg_prove_fail_text(p, "layout", t->name, layout->type, type->name);
    }
    if (layout == NULL && t->file->type != LG_QTYPE_F32) {
        return lg_prove_fail_text(p, "plain numbers", t->name, type->name, "f32");
    }
    if (t->n_cols == 0 || t->n_cols % type->qblock_elems != 0) {
        return lg_prove_fail(p, "columns modulo qblock", t->name, t->n_cols % type->qblock_elems,
                             0);
    }
    bool ok = (layout == NULL || lb_round_up(rows, STRIP_ROWS, &rows)) &&
              lb_mul(t->n_cols / type->qblock_elems, type->qblock_bytes, out) &&
              lb_mul(*out, rows, out) && lb_mul(*out, t->n_mats, out);
    return ok || lg_prove_fail(p, "bytes", t->name, UINT64_MAX, UINT64_MAX);
}

typedef struct placed_weight {
    uint64_t offset, end;
    uint32_t id;
} placed_weight;

static int by_offset(const void *a, const void *b) {
    const placed_weight *x = a;
    const placed_weight *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x->id < y->id ? -1 : 1;
}

static bool weight_fits(lg_prover *p, uint32_t id, uint8_t used, placed_weight *out) {
    const char *name = p->plan->graph->tensors[id].name;
    const lg_weight *w = &p->plan->weights[id];
    uint64_t bytes = 0;
    if (used != EVERY) {
        return lg_prove_fail(p, "launches of every step that read the weight", name, 0, 1);
    }
    if (!lg_prove_weight_bytes(p, id, &bytes)) {
        return false;
    }
    const lg_gtensor *t = &p->plan->graph->tensors[id];
    const uint64_t *ne = t->file->ne;
    bool same = ne[0] == t->n_cols && ne[1] == t->n_rows && ne[2] == t->n_mats && ne[3] == 1;
    if (t->file->data != NULL && !same) { /* a plan from JSON has no file */
        return lg_prove_fail(p, "rows in the model file", name, ne[1], t->n_rows);
    }
    if (w->bytes != bytes || bytes == 0) {
        return lg_prove_fail(p, "bytes of the weight", name, w->bytes, bytes);
    }
    *out = (placed_weight){.offset = w->offset, .id = id};
    return lb_add(w->offset, bytes, &out->end) ||
           lg_prove_fail(p, "end", name, UINT64_MAX, UINT64_MAX);
}

/* Each as large as its tensor in whole strips, one after the other, inside the arena. */
static bool weights_apart(lg_prover *p, const uint8_t *used) {
    const lg_plan *plan = p->plan;
    uint32_t n = plan->graph->n_tensors;
    placed_weight *order = lb_alloc_n(p->arena, n, sizeof *order, p->err);
    uint64_t end = 0;
    if (order == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!weight_fits(p, i, used[i], &order[i])) {
            return false;
        }
    }
    qsort(order, n, sizeof *order, by_offset);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = plan->graph->tensors[order[i].id].name;
        if (order[i].offset < end) {
            return lg_prove_fail(p, "end of the weight before", name, end, order[i].offset);
        }
        end = order[i].end;
        if (!lg_prove_fact(p, "weight", name, end, plan->arena_bytes[LG_ARENA_WEIGHTS])) {
            return false;
        }
    }
    return end == plan->arena_bytes[LG_ARENA_WEIGHTS] ||
           lg_prove_fail(p, "bytes of arena", "weights", plan->arena_bytes[LG_ARENA_WEIGHTS], end);
}

/* An arena ends where its last value does: what the plan says is what is allocated. */
static bool arenas_exact(lg_prover *p, const uint64_t *end) {
    for (int i = LG_ARENA_KV; i < LG_N_ARENAS; i++) {
        if (p->plan->arena_bytes[i] != end[i]) {
            return lg_prove_fail(p, "bytes of arena", LG_ARENA_NAMES[i], p->plan->arena_bytes[i],
                                 end[i]);
        }
        if (!lg_prove_fact(p, "arena", LG_ARENA_NAMES[i], end[i], INT64_MAX)) {
            return false;
        }
    }
    return true;
}

/* The step's block on a GPU: apart from the logits in the IO arena, as large as the largest step;
 * the arena ends with it. */
static bool step_apart(lg_prover *p, uint64_t *io_end) {
    enum { HEAD_BYTES = 64, PICK_BYTES = 1592 }; /* rt_step and rt_pick (docs/kernels.md) */
    const lg_plan *plan = p->plan;
    const lg_limits *l = &plan->limits;
    uint64_t words =
        3 * l->t_max + l->slots + l->logit_rows_max; /* limits are proved to be small */
    uint64_t bytes = HEAD_BYTES + 4 * (words + words % 2);
    if (plan->graph->samples) {
        bytes += PICK_BYTES * l->logit_rows_max;
    }
    uint64_t end = 0;
    if (!plan->hw->gpu) {
        return true;
    }
    if (plan->step_bytes != bytes || plan->step_offset % LG_ALIGN_BYTES != 0) {
        return lg_prove_fail(p, "bytes of the place", "step", plan->step_bytes, bytes);
    }
    if (plan->step_offset < *io_end || !lb_add(plan->step_offset, bytes, &end)) {
        return lg_prove_fail(p, "offset behind the logits", "step", plan->step_offset, *io_end);
    }
    *io_end = end;
    return lg_prove_fact(p, "place", "step", end, plan->arena_bytes[LG_ARENA_IO]);
}

bool lg_prove_memory(lg_prover *p) {
    const lg_graph *g = p->plan->graph;
    uint64_t end[LG_N_ARENAS] = {0};
    span *spans = lb_alloc_n(p->arena, g->n_values, sizeof *spans, p->err);
    uint8_t *used = lb_alloc_n(p->arena, g->n_tensors, sizeof *used, p->err);
    if (spans == NULL || used == NULL || !launches_in_order(p, spans, used) ||
        !logits_written(p, spans)) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (!place_fits(p, i, &spans[i], &end[arena_of(g, i)])) {
            return false;
        }
    }
    return values_apart(p, spans, g->n_values) && weights_apart(p, used) &&
           step_apart(p, &end[LG_ARENA_IO]) && arenas_exact(p, end);
}
