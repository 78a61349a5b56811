/* emit_expr.c -- expressions of chat templates as C expressions.
 *
 * C leaves the order of operands open, Python does not: where a later operand has an effect (a
 * macro call, append, raise_exception), the earlier ones are put into temporaries t[i] first, with
 * the comma operator. `and`, `or` and `x if y else z` are C's, so they cut short as in the
 * template. */
#include <inttypes.h>
#include <string.h>

#include "jinja/builtin.h"
#include "jinja/c_text.h"
#include "jinja/emit_int.h"

/* Operands of one C expression; those with temp >= 0 were evaluated ahead of it. */
typedef struct operands {
    const lg_jnode **node;
    int64_t *temp;
    size_t n, cap;
    bool opened;
} operands;

static void put(lg_jemitter *e, const char *s) {
    lb_text_add(&e->flat, s);
}

static void put_literal(lg_jemitter *e, const char *s, size_t n) {
    put(e, "RT_LIT(");
    lg_c_literal(&e->flat, s, n);
    put(e, ")");
}

void lg_je_var(lg_jemitter *e, const lg_jvar *v) {
    if (v->global) {
        put(e, "g->");
        e->uses_globals = true;
    }
    put(e, v->c_name);
}

static uint32_t new_temp(lg_jemitter *e) {
    uint32_t t = e->n_temps++;
    if (e->n_temps > e->max_temps) {
        e->max_temps = e->n_temps;
    }
    return t;
}

/* Values that no other operand can change. */
static bool is_fixed(const lg_jnode *n) {
    switch (n->kind) {
    case LG_J_STR:
    case LG_J_INT:
    case LG_J_FLOAT:
    case LG_J_BOOL:
    case LG_J_NONE:
    case LG_J_NAME: return true;
    default: return false;
    }
}

static operands new_operands(lg_jemitter *e, size_t cap) {
    operands ops = {.cap = cap};
    ops.node = lb_alloc_n(e->arena, cap, sizeof *ops.node, e->err);
    ops.temp = lb_alloc_n(e->arena, cap, sizeof *ops.temp, e->err);
    if (ops.node == NULL || ops.temp == NULL) {
        ops.cap = 0;
        e->failed = true;
    }
    return ops;
}

/* Adds an operand; a NULL node stands for one that is written otherwise. */
static void add_operand(operands *ops, const lg_jnode *n) {
    if (ops->n < ops->cap) {
        ops->node[ops->n] = n;
        ops->temp[ops->n] = -1;
        ops->n++;
    }
}

static operands chain_operands(lg_jemitter *e, const lg_jnode *first_or_null,
                               const lg_jnode *chain) {
    size_t n = first_or_null != NULL;
    for (const lg_jnode *item = chain; item != NULL; item = item->next) {
        n++;
    }
    operands ops = new_operands(e, n);
    if (first_or_null != NULL) {
        add_operand(&ops, first_or_null);
    }
    for (const lg_jnode *item = chain; item != NULL; item = item->next) {
        add_operand(&ops, item);
    }
    return ops;
}

/* Writes "(t[0] = first, " for every operand that must not wait. */
static void open_operands(lg_jemitter *e, operands *ops) {
    size_t last_effect = 0;
    for (size_t i = 0; i < ops->n; i++) {
        if (ops->node[i] != NULL && ops->node[i]->effect) {
            last_effect = i;
        }
    }
    for (size_t i = 0; i < last_effect; i++) {
        if (ops->node[i] == NULL || is_fixed(ops->node[i])) {
            continue;
        }
        put(e, ops->opened ? "" : "(");
        ops->opened = true;
        ops->temp[i] = new_temp(e);
        lb_text_printf(&e->flat, "t[%" PRId64 "] = ", ops->temp[i]);
        lg_je_value(e, ops->node[i]);
        put(e, ", ");
    }
}

static void operand(lg_jemitter *e, const operands *ops, size_t i) {
    if (i >= ops->n) {
        return; /* out of memory; e->failed is set */
    }
    if (ops->temp[i] >= 0) {
        lb_text_printf(&e->flat, "t[%" PRId64 "]", ops->temp[i]);
    } else {
        lg_je_value(e, ops->node[i]);
    }
}

