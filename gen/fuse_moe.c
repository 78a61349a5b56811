/* fuse_moe.c -- the rules of mixtures of experts. One is: two expert_linear over one value, their
 * silu_mul, a third expert_linear, an expert_sum, and the add that puts it on the residual. For few
 * rows it becomes matvec_moe_gated and matvec_moe_down, which adds to the residual; for many rows
 * moe_sort, moe_gated, moe_down and moe_sum, which adds to the residual. A shared expert (a gated
 * product of the same value and width, added to the same residual next to it) becomes one more pick
 * of every row. The other: a linear of plain numbers that only a router reads becomes router_parts,
 * whose sums router_topk adds. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "fuse_parts.h"
#include "op.h"

enum { ENTRY_WORDS = 4, ATOM_COLS = 256 };

static const lg_gnode *writer_of(const lg_fuser *f, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        const lg_gnode *n = &f->in->nodes[i];
        for (uint32_t o = 0; o < n->n_operands; o++) {
            if (n->operands[o].access == LG_WRITE && n->operands[o].id == v) {
                return n;
            }
        }
    }
    return NULL;
}

/* The node of this op that writes v, if nothing but `reader` reads v. */
static const lg_gnode *feeds(const lg_fuser *f, lg_op op, uint32_t v, const lg_gnode *reader) {
    const lg_gnode *n = writer_of(f, v);
    return n != NULL && n->op == op && lg_fuse_only_reader(f, v) == reader ? n : NULL;
}

/* From the sum back to gate and up. */
static bool find_routed(const lg_fuser *f, const lg_gnode *sum, lg_experts *e) {
    *e = (lg_experts){.sum = sum, .add = lg_fuse_only_reader(f, lg_fuse_id(sum, "y"))};
    e->down = feeds(f, LG_OP_EXPERT_LINEAR, lg_fuse_id(sum, "x"), sum);
    e->silu = e->down == NULL ? NULL : feeds(f, LG_OP_SILU_MUL, lg_fuse_id(e->down, "x"), e->down);
    if (e->silu == NULL || e->add == NULL || e->add->op != LG_OP_ADD) {
        return false;
    }
    e->gate = feeds(f, LG_OP_EXPERT_LINEAR, lg_fuse_id(e->silu, "gate"), e->silu);
    e->up = feeds(f, LG_OP_EXPERT_LINEAR, lg_fuse_id(e->silu, "up"), e->silu);
    return e->gate != NULL && e->up != NULL && lg_fuse_id(e->gate, "x") == lg_fuse_id(e->up, "x") &&
           lg_fuse_id(e->gate, "ids") == lg_fuse_id(e->up, "ids") &&
           lg_fuse_id(e->gate, "ids") == lg_fuse_id(e->down, "ids") &&
           lg_fuse_id(e->add, "b") == lg_fuse_id(sum, "y");
}

static const lg_gtensor *tensor_of(const lg_fuser *f, const lg_gnode *n) {
    return &f->in->tensors[lg_fuse_id(n, "w")];
}

static bool same_matrix(const lg_fuser *f, const lg_gnode *shared, const lg_gnode *routed) {
    const lg_gtensor *a = tensor_of(f, shared);
    const lg_gtensor *b = tensor_of(f, routed);
    return a->n_mats == 1 && a->n_cols == b->n_cols && a->n_rows == b->n_rows &&
           lg_fuse_id(shared, "b") == LG_NONE;
}

/* The gated product that `add` puts on its residual, if it is shaped as one of the experts. */
static bool find_shared(const lg_fuser *f, const lg_gnode *add, lg_experts *e) {
    const lg_gnode *down = feeds(f, LG_OP_LINEAR, lg_fuse_id(add, "b"), add);
    const lg_gnode *silu =
        down == NULL ? NULL : feeds(f, LG_OP_SILU_MUL, lg_fuse_id(down, "x"), down);
    if (silu == NULL) {
        return false;
    }
    const lg_gnode *gate = feeds(f, LG_OP_LINEAR, lg_fuse_id(silu, "gate"), silu);
    const lg_gnode *up = feeds(f, LG_OP_LINEAR, lg_fuse_id(silu, "up"), silu);
    if (gate == NULL || up == NULL || lg_fuse_id(gate, "x") != lg_fuse_id(e->gate, "x") ||
        lg_fuse_id(up, "x") != lg_fuse_id(e->gate, "x") || !same_matrix(f, gate, e->gate) ||
        !same_matrix(f, up, e->up) || !same_matrix(f, down, e->down)) {
        return false;
    }
    e->s_gate = gate;
    e->s_up = up;
    e->s_silu = silu;
    e->s_down = down;
    e->s_add = add;
    return true;
}

