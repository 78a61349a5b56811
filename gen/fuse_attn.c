/* fuse_attn.c -- the rules of attention: products of queries, keys and values become one, rotation
 * and store become rope_kv. */
#include "fuse_parts.h"
#include "op.h"

static const lg_gnode *rope_to(const lg_fuser *f, uint32_t v) {
    for (uint32_t i = 0; i < f->in->n_nodes; i++) {
        if (f->in->nodes[i].op == LG_OP_ROPE && lg_fuse_id(&f->in->nodes[i], "y") == v) {
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

static bool find_block(const lg_fuser *f, const lg_gnode *store, block *b) {
    *b = (block){.store = store};
    for (uint32_t i = lg_fuse_index(f, store); i < f->in->n_nodes; i++) {
        const lg_gnode *n = &f->in->nodes[i];
        if (n->op == LG_OP_ATTENTION && lg_fuse_id(n, "k_cache") == lg_fuse_id(store, "k_cache")) {
            b->attention = n;
            break;
        }
    }
    if (b->attention == NULL) {
        return false;
    }
    b->rope_q = rope_to(f, lg_fuse_id(b->attention, "q"));
    b->rope_k = rope_to(f, lg_fuse_id(store, "k"));
    if (b->rope_q == NULL || b->rope_k == NULL ||
        !lg_value_equal(b->rope_q->attrs, b->rope_k->attrs) ||
        lg_fuse_id(b->rope_q, "table") != lg_fuse_id(b->rope_k, "table")) {
        return false;
    }
    b->linears[0] = lg_fuse_linear_to(f, lg_fuse_id(b->rope_q, "x"));
    b->linears[1] = lg_fuse_linear_to(f, lg_fuse_id(b->rope_k, "x"));
    b->linears[2] = lg_fuse_linear_to(f, lg_fuse_id(store, "v"));
    for (int i = 0; i < 3; i++) {
        if (b->linears[i] == NULL ||
            lg_fuse_id(b->linears[i], "x") != lg_fuse_id(b->linears[0], "x") ||
            lg_fuse_only_reader(f, lg_fuse_id(b->linears[i], "y")) == NULL) {
            return false;
        }
    }
    return true;
}

static const lg_value *rope_kv_attrs(lg_fuser *f, const block *b) {
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
static bool fuse_qkv(lg_fuser *f, const block *b) {
    uint64_t width = 0;
    for (int i = 0; i < 3; i++) {
        width += f->in->values[lg_fuse_id(b->linears[i], "y")].width;
    }
    uint32_t qkv = lg_fuse_new_value(f, "qkv", LG_ROWS_T, LG_ELEM_F32, width);
    const lg_value *attrs = rope_kv_attrs(f, b);
    if (qkv == LG_NONE || attrs == NULL ||
        !lg_fuse_matmul(f, b->linears, 3, LG_OP_MATMUL, qkv, "none")) {
        return false;
    }
    lg_draft d = {0};
    lg_draft_put(&d, "qkv", LG_BOTH, qkv);
    lg_draft_put(&d, "table", LG_READ, lg_fuse_map(f, lg_fuse_id(b->rope_q, "table")));
    lg_draft_put(&d, "k", LG_STATE, lg_fuse_map(f, lg_fuse_id(b->store, "k_cache")));
    lg_draft_put(&d, "v", LG_STATE, lg_fuse_map(f, lg_fuse_id(b->store, "v_cache")));
    f->absorbed[lg_fuse_index(f, b->rope_q)] = true;
    f->absorbed[lg_fuse_index(f, b->rope_k)] = true;
    f->absorbed[lg_fuse_index(f, b->store)] = true;
    f->value_of[lg_fuse_id(b->attention, "q")] = qkv;
    return lg_fuse_emit(f, LG_OP_ROPE_KV, b->store->layer, &d, attrs);
}

bool lg_fuse_attention(lg_fuser *f, const lg_gnode *n) {
    lg_draft d = {0};
    lg_draft_put(&d, "qkv", LG_READ, lg_fuse_map(f, lg_fuse_id(n, "q")));
    lg_draft_put(&d, "k", LG_STATE, lg_fuse_map(f, lg_fuse_id(n, "k_cache")));
    lg_draft_put(&d, "v", LG_STATE, lg_fuse_map(f, lg_fuse_id(n, "v_cache")));
    lg_draft_put(&d, "y", LG_WRITE, lg_fuse_map(f, lg_fuse_id(n, "y")));
    return lg_fuse_emit(f, LG_OP_ATTN, n->layer, &d, n->attrs);
}

bool lg_fuse_block(lg_fuser *f, const lg_gnode *store) {
    block b;
    return find_block(f, store, &b)
               ? fuse_qkv(f, &b)
               : lg_fuse_unsupported(f, store,
                                     "its keys, values and queries do not come from three products "
                                     "of one value");
}

/* Through a rotation or directly. */
const lg_gnode *lg_fuse_store_behind(const lg_fuser *f, const lg_gnode *linear) {
    const lg_gnode *r = lg_fuse_only_reader(f, lg_fuse_id(linear, "y"));
    if (r == NULL) {
        return NULL;
    }
    if (r->op == LG_OP_KV_STORE) {
        return r;
    }
    if (r->op != LG_OP_ROPE) {
        return NULL;
    }
    const lg_gnode *next = lg_fuse_only_reader(f, lg_fuse_id(r, "y"));
    if (next == NULL || next->op == LG_OP_KV_STORE) {
        return next;
    }
    for (uint32_t i = 0; next->op == LG_OP_ATTENTION && i < f->in->n_nodes; i++) {
        const lg_gnode *s = &f->in->nodes[i];
        if (s->op == LG_OP_KV_STORE && lg_fuse_id(s, "k_cache") == lg_fuse_id(next, "k_cache")) {
            return s;
        }
    }
    return NULL;
}
