/* op.c -- the op table and one shape rule per op. A rule refuses with the op, the layer, the operands
 * and their sizes; it never trusts the architecture file that built the node. */
#include "op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "at.h"

static const lg_op_row OP_ROWS[] = {
#define OP(NAME, name, lvl, fam, role_list) {#name, LG_LEVEL_##lvl, fam, role_list},
#include "op.def"
#undef OP
};

const lg_op_row *lg_op_get(lg_op op) {
    return &OP_ROWS[op];
}

uint32_t lg_elem_bytes(lg_elem e) {
    switch (e) {
    case LG_ELEM_F32: return 4;
    case LG_ELEM_F16: return 2;
    case LG_ELEM_I16: return 2;
    case LG_ELEM_I8: return 1;
    }
    return 0;
}

/* True if the role-list entry of `n` bytes at `entry` ("w*:t", "y_q:w?") is for `role`. */
static bool entry_matches(const char *entry, size_t n, const char *role, bool *numbered) {
    size_t name = strcspn(entry, "*:");
    *numbered = name < n && entry[name] == '*';
    if (strncmp(entry, role, name) != 0) {
        return false;
    }
    const char *rest = role + name;
    if (!*numbered) {
        return *rest == '\0';
    }
    return *rest != '\0' && strspn(rest, "0123456789") == strlen(rest);
}

char lg_op_role(lg_op op, const char *role, bool *optional, bool *numbered) {
    for (const char *p = OP_ROWS[op].roles; *p != '\0';) {
        size_t n = strcspn(p, " ");
        bool many = false;
        if (entry_matches(p, n, role, &many)) {
            const char *colon = strchr(p, ':');
            if (optional != NULL) {
                *optional = p[n - 1] == '?';
            }
            if (numbered != NULL) {
                *numbered = many;
            }
            return colon[1];
        }
        p += n;
        p += strspn(p, " ");
    }
    return '\0';
}

const lg_goperand *lg_node_operand(const lg_gnode *n, const char *role) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        if (strcmp(n->operands[i].role, role) == 0) {
            return &n->operands[i];
        }
    }
    return NULL;
}

/* The checks of one node, with what they need for their messages. */
typedef struct rule {
    const lg_graph *g;
    const lg_gnode *n;
    lb_err *err;
} rule;

static bool refuse(const rule *r, const char *what, uint64_t got, uint64_t want) {
    return lb_err_set(r->err, LB_BAD_SHAPE, "op '%s' of layer %" PRId32 ": %s is %" PRIu64
                      ", expected %" PRIu64, lg_op_get(r->n->op)->name, r->n->layer, what, got, want);
}

static const lg_gvalue *value_of(const rule *r, const char *role) {
    const lg_goperand *o = lg_node_operand(r->n, role);
    return o == NULL || o->access == LG_TENSOR ? NULL : &r->g->values[o->id];
}

static const lg_gtensor *tensor_of(const rule *r, const char *role) {
    const lg_goperand *o = lg_node_operand(r->n, role);
    return o == NULL || o->access != LG_TENSOR ? NULL : &r->g->tensors[o->id];
}

/* The value at `role` has this width and elements; an absent optional one passes. */
static bool width_is(const rule *r, const char *role, uint64_t width, lg_elem elem) {
    const lg_gvalue *v = value_of(r, role);
    if (v == NULL) {
        return true;
    }
    if (v->elem != elem) {
        return refuse(r, role, (uint64_t)v->elem, (uint64_t)elem);
    }
    return v->width == width || refuse(r, role, v->width, width);
}

static bool tensor_is(const rule *r, const char *role, uint64_t cols, uint64_t rows) {
    const lg_gtensor *t = tensor_of(r, role);
    if (t == NULL) {
        return true;
    }
    if (t->n_mats != 1) {
        return refuse(r, role, t->n_mats, 1);
    }
    return (t->n_cols == cols || refuse(r, role, t->n_cols, cols)) &&
           (t->n_rows == rows || refuse(r, role, t->n_rows, rows));
}

static bool same_rows(const rule *r, const char *a, const char *b) {
    const lg_gvalue *x = value_of(r, a);
    const lg_gvalue *y = value_of(r, b);
    if (x == NULL || y == NULL || x->rows == y->rows) {
        return true;
    }
    return refuse(r, b, (uint64_t)y->rows, (uint64_t)x->rows);
}

