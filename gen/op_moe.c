/* op_moe.c -- shape rules of mixtures of experts: what architecture files build, and the launch ops
 * that fuse_moe.c makes of it. Pairs of a row and a pick are parts of a row of T: P parts, n_used
 * of them picks and one more where a shared expert is computed beside them. */
#include "base/num.h"
#include "op_rule.h"

enum { PICKS_MAX = 64, EXPERTS_MAX = 4096, ENTRY_WORDS = 4, ATOM_COLS = 256 };

/* ---- architecture */

/* How many experts a row goes to: n_used, at most `experts` and at most what a kernel keeps. */
static bool picks_of(const lg_rule *r, uint64_t experts, uint64_t *picks) {
    if (!lg_rule_attr(r, "n_used", picks)) {
        return false;
    }
    if (experts > EXPERTS_MAX) {
        return lg_rule_refuse(r, "ids", "number of experts", experts, EXPERTS_MAX);
    }
    uint64_t most = experts < PICKS_MAX ? experts : PICKS_MAX;
    return (*picks >= 1 && *picks <= most) || lg_rule_refuse(r, "n_used", "number", *picks, most);
}

/* The experts of every row: n_used numbers below the number of experts. */
static bool ids_are(const lg_rule *r, uint64_t experts, uint64_t *picks) {
    uint64_t below = lg_rule_value(r, "ids")->below;
    return picks_of(r, experts, picks) && lg_rule_width(r, "ids", *picks, LG_ELEM_I32) &&
           lg_rule_rows(r, "ids", LG_ROWS_T) &&
           (below == experts || lg_rule_refuse(r, "ids", "bound", below, experts));
}

/* Each expert's logit in `parts` parts, one row of them after the other. */
static bool choose(const lg_rule *r, uint64_t parts) {
    static const char *const gatings[] = {"sigmoid", "softmax", NULL};
    uint64_t width = 0;
    uint64_t picks = 0;
    uint32_t gating = 0;
    bool norm = false;
    lg_at at = lg_rule_attrs(r);
    if (!lg_rule_floats_over_T(r, "logits", &width)) {
        return false;
    }
    if (parts == 0 || width % parts != 0) {
        return lg_rule_refuse(r, "logits", "width modulo parts", parts == 0 ? width : width % parts,
                              0);
    }
    uint64_t experts = width / parts;
    return lg_rule_matrix(r, "bias", experts, 1) && ids_are(r, experts, &picks) &&
           lg_rule_width(r, "weights", picks, LG_ELEM_F32) &&
           lg_rule_rows(r, "weights", LG_ROWS_T) &&
           lg_at_choice(&at, "gating", gatings, &gating, r->err) &&
           lg_at_bool(&at, "norm", &norm, r->err) && lg_rule_has_number(r, "scale");
}

bool lg_rule_router(const lg_rule *r) {
    return choose(r, 1);
}

/* ---- launches of a router */

bool lg_rule_router_topk(const lg_rule *r) {
    uint64_t parts = 0;
    return lg_rule_attr(r, "parts", &parts) && choose(r, parts);
}

/* The sums over atoms of 256 columns, an expert's for each. Only plain numbers have such parts. */
bool lg_rule_router_parts(const lg_rule *r) {
    const lg_gtensor *w = lg_rule_tensor(r, "w");
    uint64_t k = 0;
    uint64_t width = 0;
    if (!lg_rule_floats_over_T(r, "x", &k) || !lg_rule_matrix(r, "w", k, w->n_rows)) {
        return false;
    }
    if (lg_qtype_get(w->file->type)->qblock_elems > 1) {
        return lg_rule_refuse(r, "w", "columns of a qblock",
                              lg_qtype_get(w->file->type)->qblock_elems, 1);
    }
    return (lb_mul(lb_ceil_div(k, ATOM_COLS), w->n_rows, &width) ||
            lg_rule_refuse(r, "w", "rows", w->n_rows, UINT64_MAX)) &&
           lg_rule_width(r, "y", width, LG_ELEM_F32) && lg_rule_rows(r, "y", LG_ROWS_T);
}

/* ---- products of experts */

/* Row and pick p of y is expert ids[p] times the row of x, or times its part p. */
bool lg_rule_expert_linear(const lg_rule *r) {
    const lg_gtensor *w = lg_rule_tensor(r, "w");
    uint64_t picks = 0;
    uint64_t width = 0;
    uint64_t all = 0;
    uint64_t experts = lg_rule_value(r, "ids")->below;
    if (!ids_are(r, experts, &picks) || !lg_rule_floats_over_T(r, "x", &width)) {
        return false;
    }
    if (w->n_mats != experts) {
        return lg_rule_refuse(r, "w", "number of matrices", w->n_mats, experts);
    }
    if (!lg_rule_matrix(r, "f", experts, 1)) {
        return false;
    }
    if (width != w->n_cols && (!lb_mul(w->n_cols, picks, &all) || width != all)) {
        return lg_rule_refuse(r, "w", "columns", w->n_cols, width);
    }
    if (!lb_mul(w->n_rows, picks, &all)) {
        return lg_rule_refuse(r, "w", "rows", w->n_rows, UINT64_MAX / picks);
    }
    return lg_rule_width(r, "y", all, LG_ELEM_F32) && lg_rule_rows(r, "y", LG_ROWS_T);
}

