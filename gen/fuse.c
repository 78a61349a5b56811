/* fuse.c -- see fuse.h. One pass over the nodes in order; each rule looks at the readers of a
 * value. */
#include "fuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op.h"

enum { NONE = UINT32_MAX, DRAFT_MAX = 16, NEW_VALUES_PER_NODE = 4 };

/* The quantised planes of a value in the new graph, or NONE. */
typedef struct planes {
    uint32_t q, d, s;
} planes;

typedef struct fuser {
    const lg_graph *in;
    lg_graph *out;
    lb_arena *arena;
    lb_err *err;
    uint32_t *value_of; /* in-value -> out-value, NONE while not made */
    planes *planes_of;  /* in-value -> its quantised planes */
    bool *absorbed;     /* in-node -> already part of an earlier new node */
    uint32_t values_cap, nodes_cap;
} fuser;

static bool unsupported(fuser *f, const lg_gnode *n, const char *why) {
    return lb_err_set(f->err, LB_UNSUPPORTED, "op '%s' of layer %" PRId32 ": %s",
                      lg_op_get(n->op)->name, n->layer, why);
}

/* ---- reading the old graph */

static uint32_t id_of(const lg_gnode *n, const char *role) {
    const lg_goperand *o = lg_node_operand(n, role);
    return o == NULL ? NONE : o->id;
}

/* The next node from `start` on that reads in-value v, or NONE. */
static uint32_t next_reader(const lg_graph *g, uint32_t v, uint32_t start) {
    for (uint32_t i = start; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->id == v && (p->access == LG_READ || p->access == LG_BOTH)) {
                return i;
            }
        }
    }
    return NONE;
}

/* The only node that reads v, or NULL. */
static const lg_gnode *only_reader(const fuser *f, uint32_t v) {
    uint32_t i = next_reader(f->in, v, 0);
    if (i == NONE || next_reader(f->in, v, i + 1) != NONE) {
        return NULL;
    }
    return &f->in->nodes[i];
}

static uint32_t index_of(const fuser *f, const lg_gnode *n) {
    return (uint32_t)(n - f->in->nodes);
}

static bool is_quantised(const fuser *f, const lg_gnode *linear) {
    const lg_gtensor *t = &f->in->tensors[id_of(linear, "w")];
    return lg_qtype_get(t->file->type)->qblock_elems > 1;
}

/* What the linears that read v need of it. */
static void needs(const fuser *f, uint32_t v, bool *f32, bool *q8) {
    *f32 = false;
    *q8 = false;
    for (uint32_t i = next_reader(f->in, v, 0); i != NONE; i = next_reader(f->in, v, i + 1)) {
        const lg_gnode *n = &f->in->nodes[i];
        if (n->op == LG_OP_LINEAR && is_quantised(f, n)) {
            *q8 = true;
        } else {
            *f32 = true;
        }
    }
}

/* ---- writing the new one */

static uint32_t new_value(fuser *f, const char *name, lg_rows rows, lg_elem elem, uint64_t width) {
    if (f->out->n_values == f->values_cap) {
        lb_err_set(f->err, LB_LIMIT, "fuse: more than %" PRIu32 " values", f->values_cap);
        return NONE;
    }
    f->out->values[f->out->n_values] =
        (lg_gvalue){.name = name, .rows = rows, .elem = elem, .width = width};
    return f->out->n_values++;
}

static bool new_planes(fuser *f, uint32_t v, planes *p) {
    const lg_gvalue *src = &f->in->values[v];
    const char *name[3];
    for (int i = 0; i < 3; i++) {
        name[i] = lb_format(f->arena, f->err, "%s.%c", src->name, "qds"[i]);
        if (name[i] == NULL) {
            return false;
        }
    }
    p->q = new_value(f, name[0], src->rows, LG_ELEM_I8, src->width);
    p->d = new_value(f, name[1], src->rows, LG_ELEM_F32, src->width / 32);
    p->s = new_value(f, name[2], src->rows, LG_ELEM_I16, src->width / 16);
    f->planes_of[v] = *p;
    return p->s != NONE;
}

