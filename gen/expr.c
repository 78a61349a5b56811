/* expr.c -- evaluation, folding and trends of launch expressions; see expr.h. The text forms are in
 * expr_text.c. */
#include "expr.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "expr_text.h"

enum { SHOWN_BYTES = 120 };

static lg_expr *new_node(lg_expr_kind kind, lb_arena *arena, lb_err *err) {
    lg_expr *e = lb_alloc(arena, sizeof *e, err);
    if (e != NULL) {
        e->kind = kind;
    }
    return e;
}

const lg_expr *lg_expr_int(uint64_t value, lb_arena *arena, lb_err *err) {
    lg_expr *e = new_node(LG_EXPR_INT, arena, err);
    if (e != NULL) {
        e->value = value;
    }
    return e;
}

const lg_expr *lg_expr_name(const char *name, lb_arena *arena, lb_err *err) {
    lg_expr *e = new_node(LG_EXPR_VAR, arena, err);
    if (e != NULL) {
        e->name = lb_strndup(arena, name, strlen(name), err);
    }
    return e == NULL || e->name == NULL ? NULL : e;
}

const lg_expr *lg_expr_binary(lg_expr_kind kind, const lg_expr *a, const lg_expr *b,
                              lb_arena *arena, lb_err *err) {
    lg_expr *e = new_node(kind, arena, err);
    if (e != NULL) {
        e->a = a;
        e->b = b;
    }
    return e;
}

static const lg_expr_var *find_var(const char *name, const lg_expr_var *vars, size_t n_vars) {
    for (size_t i = 0; i < n_vars; i++) {
        if (strcmp(vars[i].name, name) == 0) {
            return &vars[i];
        }
    }
    return NULL;
}

/* What is wrong with applying kind to (a, b), or NULL and *out. */
static const char *apply(lg_expr_kind kind, uint64_t a, uint64_t b, uint64_t *out) {
    bool divides = kind == LG_EXPR_DIV || kind == LG_EXPR_CEIL_DIV || kind == LG_EXPR_ROUND_UP;
    if (divides && b == 0) {
        return "division by zero";
    }
    switch (kind) {
    case LG_EXPR_ADD: return lb_add(a, b, out) ? NULL : "overflow";
    case LG_EXPR_MUL: return lb_mul(a, b, out) ? NULL : "overflow";
    case LG_EXPR_ROUND_UP: return lb_round_up(a, b, out) ? NULL : "overflow";
    case LG_EXPR_SUB:
        if (a < b) {
            return "negative";
        }
        *out = a - b;
        return NULL;
    case LG_EXPR_DIV: *out = a / b; return NULL;
    case LG_EXPR_CEIL_DIV: *out = lb_ceil_div(a, b); return NULL;
    case LG_EXPR_MIN: *out = a < b ? a : b; return NULL;
    case LG_EXPR_MAX: *out = a > b ? a : b; return NULL;
    case LG_EXPR_INT:
    case LG_EXPR_VAR: break;
    }
    return "no operator";
}

/* apply for the node e, with an error that names it. */
static bool apply_node(const lg_expr *e, uint64_t a, uint64_t b, uint64_t *out, lb_err *err) {
    const char *wrong = apply(e->kind, a, b, out);
    if (wrong == NULL) {
        return true;
    }
    char text[SHOWN_BYTES];
    lg_expr_short_text(e, text, sizeof text);
    lb_code code = strcmp(wrong, "overflow") == 0 ? LB_OVERFLOW : LB_BAD_VALUE;
    return lb_err_set(err, code, "%s: %s at %" PRIu64 " and %" PRIu64, text, wrong, a, b);
}

bool lg_expr_eval(const lg_expr *e, const lg_expr_var *vars, size_t n_vars, uint64_t *out,
                  lb_err *err) {
    if (e->kind == LG_EXPR_INT) {
        *out = e->value;
        return true;
    }
    if (e->kind == LG_EXPR_VAR) {
        const lg_expr_var *v = find_var(e->name, vars, n_vars);
        if (v == NULL) {
            return lb_err_set(err, LB_MISSING, "'%s' has no value in this expression", e->name);
        }
        *out = v->value;
        return true;
    }
    uint64_t a = 0;
    uint64_t b = 0;
    return lg_expr_eval(e->a, vars, n_vars, &a, err) && lg_expr_eval(e->b, vars, n_vars, &b, err) &&
           apply_node(e, a, b, out, err);
}