static void close_operands(lg_jemitter *e, const operands *ops) {
    put(e, ops->opened ? ")" : "");
}

/* "fn(c, n, (rt_val[]){a, b})" of a chain of operands. */
static void array_call(lg_jemitter *e, const char *fn, operands ops) {
    open_operands(e, &ops);
    if (ops.n == 0) {
        lb_text_printf(&e->flat, "%s(c, 0, NULL)", fn);
    } else {
        lb_text_printf(&e->flat, "%s(c, %zu, (rt_val[]){", fn, ops.n);
        for (size_t i = 0; i < ops.n; i++) {
            put(e, i == 0 ? "" : ", ");
            operand(e, &ops, i);
        }
        put(e, "})");
    }
    close_operands(e, &ops);
}

/* "fn(c, a, b)". */
static void plain_call(lg_jemitter *e, const char *fn, operands ops) {
    open_operands(e, &ops);
    lb_text_printf(&e->flat, "%s(c", fn);
    for (size_t i = 0; i < ops.n; i++) {
        put(e, ", ");
        operand(e, &ops, i);
    }
    put(e, ")");
    close_operands(e, &ops);
}

static operands two_operands(lg_jemitter *e, const lg_jnode *a, const lg_jnode *b) {
    operands ops = new_operands(e, 2);
    add_operand(&ops, a);
    if (b != NULL) {
        add_operand(&ops, b);
    }
    return ops;
}

/* A function of builtin.def: the plain symbol if no optional argument is given, else symbol_with
 * and every parameter. `object` is NULL for the text of a block. */
static void builtin_call(lg_jemitter *e, const lg_jnode *n, const lg_jnode *object) {
    lg_jparam params[LG_JPARAMS_MAX];
    size_t n_params = lg_jinja_params(n->fn, params);
    size_t n_used = 0;
    bool optional = false;
    operands ops = new_operands(e, 1 + n_params);
    add_operand(&ops, object);
    for (size_t i = 0; i < n_params; i++) {
        add_operand(&ops, n->bound[i]);
        n_used += params[i].value == NULL;
        optional = optional || (params[i].value != NULL && n->bound[i] != NULL);
    }
    open_operands(e, &ops);
    lb_text_printf(&e->flat, "%s%s(c, ", n->fn->symbol, optional ? "_with" : "");
    if (object == NULL) {
        lb_text_printf(&e->flat, "rt_captured(c, start%u)", e->captures);
    } else {
        operand(e, &ops, 0);
    }
    for (size_t i = 0; i < (optional ? n_params : n_used); i++) {
        put(e, ", ");
        if (n->bound[i] == NULL) {
            lb_text_add_n(&e->flat, params[i].value, params[i].n_value);
        } else {
            operand(e, &ops, 1 + i);
        }
    }
    put(e, ")");
    close_operands(e, &ops);
}

/* map, select, reject, selectattr, rejectattr: the filter or test goes in as a function. */
static void special_filter(lg_jemitter *e, const lg_jnode *n, lg_jspecial special) {
    bool map = special == LG_JSPECIAL_MAP;
    bool keep = special == LG_JSPECIAL_SELECT || special == LG_JSPECIAL_SELECTATTR;
    operands ops = new_operands(e, 3);
    add_operand(&ops, n->a);
    add_operand(&ops, n->bound[0]);
    add_operand(&ops, n->bound[1]);
    open_operands(e, &ops);
    put(e, map && n->fn != NULL        ? "rt_f_map("
           : map                       ? "rt_f_map_attribute("
           : n->bound[1] != NULL       ? "rt_f_select_with("
                                       : "rt_f_select(");
    put(e, "c, ");
    if (n->a == NULL) {
        lb_text_printf(&e->flat, "rt_captured(c, start%u)", e->captures);
    } else {
        operand(e, &ops, 0);
    }
    if (map && n->fn != NULL) {
        lb_text_printf(&e->flat, ", %s)", n->fn->symbol);
        close_operands(e, &ops);
        return;
    }
    put(e, map ? ", " : keep ? ", true, " : ", false, ");
    if (n->bound[0] == NULL) {
        put(e, "rt_none()");
    } else {
        operand(e, &ops, 1);
    }
    if (!map) {
        put(e, ", ");
        put(e, n->fn == NULL ? "rt_true" : n->fn->symbol);
    }
    if (map || n->bound[1] != NULL) {
        put(e, ", ");
        if (n->bound[1] == NULL) {
            put(e, "rt_none()");
        } else {
            operand(e, &ops, 2);
        }
    }
    put(e, ")");
    close_operands(e, &ops);
}

