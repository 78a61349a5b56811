/* emit_expr.c -- expressions of chat templates as C expressions; see emit.h. `and`, `or` and
 * `x if y else z` are C's, so that they cut short as in the template. */
#include <inttypes.h>
#include <string.h>

#include "jinja/c_text.h"
#include "jinja/emit_int.h"

static bool is_loop_flag(const lg_jnode *n) {
    return n->kind == LG_J_ATTR && n->scope != NULL &&
           ((n->n_text == 5 && memcmp(n->text, "first", 5) == 0) ||
            (n->n_text == 4 && memcmp(n->text, "last", 4) == 0));
}

/* True for expressions whose value is always true or false. */
static bool is_bool(const lg_jnode *n) {
    switch (n->kind) {
    case LG_J_BOOL:
    case LG_J_NOT:
    case LG_J_COMPARE:
    case LG_J_TEST: return true;
    case LG_J_AND:
    case LG_J_OR: return is_bool(n->a) && is_bool(n->b);
    default: return is_loop_flag(n);
    }
}

static void attribute(lg_jemitter *e, const lg_jnode *n) {
    if (n->scope != NULL) {
        lb_text_printf(&e->flat, "rt_loop_%.*s(c, &%s)", (int)n->n_text, n->text, n->scope->loop);
        return;
    }
    lg_je_put(e, "rt_attr(c, ");
    lg_je_value(e, n->a);
    lg_je_put(e, ", ");
    lg_c_literal(&e->flat, n->text, n->n_text);
    lg_je_put(e, ")");
}

static void slice(lg_jemitter *e, const lg_jnode *n) {
    lg_joperands ops = lg_je_operands(e, 4);
    const lg_jnode *kids[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < 4; i++) {
        lg_je_add_operand(&ops, kids[i]);
    }
    lg_je_open(e, &ops);
    lg_je_put(e, "rt_slice(c");
    for (size_t i = 0; i < ops.n; i++) {
        lg_je_put(e, ", ");
        if (kids[i] == NULL) {
            lg_je_put(e, "rt_none()");
        } else {
            lg_je_operand(e, &ops, i);
        }
    }
    lg_je_put(e, ")");
    lg_je_close(e, &ops);
}

/* a and b, a or b where the value is wanted: one of the operands. */
static void and_or_value(lg_jemitter *e, const lg_jnode *n) {
    bool is_and = n->kind == LG_J_AND;
    lg_je_put(e, "(");
    if (is_bool(n->a)) {
        lg_je_bool(e, n->a);
        lg_je_put(e, is_and ? " ? " : " ? rt_bool(true) : ");
        lg_je_value(e, n->b);
        lg_je_put(e, is_and ? " : rt_bool(false))" : ")");
        return;
    }
    bool named = n->a->kind == LG_J_NAME;
    uint32_t t = named ? 0 : lg_je_temp(e);
    lg_je_put(e, "rt_true(c, ");
    if (!named) {
        lb_text_printf(&e->flat, "t[%u] = ", t);
    }
    lg_je_value(e, n->a);
    lg_je_put(e, ") ? ");
    for (int side = 0; side < 2; side++) {
        bool again = (side == 0) != is_and;
        if (!again) {
            lg_je_value(e, n->b);
        } else if (named) {
            lg_je_value(e, n->a);
        } else {
            lb_text_printf(&e->flat, "t[%u]", t);
        }
        lg_je_put(e, side == 0 ? " : " : ")");
    }
}

static void if_value(lg_jemitter *e, const lg_jnode *n) {
    lg_je_put(e, "(");
    lg_je_bool(e, n->a);
    lg_je_put(e, " ? ");
    lg_je_value(e, n->b);
    lg_je_put(e, " : ");
    if (n->c == NULL) {
        lg_je_put(e, "rt_undefined()");
    } else {
        lg_je_value(e, n->c);
    }
    lg_je_put(e, ")");
}

/* True if a chain of + holds a text: then every operand must be one, and all are joined at once. */
static bool sum_has_text(const lg_jnode *n) {
    for (; n->kind == LG_J_ADD; n = n->a) {
        if (n->b->kind == LG_J_STR || n->b->kind == LG_J_TILDE) {
            return true;
        }
    }
    return n->kind == LG_J_STR || n->kind == LG_J_TILDE;
}

static void sum(lg_jemitter *e, const lg_jnode *n) {
    if (!sum_has_text(n)) {
        lg_je_plain_call(e, "rt_add", lg_je_two(e, n->a, n->b));
        return;
    }
    size_t count = 1;
    const lg_jnode *first = n;
    for (; first->kind == LG_J_ADD; first = first->a) {
        count++;
    }
    lg_joperands ops = lg_je_operands(e, count);
    ops.n = ops.cap;
    const lg_jnode *p = n;
    for (size_t i = ops.n; i > 0; i--) {
        ops.node[i - 1] = p->kind == LG_J_ADD ? p->b : p;
        ops.temp[i - 1] = -1;
        p = p->a;
    }
    lg_je_array_call(e, "rt_cat", ops);
}

static void real(lg_jemitter *e, double f) {
    lb_text_printf(&e->flat, "rt_float(%a)", f);
}

static void integer(lg_jemitter *e, int64_t i) {
    bool wide = i > INT32_MAX;
    lb_text_printf(&e->flat, wide ? "rt_int(INT64_C(%" PRId64 "))" : "rt_int(%" PRId64 ")", i);
}

