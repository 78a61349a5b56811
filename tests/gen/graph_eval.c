/* graph_eval.c -- see graph_eval.h. */
#include "graph_eval.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"

typedef struct eval {
    const lg_graph *g;
    const lg_gnode *n;
    const graph_inputs *in;
    double **values;  /* [rows][width]; states: [position][width of keys] */
    double **weights; /* [row][column] */
    lb_arena *arena;
} eval;

static void *room(eval *e, uint64_t n, size_t size) {
    void *p = lb_alloc_n(e->arena, n, size, NULL);
    assert_non_null(p);
    return p;
}

/* Numbers in [-0.5, 0.5) from the name, by a linear congruence. */
static double *draw(eval *e, const lg_gtensor *t) {
    uint64_t n = t->n_cols * t->n_rows * t->n_mats;
    uint64_t s = 88172645463325252U;
    double *w = room(e, n, sizeof *w);
    for (const char *c = t->name; *c != '\0'; c++) {
        s = (s ^ (uint64_t)(unsigned char)*c) * 6364136223846793005U + 1442695040888963407U;
    }
    for (uint64_t i = 0; i < n; i++) {
        s = s * 6364136223846793005U + 1442695040888963407U;
        w[i] = (double)(s >> 40) / 16777216.0 - 0.5;
    }
    return w;
}

static const lg_gvalue *value_of(const eval *e, const char *role) {
    const lg_goperand *o = lg_node_operand(e->n, role);
    return o == NULL ? NULL : &e->g->values[o->id];
}

static double *at(const eval *e, const char *role) {
    const lg_goperand *o = lg_node_operand(e->n, role);
    return o == NULL ? NULL : o->access == LG_TENSOR ? e->weights[o->id] : e->values[o->id];
}

static uint32_t rows_of(const eval *e, const char *role) {
    return value_of(e, role)->rows == LG_ROWS_L ? e->in->n_logits : e->in->n_tokens;
}

static double number(const eval *e, const char *key) {
    const lg_value *v = lg_value_find(e->n->attrs, key);
    assert_non_null(v);
    return v->kind == LG_VALUE_INT ? (double)v->u.integer : v->u.real;
}

static uint64_t integer(const eval *e, const char *key) {
    return (uint64_t)number(e, key);
}

/* y[rows][n] (+)= x[rows][k] w[n][k] f + b, from column `begin` of rows `stride` wide; f and b may be
 * NULL. */
static void product(const double *x, uint32_t rows, uint64_t k, const double *w, const double *f,
                    const double *b, uint64_t n, double *y, uint64_t stride, uint64_t begin,
                    bool add) {
    for (uint32_t r = 0; r < rows; r++) {
        for (uint64_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (uint64_t c = 0; c < k; c++) {
                sum += w[i * k + c] * x[r * k + c];
            }
            sum = sum * (f == NULL ? 1.0 : *f) + (b == NULL ? 0.0 : b[i]);
            double *to = &y[r * stride + begin + i];
            *to = add ? *to + sum : sum;
        }
    }
}

static void eval_embed(eval *e) {
    uint64_t width = value_of(e, "y")->width;
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        memcpy(at(e, "y") + t * width, at(e, "w") + e->in->tokens[t] * width,
               width * sizeof(double));
    }
}

static void eval_rope_table(eval *e) {
    const lg_value *freq = lg_value_find(e->n->attrs, "freq");
    uint64_t width = value_of(e, "y")->width;
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        for (uint64_t i = 0; i < width / 2; i++) {
            const lg_value *f = freq->u.array.items[i];
            double phi = t * (f->kind == LG_VALUE_INT ? (double)f->u.integer : f->u.real);
            at(e, "y")[t * width + 2 * i] = cos(phi) * number(e, "mscale");
            at(e, "y")[t * width + 2 * i + 1] = sin(phi) * number(e, "mscale");
        }
    }
}

static void copy(double *to, const double *from, uint64_t n) {
    if (to != NULL) {
        memcpy(to, from, n * sizeof *to);
    }
}

