/* op.c -- the op table and one shape rule per op. A rule refuses with the op, the layer, the
 * operands and their sizes; it never trusts the architecture file that built the node. */
#include "op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "at.h"
#include "base/num.h"

static const lg_op_row OP_ROWS[] = {
#define OP(NAME, name, lvl, fam, role_list) {#name, LG_LEVEL_##lvl, fam, role_list},
#include "op.def"
#undef OP
};

const lg_op_row *lg_op_get(lg_op op) {
    return &OP_ROWS[op];
}

const char *const LG_ELEM_NAMES[] = {
    [LG_ELEM_F32] = "f32", [LG_ELEM_I8] = "i8", [LG_ELEM_I16] = "i16", [LG_ELEM_F16] = "f16",
    [LG_ELEM_I32] = "i32", NULL};

const char *const LG_ROWS_NAMES[] = {
    [LG_ROWS_T] = "T", [LG_ROWS_L] = "L", [LG_ROWS_STATE] = "state", NULL};

const char *const LG_ACCESS_NAMES[] = {[LG_READ] = "read",   [LG_WRITE] = "write",
                                       [LG_BOTH] = "both",   [LG_STATE] = "state",
                                       [LG_TENSOR] = "tensor", NULL};

uint32_t lg_elem_bytes(lg_elem e) {
    switch (e) {
    case LG_ELEM_F32:
    case LG_ELEM_I32: return 4;
    case LG_ELEM_I8: return 1;
    case LG_ELEM_I16:
    case LG_ELEM_F16: return 2;
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

static bool refuse(const rule *r, const char *role, const char *what, uint64_t got, uint64_t want) {
    return lb_err_set(r->err, LB_BAD_SHAPE,
                      "op '%s' of layer %" PRId32 ": %s of '%s' is %" PRIu64 ", expected %" PRIu64,
                      lg_op_get(r->n->op)->name, r->n->layer, what, role, got, want);
}

static bool refuse_text(const rule *r, const char *role, const char *got, const char *want) {
    return lb_err_set(r->err, LB_BAD_SHAPE, "op '%s' of layer %" PRId32 ": '%s' is %s, expected %s",
                      lg_op_get(r->n->op)->name, r->n->layer, role, got, want);
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
        return refuse_text(r, role, LG_ELEM_NAMES[v->elem], LG_ELEM_NAMES[elem]);
    }
    return v->width == width || refuse(r, role, "width", v->width, width);
}

static bool rows_are(const rule *r, const char *role, lg_rows rows) {
    const lg_gvalue *v = value_of(r, role);
    if (v == NULL || v->rows == rows) {
        return true;
    }
    return refuse_text(r, role, LG_ROWS_NAMES[v->rows], LG_ROWS_NAMES[rows]);
}

/* An activation of floats with a row for each token; *width receives its width. */
static bool floats_over_T(const rule *r, const char *role, uint64_t *width) {
    *width = value_of(r, role)->width;
    return width_is(r, role, *width, LG_ELEM_F32) && rows_are(r, role, LG_ROWS_T);
}

static bool tensors_are(const rule *r, const char *role, uint64_t cols, uint64_t rows,
                        uint64_t mats) {
    const lg_gtensor *t = tensor_of(r, role);
    if (t == NULL) {
        return true;
    }
    if (t->n_mats != mats) {
        return refuse(r, role, "number of matrices", t->n_mats, mats);
    }
    return (t->n_cols == cols || refuse(r, role, "columns", t->n_cols, cols)) &&
           (t->n_rows == rows || refuse(r, role, "rows", t->n_rows, rows));
}

static bool tensor_is(const rule *r, const char *role, uint64_t cols, uint64_t rows) {
    return tensors_are(r, role, cols, rows, 1);
}

/* Two float activations of equal width and kind of rows. */
static bool same_shape(const rule *r, const char *a, const char *b) {
    const lg_gvalue *x = value_of(r, a);
    return width_is(r, a, x->width, LG_ELEM_F32) && width_is(r, b, x->width, LG_ELEM_F32) &&
           rows_are(r, b, x->rows);
}

static lg_at attrs_of(const rule *r) {
    return lg_at_root(lg_op_get(r->n->op)->name, r->n->attrs);
}

static bool attr(const rule *r, const char *key, uint64_t *out) {
    lg_at at = attrs_of(r);
    return lg_at_uint(&at, key, out, r->err);
}

static bool has_number(const rule *r, const char *key) {
    lg_at at = attrs_of(r);
    double unused = 0;
    return lg_at_double(&at, key, &unused, r->err);
}

/* Where q, d and s stand: all three planes of a quantised activation of width k, or none. */
static bool q8_planes(const rule *r, const char *prefix, uint64_t k, lg_rows rows) {
    static const lg_elem elems[] = {LG_ELEM_I8, LG_ELEM_F32, LG_ELEM_I16};
    const uint64_t widths[] = {k, k / 32, k / 16};
    char role[3][8];
    uint64_t n = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(role[i], sizeof role[i], "%s_%c", prefix, "qds"[i]);
        n += value_of(r, role[i]) != NULL;
    }
    if (n == 0) {
        return true;
    }
    if (n != 3 || k % 32 != 0) {
        return n != 3 ? refuse(r, role[0], "number of planes", n, 3)
                      : refuse(r, role[0], "width modulo 32", k % 32, 0);
    }
    for (int i = 0; i < 3; i++) {
        if (!width_is(r, role[i], widths[i], elems[i]) || !rows_are(r, role[i], rows)) {
            return false;
        }
    }
    return true;
}