/* The new graph's value for in-value v; made on first use. */
static uint32_t map_value(fuser *f, uint32_t v) {
    if (f->value_of[v] == NONE) {
        const lg_gvalue *src = &f->in->values[v];
        uint32_t id = new_value(f, src->name, src->rows, src->elem, src->width);
        if (id != NONE) {
            f->out->values[id] = *src;
        }
        f->value_of[v] = id;
    }
    return f->value_of[v];
}

/* A node under construction. */
typedef struct draft {
    lg_goperand operands[DRAFT_MAX];
    uint32_t n;
} draft;

/* Operands that find no room are counted all the same; emit refuses them. */
static void put(draft *d, const char *role, lg_access access, uint32_t id) {
    if (d->n < DRAFT_MAX) {
        d->operands[d->n] = (lg_goperand){role, access, id};
    }
    d->n++;
}

static bool emit(fuser *f, lg_op op, int32_t layer, const draft *d, const lg_value *attrs) {
    if (d->n > DRAFT_MAX || f->out->n_nodes == f->nodes_cap) {
        return lb_err_set(f->err, LB_LIMIT,
                          "fuse: op '%s' with %" PRIu32 " operands as node %" PRIu32,
                          lg_op_get(op)->name, d->n, f->out->n_nodes);
    }
    lg_goperand *o = lb_alloc_n(f->arena, d->n, sizeof *o, f->err);
    if (o == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->operands[i].id == NONE) {
            return false; /* new_value has said why */
        }
    }
    memcpy(o, d->operands, d->n * sizeof *o);
    f->out->nodes[f->out->n_nodes++] = (lg_gnode){op, layer, o, d->n, attrs};
    return true;
}

static const lg_value *attrs_with(fuser *f, const char *key, const char *text) {
    lg_builder b;
    lg_build_init(&b, f->arena);
    lg_value *map = lg_build_map(&b);
    lg_build_set_string(&b, map, key, text);
    return lg_build_done(&b, f->err) ? map : NULL;
}

/* ---- rules */

static bool copy_node(fuser *f, const lg_gnode *n) {
    draft d = {0};
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        put(&d, o->role, o->access, o->access == LG_TENSOR ? o->id : map_value(f, o->id));
    }
    return emit(f, n->op, n->layer, &d, n->attrs);
}

static bool fuse_norm(fuser *f, const lg_gnode *n) {
    uint32_t y = id_of(n, "y");
    uint32_t x = id_of(n, "x");
    bool f32 = false;
    bool q8 = false;
    needs(f, y, &f32, &q8);
    draft d = {0};
    /* take_rows left its input's number in value_of, so x may have other rows than y */
    put(&d, "x", LG_READ, map_value(f, x));
    put(&d, "w", LG_TENSOR, id_of(n, "w"));
    if (f32 || !q8) {
        put(&d, "y", LG_WRITE, map_value(f, y));
    }
    if (q8) {
        planes p = {NONE, NONE, NONE};
        if (!new_planes(f, y, &p)) {
            return false;
        }
        put(&d, "y_q", LG_WRITE, p.q);
        put(&d, "y_d", LG_WRITE, p.d);
        put(&d, "y_s", LG_WRITE, p.s);
    }
    return emit(f, LG_OP_NORM_QUANT, n->layer, &d, n->attrs);
}

/* Quantises in-value v in front of a matmul unless its producer or an earlier reader has. */
static bool ensure_planes(fuser *f, const lg_gnode *reader, uint32_t v) {
    if (f->planes_of[v].q != NONE) {
        return true;
    }
    draft d = {0};
    planes p = {NONE, NONE, NONE};
    put(&d, "x", LG_READ, map_value(f, v));
    if (!new_planes(f, v, &p)) {
        return false;
    }
    put(&d, "y_q", LG_WRITE, p.q);
    put(&d, "y_d", LG_WRITE, p.d);
    put(&d, "y_s", LG_WRITE, p.s);
    const lg_value *none = attrs_with(f, "of", f->in->values[v].name);
    return none != NULL && emit(f, LG_OP_QUANT, reader->layer, &d, none);
}

static const char *numbered(fuser *f, char letter, uint32_t i) {
    return lb_format(f->arena, f->err, "%c%" PRIu32, letter, i);
}

