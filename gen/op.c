/* op.c -- the op table and one shape rule per op. A rule refuses with the op, the layer, the
 * operands and their sizes; it never trusts the architecture file that built the node. */
#include "op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "op_rule.h"

static const lg_op_row OP_ROWS[] = {
#define OP(NAME, name, lvl, fam, role_list) {#name, LG_LEVEL_##lvl, fam, role_list},
#include "op.def"
#undef OP
};

const lg_op_row *lg_op_get(lg_op op) {
    return &OP_ROWS[op];
}

const char *const LG_ELEM_NAMES[] = {
    [LG_ELEM_F32] = "f32", [LG_ELEM_I8] = "i8",   [LG_ELEM_I16] = "i16",
    [LG_ELEM_F16] = "f16", [LG_ELEM_I32] = "i32", [LG_ELEM_U64] = "u64", NULL};

const char *const LG_ROWS_NAMES[] = {
    [LG_ROWS_T] = "T", [LG_ROWS_L] = "L", [LG_ROWS_STATE] = "state", [LG_ROWS_FEW] = "few",
    NULL};

const char *const LG_ACCESS_NAMES[] = {
    [LG_READ] = "read",   [LG_WRITE] = "write",   [LG_BOTH] = "both",
    [LG_STATE] = "state", [LG_TENSOR] = "tensor", NULL};

const char *const LG_WHEN_NAMES[] = {
    [LG_WHEN_ANY] = "any", [LG_WHEN_FEW] = "few", [LG_WHEN_MANY] = "many", NULL};

uint32_t lg_elem_bytes(lg_elem e) {
    switch (e) {
    case LG_ELEM_F32:
    case LG_ELEM_I32: return 4;
    case LG_ELEM_I8: return 1;
    case LG_ELEM_I16:
    case LG_ELEM_F16: return 2;
    case LG_ELEM_U64: return 8;
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

static bool rule_embed(const lg_rule *r) {
    uint64_t width = 0;
    return lg_rule_floats_over_T(r, "y", &width) && lg_rule_matrix(r, "w", width, r->g->n_vocab);
}

static bool rule_rope_table(const lg_rule *r) {
    lg_at at = lg_rule_attrs(r);
    lg_at freq;
    size_t n = 0;
    uint64_t width = 0;
    return lg_rule_floats_over_T(r, "y", &width) && lg_at_array(&at, "freq", &freq, &n, r->err) &&
           (width == 2 * (uint64_t)n || lg_rule_refuse(r, "y", "width", width, 2 * (uint64_t)n)) &&
           lg_rule_has_number(r, "mscale");
}

static bool rule_rms_norm(const lg_rule *r) {
    return lg_rule_same_shape(r, "x", "y") &&
           lg_rule_matrix(r, "w", lg_rule_value(r, "x")->width, 1) && lg_rule_has_number(r, "eps");
}

/* Rows of the output may be those of logits: the kernel picks them out of all rows of x. */
static bool rule_norm_quant(const lg_rule *r) {
    uint64_t h = 0;
    const lg_gvalue *y =
        lg_rule_value(r, "y") != NULL ? lg_rule_value(r, "y") : lg_rule_value(r, "y_q");
    if (y == NULL || y->rows == LG_ROWS_STATE) {
        return lg_rule_refuse(r, "y", "number of outputs", 0, 1);
    }
    return lg_rule_floats_over_T(r, "x", &h) && lg_rule_matrix(r, "w", h, 1) &&
           lg_rule_width(r, "y", h, LG_ELEM_F32) && lg_rule_q8_planes(r, "y", h, y->rows) &&
           lg_rule_has_number(r, "eps");
}

static bool rule_linear(const lg_rule *r) {
    const lg_gvalue *x = lg_rule_value(r, "x");
    const lg_gvalue *y = lg_rule_value(r, "y");
    return lg_rule_width(r, "x", x->width, LG_ELEM_F32) &&
           lg_rule_width(r, "y", y->width, LG_ELEM_F32) && lg_rule_rows(r, "y", x->rows) &&
           lg_rule_matrix(r, "w", x->width, y->width) && lg_rule_matrix(r, "f", 1, 1) &&
           lg_rule_matrix(r, "b", y->width, 1);
}

static bool rule_take_rows(const lg_rule *r) {
    uint64_t width = 0;
    return lg_rule_floats_over_T(r, "x", &width) && lg_rule_rows(r, "y", LG_ROWS_L) &&
           lg_rule_width(r, "y", width, LG_ELEM_F32);
}

static bool rule_quant(const lg_rule *r) {
    uint64_t k = 0;
    return lg_rule_floats_over_T(r, "x", &k) && lg_rule_q8_planes(r, "y", k, LG_ROWS_T);
}

/* What the weights of a product add up to. */
typedef struct parts {
    uint64_t n, width;
    bool floats, quantised, equal; /* of some part; all parts are of one width */
} parts;

static uint64_t numbered_operands(const lg_rule *r, char letter) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->n->n_operands; i++) {
        const char *role = r->n->operands[i].role;
        n += role[0] == letter && role[1] >= '0' && role[1] <= '9';
    }
    return n;
}

