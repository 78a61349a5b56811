/* fuse_attn.c -- the rules of attention: the products of queries, keys, values and output gates
 * become one; norms of heads, rotation and store become rope_kv; attention and gate become attn.
 *
 * What is looked for, around one kv_store:
 *     q = linear [head_norm] rope,  k = linear [head_norm] rope,  v = linear,  all of one input
 *     attention(q) [gate by a linear of that input] */
#include <string.h>

#include "fuse_parts.h"
#include "op.h"

/* The node of this op that writes in-value v, or NULL. */
static const lg_gnode *writer_of(const lg_fuser *f, lg_op op, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        if (f->in->nodes[i].op == op && lg_fuse_id(&f->in->nodes[i], "y") == v) {
            return &f->in->nodes[i];
        }
    }
    return NULL;
}

/* From a rotation back to the product it turns. */
typedef struct head_chain {
    const lg_gnode *rope, *norm, *linear; /* norm: NULL if there is none */
} head_chain;

/* The attention block around one kv_store; gate and gate_linear are NULL without a gate. */
typedef struct block {
    const lg_gnode *store, *attention, *gate, *v, *gate_linear;
    head_chain q, k;
} block;

static bool find_chain(const lg_fuser *f, uint32_t rotated, head_chain *c) {
    c->rope = writer_of(f, LG_OP_ROPE, rotated);
    if (c->rope == NULL) {
        return false;
    }
    uint32_t x = lg_fuse_id(c->rope, "x");
    c->norm = writer_of(f, LG_OP_HEAD_NORM, x);
    if (c->norm != NULL) {
        if (lg_fuse_only_reader(f, x) == NULL) {
            return false;
        }
        x = lg_fuse_id(c->norm, "x");
    }
    c->linear = lg_fuse_linear_to(f, x);
    return c->linear != NULL;
}

static const lg_gnode *attention_on(const lg_fuser *f, const lg_gnode *store) {
    for (uint32_t i = lg_fuse_index(f, store); i < f->in->n_nodes; i++) {
        const lg_gnode *n = &f->in->nodes[i];
        if (n->op == LG_OP_ATTENTION && lg_fuse_id(n, "k_cache") == lg_fuse_id(store, "k_cache")) {
            return n;
        }
    }
    return NULL;
}

/* Queries and keys are turned and normed alike. */
static bool alike(const head_chain *q, const head_chain *k) {
    if (!lg_value_equal(q->rope->attrs, k->rope->attrs) ||
        lg_fuse_id(q->rope, "table") != lg_fuse_id(k->rope, "table")) {
        return false;
    }
    if (q->norm == NULL || k->norm == NULL) {
        return q->norm == k->norm;
    }
    return lg_value_equal(q->norm->attrs, k->norm->attrs);
}

/* The products of the block in the order of their columns. */
static uint32_t products(const block *b, const lg_gnode *out[4]) {
    out[0] = b->q.linear;
    out[1] = b->k.linear;
    out[2] = b->v;
    out[3] = b->gate_linear;
    return b->gate_linear == NULL ? 3 : 4;
}

static bool one_input(const lg_fuser *f, const block *b) {
    const lg_gnode *parts[4];
    uint32_t n = products(b, parts);
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i] == NULL || lg_fuse_id(parts[i], "x") != lg_fuse_id(parts[0], "x") ||
            lg_fuse_only_reader(f, lg_fuse_id(parts[i], "y")) == NULL) {
            return false;
        }
    }
    return true;
}

/* The gate behind an attention: its only reader, the attention's output being what is gated. */
static const lg_gnode *gate_of(const lg_fuser *f, const lg_gnode *attention) {
    uint32_t y = lg_fuse_id(attention, "y");
    const lg_gnode *n = lg_fuse_only_reader(f, y);
    return n != NULL && n->op == LG_OP_GATE && lg_fuse_id(n, "x") == y ? n : NULL;
}