/* The add in front of the block's, or the one behind it, may bring the shared expert: nothing else
 * may read what stands between the two. */
static void find_neighbour(const lg_fuser *f, lg_experts *e) {
    uint32_t a = lg_fuse_id(e->add, "a");
    const lg_gnode *before = feeds(f, LG_OP_ADD, a, e->add);
    const lg_gnode *behind = lg_fuse_only_reader(f, lg_fuse_id(e->add, "y"));
    e->first = e->gate < e->up ? e->gate : e->up; /* nodes of one array */
    e->last_add = e->add;
    e->residual = a;
    if (before != NULL && before->layer == e->add->layer && find_shared(f, before, e)) {
        e->residual = lg_fuse_id(before, "a");
    } else if (behind != NULL && behind->op == LG_OP_ADD && behind->layer == e->add->layer &&
               lg_fuse_id(behind, "a") == lg_fuse_id(e->add, "y") && find_shared(f, behind, e)) {
        e->last_add = behind;
    }
}

static void mark(lg_fuser *f, uint32_t number, const lg_experts *e) {
    const lg_gnode *const members[] = {e->gate,   e->up,   e->silu,   e->down,   e->sum,  e->add,
                                       e->s_gate, e->s_up, e->s_silu, e->s_down, e->s_add};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (members[i] != NULL) {
            f->experts_of[lg_fuse_index(f, members[i])] = number;
        }
    }
}

bool lg_fuse_find_experts(lg_fuser *f) {
    const lg_graph *in = f->in;
    uint32_t n = 0;
    f->experts = lb_alloc_n(f->arena, in->n_nodes, sizeof *f->experts, f->err);
    f->experts_of = lb_alloc_n(f->arena, in->n_nodes, sizeof *f->experts_of, f->err);
    f->parts_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->parts_of, f->err);
    if (f->experts == NULL || f->experts_of == NULL || f->parts_of == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        f->experts_of[i] = LG_NONE;
    }
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        lg_experts *e = &f->experts[n];
        if (in->nodes[i].op == LG_OP_EXPERT_SUM && find_routed(f, &in->nodes[i], e)) {
            find_neighbour(f, e);
            mark(f, n++, e);
        }
    }
    return true;
}

/* ---- writing */

static uint64_t picks_of(const lg_fuser *f, const lg_experts *e) {
    return f->in->values[lg_fuse_id(e->gate, "ids")].width;
}

static uint64_t pairs_of(const lg_fuser *f, const lg_experts *e) {
    return picks_of(f, e) + (e->s_gate != NULL);
}

static const lg_value *attrs_of(lg_fuser *f, const lg_experts *e) {
    lg_builder b;
    lg_build_init(&b, f->arena);
    lg_value *map = lg_build_map(&b);
    lg_build_set_uint(&b, map, "n_used", picks_of(f, e));
    lg_build_set_uint(&b, map, "n_expert", tensor_of(f, e->gate)->n_mats);
    lg_build_set_bool(&b, map, "shared", e->s_gate != NULL);
    return lg_build_done(&b, f->err) ? map : NULL;
}

static bool emit(lg_fuser *f, const lg_experts *e, lg_op op, lg_when when, const lg_draft *d) {
    const lg_value *attrs = attrs_of(f, e);
    return attrs != NULL && lg_fuse_emit_when(f, op, when, e->gate->layer, d, attrs);
}