bool lg_rule_expert_sum(const lg_rule *r) {
    uint64_t picks = lg_rule_value(r, "weights")->width;
    uint64_t width = lg_rule_value(r, "y")->width;
    uint64_t used = 0;
    uint64_t all = 0;
    if (!lg_rule_attr(r, "n_used", &used)) {
        return false;
    }
    if (used != picks || !lb_mul(width, picks, &all)) {
        return lg_rule_refuse(r, "weights", "width", picks, used);
    }
    return lg_rule_floats_over_T(r, "y", &width) &&
           lg_rule_width(r, "weights", picks, LG_ELEM_F32) &&
           lg_rule_rows(r, "weights", LG_ROWS_T) && lg_rule_width(r, "x", all, LG_ELEM_F32) &&
           lg_rule_rows(r, "x", LG_ROWS_T);
}

/* ---- launches */

/* What a launch op says of its mixture. */
typedef struct mixture {
    uint64_t experts, picks; /* routed ones */
    uint64_t pairs, groups;  /* of a row, experts in all: with the shared one */
} mixture;

static bool mixture_of(const lg_rule *r, bool shared, mixture *m) {
    if (!lg_rule_attr(r, "n_expert", &m->experts) || !picks_of(r, m->experts, &m->picks)) {
        return false;
    }
    m->pairs = m->picks + shared;
    m->groups = m->experts + shared;
    return true;
}

/* The pairs in their experts' order, and the map of tiles, which has room for one tile a pair and
 * one more for each expert. */
static bool order_is(const lg_rule *r, const mixture *m) {
    const lg_gvalue *map = lg_rule_value(r, "map");
    const lg_gvalue *pairs = lg_rule_value(r, "pairs");
    if (!lg_rule_width(r, "pairs", m->pairs, LG_ELEM_I32) || !lg_rule_rows(r, "pairs", LG_ROWS_T) ||
        !lg_rule_width(r, "map", ENTRY_WORDS * m->pairs, LG_ELEM_I32) ||
        !lg_rule_rows(r, "map", LG_ROWS_T)) {
        return false;
    }
    if (pairs->extra != 0) {
        return lg_rule_refuse(r, "pairs", "elements behind the rows", pairs->extra, 0);
    }
    return map->extra == ENTRY_WORDS * m->groups ||
           lg_rule_refuse(r, "map", "elements behind the rows", map->extra,
                          ENTRY_WORDS * m->groups);
}

bool lg_rule_moe_sort(const lg_rule *r) {
    mixture m;
    uint64_t picks = 0;
    uint64_t width = lg_rule_value(r, "pairs")->width;
    bool shared = width == lg_rule_value(r, "ids")->width + 1;
    return mixture_of(r, shared, &m) && ids_are(r, m.experts, &picks) && order_is(r, &m);
}

/* The matrices of a product, all n x k: routed ones w0 (and w1), shared ones s0 (and s1) or none.
 * Beside each there may be a factor for each of its matrices: f0, f1, g0, g1. */
typedef struct matrices {
    uint64_t n, k;
    bool floats, quantised;
} matrices;

static bool matrix_fits(const lg_rule *r, const char *role, uint64_t mats, matrices *m) {
    const lg_gtensor *t = lg_rule_tensor(r, role);
    if (t->n_mats != mats) {
        return lg_rule_refuse(r, role, "number of matrices", t->n_mats, mats);
    }
    bool quantised = lg_qtype_get(t->file->type)->qblock_elems > 1;
    m->floats = m->floats || !quantised;
    m->quantised = m->quantised || quantised;
    return (t->n_cols == m->k || lg_rule_refuse(r, role, "columns", t->n_cols, m->k)) &&
           (t->n_rows == m->n || lg_rule_refuse(r, role, "rows", t->n_rows, m->n));
}

static bool read_matrices(const lg_rule *r, const mixture *mix, bool gated, matrices *m) {
    static const char *const roles[2][2] = {{"w0", "w1"}, {"s0", "s1"}};
    static const char *const factors[2][2] = {{"f0", "f1"}, {"g0", "g1"}};
    const lg_gvalue *x =
        lg_rule_value(r, "x") != NULL ? lg_rule_value(r, "x") : lg_rule_value(r, "x_q");
    uint64_t parts = gated ? 1 : mix->pairs;
    if (x == NULL || x->width % parts != 0) {
        return x == NULL ? lg_rule_refuse(r, "x", "number of inputs", 0, 1)
                         : lg_rule_refuse(r, "x", "width modulo pairs", x->width % parts, 0);
    }
    *m = (matrices){.n = lg_rule_tensor(r, "w0")->n_rows, .k = x->width / parts};
    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < 2; i++) {
            bool wanted = (i == 0 || gated) && (set == 0 || mix->pairs > mix->picks);
            bool there = lg_rule_tensor(r, roles[set][i]) != NULL;
            if (wanted != there) {
                return lg_rule_refuse(r, roles[set][i], "number", there, wanted);
            }
            uint64_t mats = set == 0 ? mix->experts : 1;
            if (!there && lg_rule_tensor(r, factors[set][i]) != NULL) {
                return lg_rule_refuse(r, factors[set][i], "number", 1, 0);
            }
            if (there && (!matrix_fits(r, roles[set][i], mats, m) ||
                          !lg_rule_matrix(r, factors[set][i], mats, 1))) {
                return false;
            }
        }
    }
    return true;
}