/* With rows of logits as output and all rows as input, row i is row logit_rows[i]. */
static void eval_norm(eval *e) {
    const char *out = at(e, "y") != NULL ? "y" : "y_q";
    uint64_t h = value_of(e, "x")->width;
    bool picks = value_of(e, out)->rows == LG_ROWS_L && value_of(e, "x")->rows == LG_ROWS_T;
    for (uint32_t r = 0; r < rows_of(e, out); r++) {
        const double *x = at(e, "x") + (picks ? e->in->logit_rows[r] : r) * h;
        double sum = 0.0;
        for (uint64_t i = 0; i < h; i++) {
            sum += x[i] * x[i];
        }
        double scale = 1.0 / sqrt(sum / (double)h + number(e, "eps"));
        for (uint64_t i = 0; i < h; i++) {
            at(e, out)[r * h + i] = x[i] * scale * at(e, "w")[i];
        }
    }
    if (strcmp(out, "y") == 0) {
        copy(at(e, "y_q"), at(e, "y"), rows_of(e, out) * h);
    }
}

static void eval_linear(eval *e) {
    product(at(e, "x"), rows_of(e, "x"), value_of(e, "x")->width, at(e, "w"), at(e, "f"),
            at(e, "b"), value_of(e, "y")->width, at(e, "y"), value_of(e, "y")->width, 0, false);
}

/* Rotates the heads of one row. */
static void rotate(const eval *e, double *row, uint64_t n_heads, const double *table) {
    uint64_t dim = integer(e, "head_dim");
    uint64_t n_rot = integer(e, "n_rot");
    bool neox = strcmp(lg_value_find(e->n->attrs, "pairing")->u.string.bytes, "neox") == 0;
    for (uint64_t h = 0; h < n_heads; h++) {
        for (uint64_t i = 0; i < n_rot / 2; i++) {
            double *a = &row[h * dim + (neox ? i : 2 * i)];
            double *b = &row[h * dim + (neox ? i + n_rot / 2 : 2 * i + 1)];
            double c = table[2 * i];
            double s = table[2 * i + 1];
            double x = *a;
            *a = x * c - *b * s;
            *b = x * s + *b * c;
        }
    }
}

static void eval_rope(eval *e) {
    uint64_t width = value_of(e, "x")->width;
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        copy(at(e, "y") + t * width, at(e, "x") + t * width, width);
        rotate(e, at(e, "y") + t * width, width / integer(e, "head_dim"),
               at(e, "table") + t * value_of(e, "table")->width);
    }
}

/* n heads of `dim`, each normed with w, in place. */
static void norm_heads(const eval *e, double *x, uint64_t n, uint64_t dim, const double *w) {
    for (uint64_t h = 0; h < n; h++) {
        double sum = 0.0;
        for (uint64_t i = 0; i < dim; i++) {
            sum += x[h * dim + i] * x[h * dim + i];
        }
        double scale = 1.0 / sqrt(sum / (double)dim + number(e, "eps"));
        for (uint64_t i = 0; i < dim; i++) {
            x[h * dim + i] *= scale * w[i];
        }
    }
}

static void eval_head_norm(eval *e) {
    uint64_t width = value_of(e, "x")->width;
    uint64_t dim = integer(e, "head_dim");
    copy(at(e, "y"), at(e, "x"), e->in->n_tokens * width);
    norm_heads(e, at(e, "y"), e->in->n_tokens * width / dim, dim, at(e, "w"));
}

static double softplus(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static void eval_gate(eval *e) {
    uint64_t n = e->in->n_tokens * value_of(e, "x")->width;
    uint64_t per = value_of(e, "x")->width / value_of(e, "gate")->width;
    for (uint64_t i = 0; i < n; i++) {
        at(e, "y")[i] = at(e, "x")[i] * softplus(at(e, "gate")[i / per]);
    }
}

static void eval_rope_kv(eval *e) {
    uint64_t dim = integer(e, "head_dim");
    uint64_t q = integer(e, "n_head") * dim;
    uint64_t kv = integer(e, "n_kv") * dim;
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        double *row = at(e, "qkv") + t * value_of(e, "qkv")->width;
        if (at(e, "q_norm") != NULL) {
            norm_heads(e, row, q / dim, dim, at(e, "q_norm"));
            norm_heads(e, row + q, kv / dim, dim, at(e, "k_norm"));
        }
        rotate(e, row, integer(e, "n_head") + integer(e, "n_kv"),
               at(e, "table") + t * integer(e, "n_rot"));
        copy(at(e, "k") + t * kv, row + q, kv);
        copy(at(e, "v") + t * kv, row + q + kv, kv);
    }
}

