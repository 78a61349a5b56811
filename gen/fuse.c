/* fuse.c -- see fuse.h. One pass over the nodes in order; each rule looks at the readers of a
 * value. */
#include "fuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuse_parts.h"
#include "op.h"

enum { NEW_VALUES_PER_NODE = 4 };

bool lg_fuse_unsupported(lg_fuser *f, const lg_gnode *n, const char *why) {
    return lb_err_set(f->err, LB_UNSUPPORTED, "op '%s' of layer %" PRId32 ": %s",
                      lg_op_get(n->op)->name, n->layer, why);
}

/* ---- reading the old graph */

uint32_t lg_fuse_id(const lg_gnode *n, const char *role) {
    const lg_goperand *o = lg_node_operand(n, role);
    return o == NULL ? LG_NONE : o->id;
}

static bool reads(const lg_gnode *n, uint32_t v) {
    for (uint32_t o = 0; o < n->n_operands; o++) {
        const lg_goperand *p = &n->operands[o];
        if (p->id == v && (p->access == LG_READ || p->access == LG_BOTH)) {
            return true;
        }
    }
    return false;
}

uint32_t lg_fuse_next_reader(const lg_fuser *f, uint32_t v, uint32_t start) {
    const lg_readers *of = &f->readers_of[v];
    if (of->first == LG_NONE || start > of->last) {
        return LG_NONE;
    }
    uint32_t i = start < of->first ? of->first : start;
    while (!reads(&f->in->nodes[i], v)) {
        i++; /* the last one does */
    }
    return i;
}

/* Who reads each value of the graph first and last. */
static void find_readers(lg_fuser *f) {
    for (uint32_t i = 0; i < f->in->n_values; i++) {
        f->readers_of[i] = (lg_readers){LG_NONE, LG_NONE};
    }
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        const lg_gnode *n = &f->in->nodes[i];
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->access == LG_READ || p->access == LG_BOTH) {
                lg_readers *of = &f->readers_of[p->id];
                *of = (lg_readers){of->first == LG_NONE ? i : of->first, i};
            }
        }
    }
}

const lg_gnode *lg_fuse_only_reader(const lg_fuser *f, uint32_t v) {
    uint32_t i = lg_fuse_next_reader(f, v, 0);
    if (i == LG_NONE || lg_fuse_next_reader(f, v, i + 1) != LG_NONE) {
        return NULL;
    }
    return &f->in->nodes[i];
}

uint32_t lg_fuse_index(const lg_fuser *f, const lg_gnode *n) {
    return (uint32_t)(n - f->in->nodes);
}

bool lg_fuse_quantised(const lg_fuser *f, const lg_gnode *linear) {
    const lg_gtensor *t = &f->in->tensors[lg_fuse_id(linear, "w")];
    return lg_qtype_get(t->file->type)->qblock_elems > 1;
}

/* What the products that read v need of it. */
static void needs(const lg_fuser *f, uint32_t v, bool *f32, bool *q8) {
    *f32 = false;
    *q8 = false;
    for (uint32_t i = lg_fuse_next_reader(f, v, 0); i != LG_NONE;
         i = lg_fuse_next_reader(f, v, i + 1)) {
        const lg_gnode *n = &f->in->nodes[i];
        bool product = n->op == LG_OP_LINEAR || n->op == LG_OP_EXPERT_LINEAR;
        if (product && lg_fuse_quantised(f, n)) {
            *q8 = true;
        } else {
            *f32 = true;
        }
    }
}

/* ---- writing the new one */

uint32_t lg_fuse_new_value(lg_fuser *f, const char *name, lg_rows rows, lg_elem elem,
                           uint64_t width) {
    if (f->out->n_values == f->values_cap) {
        lb_err_set(f->err, LB_LIMIT, "fuse: more than %" PRIu32 " values", f->values_cap);
        return LG_NONE;
    }
    f->out->values[f->out->n_values] =
        (lg_gvalue){.name = name, .rows = rows, .elem = elem, .width = width};
    return f->out->n_values++;
}

static bool new_planes(lg_fuser *f, uint32_t v, lg_planes *p) {
    const lg_gvalue *src = &f->in->values[v];
    const char *name[3];
    for (int i = 0; i < 3; i++) {
        name[i] = lb_format(f->arena, f->err, "%s.%c", src->name, "qds"[i]);
        if (name[i] == NULL) {
            return false;
        }
    }
    p->q = lg_fuse_new_value(f, name[0], src->rows, LG_ELEM_I8, src->width);
    p->d = lg_fuse_new_value(f, name[1], src->rows, LG_ELEM_F32, src->width / 32);
    p->s = lg_fuse_new_value(f, name[2], src->rows, LG_ELEM_I16, src->width / 16);
    f->planes_of[v] = *p;
    return p->s != LG_NONE;
}