static bool find_block(const lg_fuser *f, const lg_gnode *store, block *b) {
    *b = (block){.store = store, .attention = attention_on(f, store)};
    if (b->attention == NULL || !find_chain(f, lg_fuse_id(b->attention, "q"), &b->q) ||
        !find_chain(f, lg_fuse_id(store, "k"), &b->k) || !alike(&b->q, &b->k)) {
        return false;
    }
    b->v = lg_fuse_linear_to(f, lg_fuse_id(store, "v"));
    b->gate = gate_of(f, b->attention);
    if (b->gate != NULL) {
        b->gate_linear = lg_fuse_linear_to(f, lg_fuse_id(b->gate, "gate"));
        if (b->gate_linear == NULL) {
            return false;
        }
    }
    return one_input(f, b);
}

/* "none", "head" or "element": what the gate has a number for. */
static const char *gate_kind(const lg_fuser *f, const block *b) {
    if (b->gate == NULL) {
        return "none";
    }
    uint64_t gates = f->in->values[lg_fuse_id(b->gate, "gate")].width;
    return gates == f->in->values[lg_fuse_id(b->gate, "x")].width ? "element" : "head";
}

/* A map of the named attributes of `from`, with the kind of the gate. */
static lg_value *attrs_from(lg_builder *t, const lg_fuser *f, const block *b, const lg_value *from,
                            const char *const *names) {
    lg_value *map = lg_build_map(t);
    for (; *names != NULL; names++) {
        lg_build_set(t, map, *names, lg_value_find(from, *names));
    }
    lg_build_set_string(t, map, "gate", gate_kind(f, b));
    return map;
}

static const lg_value *rope_kv_attrs(lg_fuser *f, const block *b) {
    static const char *const names[] = {"n_head", "n_kv", "head_dim", "cap", "kv", NULL};
    lg_builder t;
    lg_build_init(&t, f->arena);
    lg_value *map = attrs_from(&t, f, b, b->attention->attrs, names);
    lg_build_set(&t, map, "n_rot", lg_value_find(b->q.rope->attrs, "n_rot"));
    lg_build_set(&t, map, "pairing", lg_value_find(b->q.rope->attrs, "pairing"));
    if (b->q.norm != NULL) {
        lg_build_set(&t, map, "eps", lg_value_find(b->q.norm->attrs, "eps"));
    }
    return lg_build_done(&t, f->err) ? map : NULL;
}

static void absorb(lg_fuser *f, const lg_gnode *n) {
    if (n != NULL) {
        f->absorbed[lg_fuse_index(f, n)] = true;
    }
}

/* Norms of heads, rotation and store, in place on the joint product. */
static bool emit_rope_kv(lg_fuser *f, const block *b, uint32_t qkv) {
    lg_draft d = {0};
    const lg_value *attrs = rope_kv_attrs(f, b);
    lg_draft_put(&d, "qkv", LG_BOTH, qkv);
    if (b->q.norm != NULL) {
        lg_draft_put(&d, "q_norm", LG_TENSOR, lg_fuse_id(b->q.norm, "w"));
        lg_draft_put(&d, "k_norm", LG_TENSOR, lg_fuse_id(b->k.norm, "w"));
    }
    lg_draft_put(&d, "table", LG_READ, lg_fuse_map(f, lg_fuse_id(b->q.rope, "table")));
    lg_draft_put(&d, "k", LG_STATE, lg_fuse_map(f, lg_fuse_id(b->store, "k_cache")));
    lg_draft_put(&d, "v", LG_STATE, lg_fuse_map(f, lg_fuse_id(b->store, "v_cache")));
    const lg_gnode *gone[] = {b->q.norm, b->k.norm, b->q.rope, b->k.rope, b->store};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        absorb(f, gone[i]);
    }
    return attrs != NULL && lg_fuse_emit(f, LG_OP_ROPE_KV, b->store->layer, &d, attrs);
}

/* All products in one; the attention node comes in its own turn and finds the joint value through
 * value_of. */