/* One head of one row over positions 0..t, or the window's. */
static void attend(const eval *e, uint32_t t, uint64_t head, const double *q, const double *k,
                   const double *v, double *y) {
    uint64_t dim = integer(e, "head_dim");
    uint64_t kv = integer(e, "n_kv") * dim;
    uint64_t of = head / (integer(e, "n_head") / integer(e, "n_kv")) * dim;
    double total = 0.0;
    memset(y, 0, dim * sizeof *y);
    uint64_t window = integer(e, "window");
    for (uint32_t p = window == 0 || t < window ? 0 : t - (uint32_t)window + 1; p <= t; p++) {
        double score = 0.0;
        for (uint64_t i = 0; i < dim; i++) {
            score += q[i] * k[p * kv + of + i];
        }
        double w = exp(score * number(e, "scale"));
        total += w;
        for (uint64_t i = 0; i < dim; i++) {
            y[i] += w * v[p * kv + of + i];
        }
    }
    for (uint64_t i = 0; i < dim; i++) {
        y[i] /= total;
    }
}

static void eval_attention(eval *e, const char *q, const char *k, const char *v) {
    uint64_t dim = integer(e, "head_dim");
    uint64_t width = value_of(e, q)->width;
    uint64_t out = value_of(e, "y")->width;
    uint64_t n_gates = e->n->op == LG_OP_ATTN ? width - out - 2 * integer(e, "n_kv") * dim : 0;
    uint64_t gates_per = n_gates == 0 ? 0 : out / n_gates;
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        for (uint64_t h = 0; h < integer(e, "n_head"); h++) {
            double *y = at(e, "y") + t * out + h * dim;
            attend(e, t, h, at(e, q) + t * width + h * dim, at(e, k), at(e, v), y);
            const double *gates = at(e, q) + t * width + out + 2 * integer(e, "n_kv") * dim;
            for (uint64_t i = 0; gates_per > 0 && i < dim; i++) {
                y[i] *= softplus(gates[(h * dim + i) / gates_per]);
            }
        }
    }
}

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

static void eval_pointwise(eval *e, const char *a, const char *b) {
    uint64_t n = rows_of(e, "y") * value_of(e, "y")->width;
    for (uint64_t i = 0; i < n; i++) {
        at(e, "y")[i] =
            e->n->op == LG_OP_ADD ? at(e, a)[i] + at(e, b)[i] : silu(at(e, a)[i]) * at(e, b)[i];
    }
}

static void eval_take_rows(eval *e) {
    uint64_t width = value_of(e, "x")->width;
    for (uint32_t i = 0; i < e->in->n_logits; i++) {
        copy(at(e, "y") + i * width, at(e, "x") + e->in->logit_rows[i] * width, width);
    }
}

/* Parts side by side; each takes the input of its kind. */
static void eval_matmul(eval *e) {
    bool gated = strcmp(lg_value_find(e->n->attrs, "epilogue")->u.string.bytes, "swiglu") == 0;
    uint64_t width = value_of(e, "y")->width;
    uint64_t stride = gated ? 2 * width : width;
    uint32_t rows = rows_of(e, "y");
    double *y = gated ? room(e, rows * stride, sizeof *y) : at(e, "y");
    uint64_t begin = 0;
    for (int i = 0;; i++) {
        char w[16];
        char f[16];
        char b[16];
        snprintf(w, sizeof w, "w%d", i);
        snprintf(f, sizeof f, "f%d", i);
        snprintf(b, sizeof b, "b%d", i);
        const lg_goperand *o = lg_node_operand(e->n, w);
        if (o == NULL) {
            break;
        }
        const lg_gtensor *t = &e->g->tensors[o->id];
        bool quantised = lg_qtype_get(t->file->type)->qblock_elems > 1;
        const double *x = at(e, quantised ? "x_q" : "x");
        product(x, rows, t->n_cols, e->weights[o->id], at(e, f), at(e, b), t->n_rows, y, stride, begin,
                e->n->op == LG_OP_MATMUL_ADD);
        begin += t->n_rows;
    }
    for (uint64_t i = 0; gated && i < rows * width; i++) {
        const double *pair = &y[i / width * stride + i % width];
        at(e, "y")[i] = silu(pair[0]) * pair[width];
    }
}