uint32_t lg_fuse_map(lg_fuser *f, uint32_t v) {
    if (f->value_of[v] == LG_NONE) {
        const lg_gvalue *src = &f->in->values[v];
        uint32_t id = lg_fuse_new_value(f, src->name, src->rows, src->elem, src->width);
        if (id != LG_NONE) {
            f->out->values[id] = *src;
        }
        f->value_of[v] = id;
    }
    return f->value_of[v];
}

void lg_draft_put(lg_draft *d, const char *role, lg_access access, uint32_t id) {
    if (d->n < LG_DRAFT_MAX) {
        d->operands[d->n] = (lg_goperand){role, access, id};
    }
    d->n++;
}

bool lg_fuse_emit_when(lg_fuser *f, lg_op op, lg_when when, int32_t layer, const lg_draft *d,
                       const lg_value *attrs) {
    if (d->n > LG_DRAFT_MAX || f->out->n_nodes == f->nodes_cap) {
        return lb_err_set(f->err, LB_LIMIT,
                          "fuse: op '%s' with %" PRIu32 " operands as node %" PRIu32,
                          lg_op_get(op)->name, d->n, f->out->n_nodes);
    }
    lg_goperand *o = lb_alloc_n(f->arena, d->n, sizeof *o, f->err);
    if (o == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->operands[i].id == LG_NONE) {
            return false; /* new_value has said why */
        }
    }
    memcpy(o, d->operands, d->n * sizeof *o);
    f->out->nodes[f->out->n_nodes++] = (lg_gnode){
        .op = op, .when = when, .layer = layer, .operands = o, .n_operands = d->n, .attrs = attrs};
    return true;
}

bool lg_fuse_emit(lg_fuser *f, lg_op op, int32_t layer, const lg_draft *d, const lg_value *attrs) {
    return lg_fuse_emit_when(f, op, LG_WHEN_ANY, layer, d, attrs);
}

static const lg_value *attrs_with(lg_fuser *f, const char *key, const char *text) {
    lg_builder b;
    lg_build_init(&b, f->arena);
    lg_value *map = lg_build_map(&b);
    lg_build_set_string(&b, map, key, text);
    return lg_build_done(&b, f->err) ? map : NULL;
}

/* ---- rules */

static bool copy_node(lg_fuser *f, const lg_gnode *n) {
    lg_draft d = {0};
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        lg_draft_put(&d, o->role, o->access,
                     o->access == LG_TENSOR ? o->id : lg_fuse_map(f, o->id));
    }
    return lg_fuse_emit(f, n->op, n->layer, &d, n->attrs);
}

static bool fuse_norm(lg_fuser *f, const lg_gnode *n) {
    uint32_t y = lg_fuse_id(n, "y");
    uint32_t x = lg_fuse_id(n, "x");
    bool f32 = false;
    bool q8 = false;
    needs(f, y, &f32, &q8);
    lg_draft d = {0};
    /* take_rows left its input's number in value_of, so x may have other rows than y */
    lg_draft_put(&d, "x", LG_READ, lg_fuse_map(f, x));
    lg_draft_put(&d, "w", LG_TENSOR, lg_fuse_id(n, "w"));
    if (f32 || !q8) {
        lg_draft_put(&d, "y", LG_WRITE, lg_fuse_map(f, y));
    }
    if (q8) {
        lg_planes p = {LG_NONE, LG_NONE, LG_NONE};
        if (!new_planes(f, y, &p)) {
            return false;
        }
        lg_draft_put(&d, "y_q", LG_WRITE, p.q);
        lg_draft_put(&d, "y_d", LG_WRITE, p.d);
        lg_draft_put(&d, "y_s", LG_WRITE, p.s);
    }
    return lg_fuse_emit(f, LG_OP_NORM_QUANT, n->layer, &d, n->attrs);
}

bool lg_fuse_ensure_planes(lg_fuser *f, const lg_gnode *reader, uint32_t v) {
    if (f->planes_of[v].q != LG_NONE) {
        return true;
    }
    lg_draft d = {0};
    lg_planes p = {LG_NONE, LG_NONE, LG_NONE};
    lg_draft_put(&d, "x", LG_READ, lg_fuse_map(f, v));
    if (!new_planes(f, v, &p)) {
        return false;
    }
    lg_draft_put(&d, "y_q", LG_WRITE, p.q);
    lg_draft_put(&d, "y_d", LG_WRITE, p.d);
    lg_draft_put(&d, "y_s", LG_WRITE, p.s);
    const lg_value *none = attrs_with(f, "of", f->in->values[v].name);
    return none != NULL && lg_fuse_emit(f, LG_OP_QUANT, reader->layer, &d, none);
}