static bool attr(const rule *r, const char *key, uint64_t *out) {
    lg_at at = lg_at_root(lg_op_get(r->n->op)->name, r->n->attrs);
    return lg_at_uint(&at, key, out, r->err);
}

/* The three planes of a quantised activation of width K. */
static bool q8_planes(const rule *r, const char *prefix, uint64_t k) {
    char role[3][8];
    for (int i = 0; i < 3; i++) {
        snprintf(role[i], sizeof role[i], "%s_%c", prefix, "qds"[i]);
    }
    if (value_of(r, role[0]) == NULL) {
        return true;
    }
    if (k % 32 != 0) {
        return refuse(r, "width modulo 32", k % 32, 0);
    }
    return width_is(r, role[0], k, LG_ELEM_I8) && width_is(r, role[1], k / 32, LG_ELEM_F32) &&
           width_is(r, role[2], k / 16, LG_ELEM_I16);
}

static bool rule_embed(const rule *r) {
    const lg_gtensor *w = tensor_of(r, "w");
    return width_is(r, "y", w->n_cols, LG_ELEM_F32) &&
           tensor_is(r, "w", value_of(r, "y")->width, r->g->n_vocab);
}

static bool rule_same_width(const rule *r, const char *a, const char *b) {
    return width_is(r, b, value_of(r, a)->width, LG_ELEM_F32) && same_rows(r, a, b);
}

static bool rule_norm(const rule *r) {
    uint64_t h = value_of(r, "x")->width;
    return tensor_is(r, "w", h, 1) && width_is(r, "y", h, LG_ELEM_F32) && q8_planes(r, "y", h);
}

static bool rule_linear(const rule *r) {
    uint64_t n = value_of(r, "y")->width;
    return tensor_is(r, "w", value_of(r, "x")->width, n) && tensor_is(r, "b", n, 1) &&
           same_rows(r, "x", "y");
}

/* Heads times head_dim, for the attention ops. */
static bool head_width(const rule *r, const char *heads_key, uint64_t *out) {
    uint64_t heads = 0;
    uint64_t dim = 0;
    if (!attr(r, heads_key, &heads) || !attr(r, "head_dim", &dim)) {
        return false;
    }
    if (heads == 0 || heads > 65536 || dim == 0 || dim > 1024) {
        return refuse(r, "heads x head_dim", heads * 1024 + dim % 1024, 1);
    }
    *out = heads * dim;
    return true;
}

static bool state_holds(const rule *r, const char *role) {
    const lg_gvalue *v = value_of(r, role);
    return v->rows == LG_ROWS_STATE || refuse(r, role, (uint64_t)v->rows, LG_ROWS_STATE);
}

/* An op on a layer's cache: its head counts and the ring's capacity. `k`, `v` name the states. */
static bool rule_cached(const rule *r, const char *k, const char *v, uint64_t *kv_width) {
    uint64_t cap = 0;
    return head_width(r, "n_kv", kv_width) && attr(r, "cap", &cap) && state_holds(r, k) &&
           state_holds(r, v) && (cap % 256 == 0 || refuse(r, "cap modulo 256", cap % 256, 0));
}

static bool rule_attention(const rule *r, const char *in, const char *k, const char *v) {
    uint64_t q = 0;
    uint64_t kv = 0;
    if (!rule_cached(r, k, v, &kv) || !head_width(r, "n_head", &q)) {
        return false;
    }
    uint64_t want = strcmp(in, "qkv") == 0 ? q + 2 * kv : q;
    return q % kv == 0 && width_is(r, in, want, LG_ELEM_F32) && width_is(r, "y", q, LG_ELEM_F32);
}

static bool rule_kv_store(const rule *r) {
    uint64_t kv = 0;
    return rule_cached(r, "k_cache", "v_cache", &kv) && width_is(r, "k", kv, LG_ELEM_F32) &&
           width_is(r, "v", kv, LG_ELEM_F32);
}

static bool rule_rope_kv(const rule *r) {
    uint64_t kv = 0;
    uint64_t q = 0;
    uint64_t n_rot = 0;
    return rule_cached(r, "k", "v", &kv) && head_width(r, "n_head", &q) && attr(r, "n_rot", &n_rot) &&
           width_is(r, "qkv", q + 2 * kv, LG_ELEM_F32) && width_is(r, "table", n_rot, LG_ELEM_F32);
}