/* macro_name(c, g, a, b); an argument that is not given becomes the default inside. */
static void macro_call(lg_jemitter *e, const lg_jnode *n) {
    operands ops = new_operands(e, n->n_bound);
    for (size_t i = 0; i < n->n_bound; i++) {
        add_operand(&ops, n->bound[i]);
    }
    open_operands(e, &ops);
    lb_text_printf(&e->flat, "macro_%.*s(c, g", (int)n->macro->n_text, n->macro->text);
    e->uses_globals = true;
    for (size_t i = 0; i < n->n_bound; i++) {
        put(e, ", ");
        if (n->bound[i] == NULL) {
            put(e, "rt_missing()");
        } else {
            operand(e, &ops, i);
        }
    }
    put(e, ")");
    close_operands(e, &ops);
}

/* namespace(a=x) and dict(a=x): names and values alternate. */
static void keyword_call(lg_jemitter *e, const char *fn, const lg_jnode *n) {
    size_t count = 0;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        count++;
    }
    operands ops = new_operands(e, count);
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        add_operand(&ops, arg->a);
    }
    open_operands(e, &ops);
    lb_text_printf(&e->flat, "%s(c, %zu, ", fn, count);
    put(e, count == 0 ? "NULL)" : "(rt_val[]){");
    size_t i = 0;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next, i++) {
        put(e, i == 0 ? "" : ", ");
        put_literal(e, arg->text, arg->n_text);
        put(e, ", ");
        operand(e, &ops, i);
    }
    put(e, count == 0 ? "" : "})");
    close_operands(e, &ops);
}

/* str.format: positional arguments, then names and values of the others. */
static void format_call(lg_jemitter *e, const lg_jnode *n) {
    operands ops = new_operands(e, 1 + LG_JFORMAT_ARGS_MAX);
    size_t n_plain = 0;
    add_operand(&ops, n->a->a);
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        n_plain += arg->kind != LG_J_KWARG;
        add_operand(&ops, arg->kind == LG_J_KWARG ? arg->a : arg);
    }
    open_operands(e, &ops);
    put(e, "rt_m_format(c, ");
    operand(e, &ops, 0);
    lb_text_printf(&e->flat, ", %zu, %zu, (rt_val[]){", n_plain, ops.n - 1 - n_plain);
    size_t i = 1;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next, i++) {
        put(e, i == 1 ? "" : ", ");
        if (arg->kind == LG_J_KWARG) {
            put_literal(e, arg->text, arg->n_text);
            put(e, ", ");
        }
        operand(e, &ops, i);
    }
    put(e, n->list == NULL ? "rt_none()})" : "})");
    close_operands(e, &ops);
}