/* One matmul of `n_parts` linears over the same input, writing out-value y. */
static bool emit_matmul(fuser *f, const lg_gnode *const *parts, uint32_t n_parts, lg_op op,
                        uint32_t y, const char *epilogue) {
    uint32_t x = id_of(parts[0], "x");
    bool f32 = false;
    bool q8 = false;
    for (uint32_t i = 0; i < n_parts; i++) {
        if (is_quantised(f, parts[i])) {
            q8 = true;
        } else {
            f32 = true;
        }
    }
    if (q8 && !ensure_planes(f, parts[0], x)) {
        return false;
    }
    draft d = {0};
    if (f32) {
        put(&d, "x", LG_READ, map_value(f, x));
    }
    if (q8) {
        put(&d, "x_q", LG_READ, f->planes_of[x].q);
        put(&d, "x_d", LG_READ, f->planes_of[x].d);
        put(&d, "x_s", LG_READ, f->planes_of[x].s);
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        const char *w = numbered(f, 'w', i);
        const char *b = numbered(f, 'b', i);
        if (w == NULL || b == NULL) {
            return false;
        }
        put(&d, w, LG_TENSOR, id_of(parts[i], "w"));
        if (id_of(parts[i], "b") != NONE) {
            put(&d, b, LG_TENSOR, id_of(parts[i], "b"));
        }
        f->absorbed[index_of(f, parts[i])] = true;
    }
    put(&d, "y", op == LG_OP_MATMUL_ADD ? LG_BOTH : LG_WRITE, y);
    const lg_value *attrs = attrs_with(f, "epilogue", epilogue);
    return attrs != NULL && emit(f, op, parts[0]->layer, &d, attrs);
}

/* The linear whose output in-value v is, or NULL. */
static const lg_gnode *linear_of(const fuser *f, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        if (f->in->nodes[i].op == LG_OP_LINEAR && id_of(&f->in->nodes[i], "y") == v) {
            return &f->in->nodes[i];
        }
    }
    return NULL;
}

static const lg_gnode *rope_to(const fuser *f, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        if (f->in->nodes[i].op == LG_OP_ROPE && id_of(&f->in->nodes[i], "y") == v) {
            return &f->in->nodes[i];
        }
    }
    return NULL;
}

/* The attention block around one kv_store: q, k, v products, rotations, store, attention. */
typedef struct block {
    const lg_gnode *store, *attention, *rope_q, *rope_k;
    const lg_gnode *linears[3];
} block;

static bool find_block(const fuser *f, const lg_gnode *store, block *b) {
    *b = (block){.store = store};
    for (uint32_t i = index_of(f, store); i < f->in->n_nodes; i++) {
        const lg_gnode *n = &f->in->nodes[i];
        if (n->op == LG_OP_ATTENTION && id_of(n, "k_cache") == id_of(store, "k_cache")) {
            b->attention = n;
            break;
        }
    }
    if (b->attention == NULL) {
        return false;
    }
    b->rope_q = rope_to(f, id_of(b->attention, "q"));
    b->rope_k = rope_to(f, id_of(store, "k"));
    if (b->rope_q == NULL || b->rope_k == NULL ||
        !lg_value_equal(b->rope_q->attrs, b->rope_k->attrs) ||
        id_of(b->rope_q, "table") != id_of(b->rope_k, "table")) {
        return false;
    }
    b->linears[0] = linear_of(f, id_of(b->rope_q, "x"));
    b->linears[1] = linear_of(f, id_of(b->rope_k, "x"));
    b->linears[2] = linear_of(f, id_of(store, "v"));
    for (int i = 0; i < 3; i++) {
        if (b->linears[i] == NULL || id_of(b->linears[i], "x") != id_of(b->linears[0], "x") ||
            only_reader(f, id_of(b->linears[i], "y")) == NULL) {
            return false;
        }
    }
    return true;
}