/* ---- experts. Integers are held as doubles; pairs are left in their rows' order. */

static void eval_router(eval *e) {
    uint64_t experts = value_of(e, "ids")->below;
    uint64_t width = value_of(e, "logits")->width;
    uint64_t picks = integer(e, "n_used");
    bool softmax = strcmp(lg_value_find(e->n->attrs, "gating")->u.string.bytes, "softmax") == 0;
    bool norm = lg_value_find(e->n->attrs, "norm")->u.boolean;
    double *p = room(e, experts, sizeof *p);
    bool *taken = room(e, experts, sizeof *taken);
    for (uint32_t t = 0; t < e->in->n_tokens; t++) {
        const double *x = at(e, "logits") + t * width; /* further parts are 0 */
        double *w = at(e, "weights") + t * picks;
        double all = 0.0;
        double sum = 0.0;
        for (uint64_t i = 0; i < experts; i++) {
            p[i] = softmax ? exp(x[i]) : 1.0 / (1.0 + exp(-x[i]));
            all += p[i];
            taken[i] = false;
        }
        for (uint64_t j = 0; j < picks; j++) {
            uint64_t best = experts;
            for (uint64_t i = 0; i < experts; i++) {
                double bias_i = at(e, "bias") == NULL ? 0.0 : at(e, "bias")[i];
                double bias_b =
                    at(e, "bias") == NULL || best == experts ? 0.0 : at(e, "bias")[best];
                if (!taken[i] && (best == experts || p[i] + bias_i > p[best] + bias_b)) {
                    best = i;
                }
            }
            taken[best] = true;
            at(e, "ids")[t * picks + j] = (double)best;
            w[j] = softmax ? p[best] / all : p[best];
            sum += w[j];
        }
        for (uint64_t j = 0; j < picks; j++) {
            w[j] = (norm ? w[j] / sum : w[j]) * number(e, "scale");
        }
    }
}

/* All of a logit in the part of the first atom. */
static void eval_router_parts(eval *e) {
    const lg_gtensor *w = &e->g->tensors[lg_node_operand(e->n, "w")->id];
    uint64_t width = value_of(e, "y")->width;
    product(at(e, "x"), e->in->n_tokens, w->n_cols, at(e, "w"), NULL, NULL, w->n_rows, at(e, "y"),
            width, 0, false);
    for (uint64_t t = 0; t < e->in->n_tokens; t++) {
        memset(at(e, "y") + t * width + w->n_rows, 0, (width - w->n_rows) * sizeof(double));
    }
}

static void eval_expert_linear(eval *e) {
    const lg_gtensor *w = &e->g->tensors[lg_node_operand(e->n, "w")->id];
    uint64_t picks = integer(e, "n_used");
    uint64_t k = w->n_cols;
    bool parts = value_of(e, "x")->width != k;
    for (uint64_t pair = 0; pair < e->in->n_tokens * picks; pair++) {
        const double *x = at(e, "x") + (parts ? pair : pair / picks) * k;
        uint64_t expert = (uint64_t)at(e, "ids")[pair];
        const double *m = at(e, "w") + expert * k * w->n_rows;
        const double *f = at(e, "f") == NULL ? NULL : at(e, "f") + expert;
        product(x, 1, k, m, f, NULL, w->n_rows, at(e, "y") + pair * w->n_rows, w->n_rows, 0, false);
    }
}