/* w0, w1, ... without a gap, each of k columns; a factor or a bias only beside its weight. */
static bool read_parts(const lg_rule *r, uint64_t k, parts *p) {
    uint64_t factors = 0;
    uint64_t biases = 0;
    *p = (parts){.equal = true};
    for (;; p->n++) {
        char w[24];
        char f[24];
        char b[24];
        snprintf(w, sizeof w, "w%" PRIu64, p->n);
        snprintf(f, sizeof f, "f%" PRIu64, p->n);
        snprintf(b, sizeof b, "b%" PRIu64, p->n);
        const lg_gtensor *t = lg_rule_tensor(r, w);
        if (t == NULL) {
            break;
        }
        if (!lg_rule_matrix(r, w, k, t->n_rows) || !lg_rule_matrix(r, f, 1, 1) ||
            !lg_rule_matrix(r, b, t->n_rows, 1)) {
            return false;
        }
        if (!lb_add(p->width, t->n_rows, &p->width)) {
            return lg_rule_refuse(r, w, "rows", t->n_rows, UINT64_MAX - p->width);
        }
        bool quantised = lg_qtype_get(t->file->type)->qblock_elems > 1;
        p->floats = p->floats || !quantised;
        p->quantised = p->quantised || quantised;
        p->equal = p->equal && t->n_rows == lg_rule_tensor(r, "w0")->n_rows;
        factors += lg_rule_tensor(r, f) != NULL;
        biases += lg_rule_tensor(r, b) != NULL;
    }
    if (p->n == 0 || p->n != numbered_operands(r, 'w')) {
        return lg_rule_refuse(r, "w", "parts without a gap", p->n,
                              p->n == 0 ? 1 : numbered_operands(r, 'w'));
    }
    if (factors != numbered_operands(r, 'f')) {
        return lg_rule_refuse(r, "f", "factors of a part", factors, numbered_operands(r, 'f'));
    }
    return biases == numbered_operands(r, 'b') ||
           lg_rule_refuse(r, "b", "biases of a part", biases, numbered_operands(r, 'b'));
}

/* Parts of plain numbers read x, quantised ones the planes; nothing is read in vain. */
static bool inputs_serve(const lg_rule *r, const parts *p) {
    if ((lg_rule_value(r, "x") != NULL) != p->floats) {
        return lg_rule_refuse(r, "x", "number", !p->floats, p->floats);
    }
    return (lg_rule_value(r, "x_q") != NULL) == p->quantised ||
           lg_rule_refuse(r, "x_q", "number", !p->quantised, p->quantised);
}

static bool rule_matmul(const lg_rule *r) {
    static const char *const epilogues[] = {"none", "add", "swiglu", NULL};
    const lg_gvalue *in =
        lg_rule_value(r, "x") != NULL ? lg_rule_value(r, "x") : lg_rule_value(r, "x_q");
    const lg_gvalue *y = lg_rule_value(r, "y");
    lg_at at = lg_rule_attrs(r);
    uint32_t epilogue = 0;
    parts p;
    if (in == NULL) {
        return lg_rule_refuse(r, "x", "number of inputs", 0, 1);
    }
    if (!read_parts(r, in->width, &p) || !inputs_serve(r, &p) ||
        !lg_rule_width(r, "x", in->width, LG_ELEM_F32) || !lg_rule_rows(r, "x", y->rows) ||
        !lg_rule_q8_planes(r, "x", in->width, y->rows) ||
        !lg_at_choice(&at, "epilogue", epilogues, &epilogue, r->err)) {
        return false;
    }
    if ((epilogue == 1) != (r->n->op == LG_OP_MATMUL_ADD)) {
        return lg_rule_refuse_text(r, "epilogue", epilogues[epilogue],
                                   "add where y is updated, and only there");
    }
    if (epilogue == 2 && (p.n != 2 || !p.equal)) {
        return lg_rule_refuse(r, "w", "equal parts of a gated product", p.equal ? p.n : 1, 2);
    }
    if (y->rows == LG_ROWS_STATE) {
        return lg_rule_refuse_text(r, "y", LG_ROWS_NAMES[y->rows], "rows of the step");
    }
    return lg_rule_width(r, "y", epilogue == 2 ? p.width / 2 : p.width, LG_ELEM_F32);
}