static bool rule_embed(const rule *r) {
    uint64_t width = 0;
    return floats_over_T(r, "y", &width) && tensor_is(r, "w", width, r->g->n_vocab);
}

static bool rule_rope_table(const rule *r) {
    lg_at at = attrs_of(r);
    lg_at freq;
    size_t n = 0;
    uint64_t width = 0;
    return floats_over_T(r, "y", &width) && lg_at_array(&at, "freq", &freq, &n, r->err) &&
           (width == 2 * (uint64_t)n || refuse(r, "y", "width", width, 2 * (uint64_t)n)) &&
           has_number(r, "mscale");
}

static bool rule_rms_norm(const rule *r) {
    return same_shape(r, "x", "y") && tensor_is(r, "w", value_of(r, "x")->width, 1) &&
           has_number(r, "eps");
}

/* Rows of the output may be those of logits: the kernel picks them out of all rows of x. */
static bool rule_norm_quant(const rule *r) {
    uint64_t h = 0;
    const lg_gvalue *y = value_of(r, "y") != NULL ? value_of(r, "y") : value_of(r, "y_q");
    if (y == NULL || y->rows == LG_ROWS_STATE) {
        return refuse(r, "y", "number of outputs", 0, 1);
    }
    return floats_over_T(r, "x", &h) && tensor_is(r, "w", h, 1) &&
           width_is(r, "y", h, LG_ELEM_F32) && q8_planes(r, "y", h, y->rows) &&
           has_number(r, "eps");
}

static bool rule_linear(const rule *r) {
    const lg_gvalue *x = value_of(r, "x");
    const lg_gvalue *y = value_of(r, "y");
    return width_is(r, "x", x->width, LG_ELEM_F32) && width_is(r, "y", y->width, LG_ELEM_F32) &&
           rows_are(r, "y", x->rows) && tensor_is(r, "w", x->width, y->width) &&
           tensor_is(r, "b", y->width, 1);
}

/* Heads times head_dim, for the attention ops. */
static bool head_width(const rule *r, const char *heads_key, uint64_t *out) {
    enum { HEADS_MAX = 65536, HEAD_DIM_MAX = 1024 };
    uint64_t heads = 0;
    uint64_t dim = 0;
    if (!attr(r, heads_key, &heads) || !attr(r, "head_dim", &dim)) {
        return false;
    }
    if (heads == 0 || heads > HEADS_MAX) {
        return refuse(r, heads_key, "number", heads, heads == 0 ? 1 : HEADS_MAX);
    }
    if (dim == 0 || dim > HEAD_DIM_MAX) {
        return refuse(r, "head_dim", "number", dim, dim == 0 ? 1 : HEAD_DIM_MAX);
    }
    *out = heads * dim;
    return true;
}

/* The rotation: n_rot even and inside a head, a table of that width, a known pairing. */
static bool rotation(const rule *r) {
    static const char *const pairings[] = {"norm", "neox", NULL};
    lg_at at = attrs_of(r);
    uint32_t pairing = 0;
    uint64_t n_rot = 0;
    uint64_t dim = 0;
    uint64_t width = 0;
    if (!attr(r, "n_rot", &n_rot) || !attr(r, "head_dim", &dim) ||
        !lg_at_choice(&at, "pairing", pairings, &pairing, r->err)) {
        return false;
    }
    if (n_rot == 0 || n_rot % 2 != 0 || n_rot > dim) {
        return refuse(r, "n_rot", "number", n_rot, dim);
    }
    return floats_over_T(r, "table", &width) &&
           (width == n_rot || refuse(r, "table", "width", width, n_rot));
}