/* What a stage's matrices read: plain numbers, bytes, or both. */
static void kinds_of(const lg_fuser *f, const lg_gnode *const *nodes, size_t n, bool *f32,
                     bool *q8) {
    *f32 = false;
    *q8 = false;
    for (size_t i = 0; i < n; i++) {
        if (nodes[i] != NULL) {
            *q8 = *q8 || lg_fuse_quantised(f, nodes[i]);
            *f32 = *f32 || !lg_fuse_quantised(f, nodes[i]);
        }
    }
}

static void put_planes(lg_draft *d, const char *const roles[3], lg_access access,
                       const lg_planes *p) {
    const uint32_t ids[] = {p->q, p->d, p->s};
    for (int i = 0; i < 3; i++) {
        lg_draft_put(d, roles[i], access, ids[i]);
    }
}

static const char *const X_ROLES[] = {"x_q", "x_d", "x_s"};
static const char *const Y_ROLES[] = {"y_q", "y_d", "y_s"};

/* The values between the launches. */
static bool make_between(lg_fuser *f, lg_experts *e) {
    const lg_gnode *const downs[] = {e->down, e->s_down};
    uint64_t P = pairs_of(f, e);
    uint64_t width = 0;
    kinds_of(f, downs, 2, &e->f32, &e->q8);
    if (!lb_mul(P, tensor_of(f, e->gate)->n_rows, &width)) {
        return lg_fuse_unsupported(f, e->silu, "its pairs' width passes 64 bits");
    }
    e->pairs = lg_fuse_new_value(f, "moe.pairs", LG_ROWS_T, LG_ELEM_I32, P);
    e->map = lg_fuse_new_value(f, "moe.map", LG_ROWS_T, LG_ELEM_I32, ENTRY_WORDS * P);
    if (e->map == LG_NONE) {
        return false;
    }
    f->out->values[e->map].extra =
        ENTRY_WORDS * (tensor_of(f, e->gate)->n_mats + (e->s_gate != NULL));
    if (e->f32) {
        e->act = lg_fuse_new_value(f, "moe.act", LG_ROWS_T, LG_ELEM_F32, width);
    }
    if (e->q8) {
        e->planes =
            (lg_planes){lg_fuse_new_value(f, "moe.act.q", LG_ROWS_T, LG_ELEM_I8, width),
                        lg_fuse_new_value(f, "moe.act.d", LG_ROWS_T, LG_ELEM_F32, width / 32),
                        lg_fuse_new_value(f, "moe.act.s", LG_ROWS_T, LG_ELEM_I16, width / 16)};
    }
    return true; /* a value that found no room is refused with its node */
}

/* What leads to the experts: ids where there are few rows, the sorted pairs where there are many.
 */
static void put_order(lg_fuser *f, lg_draft *d, const lg_experts *e, lg_when when) {
    if (when == LG_WHEN_FEW) {
        lg_draft_put(d, "ids", LG_READ, lg_fuse_map(f, lg_fuse_id(e->gate, "ids")));
        return;
    }
    lg_draft_put(d, "pairs", LG_READ, e->pairs);
    lg_draft_put(d, "map", LG_READ, e->map);
}

static void put_matrices(lg_draft *d, const lg_gnode *const routed[2],
                         const lg_gnode *const shared[2]) {
    static const char *const roles[2][2] = {{"w0", "w1"}, {"s0", "s1"}};
    static const char *const factors[2][2] = {{"f0", "f1"}, {"g0", "g1"}};
    const lg_gnode *const *const sets[] = {routed, shared};
    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < 2 && sets[set][i] != NULL; i++) {
            lg_draft_put(d, roles[set][i], LG_TENSOR, lg_fuse_id(sets[set][i], "w"));
            if (lg_fuse_id(sets[set][i], "f") != LG_NONE) {
                lg_draft_put(d, factors[set][i], LG_TENSOR, lg_fuse_id(sets[set][i], "f"));
            }
        }
    }
}