static void call(lg_jemitter *e, const lg_jnode *n) {
    const char *loop = n->scope != NULL ? n->scope->loop : "";
    switch (n->call) {
    case LG_JCALL_MACRO: macro_call(e, n); break;
    case LG_JCALL_METHOD: builtin_call(e, n, n->a->a); break;
    case LG_JCALL_FORMAT: format_call(e, n); break;
    case LG_JCALL_NAMESPACE: keyword_call(e, "rt_namespace_of", n); break;
    case LG_JCALL_DICT: keyword_call(e, "rt_dict_of_names", n); break;
    case LG_JCALL_RANGE: array_call(e, "rt_range_of", chain_operands(e, NULL, n->list)); break;
    case LG_JCALL_RAISE: plain_call(e, "rt_raise", chain_operands(e, NULL, n->list)); break;
    case LG_JCALL_STRFTIME: plain_call(e, "rt_strftime_now", chain_operands(e, NULL, n->list));
        break;
    case LG_JCALL_CYCLE: {
        operands ops = chain_operands(e, NULL, n->list);
        open_operands(e, &ops);
        lb_text_printf(&e->flat, "rt_loop_cycle(&%s, %zu, (rt_val[]){", loop, ops.n);
        for (size_t i = 0; i < ops.n; i++) {
            put(e, i == 0 ? "" : ", ");
            operand(e, &ops, i);
        }
        put(e, "})");
        close_operands(e, &ops);
        break;
    }
    case LG_JCALL_CHANGED:
        lb_text_printf(&e->flat, "rt_loop_changed(c, &%s, ", loop);
        lg_je_value(e, n->list);
        put(e, ")");
        break;
    case LG_JCALL_UNKNOWN:
        put(e, "rt_unknown_function(c, ");
        lg_c_literal(&e->flat, n->a->text, n->a->n_text);
        put(e, ")");
        break;
    }
}

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
    put(e, "rt_attr(c, ");
    lg_je_value(e, n->a);
    put(e, ", ");
    lg_c_literal(&e->flat, n->text, n->n_text);
    put(e, ")");
}

static void slice(lg_jemitter *e, const lg_jnode *n) {
    operands ops = new_operands(e, 4);
    const lg_jnode *kids[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < 4; i++) {
        add_operand(&ops, kids[i]);
    }
    open_operands(e, &ops);
    put(e, "rt_slice(c");
    for (size_t i = 0; i < ops.n; i++) {
        put(e, ", ");
        if (kids[i] == NULL) {
            put(e, "rt_none()");
        } else {
            operand(e, &ops, i);
        }
    }
    put(e, ")");
    close_operands(e, &ops);
}

/* a and b, a or b where the value is wanted: one of the operands. */
static void and_or_value(lg_jemitter *e, const lg_jnode *n) {
    bool is_and = n->kind == LG_J_AND;
    put(e, "(");
    if (is_bool(n->a)) {
        lg_je_bool(e, n->a);
        put(e, is_and ? " ? " : " ? rt_bool(true) : ");
        lg_je_value(e, n->b);
        put(e, is_and ? " : rt_bool(false))" : ")");
        return;
    }
    bool named = n->a->kind == LG_J_NAME;
    uint32_t t = named ? 0 : new_temp(e);
    put(e, "rt_true(c, ");
    if (!named) {
        lb_text_printf(&e->flat, "t[%u] = ", t);
    }
    lg_je_value(e, n->a);
    put(e, ") ? ");
    for (int side = 0; side < 2; side++) {
        bool again = (side == 0) != is_and;
        if (!again) {
            lg_je_value(e, n->b);
        } else if (named) {
            lg_je_value(e, n->a);
        } else {
            lb_text_printf(&e->flat, "t[%u]", t);
        }
        put(e, side == 0 ? " : " : ")");
    }
}