/* y (+)= parts of x, weighted; a part behind the picks is the shared expert's. */
static void weigh(const eval *e, const double *x, uint64_t pairs, uint64_t width, double *y,
                  bool add) {
    uint64_t picks = integer(e, "n_used");
    for (uint64_t t = 0; t < e->in->n_tokens; t++) {
        for (uint64_t i = 0; i < width; i++) {
            double sum = add ? y[t * width + i] : 0.0;
            for (uint64_t j = 0; j < pairs; j++) {
                double w = j < picks ? at(e, "weights")[t * picks + j] : 1.0;
                sum += w * x[(t * pairs + j) * width + i];
            }
            y[t * width + i] = sum;
        }
    }
}

static void eval_expert_sum(eval *e) {
    uint64_t width = value_of(e, "y")->width;
    weigh(e, at(e, "x"), value_of(e, "x")->width / width, width, at(e, "y"),
          e->n->op == LG_OP_MOE_SUM);
}

/* The experts' numbers stand for the order that is made of them. */
static void eval_moe_sort(eval *e) {
    copy(at(e, "pairs"), at(e, "ids"), e->in->n_tokens * value_of(e, "ids")->width);
}

/* Matrix i of pair (t, j): of the expert picked, or the shared one. The pair's x. */
static void expert_product(eval *e, uint64_t t, uint64_t j, int i, const double *x, double *y) {
    const char *const roles[] = {i == 0 ? "w0" : "w1", i == 0 ? "s0" : "s1"};
    const char *const factors[] = {i == 0 ? "f0" : "f1", i == 0 ? "g0" : "g1"};
    uint64_t picks = integer(e, "n_used");
    const lg_goperand *o = lg_node_operand(e->n, roles[j == picks]);
    const lg_gtensor *w = &e->g->tensors[o->id];
    const double *ids = at(e, "ids") != NULL ? at(e, "ids") : at(e, "pairs");
    uint64_t expert = j == picks ? 0 : (uint64_t)ids[t * picks + j];
    const double *f = at(e, factors[j == picks]);
    product(x, 1, w->n_cols, e->weights[o->id] + expert * w->n_cols * w->n_rows,
            f == NULL ? NULL : f + expert, NULL, w->n_rows, y, w->n_rows, 0, false);
}

static bool reads_bytes(const eval *e, const char *role) {
    const lg_goperand *o = lg_node_operand(e->n, role);
    return lg_qtype_get(e->g->tensors[o->id].file->type)->qblock_elems > 1;
}

static void eval_moe_gated(eval *e) {
    const char *out = at(e, "y") != NULL ? "y" : "y_q";
    uint64_t pairs = integer(e, "n_used") + (lg_node_operand(e->n, "s0") != NULL);
    uint64_t n = value_of(e, out)->width / pairs;
    double *gate = room(e, n, sizeof *gate);
    double *up = room(e, n, sizeof *up);
    for (uint64_t p = 0; p < e->in->n_tokens * pairs; p++) {
        uint64_t t = p / pairs;
        bool shared = p % pairs == integer(e, "n_used");
        const char *xs[2];
        for (int i = 0; i < 2; i++) {
            const char *role = shared ? (i == 0 ? "s0" : "s1") : (i == 0 ? "w0" : "w1");
            xs[i] = reads_bytes(e, role) ? "x_q" : "x";
        }
        expert_product(e, t, p % pairs, 0, at(e, xs[0]) + t * value_of(e, xs[0])->width, gate);
        expert_product(e, t, p % pairs, 1, at(e, xs[1]) + t * value_of(e, xs[1])->width, up);
        for (uint64_t i = 0; i < n; i++) {
            at(e, out)[p * n + i] = silu(gate[i]) * up[i];
        }
    }
    if (strcmp(out, "y") == 0) {
        copy(at(e, "y_q"), at(e, "y"), e->in->n_tokens * pairs * n);
    }
}