/* x for plain numbers, its planes for quantised ones; a row of it, or one for each pair. */
static bool input_is(const lg_rule *r, const matrices *m, uint64_t parts) {
    uint64_t width = 0;
    if ((lg_rule_value(r, "x") != NULL) != m->floats) {
        return lg_rule_refuse(r, "x", "number", !m->floats, m->floats);
    }
    if ((lg_rule_value(r, "x_q") != NULL) != m->quantised) {
        return lg_rule_refuse(r, "x_q", "number", !m->quantised, m->quantised);
    }
    return (lb_mul(m->k, parts, &width) ||
            lg_rule_refuse(r, "x", "columns", m->k, UINT64_MAX / parts)) &&
           lg_rule_width(r, "x", width, LG_ELEM_F32) && lg_rule_rows(r, "x", LG_ROWS_T) &&
           lg_rule_q8_planes(r, "x", width, LG_ROWS_T);
}

/* silu(gate x) * (up x) of every pair. */
static bool gated_outputs(const lg_rule *r, const mixture *mix, const matrices *m) {
    uint64_t width = 0;
    if (lg_rule_value(r, "y") == NULL && lg_rule_value(r, "y_q") == NULL) {
        return lg_rule_refuse(r, "y", "number of outputs", 0, 1);
    }
    return (lb_mul(m->n, mix->pairs, &width) ||
            lg_rule_refuse(r, "w0", "rows", m->n, UINT64_MAX / mix->pairs)) &&
           lg_rule_width(r, "y", width, LG_ELEM_F32) && lg_rule_rows(r, "y", LG_ROWS_T) &&
           lg_rule_q8_planes(r, "y", width, LG_ROWS_T);
}

static bool product_of(const lg_rule *r, bool gated, mixture *mix, matrices *m) {
    return mixture_of(r, lg_rule_tensor(r, "s0") != NULL, mix) && read_matrices(r, mix, gated, m) &&
           input_is(r, m, gated ? 1 : mix->pairs);
}

bool lg_rule_moe_gated(const lg_rule *r) {
    mixture mix;
    matrices m;
    uint64_t picks = 0;
    if (!product_of(r, true, &mix, &m) || !gated_outputs(r, &mix, &m)) {
        return false;
    }
    return lg_rule_value(r, "ids") != NULL ? ids_are(r, mix.experts, &picks) : order_is(r, &mix);
}

static bool weights_are(const lg_rule *r, const mixture *mix) {
    return lg_rule_width(r, "weights", mix->picks, LG_ELEM_F32) &&
           lg_rule_rows(r, "weights", LG_ROWS_T);
}

/* By ids: y += the weighted sum of all pairs. By tiles: y has a part for each pair. */
bool lg_rule_moe_down(const lg_rule *r) {
    mixture mix;
    matrices m;
    uint64_t picks = 0;
    uint64_t width = 0;
    if (!product_of(r, false, &mix, &m) || !lg_rule_rows(r, "y", LG_ROWS_T)) {
        return false;
    }
    if (lg_rule_value(r, "ids") != NULL) {
        return ids_are(r, mix.experts, &picks) && weights_are(r, &mix) &&
               lg_rule_width(r, "y", m.n, LG_ELEM_F32);
    }
    return order_is(r, &mix) &&
           (lb_mul(m.n, mix.pairs, &width) ||
            lg_rule_refuse(r, "w0", "rows", m.n, UINT64_MAX / mix.pairs)) &&
           lg_rule_width(r, "y", width, LG_ELEM_F32);
}

bool lg_rule_moe_sum(const lg_rule *r) {
    mixture mix;
    bool shared = false;
    uint64_t width = 0;
    uint64_t all = 0;
    lg_at at = lg_rule_attrs(r);
    return lg_at_bool(&at, "shared", &shared, r->err) && mixture_of(r, shared, &mix) &&
           lg_rule_floats_over_T(r, "y", &width) && weights_are(r, &mix) &&
           (lb_mul(width, mix.pairs, &all) ||
            lg_rule_refuse(r, "y", "width", width, UINT64_MAX / mix.pairs)) &&
           lg_rule_width(r, "x", all, LG_ELEM_F32) && lg_rule_rows(r, "x", LG_ROWS_T);
}