/* A state of `cap` positions for each slot, each of a row of keys or values. */
static bool cache_is(const rule *r, const char *role, uint64_t kv_width, uint64_t cap) {
    const lg_gvalue *v = value_of(r, role);
    uint64_t bytes = 0;
    if (!rows_are(r, role, LG_ROWS_STATE)) {
        return false;
    }
    if (cap == 0 || cap % 256 != 0 || v->positions != cap) {
        return v->positions != cap ? refuse(r, role, "positions", v->positions, cap)
                                   : refuse(r, "cap", "positions modulo 256", cap % 256, 0);
    }
    if (!lb_mul(kv_width, cap, &bytes) || !lb_mul(bytes, lg_elem_bytes(v->elem), &bytes) ||
        !lb_mul(bytes, v->slots, &bytes)) {
        return refuse(r, role, "bytes", v->state_bytes, UINT64_MAX);
    }
    return (v->elem == LG_ELEM_F16 && bytes > 0 && v->state_bytes == bytes) ||
           refuse(r, role, "bytes", v->state_bytes, bytes);
}

/* An op on a layer's cache, whose states are the operands `k` and `v`. */
static bool rule_cached(const rule *r, const char *k, const char *v, uint64_t *kv_width) {
    uint64_t cap = 0;
    return head_width(r, "n_kv", kv_width) && attr(r, "cap", &cap) &&
           cache_is(r, k, *kv_width, cap) && cache_is(r, v, *kv_width, cap);
}

static bool rule_attention(const rule *r, const char *in, const char *k, const char *v) {
    uint64_t q = 0;
    uint64_t kv = 0;
    uint64_t width = 0;
    uint64_t window = 0;
    if (!rule_cached(r, k, v, &kv) || !head_width(r, "n_head", &q) || !attr(r, "window", &window) ||
        !has_number(r, "scale") || !floats_over_T(r, in, &width)) {
        return false;
    }
    if (value_of(r, k)->window != window || value_of(r, v)->window != window) {
        return refuse(r, k, "window", value_of(r, k)->window, window);
    }
    if (q % kv != 0) {
        return refuse(r, "n_head", "width modulo that of n_kv", q % kv, 0);
    }
    uint64_t want = r->n->op == LG_OP_ATTN ? q + 2 * kv : q;
    return (width == want || refuse(r, in, "width", width, want)) &&
           width_is(r, "y", q, LG_ELEM_F32) && rows_are(r, "y", LG_ROWS_T);
}

static bool rule_kv_store(const rule *r) {
    uint64_t kv = 0;
    return rule_cached(r, "k_cache", "v_cache", &kv) && width_is(r, "k", kv, LG_ELEM_F32) &&
           width_is(r, "v", kv, LG_ELEM_F32) && rows_are(r, "k", LG_ROWS_T) &&
           rows_are(r, "v", LG_ROWS_T);
}

static bool rule_rope_kv(const rule *r) {
    uint64_t kv = 0;
    uint64_t q = 0;
    return rule_cached(r, "k", "v", &kv) && head_width(r, "n_head", &q) && rotation(r) &&
           width_is(r, "qkv", q + 2 * kv, LG_ELEM_F32) && rows_are(r, "qkv", LG_ROWS_T);
}

static bool rule_rope(const rule *r) {
    uint64_t dim = 0;
    uint64_t width = 0;
    return rotation(r) && attr(r, "head_dim", &dim) && floats_over_T(r, "x", &width) &&
           (width % dim == 0 || refuse(r, "x", "width modulo head_dim", width % dim, 0)) &&
           same_shape(r, "x", "y");
}

static bool rule_take_rows(const rule *r) {
    uint64_t width = 0;
    return floats_over_T(r, "x", &width) && rows_are(r, "y", LG_ROWS_L) &&
           width_is(r, "y", width, LG_ELEM_F32);
}

static bool rule_quant(const rule *r) {
    uint64_t k = 0;
    return floats_over_T(r, "x", &k) && q8_planes(r, "y", k, LG_ROWS_T);
}

/* What the weights of a product add up to. */
typedef struct parts {
    uint64_t n, width;
    bool floats, quantised, equal; /* of some part; all parts are of one width */
} parts;