static const lg_value *rope_kv_attrs(fuser *f, const block *b) {
    lg_builder t;
    lg_build_init(&t, f->arena);
    lg_value *map = lg_build_map(&t);
    static const char *const from_attention[] = {"n_head", "n_kv", "head_dim", "cap"};
    for (size_t i = 0; i < sizeof from_attention / sizeof *from_attention; i++) {
        lg_build_set(&t, map, from_attention[i],
                     lg_value_find(b->attention->attrs, from_attention[i]));
    }
    lg_build_set(&t, map, "n_rot", lg_value_find(b->rope_q->attrs, "n_rot"));
    lg_build_set(&t, map, "pairing", lg_value_find(b->rope_q->attrs, "pairing"));
    return lg_build_done(&t, f->err) ? map : NULL;
}

/* q, k, v in one product; then rotation and store; the attention node comes in its own turn and
 * finds the joint value through value_of. */
static bool fuse_qkv(fuser *f, const block *b) {
    uint64_t width = 0;
    for (int i = 0; i < 3; i++) {
        width += f->in->values[id_of(b->linears[i], "y")].width;
    }
    uint32_t qkv = new_value(f, "qkv", LG_ROWS_T, LG_ELEM_F32, width);
    const lg_value *attrs = rope_kv_attrs(f, b);
    if (qkv == NONE || attrs == NULL || !emit_matmul(f, b->linears, 3, LG_OP_MATMUL, qkv, "none")) {
        return false;
    }
    draft d = {0};
    put(&d, "qkv", LG_BOTH, qkv);
    put(&d, "table", LG_READ, map_value(f, id_of(b->rope_q, "table")));
    put(&d, "k", LG_STATE, map_value(f, id_of(b->store, "k_cache")));
    put(&d, "v", LG_STATE, map_value(f, id_of(b->store, "v_cache")));
    f->absorbed[index_of(f, b->rope_q)] = true;
    f->absorbed[index_of(f, b->rope_k)] = true;
    f->absorbed[index_of(f, b->store)] = true;
    f->value_of[id_of(b->attention, "q")] = qkv;
    return emit(f, LG_OP_ROPE_KV, b->store->layer, &d, attrs);
}

static bool fuse_attention(fuser *f, const lg_gnode *n) {
    draft d = {0};
    put(&d, "qkv", LG_READ, map_value(f, id_of(n, "q")));
    put(&d, "k", LG_STATE, map_value(f, id_of(n, "k_cache")));
    put(&d, "v", LG_STATE, map_value(f, id_of(n, "v_cache")));
    put(&d, "y", LG_WRITE, map_value(f, id_of(n, "y")));
    return emit(f, LG_OP_ATTN, n->layer, &d, n->attrs);
}

/* The kv_store that this linear feeds, through a rotation or directly, or NULL. */
static const lg_gnode *store_behind(const fuser *f, const lg_gnode *linear) {
    const lg_gnode *r = only_reader(f, id_of(linear, "y"));
    if (r == NULL) {
        return NULL;
    }
    if (r->op == LG_OP_KV_STORE) {
        return r;
    }
    if (r->op != LG_OP_ROPE) {
        return NULL;
    }
    const lg_gnode *next = only_reader(f, id_of(r, "y"));
    if (next == NULL || next->op == LG_OP_KV_STORE) {
        return next;
    }
    for (uint32_t i = 0; next->op == LG_OP_ATTENTION && i < f->in->n_nodes; i++) {
        const lg_gnode *s = &f->in->nodes[i];
        if (s->op == LG_OP_KV_STORE && id_of(s, "k_cache") == id_of(next, "k_cache")) {
            return s;
        }
    }
    return NULL;
}

static bool fuse_gated(fuser *f, const lg_gnode *silu) {
    const lg_gnode *parts[2] = {linear_of(f, id_of(silu, "gate")), linear_of(f, id_of(silu, "up"))};
    for (int i = 0; i < 2; i++) {
        if (parts[i] == NULL || id_of(parts[i], "x") != id_of(parts[0], "x") ||
            only_reader(f, id_of(parts[i], "y")) != silu) {
            return unsupported(f, silu, "its inputs are not two products of one value");
        }
    }
    f->absorbed[index_of(f, silu)] = true;
    return emit_matmul(f, parts, 2, LG_OP_MATMUL, map_value(f, id_of(silu, "y")), "swiglu");
}

/* x + linear in place. The sum is made where the linear stands, so the add must be the next to read
 * the old x, and the last. */
