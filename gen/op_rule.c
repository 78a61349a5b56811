/* op_rule.c -- see op_rule.h. */
#include "op_rule.h"

#include <inttypes.h>
#include <stdio.h>

bool lg_rule_refuse(const lg_rule *r, const char *role, const char *what, uint64_t got,
                    uint64_t want) {
    return lb_err_set(r->err, LB_BAD_SHAPE,
                      "op '%s' of layer %" PRId32 ": %s of '%s' is %" PRIu64 ", expected %" PRIu64,
                      lg_op_get(r->n->op)->name, r->n->layer, what, role, got, want);
}

bool lg_rule_refuse_text(const lg_rule *r, const char *role, const char *got, const char *want) {
    return lb_err_set(r->err, LB_BAD_SHAPE, "op '%s' of layer %" PRId32 ": '%s' is %s, expected %s",
                      lg_op_get(r->n->op)->name, r->n->layer, role, got, want);
}

const lg_gvalue *lg_rule_value(const lg_rule *r, const char *role) {
    const lg_goperand *o = lg_node_operand(r->n, role);
    return o == NULL || o->access == LG_TENSOR ? NULL : &r->g->values[o->id];
}

const lg_gtensor *lg_rule_tensor(const lg_rule *r, const char *role) {
    const lg_goperand *o = lg_node_operand(r->n, role);
    return o == NULL || o->access != LG_TENSOR ? NULL : &r->g->tensors[o->id];
}

bool lg_rule_width(const lg_rule *r, const char *role, uint64_t width, lg_elem elem) {
    const lg_gvalue *v = lg_rule_value(r, role);
    if (v == NULL) {
        return true;
    }
    if (v->elem != elem) {
        return lg_rule_refuse_text(r, role, LG_ELEM_NAMES[v->elem], LG_ELEM_NAMES[elem]);
    }
    return v->width == width || lg_rule_refuse(r, role, "width", v->width, width);
}

bool lg_rule_rows(const lg_rule *r, const char *role, lg_rows rows) {
    const lg_gvalue *v = lg_rule_value(r, role);
    if (v == NULL || v->rows == rows) {
        return true;
    }
    return lg_rule_refuse_text(r, role, LG_ROWS_NAMES[v->rows], LG_ROWS_NAMES[rows]);
}

bool lg_rule_floats_over_T(const lg_rule *r, const char *role, uint64_t *width) {
    *width = lg_rule_value(r, role)->width;
    return lg_rule_width(r, role, *width, LG_ELEM_F32) && lg_rule_rows(r, role, LG_ROWS_T);
}

static bool matrices(const lg_rule *r, const char *role, uint64_t cols, uint64_t rows,
                     uint64_t mats) {
    const lg_gtensor *t = lg_rule_tensor(r, role);
    if (t == NULL) {
        return true;
    }
    if (t->n_mats != mats) {
        return lg_rule_refuse(r, role, "number of matrices", t->n_mats, mats);
    }
    return (t->n_cols == cols || lg_rule_refuse(r, role, "columns", t->n_cols, cols)) &&
           (t->n_rows == rows || lg_rule_refuse(r, role, "rows", t->n_rows, rows));
}

bool lg_rule_matrix(const lg_rule *r, const char *role, uint64_t cols, uint64_t rows) {
    return matrices(r, role, cols, rows, 1);
}

bool lg_rule_same_shape(const lg_rule *r, const char *a, const char *b) {
    const lg_gvalue *x = lg_rule_value(r, a);
    return lg_rule_width(r, a, x->width, LG_ELEM_F32) &&
           lg_rule_width(r, b, x->width, LG_ELEM_F32) && lg_rule_rows(r, b, x->rows);
}

lg_at lg_rule_attrs(const lg_rule *r) {
    return lg_at_root(lg_op_get(r->n->op)->name, r->n->attrs);
}

bool lg_rule_attr(const lg_rule *r, const char *key, uint64_t *out) {
    lg_at at = lg_rule_attrs(r);
    return lg_at_uint(&at, key, out, r->err);
}

bool lg_rule_has_number(const lg_rule *r, const char *key) {
    lg_at at = lg_rule_attrs(r);
    double unused = 0;
    return lg_at_double(&at, key, &unused, r->err);
}

bool lg_rule_q8_planes(const lg_rule *r, const char *prefix, uint64_t k, lg_rows rows) {
    const lg_elem elems[] = {LG_ELEM_I8, LG_ELEM_F32, LG_ELEM_I16};
    const uint64_t widths[] = {k, k / 32, k / 16};
    char role[3][8];
    uint64_t n = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(role[i], sizeof role[i], "%s_%c", prefix, "qds"[i]);
        n += lg_rule_value(r, role[i]) != NULL;
    }
    if (n == 0) {
        return true;
    }
    if (n != 3 || k % 32 != 0) {
        return n != 3 ? lg_rule_refuse(r, role[0], "number of planes", n, 3)
                      : lg_rule_refuse(r, role[0], "width modulo 32", k % 32, 0);
    }
    for (int i = 0; i < 3; i++) {
        if (!lg_rule_width(r, role[i], widths[i], elems[i]) || !lg_rule_rows(r, role[i], rows)) {
            return false;
        }
    }
    return true;
}