static const char *numbered(lg_fuser *f, char letter, uint32_t i) {
    return lb_format(f->arena, f->err, "%c%" PRIu32, letter, i);
}

bool lg_fuse_matmul(lg_fuser *f, const lg_gnode *const *parts, uint32_t n_parts, lg_op op,
                    uint32_t y, const char *epilogue) {
    uint32_t x = lg_fuse_id(parts[0], "x");
    bool f32 = false;
    bool q8 = false;
    for (uint32_t i = 0; i < n_parts; i++) {
        if (lg_fuse_quantised(f, parts[i])) {
            q8 = true;
        } else {
            f32 = true;
        }
    }
    if (q8 && !lg_fuse_ensure_planes(f, parts[0], x)) {
        return false;
    }
    lg_draft d = {0};
    if (f32) {
        lg_draft_put(&d, "x", LG_READ, lg_fuse_map(f, x));
    }
    if (q8) {
        lg_draft_put(&d, "x_q", LG_READ, f->planes_of[x].q);
        lg_draft_put(&d, "x_d", LG_READ, f->planes_of[x].d);
        lg_draft_put(&d, "x_s", LG_READ, f->planes_of[x].s);
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        const char *w = numbered(f, 'w', i);
        const char *factor = numbered(f, 'f', i);
        const char *b = numbered(f, 'b', i);
        if (w == NULL || factor == NULL || b == NULL) {
            return false;
        }
        lg_draft_put(&d, w, LG_TENSOR, lg_fuse_id(parts[i], "w"));
        if (lg_fuse_id(parts[i], "f") != LG_NONE) {
            lg_draft_put(&d, factor, LG_TENSOR, lg_fuse_id(parts[i], "f"));
        }
        if (lg_fuse_id(parts[i], "b") != LG_NONE) {
            lg_draft_put(&d, b, LG_TENSOR, lg_fuse_id(parts[i], "b"));
        }
        f->absorbed[lg_fuse_index(f, parts[i])] = true;
    }
    lg_draft_put(&d, "y", op == LG_OP_MATMUL_ADD ? LG_BOTH : LG_WRITE, y);
    const lg_value *attrs = attrs_with(f, "epilogue", epilogue);
    return attrs != NULL && lg_fuse_emit(f, op, parts[0]->layer, &d, attrs);
}

const lg_gnode *lg_fuse_linear_to(const lg_fuser *f, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        if (f->in->nodes[i].op == LG_OP_LINEAR && lg_fuse_id(&f->in->nodes[i], "y") == v) {
            return &f->in->nodes[i];
        }
    }
    return NULL;
}

static bool fuse_gated(lg_fuser *f, const lg_gnode *silu) {
    const lg_gnode *parts[2] = {lg_fuse_linear_to(f, lg_fuse_id(silu, "gate")),
                                lg_fuse_linear_to(f, lg_fuse_id(silu, "up"))};
    for (int i = 0; i < 2; i++) {
        if (parts[i] == NULL || lg_fuse_id(parts[i], "x") != lg_fuse_id(parts[0], "x") ||
            lg_fuse_only_reader(f, lg_fuse_id(parts[i], "y")) != silu) {
            return lg_fuse_unsupported(f, silu, "its inputs are not two products of one value");
        }
    }
    f->absorbed[lg_fuse_index(f, silu)] = true;
    return lg_fuse_matmul(f, parts, 2, LG_OP_MATMUL, lg_fuse_map(f, lg_fuse_id(silu, "y")),
                          "swiglu");
}

/* x + linear in place. The sum is made where the linear stands, so the add must be the next to read
 * the old x, and the last. */
static bool fuse_residual(lg_fuser *f, const lg_gnode *linear, const lg_gnode *add) {
    uint32_t a = lg_fuse_id(add, "a");
    uint32_t at = lg_fuse_index(f, add);
    if (lg_fuse_id(add, "b") != lg_fuse_id(linear, "y") || a == f->in->logits ||
        lg_fuse_next_reader(f, a, lg_fuse_index(f, linear)) != at ||
        lg_fuse_next_reader(f, a, at + 1) != LG_NONE) {
        return lg_fuse_unsupported(f, add, "it is not a residual whose old value is free");
    }
    f->absorbed[lg_fuse_index(f, add)] = true;
    f->value_of[lg_fuse_id(add, "y")] = lg_fuse_map(f, a);
    return lg_fuse_matmul(f, &linear, 1, LG_OP_MATMUL_ADD, lg_fuse_map(f, a), "add");
}