static uint64_t numbered_operands(const rule *r, char letter) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->n->n_operands; i++) {
        const char *role = r->n->operands[i].role;
        n += role[0] == letter && role[1] >= '0' && role[1] <= '9';
    }
    return n;
}

/* w0, w1, ... without a gap, each of k columns; a bias only beside its weight. */
static bool read_parts(const rule *r, uint64_t k, parts *p) {
    uint64_t biases = 0;
    *p = (parts){.equal = true};
    for (;; p->n++) {
        char w[24];
        char b[24];
        snprintf(w, sizeof w, "w%" PRIu64, p->n);
        snprintf(b, sizeof b, "b%" PRIu64, p->n);
        const lg_gtensor *t = tensor_of(r, w);
        if (t == NULL) {
            break;
        }
        if (!tensor_is(r, w, k, t->n_rows) || !tensor_is(r, b, t->n_rows, 1)) {
            return false;
        }
        if (!lb_add(p->width, t->n_rows, &p->width)) {
            return refuse(r, w, "rows", t->n_rows, UINT64_MAX - p->width);
        }
        bool quantised = lg_qtype_get(t->file->type)->qblock_elems > 1;
        p->floats = p->floats || !quantised;
        p->quantised = p->quantised || quantised;
        p->equal = p->equal && t->n_rows == tensor_of(r, "w0")->n_rows;
        biases += tensor_of(r, b) != NULL;
    }
    if (p->n == 0 || p->n != numbered_operands(r, 'w')) {
        return refuse(r, "w", "parts without a gap", p->n,
                      p->n == 0 ? 1 : numbered_operands(r, 'w'));
    }
    return biases == numbered_operands(r, 'b') ||
           refuse(r, "b", "biases of a part", biases, numbered_operands(r, 'b'));
}

/* Parts of plain numbers read x, quantised ones the planes; nothing is read in vain. */
static bool inputs_serve(const rule *r, const parts *p) {
    if ((value_of(r, "x") != NULL) != p->floats) {
        return refuse(r, "x", "number", !p->floats, p->floats);
    }
    return (value_of(r, "x_q") != NULL) == p->quantised ||
           refuse(r, "x_q", "number", !p->quantised, p->quantised);
}

static bool rule_matmul(const rule *r) {
    static const char *const epilogues[] = {"none", "add", "swiglu", NULL};
    const lg_gvalue *in = value_of(r, "x") != NULL ? value_of(r, "x") : value_of(r, "x_q");
    const lg_gvalue *y = value_of(r, "y");
    lg_at at = attrs_of(r);
    uint32_t epilogue = 0;
    parts p;
    if (in == NULL) {
        return refuse(r, "x", "number of inputs", 0, 1);
    }
    if (!read_parts(r, in->width, &p) || !inputs_serve(r, &p) ||
        !width_is(r, "x", in->width, LG_ELEM_F32) || !rows_are(r, "x", y->rows) ||
        !q8_planes(r, "x", in->width, y->rows) ||
        !lg_at_choice(&at, "epilogue", epilogues, &epilogue, r->err)) {
        return false;
    }
    if ((epilogue == 1) != (r->n->op == LG_OP_MATMUL_ADD)) {
        return refuse_text(r, "epilogue", epilogues[epilogue],
                           "add where y is updated, and only there");
    }
    if (epilogue == 2 && (p.n != 2 || !p.equal)) {
        return refuse(r, "w", "equal parts of a gated product", p.equal ? p.n : 1, 2);
    }
    if (y->rows == LG_ROWS_STATE) {
        return refuse_text(r, "y", LG_ROWS_NAMES[y->rows], "rows of the step");
    }
    return width_is(r, "y", epilogue == 2 ? p.width / 2 : p.width, LG_ELEM_F32);
}

/* How many experts a row goes to: n_used, at most `experts` and at most what a kernel keeps. */
static bool picks_of(const rule *r, uint64_t experts, uint64_t *picks) {
    enum { PICKS_MAX = 64, EXPERTS_MAX = 4096 };
    if (!attr(r, "n_used", picks)) {
        return false;
    }
    if (experts > EXPERTS_MAX) {
        return refuse(r, "ids", "number of experts", experts, EXPERTS_MAX);
    }
    uint64_t most = experts < PICKS_MAX ? experts : PICKS_MAX;
    return (*picks >= 1 && *picks <= most) || refuse(r, "n_used", "number", *picks, most);
}