void lg_je_value(lg_jemitter *e, const lg_jnode *n) {
    if (is_bool(n) && n->kind != LG_J_BOOL) {
        lg_je_put(e, "rt_bool(");
        lg_je_bool(e, n);
        lg_je_put(e, ")");
        return;
    }
    switch (n->kind) {
    case LG_J_STR: lg_je_literal(e, n->text, n->n_text); break;
    case LG_J_INT: integer(e, n->i); break;
    case LG_J_FLOAT: real(e, n->f); break;
    case LG_J_BOOL: lg_je_put(e, n->i != 0 ? "rt_bool(true)" : "rt_bool(false)"); break;
    case LG_J_NONE: lg_je_put(e, "rt_none()"); break;
    case LG_J_NAME: lg_je_var(e, n->var); break;
    case LG_J_LIST: lg_je_array_call(e, "rt_list_of", lg_je_chain(e, NULL, n->list)); break;
    case LG_J_TUPLE: lg_je_array_call(e, "rt_tuple_of", lg_je_chain(e, NULL, n->list)); break;
    case LG_J_DICT: lg_je_array_call(e, "rt_dict_of", lg_je_chain(e, NULL, n->list)); break;
    case LG_J_ATTR: attribute(e, n); break;
    case LG_J_ITEM: lg_je_plain_call(e, "rt_item", lg_je_two(e, n->a, n->b)); break;
    case LG_J_SLICE: slice(e, n); break;
    case LG_J_CALL: lg_je_call(e, n); break;
    case LG_J_FILTER: lg_je_filter(e, n); break;
    case LG_J_NEG: lg_je_plain_call(e, "rt_neg", lg_je_two(e, n->a, NULL)); break;
    case LG_J_POS: lg_je_plain_call(e, "rt_pos", lg_je_two(e, n->a, NULL)); break;
    case LG_J_AND:
    case LG_J_OR: and_or_value(e, n); break;
    case LG_J_IF_EXPR: if_value(e, n); break;
    case LG_J_ADD: sum(e, n); break;
    case LG_J_SUB: lg_je_plain_call(e, "rt_sub", lg_je_two(e, n->a, n->b)); break;
    case LG_J_MUL: lg_je_plain_call(e, "rt_mul", lg_je_two(e, n->a, n->b)); break;
    case LG_J_DIV: lg_je_plain_call(e, "rt_div", lg_je_two(e, n->a, n->b)); break;
    case LG_J_FLOORDIV: lg_je_plain_call(e, "rt_floordiv", lg_je_two(e, n->a, n->b)); break;
    case LG_J_MOD: lg_je_plain_call(e, "rt_mod", lg_je_two(e, n->a, n->b)); break;
    case LG_J_TILDE: lg_je_array_call(e, "rt_tilde", lg_je_chain(e, NULL, n->list)); break;
    default: e->failed = true; break; /* no other kind is an expression */
    }
}

/* ---- conditions ---- */

static const char *const compare_fn[] = {
    [LG_JCMP_EQ] = "rt_eq", [LG_JCMP_NE] = "!rt_eq", [LG_JCMP_LT] = "rt_lt", [LG_JCMP_LE] = "rt_le",
    [LG_JCMP_GT] = "rt_gt", [LG_JCMP_GE] = "rt_ge",  [LG_JCMP_IN] = "rt_in", [LG_JCMP_NOT_IN] =
        "!rt_in",
};

/* a < b < c: every operand is evaluated once, as far as the chain holds. */
static void comparison_chain(lg_jemitter *e, const lg_jnode *n) {
    uint32_t left = lg_je_temp(e);
    lb_text_printf(&e->flat, "(t[%u] = ", left);
    lg_je_value(e, n->a);
    for (const lg_jnode *o = n->list; o != NULL; o = o->next) {
        uint32_t right = lg_je_temp(e);
        lb_text_printf(&e->flat, o == n->list ? ", t[%u] = " : " && (t[%u] = ", right);
        lg_je_value(e, o->a);
        lb_text_printf(&e->flat, ", %s(c, t[%u], t[%u]))", compare_fn[o->op], left, right);
        left = right;
    }
}

/* An operand of && or ||; the other of the two gets brackets. */
static void and_or_operand(lg_jemitter *e, const lg_jnode *n, lg_jkind around) {
    bool brackets = (n->kind == LG_J_AND || n->kind == LG_J_OR) && n->kind != around;
    brackets = brackets || (n->kind == LG_J_COMPARE && n->list->next != NULL);
    lg_je_put(e, brackets ? "(" : "");
    lg_je_bool(e, n);
    lg_je_put(e, brackets ? ")" : "");
}

static void negation(lg_jemitter *e, const lg_jnode *n) {
    const lg_jnode *x = n->a;
    bool brackets = x->kind == LG_J_AND || x->kind == LG_J_OR || x->kind == LG_J_COMPARE;
    lg_je_put(e, brackets ? "!(" : "!");
    lg_je_bool(e, x);
    lg_je_put(e, brackets ? ")" : "");
}

void lg_je_bool(lg_jemitter *e, const lg_jnode *n) {
    switch (n->kind) {
    case LG_J_BOOL: lg_je_put(e, n->i != 0 ? "true" : "false"); return;
    case LG_J_NOT: negation(e, n); return;
    case LG_J_AND:
    case LG_J_OR:
        and_or_operand(e, n->a, n->kind);
        lg_je_put(e, n->kind == LG_J_AND ? " && " : " || ");
        and_or_operand(e, n->b, n->kind);
        return;
    case LG_J_COMPARE:
        if (n->list->next != NULL) {
            comparison_chain(e, n);
        } else {
            lg_je_plain_call(e, compare_fn[n->list->op], lg_je_two(e, n->a, n->list->a));
        }
        return;
    case LG_J_TEST: lg_je_builtin(e, n, n->a); return;
    default: break;
    }
    if (is_loop_flag(n)) {
        attribute(e, n);
        return;
    }
    lg_je_put(e, "rt_true(c, ");
    lg_je_value(e, n);
    lg_je_put(e, ")");
}