bool lg_expr_uses(const lg_expr *e, const char *name) {
    switch (e->kind) {
    case LG_EXPR_INT: return false;
    case LG_EXPR_VAR: return strcmp(e->name, name) == 0;
    default: return lg_expr_uses(e->a, name) || lg_expr_uses(e->b, name);
    }
}

bool lg_expr_equal(const lg_expr *a, const lg_expr *b) {
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case LG_EXPR_INT: return a->value == b->value;
    case LG_EXPR_VAR: return strcmp(a->name, b->name) == 0;
    default: return lg_expr_equal(a->a, b->a) && lg_expr_equal(a->b, b->b);
    }
}

static bool is_int(const lg_expr *e, uint64_t value) {
    return e->kind == LG_EXPR_INT && e->value == value;
}

/* The operand that `kind` with operands a and b always equals, or NULL. */
static const lg_expr *identity(lg_expr_kind kind, const lg_expr *a, const lg_expr *b) {
    switch (kind) {
    case LG_EXPR_ADD: return is_int(b, 0) ? a : is_int(a, 0) ? b : NULL;
    case LG_EXPR_SUB: return is_int(b, 0) ? a : NULL;
    case LG_EXPR_MUL: return is_int(b, 1) ? a : is_int(a, 1) ? b : NULL;
    case LG_EXPR_DIV:
    case LG_EXPR_CEIL_DIV:
    case LG_EXPR_ROUND_UP: return is_int(b, 1) ? a : NULL;
    case LG_EXPR_MIN:
    case LG_EXPR_MAX: return lg_expr_equal(a, b) ? a : NULL;
    default: return NULL;
    }
}

/* The node e with folded operands a and b. */
static const lg_expr *rebuild(const lg_expr *e, const lg_expr *a, const lg_expr *b,
                              lb_arena *arena, lb_err *err) {
    if (a->kind == LG_EXPR_INT && b->kind == LG_EXPR_INT) {
        uint64_t v = 0;
        return apply_node(e, a->value, b->value, &v, err) ? lg_expr_int(v, arena, err) : NULL;
    }
    const lg_expr *same = identity(e->kind, a, b);
    if (same != NULL) {
        return same;
    }
    return a == e->a && b == e->b ? e : lg_expr_binary(e->kind, a, b, arena, err);
}

bool lg_expr_fold(const lg_expr *e, const lg_expr_var *vars, size_t n_vars, lb_arena *arena,
                  const lg_expr **out, lb_err *err) {
    const lg_expr *r = e;
    if (e->kind == LG_EXPR_VAR) {
        const lg_expr_var *v = find_var(e->name, vars, n_vars);
        r = v == NULL ? e : lg_expr_int(v->value, arena, err);
    } else if (e->kind != LG_EXPR_INT) {
        const lg_expr *a = NULL;
        const lg_expr *b = NULL;
        if (!lg_expr_fold(e->a, vars, n_vars, arena, &a, err) ||
            !lg_expr_fold(e->b, vars, n_vars, arena, &b, err)) {
            return false;
        }
        r = rebuild(e, a, b, arena, err);
    }
    if (r == NULL) {
        return false;
    }
    *out = r;
    return true;
}

/* The trend of an operation that rises with both operands. Values are never negative, so that a
 * product is one of these. */
static lg_expr_trend both(lg_expr_trend a, lg_expr_trend b) {
    if (a == LG_EXPR_CONSTANT) {
        return b;
    }
    return b == LG_EXPR_CONSTANT || a == b ? a : LG_EXPR_UNKNOWN;
}

static lg_expr_trend opposite(lg_expr_trend t) {
    switch (t) {
    case LG_EXPR_RISING: return LG_EXPR_FALLING;
    case LG_EXPR_FALLING: return LG_EXPR_RISING;
    default: return t;
    }
}

lg_expr_trend lg_expr_trend_in(const lg_expr *e, const char *name) {
    if (e->kind == LG_EXPR_INT) {
        return LG_EXPR_CONSTANT;
    }
    if (e->kind == LG_EXPR_VAR) {
        return strcmp(e->name, name) == 0 ? LG_EXPR_RISING : LG_EXPR_CONSTANT;
    }
    lg_expr_trend a = lg_expr_trend_in(e->a, name);
    lg_expr_trend b = lg_expr_trend_in(e->b, name);
    switch (e->kind) {
    case LG_EXPR_SUB:
    case LG_EXPR_DIV:
    case LG_EXPR_CEIL_DIV: return both(a, opposite(b));
    case LG_EXPR_ROUND_UP: return b == LG_EXPR_CONSTANT ? a : LG_EXPR_UNKNOWN;
    default: return both(a, b);
    }
}