/* The experts of every row: n_used numbers below the number of experts. */
static bool ids_are(const rule *r, uint64_t experts, uint64_t *picks) {
    uint64_t below = value_of(r, "ids")->below;
    return picks_of(r, experts, picks) && width_is(r, "ids", *picks, LG_ELEM_I32) &&
           rows_are(r, "ids", LG_ROWS_T) &&
           (below == experts || refuse(r, "ids", "bound", below, experts));
}

static bool rule_router(const rule *r) {
    static const char *const gatings[] = {"sigmoid", "softmax", NULL};
    uint64_t experts = 0;
    uint64_t picks = 0;
    uint32_t gating = 0;
    bool norm = false;
    lg_at at = attrs_of(r);
    return floats_over_T(r, "logits", &experts) && tensor_is(r, "bias", experts, 1) &&
           ids_are(r, experts, &picks) && width_is(r, "weights", picks, LG_ELEM_F32) &&
           rows_are(r, "weights", LG_ROWS_T) &&
           lg_at_choice(&at, "gating", gatings, &gating, r->err) &&
           lg_at_bool(&at, "norm", &norm, r->err) && has_number(r, "scale");
}

/* Row and pick p of y is expert ids[p] times the row of x, or times its part p. */
static bool rule_expert_linear(const rule *r) {
    const lg_gtensor *w = tensor_of(r, "w");
    uint64_t picks = 0;
    uint64_t width = 0;
    uint64_t all = 0;
    uint64_t experts = value_of(r, "ids")->below;
    if (!ids_are(r, experts, &picks) || !floats_over_T(r, "x", &width)) {
        return false;
    }
    if (w->n_mats != experts) {
        return refuse(r, "w", "number of matrices", w->n_mats, experts);
    }
    if (width != w->n_cols && (!lb_mul(w->n_cols, picks, &all) || width != all)) {
        return refuse(r, "w", "columns", w->n_cols, width);
    }
    if (!lb_mul(w->n_rows, picks, &all)) {
        return refuse(r, "w", "rows", w->n_rows, UINT64_MAX / picks);
    }
    return width_is(r, "y", all, LG_ELEM_F32) && rows_are(r, "y", LG_ROWS_T);
}

static bool rule_expert_sum(const rule *r) {
    uint64_t picks = value_of(r, "weights")->width;
    uint64_t width = value_of(r, "y")->width;
    uint64_t used = 0;
    uint64_t all = 0;
    if (!attr(r, "n_used", &used)) {
        return false;
    }
    if (used != picks || !lb_mul(width, picks, &all)) {
        return refuse(r, "weights", "width", picks, used);
    }
    return floats_over_T(r, "y", &width) && width_is(r, "weights", picks, LG_ELEM_F32) &&
           rows_are(r, "weights", LG_ROWS_T) && width_is(r, "x", all, LG_ELEM_F32) &&
           rows_are(r, "x", LG_ROWS_T);
}

bool lg_op_shapes(const lg_graph *g, const lg_gnode *n, lb_err *err) {
    rule r = {g, n, err};
    switch (n->op) {
    case LG_OP_EMBED: return rule_embed(&r);
    case LG_OP_ROPE_TABLE: return rule_rope_table(&r);
    case LG_OP_RMS_NORM: return rule_rms_norm(&r);
    case LG_OP_LINEAR: return rule_linear(&r);
    case LG_OP_ROPE: return rule_rope(&r);
    case LG_OP_KV_STORE: return rule_kv_store(&r);
    case LG_OP_ATTENTION: return rule_attention(&r, "q", "k_cache", "v_cache");
    case LG_OP_ADD: return same_shape(&r, "a", "b") && same_shape(&r, "a", "y");
    case LG_OP_SILU_MUL: return same_shape(&r, "gate", "up") && same_shape(&r, "gate", "y");
    case LG_OP_ROUTER: return rule_router(&r);
    case LG_OP_EXPERT_LINEAR: return rule_expert_linear(&r);
    case LG_OP_EXPERT_SUM: return rule_expert_sum(&r);
    case LG_OP_TAKE_ROWS: return rule_take_rows(&r);
    case LG_OP_NORM_QUANT: return rule_norm_quant(&r);
    case LG_OP_QUANT: return rule_quant(&r);
    case LG_OP_MATMUL:
    case LG_OP_MATMUL_ADD: return rule_matmul(&r);
    case LG_OP_ROPE_KV: return rule_rope_kv(&r);
    case LG_OP_ATTN: return rule_attention(&r, "qkv", "k", "v");
    case LG_N_OPS: break;
    }
    return lb_err_set(err, LB_UNSUPPORTED, "op number %d has no shape rule", (int)n->op);
}