static bool fuse_linear(lg_fuser *f, const lg_gnode *n) {
    const lg_gnode *reader = lg_fuse_only_reader(f, lg_fuse_id(n, "y"));
    const lg_gnode *store = lg_fuse_store_behind(f, n);
    if (store != NULL) {
        return lg_fuse_block(f, store);
    }
    if (lg_fuse_makes_logits(f, n)) {
        return lg_fuse_logits(f, n);
    }
    if (reader != NULL && reader->op == LG_OP_SILU_MUL) {
        return fuse_gated(f, reader);
    }
    if (reader != NULL && reader->op == LG_OP_ADD) {
        return fuse_residual(f, n, reader);
    }
    return lg_fuse_matmul(f, &n, 1, LG_OP_MATMUL, lg_fuse_map(f, lg_fuse_id(n, "y")), "none");
}

/* The rows are picked by the norm that follows: it reads row logit_rows[i] of x, which nothing may
 * have changed in place by then. */
static bool fuse_take_rows(lg_fuser *f, const lg_gnode *n) {
    const lg_gnode *reader = lg_fuse_only_reader(f, lg_fuse_id(n, "y"));
    if (reader == NULL || reader->op != LG_OP_RMS_NORM) {
        return lg_fuse_unsupported(f, n, "it is not followed by one rms_norm");
    }
    if (lg_fuse_next_reader(f, lg_fuse_id(n, "x"), lg_fuse_index(f, n) + 1) != LG_NONE) {
        return lg_fuse_unsupported(f, n, "its input is read again behind it");
    }
    f->value_of[lg_fuse_id(n, "y")] = lg_fuse_map(f, lg_fuse_id(n, "x"));
    return true;
}

static bool fuse_node(lg_fuser *f, const lg_gnode *n) {
    if (f->experts_of[lg_fuse_index(f, n)] != LG_NONE) {
        return lg_fuse_expert_node(f, n);
    }
    switch (n->op) {
    case LG_OP_EMBED:
    case LG_OP_ROPE_TABLE: return copy_node(f, n);
    case LG_OP_RMS_NORM: return fuse_norm(f, n);
    case LG_OP_LINEAR: return fuse_linear(f, n);
    case LG_OP_ROUTER: return lg_fuse_router(f, n);
    case LG_OP_EXPERT_LINEAR:
    case LG_OP_EXPERT_SUM:
        return lg_fuse_unsupported(f, n,
                                   "it is not part of experts' gated product, summed and added");
    case LG_OP_ATTENTION: return lg_fuse_attention(f, n);
    case LG_OP_TAKE_ROWS: return fuse_take_rows(f, n);
    default: return lg_fuse_unsupported(f, n, "no launch op computes it here");
    }
}

static bool room(lg_fuser *f, lb_err *err) {
    const lg_graph *in = f->in;
    f->values_cap = in->n_values + NEW_VALUES_PER_NODE * in->n_nodes;
    f->out->values = lb_alloc_n(f->arena, f->values_cap, sizeof *f->out->values, err);
    f->nodes_cap = 2 * in->n_nodes; /* a product, and a quantisation before it */
    f->out->nodes = lb_alloc_n(f->arena, f->nodes_cap, sizeof *f->out->nodes, err);
    f->value_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->value_of, err);
    f->planes_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->planes_of, err);
    f->absorbed = lb_alloc_n(f->arena, in->n_nodes, sizeof *f->absorbed, err);
    f->readers_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->readers_of, err);
    if (f->readers_of == NULL || f->out->values == NULL || f->out->nodes == NULL || f->value_of == NULL ||
        f->planes_of == NULL || f->absorbed == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < in->n_values; i++) {
        f->value_of[i] = LG_NONE;
        f->planes_of[i] = (lg_planes){LG_NONE, LG_NONE, LG_NONE};
    }
    return true;
}

bool lg_fuse(const lg_graph *in, lb_arena *arena, lg_graph **out, lb_err *err) {
    lg_graph *g = lb_alloc(arena, sizeof *g, err);
    if (g == NULL) {
        return false;
    }
    *g = *in;
    g->level = LG_LEVEL_LAUNCH;
    g->n_values = 0;
    g->n_nodes = 0;
    lg_fuser f = {.in = in, .out = g, .arena = arena, .err = err};
    if (!room(&f, err)) {
        return false;
    }
    find_readers(&f);
    if (!lg_fuse_find_experts(&f)) {
        return false;
    }
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        if (!f.absorbed[i] && !fuse_node(&f, &in->nodes[i])) {
            return false;
        }
    }
    g->logits = lg_fuse_map(&f, in->logits);
    if (g->logits == LG_NONE) {
        return false;
    }
    *out = g;
    return true;
}