static bool emit_gated(lg_fuser *f, const lg_experts *e, lg_when when) {
    const lg_gnode *const routed[] = {e->gate, e->up};
    const lg_gnode *const shared[] = {e->s_gate, e->s_up};
    const lg_gnode *const all[] = {e->gate, e->up, e->s_gate, e->s_up};
    uint32_t x = lg_fuse_id(e->gate, "x");
    bool f32 = false;
    bool q8 = false;
    lg_draft d = {0};
    kinds_of(f, all, 4, &f32, &q8);
    if (q8 && !lg_fuse_ensure_planes(f, e->gate, x)) {
        return false;
    }
    if (f32) {
        lg_draft_put(&d, "x", LG_READ, lg_fuse_map(f, x));
    }
    if (q8) {
        put_planes(&d, X_ROLES, LG_READ, &f->planes_of[x]);
    }
    put_order(f, &d, e, when);
    put_matrices(&d, routed, shared);
    if (e->f32) {
        lg_draft_put(&d, "y", LG_WRITE, e->act);
    }
    if (e->q8) {
        put_planes(&d, Y_ROLES, LG_WRITE, &e->planes);
    }
    return emit(f, e, when == LG_WHEN_FEW ? LG_OP_MATVEC_MOE_GATED : LG_OP_MOE_GATED, when, &d);
}

/* For few rows y is the residual, for many a part for each pair. */
static bool emit_down(lg_fuser *f, const lg_experts *e, lg_when when, uint32_t y) {
    const lg_gnode *const routed[] = {e->down, NULL};
    const lg_gnode *const shared[] = {e->s_down, NULL};
    bool few = when == LG_WHEN_FEW;
    lg_draft d = {0};
    if (e->f32) {
        lg_draft_put(&d, "x", LG_READ, e->act);
    }
    if (e->q8) {
        put_planes(&d, X_ROLES, LG_READ, &e->planes);
    }
    put_order(f, &d, e, when);
    if (few) {
        lg_draft_put(&d, "weights", LG_READ, lg_fuse_map(f, lg_fuse_id(e->sum, "weights")));
    }
    put_matrices(&d, routed, shared);
    lg_draft_put(&d, "y", few ? LG_BOTH : LG_WRITE, y);
    return emit(f, e, few ? LG_OP_MATVEC_MOE_DOWN : LG_OP_MOE_DOWN, when, &d);
}

/* Where gate and up stand, their input and the picks are there. */
static bool emit_products(lg_fuser *f, lg_experts *e) {
    lg_draft sort = {0};
    if (!make_between(f, e)) {
        return false;
    }
    lg_draft_put(&sort, "ids", LG_READ, lg_fuse_map(f, lg_fuse_id(e->gate, "ids")));
    lg_draft_put(&sort, "pairs", LG_WRITE, e->pairs);
    lg_draft_put(&sort, "map", LG_WRITE, e->map);
    return emit(f, e, LG_OP_MOE_SORT, LG_WHEN_MANY, &sort) && emit_gated(f, e, LG_WHEN_FEW) &&
           emit_gated(f, e, LG_WHEN_MANY);
}

/* The residual is changed in place where the last add stands; nothing may read it afterwards. */
static bool residual_is_free(const lg_fuser *f, const lg_experts *e) {
    uint32_t a = e->residual;
    return a != f->in->logits &&
           lg_fuse_next_reader(f, a, lg_fuse_index(f, e->last_add) + 1) == LG_NONE;
}

static bool emit_sum(lg_fuser *f, const lg_experts *e) {
    uint64_t all = 0;
    lg_draft d = {0};
    if (!residual_is_free(f, e)) {
        return lg_fuse_unsupported(f, e->last_add, "it is not a residual whose old value is free");
    }
    if (!lb_mul(f->in->values[lg_fuse_id(e->sum, "y")].width, pairs_of(f, e), &all)) {
        return lg_fuse_unsupported(f, e->sum, "its pairs' width passes 64 bits");
    }
    uint32_t y = lg_fuse_map(f, e->residual);
    uint32_t z = lg_fuse_new_value(f, "moe.out", LG_ROWS_T, LG_ELEM_F32, all);
    f->value_of[lg_fuse_id(e->last_add, "y")] = y;
    lg_draft_put(&d, "x", LG_READ, z);
    lg_draft_put(&d, "weights", LG_READ, lg_fuse_map(f, lg_fuse_id(e->sum, "weights")));
    lg_draft_put(&d, "y", LG_BOTH, y);
    return emit_down(f, e, LG_WHEN_FEW, y) && emit_down(f, e, LG_WHEN_MANY, z) &&
           emit(f, e, LG_OP_MOE_SUM, LG_WHEN_MANY, &d);
}