static void if_value(lg_jemitter *e, const lg_jnode *n) {
    put(e, "(");
    lg_je_bool(e, n->a);
    put(e, " ? ");
    lg_je_value(e, n->b);
    put(e, " : ");
    if (n->c == NULL) {
        put(e, "rt_undefined()");
    } else {
        lg_je_value(e, n->c);
    }
    put(e, ")");
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
        plain_call(e, "rt_add", two_operands(e, n->a, n->b));
        return;
    }
    size_t count = 1;
    const lg_jnode *first = n;
    for (; first->kind == LG_J_ADD; first = first->a) {
        count++;
    }
    operands ops = new_operands(e, count);
    ops.n = ops.cap;
    const lg_jnode *p = n;
    for (size_t i = ops.n; i > 0; i--) {
        ops.node[i - 1] = p->kind == LG_J_ADD ? p->b : p;
        ops.temp[i - 1] = -1;
        p = p->a;
    }
    array_call(e, "rt_cat", ops);
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
        put(e, "rt_bool(");
        lg_je_bool(e, n);
        put(e, ")");
        return;
    }
    switch (n->kind) {
    case LG_J_STR: put_literal(e, n->text, n->n_text); break;
    case LG_J_INT: integer(e, n->i); break;
    case LG_J_FLOAT: real(e, n->f); break;
    case LG_J_BOOL: put(e, n->i != 0 ? "rt_bool(true)" : "rt_bool(false)"); break;
    case LG_J_NONE: put(e, "rt_none()"); break;
    case LG_J_NAME: lg_je_var(e, n->var); break;
    case LG_J_LIST: array_call(e, "rt_list_of", chain_operands(e, NULL, n->list)); break;
    case LG_J_TUPLE: array_call(e, "rt_tuple_of", chain_operands(e, NULL, n->list)); break;
    case LG_J_DICT: array_call(e, "rt_dict_of", chain_operands(e, NULL, n->list)); break;
    case LG_J_ATTR: attribute(e, n); break;
    case LG_J_ITEM: plain_call(e, "rt_item", two_operands(e, n->a, n->b)); break;
    case LG_J_SLICE: slice(e, n); break;
    case LG_J_CALL: call(e, n); break;
    case LG_J_FILTER: {
        lg_jspecial special = lg_jinja_special(n->text, n->n_text);
        if (special == LG_JSPECIAL_NONE) {
            builtin_call(e, n, n->a);
        } else {
            special_filter(e, n, special);
        }
        break;
    }
    case LG_J_NEG: plain_call(e, "rt_neg", two_operands(e, n->a, NULL)); break;
    case LG_J_POS: plain_call(e, "rt_pos", two_operands(e, n->a, NULL)); break;
    case LG_J_AND:
    case LG_J_OR: and_or_value(e, n); break;
    case LG_J_IF_EXPR: if_value(e, n); break;
    case LG_J_ADD: sum(e, n); break;
    case LG_J_SUB: plain_call(e, "rt_sub", two_operands(e, n->a, n->b)); break;
    case LG_J_MUL: plain_call(e, "rt_mul", two_operands(e, n->a, n->b)); break;
    case LG_J_DIV: plain_call(e, "rt_div", two_operands(e, n->a, n->b)); break;
    case LG_J_FLOORDIV: plain_call(e, "rt_floordiv", two_operands(e, n->a, n->b)); break;
    case LG_J_MOD: plain_call(e, "rt_mod", two_operands(e, n->a, n->b)); break;
    case LG_J_TILDE: array_call(e, "rt_tilde", chain_operands(e, NULL, n->list)); break;
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
    uint32_t left = new_temp(e);
    lb_text_printf(&e->flat, "(t[%u] = ", left);
    lg_je_value(e, n->a);
    for (const lg_jnode *o = n->list; o != NULL; o = o->next) {
        uint32_t right = new_temp(e);
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
    put(e, brackets ? "(" : "");
    lg_je_bool(e, n);
    put(e, brackets ? ")" : "");
}

static void negation(lg_jemitter *e, const lg_jnode *n) {
    const lg_jnode *x = n->a;
    bool brackets = x->kind == LG_J_AND || x->kind == LG_J_OR || x->kind == LG_J_COMPARE;
    put(e, brackets ? "!(" : "!");
    lg_je_bool(e, x);
    put(e, brackets ? ")" : "");
}

void lg_je_bool(lg_jemitter *e, const lg_jnode *n) {
    switch (n->kind) {
    case LG_J_BOOL: put(e, n->i != 0 ? "true" : "false"); return;
    case LG_J_NOT: negation(e, n); return;
    case LG_J_AND:
    case LG_J_OR:
        and_or_operand(e, n->a, n->kind);
        put(e, n->kind == LG_J_AND ? " && " : " || ");
        and_or_operand(e, n->b, n->kind);
        return;
    case LG_J_COMPARE:
        if (n->list->next != NULL) {
            comparison_chain(e, n);
        } else {
            plain_call(e, compare_fn[n->list->op], two_operands(e, n->a, n->list->a));
        }
        return;
    case LG_J_TEST: builtin_call(e, n, n->a); return;
    default: break;
    }
    if (is_loop_flag(n)) {
        attribute(e, n);
        return;
    }
    put(e, "rt_true(c, ");
    lg_je_value(e, n);
    put(e, ")");
}