static bool fuse_residual(fuser *f, const lg_gnode *linear, const lg_gnode *add) {
    uint32_t a = id_of(add, "a");
    uint32_t at = index_of(f, add);
    if (id_of(add, "b") != id_of(linear, "y") || a == f->in->logits ||
        next_reader(f->in, a, index_of(f, linear)) != at || next_reader(f->in, a, at + 1) != NONE) {
        return unsupported(f, add, "it is not a residual whose old value is free");
    }
    f->absorbed[index_of(f, add)] = true;
    f->value_of[id_of(add, "y")] = map_value(f, a);
    return emit_matmul(f, &linear, 1, LG_OP_MATMUL_ADD, map_value(f, a), "add");
}

static bool fuse_linear(fuser *f, const lg_gnode *n) {
    const lg_gnode *reader = only_reader(f, id_of(n, "y"));
    const lg_gnode *store = store_behind(f, n);
    block b;
    if (store != NULL) {
        return find_block(f, store, &b) ? fuse_qkv(f, &b)
                                        : unsupported(f, store,
                                                      "its keys, values and queries do not come "
                                                      "from three products of one value");
    }
    if (reader != NULL && reader->op == LG_OP_SILU_MUL) {
        return fuse_gated(f, reader);
    }
    if (reader != NULL && reader->op == LG_OP_ADD) {
        return fuse_residual(f, n, reader);
    }
    return emit_matmul(f, &n, 1, LG_OP_MATMUL, map_value(f, id_of(n, "y")), "none");
}

/* The rows are picked by the norm that follows: it reads row logit_rows[i] of x, which nothing may
 * have changed in place by then. */
static bool fuse_take_rows(fuser *f, const lg_gnode *n) {
    const lg_gnode *reader = only_reader(f, id_of(n, "y"));
    if (reader == NULL || reader->op != LG_OP_RMS_NORM) {
        return unsupported(f, n, "it is not followed by one rms_norm");
    }
    if (next_reader(f->in, id_of(n, "x"), index_of(f, n) + 1) != NONE) {
        return unsupported(f, n, "its input is read again behind it");
    }
    f->value_of[id_of(n, "y")] = map_value(f, id_of(n, "x"));
    return true;
}

static bool fuse_node(fuser *f, const lg_gnode *n) {
    switch (n->op) {
    case LG_OP_EMBED:
    case LG_OP_ROPE_TABLE: return copy_node(f, n);
    case LG_OP_RMS_NORM: return fuse_norm(f, n);
    case LG_OP_LINEAR: return fuse_linear(f, n);
    case LG_OP_ATTENTION: return fuse_attention(f, n);
    case LG_OP_TAKE_ROWS: return fuse_take_rows(f, n);
    default: return unsupported(f, n, "no launch op computes it here");
    }
}

static bool room(fuser *f, lb_err *err) {
    const lg_graph *in = f->in;
    f->values_cap = in->n_values + NEW_VALUES_PER_NODE * in->n_nodes;
    f->out->values = lb_alloc_n(f->arena, f->values_cap, sizeof *f->out->values, err);
    f->nodes_cap = 2 * in->n_nodes; /* a product, and a quantisation before it */
    f->out->nodes = lb_alloc_n(f->arena, f->nodes_cap, sizeof *f->out->nodes, err);
    f->value_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->value_of, err);
    f->planes_of = lb_alloc_n(f->arena, in->n_values, sizeof *f->planes_of, err);
    f->absorbed = lb_alloc_n(f->arena, in->n_nodes, sizeof *f->absorbed, err);
    if (f->out->values == NULL || f->out->nodes == NULL || f->value_of == NULL ||
        f->planes_of == NULL || f->absorbed == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < in->n_values; i++) {
        f->value_of[i] = NONE;
        f->planes_of[i] = (planes){NONE, NONE, NONE};
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
    fuser f = {.in = in, .out = g, .arena = arena, .err = err};
    if (!room(&f, err)) {
        return false;
    }
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        if (!f.absorbed[i] && !fuse_node(&f, &in->nodes[i])) {
            return false;
        }
    }
    g->logits = map_value(&f, in->logits);
    if (g->logits == NONE) {
        return false;
    }
    *out = g;
    return true;
}