bool lg_fuse_expert_node(lg_fuser *f, const lg_gnode *n) {
    lg_experts *e = &f->experts[f->experts_of[lg_fuse_index(f, n)]];
    if (n == e->first) {
        return emit_products(f, e);
    }
    return n != e->last_add || emit_sum(f, e);
}

/* ---- routers */

/* The product that makes a router's logits, if its atoms can be computed apart: plain numbers that
 * nothing else reads. There is work then for as many ctas as there are atoms of strips. */
static const lg_gnode *parted(const lg_fuser *f, const lg_gnode *router) {
    enum { ATOMS_MAX = 64 };
    const lg_gnode *n = feeds(f, LG_OP_LINEAR, lg_fuse_id(router, "logits"), router);
    bool fits = n != NULL && !lg_fuse_quantised(f, n) && lg_fuse_id(n, "b") == LG_NONE &&
                lg_fuse_id(n, "f") == LG_NONE &&
                tensor_of(f, n)->n_cols <= (uint64_t)ATOMS_MAX * ATOM_COLS;
    return fits ? n : NULL;
}

static uint64_t atoms_of(const lg_fuser *f, const lg_gnode *linear) {
    return lb_ceil_div(tensor_of(f, linear)->n_cols, ATOM_COLS);
}

bool lg_fuse_makes_logits(const lg_fuser *f, const lg_gnode *linear) {
    const lg_gnode *reader = lg_fuse_only_reader(f, lg_fuse_id(linear, "y"));
    return reader != NULL && reader->op == LG_OP_ROUTER && parted(f, reader) == linear;
}

static const lg_value *with_parts(lg_fuser *f, const lg_value *attrs, uint64_t parts) {
    lg_builder b;
    lg_build_init(&b, f->arena);
    const lg_value *map = lg_build_with(&b, attrs, "parts", lg_build_uint(&b, parts));
    return lg_build_done(&b, f->err) ? map : NULL;
}

/* The router finds the parts by the linear's own output. */
bool lg_fuse_logits(lg_fuser *f, const lg_gnode *linear) {
    uint32_t y = lg_fuse_id(linear, "y");
    uint64_t width = 0;
    lg_draft d = {0};
    lg_builder b;
    lg_build_init(&b, f->arena);
    const lg_value *none = lg_build_map(&b);
    if (!lb_mul(atoms_of(f, linear), tensor_of(f, linear)->n_rows, &width)) {
        return lg_fuse_unsupported(f, linear, "its parts' width passes 64 bits");
    }
    f->parts_of[y] = lg_fuse_new_value(f, "router.parts", LG_ROWS_T, LG_ELEM_F32, width);
    lg_draft_put(&d, "x", LG_READ, lg_fuse_map(f, lg_fuse_id(linear, "x")));
    lg_draft_put(&d, "w", LG_TENSOR, lg_fuse_id(linear, "w"));
    lg_draft_put(&d, "y", LG_WRITE, f->parts_of[y]);
    return lg_build_done(&b, f->err) &&
           lg_fuse_emit(f, LG_OP_ROUTER_PARTS, linear->layer, &d, none);
}

bool lg_fuse_router(lg_fuser *f, const lg_gnode *n) {
    uint32_t y = lg_fuse_id(n, "logits");
    const lg_gnode *linear = parted(f, n);
    const lg_value *attrs = with_parts(f, n->attrs, linear == NULL ? 1 : atoms_of(f, linear));
    lg_draft d = {0};
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        uint32_t id = o->id;
        if (linear != NULL && o->access == LG_READ && id == y) {
            id = f->parts_of[y];
        } else if (o->access != LG_TENSOR) {
            id = lg_fuse_map(f, id);
        }
        lg_draft_put(&d, o->role, o->access, id);
    }
    return attrs != NULL && lg_fuse_emit(f, LG_OP_ROUTER_TOPK, n->layer, &d, attrs);
}