static void eval_moe_down(eval *e) {
    uint64_t pairs = integer(e, "n_used") + (lg_node_operand(e->n, "s0") != NULL);
    bool sums = lg_node_operand(e->n, "weights") != NULL;
    uint64_t n = value_of(e, "y")->width / (sums ? 1 : pairs);
    double *z = sums ? room(e, e->in->n_tokens * pairs * n, sizeof *z) : at(e, "y");
    for (uint64_t p = 0; p < e->in->n_tokens * pairs; p++) {
        const char *role = p % pairs == integer(e, "n_used") ? "s0" : "w0";
        const char *x = reads_bytes(e, role) ? "x_q" : "x";
        uint64_t k = value_of(e, x)->width / pairs;
        expert_product(e, p / pairs, p % pairs, 0, at(e, x) + p * k, z + p * n);
    }
    if (sums) {
        weigh(e, z, pairs, n, at(e, "y"), true);
    }
}

static void eval_node(eval *e) {
    switch (e->n->op) {
    case LG_OP_EMBED: eval_embed(e); break;
    case LG_OP_ROPE_TABLE: eval_rope_table(e); break;
    case LG_OP_RMS_NORM:
    case LG_OP_NORM_QUANT: eval_norm(e); break;
    case LG_OP_HEAD_NORM: eval_head_norm(e); break;
    case LG_OP_GATE: eval_gate(e); break;
    case LG_OP_LINEAR: eval_linear(e); break;
    case LG_OP_ROPE: eval_rope(e); break;
    case LG_OP_KV_STORE:
        copy(at(e, "k_cache"), at(e, "k"), e->in->n_tokens * value_of(e, "k")->width);
        copy(at(e, "v_cache"), at(e, "v"), e->in->n_tokens * value_of(e, "v")->width);
        break;
    case LG_OP_ATTENTION: eval_attention(e, "q", "k_cache", "v_cache"); break;
    case LG_OP_ADD: eval_pointwise(e, "a", "b"); break;
    case LG_OP_SILU_MUL: eval_pointwise(e, "gate", "up"); break;
    case LG_OP_ROUTER_PARTS: eval_router_parts(e); break;
    case LG_OP_ROUTER:
    case LG_OP_ROUTER_TOPK: eval_router(e); break;
    case LG_OP_EXPERT_LINEAR: eval_expert_linear(e); break;
    case LG_OP_EXPERT_SUM:
    case LG_OP_MOE_SUM: eval_expert_sum(e); break;
    case LG_OP_MOE_SORT: eval_moe_sort(e); break;
    case LG_OP_MATVEC_MOE_GATED:
    case LG_OP_MOE_GATED: eval_moe_gated(e); break;
    case LG_OP_MATVEC_MOE_DOWN:
    case LG_OP_MOE_DOWN: eval_moe_down(e); break;
    case LG_OP_TAKE_ROWS: eval_take_rows(e); break;
    case LG_OP_QUANT:
        copy(at(e, "y_q"), at(e, "x"), rows_of(e, "x") * value_of(e, "x")->width);
        break;
    case LG_OP_MATMUL:
    case LG_OP_MATMUL_ADD: eval_matmul(e); break;
    case LG_OP_ROPE_KV: eval_rope_kv(e); break;
    case LG_OP_ATTN: eval_attention(e, "qkv", "k", "v"); break;
    default: fail_msg("op %d is not computed here", (int)e->n->op);
    }
}

const double *graph_eval(const lg_graph *g, const graph_inputs *in, lb_arena *arena) {
    eval e = {.g = g, .in = in, .arena = arena};
    e.values = room(&e, g->n_values, sizeof *e.values);
    e.weights = room(&e, g->n_tensors, sizeof *e.weights);
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        uint64_t n =
            v->rows == LG_ROWS_STATE ? v->state_bytes / 2 : in->n_tokens * v->width + v->extra;
        e.values[i] = room(&e, n + in->n_logits * v->width, sizeof(double));
    }
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        e.weights[i] = draw(&e, &g->tensors[i]);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        e.n = &g->nodes[i];
        bool few = in->n_tokens <= LG_FEW_ROWS;
        if (e.n->when == LG_WHEN_ANY || (e.n->when == LG_WHEN_FEW) == few) {
            eval_node(&e);
        }
    }
    return e.values[g->logits];
}