static bool fuse_found(lg_fuser *f, const block *b) {
    const lg_gnode *parts[4];
    uint32_t n = products(b, parts);
    uint64_t width = 0;
    for (uint32_t i = 0; i < n; i++) {
        width += f->in->values[lg_fuse_id(parts[i], "y")].width;
    }
    uint32_t qkv = lg_fuse_new_value(f, "qkv", LG_ROWS_T, LG_ELEM_F32, width);
    if (qkv == LG_NONE || !lg_fuse_matmul(f, parts, n, LG_OP_MATMUL, qkv, "none")) {
        return false;
    }
    f->value_of[lg_fuse_id(b->attention, "q")] = qkv;
    return emit_rope_kv(f, b, qkv);
}

bool lg_fuse_block(lg_fuser *f, const lg_gnode *store) {
    block b;
    return find_block(f, store, &b)
               ? fuse_found(f, &b)
               : lg_fuse_unsupported(f, store,
                                     "its keys, values and queries do not come from products of "
                                     "one value");
}

/* The store on this attention's cache, or NULL. */
static const lg_gnode *store_of(const lg_fuser *f, const lg_gnode *attention) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        const lg_gnode *s = &f->in->nodes[i];
        if (s->op == LG_OP_KV_STORE &&
            lg_fuse_id(s, "k_cache") == lg_fuse_id(attention, "k_cache")) {
            return s;
        }
    }
    return NULL;
}

bool lg_fuse_attention(lg_fuser *f, const lg_gnode *n) {
    static const char *const names[] = {"n_head", "n_kv",   "head_dim", "cap",
                                        "scale",  "window", "kv",       NULL};
    const lg_gnode *store = store_of(f, n);
    block b;
    if (store == NULL || !find_block(f, store, &b)) {
        return lg_fuse_unsupported(f, n, "nothing is stored for it");
    }
    lg_builder t;
    lg_build_init(&t, f->arena);
    lg_value *attrs = attrs_from(&t, f, &b, n->attrs, names);
    if (b.gate != NULL) {
        lg_build_set(&t, attrs, "act", lg_value_find(b.gate->attrs, "act"));
    }
    if (!lg_build_done(&t, f->err)) {
        return false;
    }
    lg_draft d = {0};
    lg_draft_put(&d, "qkv", LG_READ, lg_fuse_map(f, lg_fuse_id(n, "q")));
    lg_draft_put(&d, "k", LG_STATE, lg_fuse_map(f, lg_fuse_id(n, "k_cache")));
    lg_draft_put(&d, "v", LG_STATE, lg_fuse_map(f, lg_fuse_id(n, "v_cache")));
    lg_draft_put(&d, "y", LG_WRITE, lg_fuse_map(f, lg_fuse_id(b.gate != NULL ? b.gate : n, "y")));
    absorb(f, b.gate);
    return lg_fuse_emit(f, LG_OP_ATTN, n->layer, &d, attrs);
}

/* The next node on the way from a product to its attention or store: v itself, or through norm and
 * rotation, or as a gate. */
const lg_gnode *lg_fuse_store_behind(const lg_fuser *f, const lg_gnode *linear) {
    const lg_gnode *n = lg_fuse_only_reader(f, lg_fuse_id(linear, "y"));
    if (n != NULL && n->op == LG_OP_GATE && lg_fuse_id(n, "gate") == lg_fuse_id(linear, "y")) {
        n = writer_of(f, LG_OP_ATTENTION, lg_fuse_id(n, "x"));
        return n == NULL ? NULL : store_of(f, n);
    }
    if (n != NULL && n->op == LG_OP_HEAD_NORM) {
        n = lg_fuse_only_reader(f, lg_fuse_id(n, "y"));
    }
    if (n != NULL && n->op == LG_OP_ROPE) {
        n = lg_fuse_only_reader(f, lg_fuse_id(n, "y"));
    }
    if (n == NULL) {
        return NULL;
    }
    return n->op == LG_OP_KV_STORE ? n : n->op == LG_OP_ATTENTION ? store_of(f, n) : NULL;
}
