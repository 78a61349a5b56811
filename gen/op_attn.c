/* op_attn.c -- shape rules of rotation, caches and attention. */
#include "op_rule.h"

#include "base/num.h"
#include "kv.h"

/* Heads times head_dim, for the attention ops. */
static bool head_width(const lg_rule *r, const char *heads_key, uint64_t *out) {
    enum { HEADS_MAX = 65536, HEAD_DIM_MAX = 1024 };
    uint64_t heads = 0;
    uint64_t dim = 0;
    if (!lg_rule_attr(r, heads_key, &heads) || !lg_rule_attr(r, "head_dim", &dim)) {
        return false;
    }
    if (heads == 0 || heads > HEADS_MAX) {
        return lg_rule_refuse(r, heads_key, "number", heads, heads == 0 ? 1 : HEADS_MAX);
    }
    if (dim == 0 || dim > HEAD_DIM_MAX) {
        return lg_rule_refuse(r, "head_dim", "number", dim, dim == 0 ? 1 : HEAD_DIM_MAX);
    }
    *out = heads * dim;
    return true;
}

/* The rotation: n_rot even and inside a head, a table of that width, a known pairing. */
static bool rotation(const lg_rule *r) {
    static const char *const pairings[] = {"norm", "neox", NULL};
    lg_at at = lg_rule_attrs(r);
    uint32_t pairing = 0;
    uint64_t n_rot = 0;
    uint64_t dim = 0;
    uint64_t width = 0;
    if (!lg_rule_attr(r, "n_rot", &n_rot) || !lg_rule_attr(r, "head_dim", &dim) ||
        !lg_at_choice(&at, "pairing", pairings, &pairing, r->err)) {
        return false;
    }
    if (n_rot == 0 || n_rot % 2 != 0 || n_rot > dim) {
        return lg_rule_refuse(r, "n_rot", "number", n_rot, dim);
    }
    return lg_rule_floats_over_T(r, "table", &width) &&
           (width == n_rot || lg_rule_refuse(r, "table", "width", width, n_rot));
}

/* Bytes of keys or values of one position, whole heads of the node's type of them. */
static bool position_bytes(const lg_rule *r, const lg_gvalue *v, uint64_t kv_width, uint64_t *out) {
    lg_at at = lg_rule_attrs(r);
    const char *name = NULL;
    const lg_kv_row *kv = NULL;
    lb_err why = {0};
    uint64_t dim = 0;
    if (!lg_at_string(&at, "kv", &name, r->err) || !lg_rule_attr(r, "head_dim", &dim)) {
        return false;
    }
    if (!lg_kv_find(name, &kv, &why)) {
        return lg_at_fail(&at, "kv", r->err, why.code, "%s", why.text);
    }
    if (v->elem != kv->elem) {
        return lg_rule_refuse_text(r, v->name, LG_ELEM_NAMES[v->elem], LG_ELEM_NAMES[kv->elem]);
    }
    if (dim % kv->group != 0) {
        return lg_rule_refuse(r, "head_dim", "number modulo a scale's", dim % kv->group, 0);
    }
    *out = lg_kv_bytes(kv, kv_width); /* widths are below 2^27 */
    return true;
}

/* A state of `cap` positions for each slot, each of a row of keys or values. */
static bool cache_is(const lg_rule *r, const char *role, uint64_t kv_width, uint64_t cap) {
    const lg_gvalue *v = lg_rule_value(r, role);
    uint64_t bytes = 0;
    if (!lg_rule_rows(r, role, LG_ROWS_STATE) || !position_bytes(r, v, kv_width, &bytes)) {
        return false;
    }
    if (cap == 0 || cap % 256 != 0 || v->positions != cap) {
        return v->positions != cap ? lg_rule_refuse(r, role, "positions", v->positions, cap)
                                   : lg_rule_refuse(r, "cap", "positions modulo 256", cap % 256, 0);
    }
    if (!lb_mul(bytes, cap, &bytes) || !lb_mul(bytes, v->slots, &bytes)) {
        return lg_rule_refuse(r, role, "bytes", v->state_bytes, UINT64_MAX);
    }
    return (bytes > 0 && v->state_bytes == bytes) ||
           lg_rule_refuse(r, role, "bytes", v->state_bytes, bytes);
}

/* An op on a layer's cache, whose states are the operands `k` and `v`. */
static bool rule_cached(const lg_rule *r, const char *k, const char *v, uint64_t *kv_width) {
    uint64_t cap = 0;
    return head_width(r, "n_kv", kv_width) && lg_rule_attr(r, "cap", &cap) &&
           cache_is(r, k, *kv_width, cap) && cache_is(r, v, *kv_width, cap);
}

static bool known_act(const lg_rule *r) {
    static const char *const acts[] = {"softplus", NULL};
    lg_at at = lg_rule_attrs(r);
    uint32_t act = 0;
    return lg_at_choice(&at, "act", acts, &act, r->err);
}

/* Columns of the gates behind q, k and v: none, one for each head of q, or one for each element. */
static bool gate_width(const lg_rule *r, uint64_t q, uint64_t *out) {
    static const char *const kinds[] = {"none", "head", "element", NULL};
    lg_at at = lg_rule_attrs(r);
    uint32_t kind = 0;
    uint64_t heads = 0;
    if (!lg_at_choice(&at, "gate", kinds, &kind, r->err) || !lg_rule_attr(r, "n_head", &heads) ||
        (kind != 0 && r->n->op == LG_OP_ATTN && !known_act(r))) {
        return false;
    }
    *out = kind == 0 ? 0 : kind == 1 ? heads : q;
    return true;
}