/* Stages of sampling, all over logit rows; how wide heads and totals are is said twice. */
static bool rule_sample(const lg_rule *r) {
    static const char *const roles[] = {"logits", "heads", "totals", "choices"};
    uint64_t heads = 0;
    uint64_t totals = 0;
    if (!lg_rule_attr(r, "heads", &heads) || !lg_rule_attr(r, "totals", &totals)) {
        return false;
    }
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (!lg_rule_rows(r, roles[i], LG_ROWS_L)) {
            return false;
        }
    }
    return lg_rule_width(r, "logits", r->g->n_vocab, LG_ELEM_F32) &&
           lg_rule_width(r, "heads", heads, LG_ELEM_U64) &&
           lg_rule_width(r, "totals", totals, LG_ELEM_U64) &&
           lg_rule_width(r, "choices", 1, LG_ELEM_U64);
}

bool lg_op_shapes(const lg_graph *g, const lg_gnode *n, lb_err *err) {
    lg_rule r = {g, n, err};
    switch (n->op) {
    case LG_OP_EMBED: return rule_embed(&r);
    case LG_OP_ROPE_TABLE: return rule_rope_table(&r);
    case LG_OP_RMS_NORM: return rule_rms_norm(&r);
    case LG_OP_HEAD_NORM: return lg_rule_head_norm(&r);
    case LG_OP_LINEAR: return rule_linear(&r);
    case LG_OP_ROPE: return lg_rule_rope(&r);
    case LG_OP_KV_STORE: return lg_rule_kv_store(&r);
    case LG_OP_ATTENTION: return lg_rule_attention(&r, "q", "k_cache", "v_cache");
    case LG_OP_GATE: return lg_rule_gate(&r);
    case LG_OP_ADD: return lg_rule_same_shape(&r, "a", "b") && lg_rule_same_shape(&r, "a", "y");
    case LG_OP_SILU_MUL:
        return lg_rule_same_shape(&r, "gate", "up") && lg_rule_same_shape(&r, "gate", "y");
    case LG_OP_ROUTER: return lg_rule_router(&r);
    case LG_OP_EXPERT_LINEAR: return lg_rule_expert_linear(&r);
    case LG_OP_EXPERT_SUM: return lg_rule_expert_sum(&r);
    case LG_OP_TAKE_ROWS: return rule_take_rows(&r);
    case LG_OP_NORM_QUANT: return rule_norm_quant(&r);
    case LG_OP_QUANT: return rule_quant(&r);
    case LG_OP_MATMUL:
    case LG_OP_MATMUL_ADD: return rule_matmul(&r);
    case LG_OP_ROUTER_PARTS: return lg_rule_router_parts(&r);
    case LG_OP_ROUTER_TOPK: return lg_rule_router_topk(&r);
    case LG_OP_MOE_SORT: return lg_rule_moe_sort(&r);
    case LG_OP_MATVEC_MOE_GATED:
    case LG_OP_MOE_GATED: return lg_rule_moe_gated(&r);
    case LG_OP_MATVEC_MOE_DOWN:
    case LG_OP_MOE_DOWN: return lg_rule_moe_down(&r);
    case LG_OP_MOE_SUM: return lg_rule_moe_sum(&r);
    case LG_OP_ROPE_KV: return lg_rule_rope_kv(&r);
    case LG_OP_ATTN: return lg_rule_attention(&r, "qkv", "k", "v");
    case LG_OP_SAMPLE_TILES:
    case LG_OP_SAMPLE_TOTAL:
    case LG_OP_SAMPLE_PICK: return rule_sample(&r);
    case LG_N_OPS: break;
    }
    return lb_err_set(err, LB_UNSUPPORTED, "op number %d has no shape rule", (int)n->op);
}