static bool rule_rope(const rule *r) {
    uint64_t n_rot = 0;
    return attr(r, "n_rot", &n_rot) && width_is(r, "table", n_rot, LG_ELEM_F32) &&
           rule_same_width(r, "x", "y");
}

static bool rule_take_rows(const rule *r) {
    const lg_gvalue *x = value_of(r, "x");
    const lg_gvalue *y = value_of(r, "y");
    return (x->rows == LG_ROWS_T || refuse(r, "x", (uint64_t)x->rows, LG_ROWS_T)) &&
           (y->rows == LG_ROWS_L || refuse(r, "y", (uint64_t)y->rows, LG_ROWS_L)) &&
           width_is(r, "y", x->width, LG_ELEM_F32);
}

/* Sum of the parts' rows; every part and bias fits K. */
static bool parts_width(const rule *r, uint64_t k, uint64_t *sum, uint64_t *n_parts) {
    *sum = 0;
    for (*n_parts = 0;; (*n_parts)++) {
        char w[24];
        char b[24];
        snprintf(w, sizeof w, "w%" PRIu64, *n_parts);
        snprintf(b, sizeof b, "b%" PRIu64, *n_parts);
        const lg_gtensor *t = tensor_of(r, w);
        if (t == NULL) {
            return *n_parts > 0 || refuse(r, "number of weights", 0, 1);
        }
        if (!tensor_is(r, w, k, t->n_rows) || !tensor_is(r, b, t->n_rows, 1)) {
            return false;
        }
        *sum += t->n_rows;
    }
}

static bool rule_matmul(const rule *r) {
    const lg_gvalue *in = value_of(r, "x") != NULL ? value_of(r, "x") : value_of(r, "x_q");
    if (in == NULL) {
        return refuse(r, "number of inputs", 0, 1);
    }
    uint64_t n = 0;
    uint64_t parts = 0;
    const char *epilogue = NULL;
    lg_at at = lg_at_root("matmul", r->n->attrs);
    if (!parts_width(r, in->width, &n, &parts) || !q8_planes(r, "x", in->width) ||
        !lg_at_string(&at, "epilogue", &epilogue, r->err)) {
        return false;
    }
    if (strcmp(epilogue, "swiglu") == 0) {
        if (parts != 2 || n % 2 != 0) {
            return refuse(r, "parts of a gated product", parts, 2);
        }
        n /= 2;
    }
    return width_is(r, "y", n, LG_ELEM_F32);
}

bool lg_op_shapes(const lg_graph *g, const lg_gnode *n, lb_err *err) {
    rule r = {g, n, err};
    switch (n->op) {
    case LG_OP_EMBED: return rule_embed(&r);
    case LG_OP_ROPE_TABLE: return true;
    case LG_OP_RMS_NORM: return rule_norm(&r) && same_rows(&r, "x", "y");
    case LG_OP_LINEAR: return rule_linear(&r);
    case LG_OP_ROPE: return rule_rope(&r);
    case LG_OP_KV_STORE: return rule_kv_store(&r);
    case LG_OP_ATTENTION: return rule_attention(&r, "q", "k_cache", "v_cache");
    case LG_OP_ADD: return rule_same_width(&r, "a", "b") && rule_same_width(&r, "a", "y");
    case LG_OP_SILU_MUL: return rule_same_width(&r, "gate", "up") && rule_same_width(&r, "gate", "y");
    case LG_OP_TAKE_ROWS: return rule_take_rows(&r);
    case LG_OP_NORM_QUANT: return rule_norm(&r);
    case LG_OP_QUANT: return q8_planes(&r, "y", value_of(&r, "x")->width);
    case LG_OP_MATMUL:
    case LG_OP_MATMUL_ADD: return rule_matmul(&r);
    case LG_OP_ROPE_KV: return rule_rope_kv(&r);
    case LG_OP_ATTN: return rule_attention(&r, "qkv", "k", "v");
    case LG_N_OPS: break;
    }
    return lb_err_set(err, LB_UNSUPPORTED, "op number %d has no shape rule", (int)n->op);
}