/* q, k, v and gates of a row side by side. */
static bool joint_width(const lg_rule *r, uint64_t q, uint64_t kv) {
    uint64_t gates = 0;
    return gate_width(r, q, &gates) && lg_rule_rows(r, "qkv", LG_ROWS_T) &&
           lg_rule_width(r, "qkv", q + 2 * kv + gates, LG_ELEM_F32);
}

/* What ctas share, all of it or none: room for whole splits of all heads (o, m and l of each), and
 * counters. */
static bool shared_by_ctas(const lg_rule *r, uint64_t q) {
    const lg_gvalue *part = lg_rule_value(r, "part");
    const lg_gvalue *count = lg_rule_value(r, "count");
    uint64_t dim = 0;
    if (!lg_rule_attr(r, "head_dim", &dim)) {
        return false;
    }
    if ((part == NULL) != (count == NULL)) {
        return lg_rule_refuse(r, part == NULL ? "part" : "count", "number", 0, 1);
    }
    if (part == NULL) {
        return true;
    }
    uint64_t split = q / dim * (dim + 2); /* heads and dim are small */
    if (part->width == 0 || part->width % split != 0) {
        return lg_rule_refuse(r, "part", "width", part->width, split);
    }
    return lg_rule_width(r, "part", part->width, LG_ELEM_F32) &&
           lg_rule_rows(r, "part", LG_ROWS_FEW) &&
           lg_rule_width(r, "count", count->width, LG_ELEM_I32) &&
           lg_rule_rows(r, "count", LG_ROWS_T);
}

bool lg_rule_attention(const lg_rule *r, const char *in, const char *k, const char *v) {
    uint64_t q = 0;
    uint64_t kv = 0;
    uint64_t window = 0;
    if (!rule_cached(r, k, v, &kv) || !head_width(r, "n_head", &q) ||
        !lg_rule_attr(r, "window", &window) || !lg_rule_has_number(r, "scale")) {
        return false;
    }
    if (lg_rule_value(r, k)->window != window || lg_rule_value(r, v)->window != window) {
        return lg_rule_refuse(r, k, "window", lg_rule_value(r, k)->window, window);
    }
    if (q % kv != 0) {
        return lg_rule_refuse(r, "n_head", "width modulo that of n_kv", q % kv, 0);
    }
    bool joint = r->n->op == LG_OP_ATTN;
    return (joint ? joint_width(r, q, kv) && shared_by_ctas(r, q)
                  : lg_rule_width(r, in, q, LG_ELEM_F32) && lg_rule_rows(r, in, LG_ROWS_T)) &&
           lg_rule_width(r, "y", q, LG_ELEM_F32) && lg_rule_rows(r, "y", LG_ROWS_T);
}

bool lg_rule_kv_store(const lg_rule *r) {
    uint64_t kv = 0;
    return rule_cached(r, "k_cache", "v_cache", &kv) && lg_rule_width(r, "k", kv, LG_ELEM_F32) &&
           lg_rule_width(r, "v", kv, LG_ELEM_F32) && lg_rule_rows(r, "k", LG_ROWS_T) &&
           lg_rule_rows(r, "v", LG_ROWS_T);
}

/* Norms of q and k before the rotation: both or none, one weight for each element of a head. */
static bool head_norms(const lg_rule *r) {
    uint64_t dim = 0;
    bool q = lg_rule_tensor(r, "q_norm") != NULL;
    bool k = lg_rule_tensor(r, "k_norm") != NULL;
    if (q != k) {
        return lg_rule_refuse(r, q ? "k_norm" : "q_norm", "number", 0, 1);
    }
    return !q || (lg_rule_attr(r, "head_dim", &dim) && lg_rule_matrix(r, "q_norm", dim, 1) &&
                  lg_rule_matrix(r, "k_norm", dim, 1) && lg_rule_has_number(r, "eps"));
}

static bool counters_are(const lg_rule *r) {
    const lg_gvalue *count = lg_rule_value(r, "count");
    return count == NULL || (lg_rule_width(r, "count", count->width, LG_ELEM_I32) &&
                             lg_rule_rows(r, "count", LG_ROWS_T));
}

bool lg_rule_rope_kv(const lg_rule *r) {
    uint64_t kv = 0;
    uint64_t q = 0;
    return rule_cached(r, "k", "v", &kv) && head_width(r, "n_head", &q) && rotation(r) &&
           head_norms(r) && joint_width(r, q, kv) && counters_are(r);
}

/* Whole heads, the same in and out. */
static bool heads_to_heads(const lg_rule *r, uint64_t *dim) {
    uint64_t width = 0;
    if (!lg_rule_attr(r, "head_dim", dim) || !lg_rule_floats_over_T(r, "x", &width)) {
        return false;
    }
    if (*dim == 0 || width % *dim != 0) {
        return lg_rule_refuse(r, "x", "width modulo head_dim", *dim == 0 ? width : width % *dim, 0);
    }
    return lg_rule_same_shape(r, "x", "y");
}

bool lg_rule_rope(const lg_rule *r) {
    uint64_t dim = 0;
    return rotation(r) && heads_to_heads(r, &dim);
}

bool lg_rule_head_norm(const lg_rule *r) {
    uint64_t dim = 0;
    return heads_to_heads(r, &dim) && lg_rule_matrix(r, "w", dim, 1) &&
           lg_rule_has_number(r, "eps");
}

/* One gate for each element of x, or one for each head. */
bool lg_rule_gate(const lg_rule *r) {
    uint64_t dim = 0;
    uint64_t gates = 0;
    if (!heads_to_heads(r, &dim) || !lg_rule_floats_over_T(r, "gate", &gates) || !known_act(r)) {
        return false;
    }
    uint64_t width = lg_rule_value(r, "x")->width;
    return gates == width || gates == width / dim ||
           lg_rule_refuse(r, "gate", "width", gates, width / dim);
}
