/* emit_call.c -- calls of macros, methods and functions, and filters, as C; see emit.h. */
#include "jinja/builtin.h"
#include "jinja/c_text.h"
#include "jinja/emit_int.h"

/* A function of builtin.def: the plain symbol if no optional argument is given, else symbol_with
 * and every parameter. `object` is NULL for the text of a block. */
void lg_je_builtin(lg_jemitter *e, const lg_jnode *n, const lg_jnode *object) {
    lg_jparam params[LG_JPARAMS_MAX];
    size_t n_params = lg_jinja_params(n->fn, params);
    size_t n_used = 0;
    bool optional = false;
    lg_joperands ops = lg_je_operands(e, 1 + n_params);
    lg_je_add_operand(&ops, object);
    for (size_t i = 0; i < n_params; i++) {
        lg_je_add_operand(&ops, n->bound[i]);
        n_used += params[i].value == NULL;
        optional = optional || (params[i].value != NULL && n->bound[i] != NULL);
    }
    lg_je_open(e, &ops);
    lb_text_printf(&e->flat, "%s%s(c, ", n->fn->symbol, optional ? "_with" : "");
    if (object == NULL) {
        lb_text_printf(&e->flat, "rt_captured(c, start%u)", e->captures);
    } else {
        lg_je_operand(e, &ops, 0);
    }
    for (size_t i = 0; i < (optional ? n_params : n_used); i++) {
        lg_je_put(e, ", ");
        if (n->bound[i] == NULL) {
            lb_text_add_n(&e->flat, params[i].value, params[i].n_value);
        } else {
            lg_je_operand(e, &ops, 1 + i);
        }
    }
    lg_je_put(e, ")");
    lg_je_close(e, &ops);
}

/* map, select, reject, selectattr, rejectattr: the filter or test goes in as a function. */
static void special_filter(lg_jemitter *e, const lg_jnode *n, lg_jspecial special) {
    bool map = special == LG_JSPECIAL_MAP;
    bool keep = special == LG_JSPECIAL_SELECT || special == LG_JSPECIAL_SELECTATTR;
    lg_joperands ops = lg_je_operands(e, 3);
    lg_je_add_operand(&ops, n->a);
    lg_je_add_operand(&ops, n->bound[0]);
    lg_je_add_operand(&ops, n->bound[1]);
    lg_je_open(e, &ops);
    lg_je_put(e, map && n->fn != NULL        ? "rt_f_map("
           : map                       ? "rt_f_map_attribute("
           : n->bound[1] != NULL       ? "rt_f_select_with("
                                       : "rt_f_select(");
    lg_je_put(e, "c, ");
    if (n->a == NULL) {
        lb_text_printf(&e->flat, "rt_captured(c, start%u)", e->captures);
    } else {
        lg_je_operand(e, &ops, 0);
    }
    if (map && n->fn != NULL) {
        lb_text_printf(&e->flat, ", %s)", n->fn->symbol);
        lg_je_close(e, &ops);
        return;
    }
    lg_je_put(e, map ? ", " : keep ? ", true, " : ", false, ");
    if (n->bound[0] == NULL) {
        lg_je_put(e, "rt_none()");
    } else {
        lg_je_operand(e, &ops, 1);
    }
    if (!map) {
        lg_je_put(e, ", ");
        lg_je_put(e, n->fn == NULL ? "rt_true" : n->fn->symbol);
    }
    if (map || n->bound[1] != NULL) {
        lg_je_put(e, ", ");
        if (n->bound[1] == NULL) {
            lg_je_put(e, "rt_none()");
        } else {
            lg_je_operand(e, &ops, 2);
        }
    }
    lg_je_put(e, ")");
    lg_je_close(e, &ops);
}

/* macro_name(c, g, a, b); an argument that is not given becomes the default inside. */
static void macro_call(lg_jemitter *e, const lg_jnode *n) {
    lg_joperands ops = lg_je_operands(e, n->n_bound);
    for (size_t i = 0; i < n->n_bound; i++) {
        lg_je_add_operand(&ops, n->bound[i]);
    }
    lg_je_open(e, &ops);
    lb_text_printf(&e->flat, "macro_%.*s(c, g", (int)n->macro->n_text, n->macro->text);
    e->uses_globals = true;
    for (size_t i = 0; i < n->n_bound; i++) {
        lg_je_put(e, ", ");
        if (n->bound[i] == NULL) {
            lg_je_put(e, "rt_missing()");
        } else {
            lg_je_operand(e, &ops, i);
        }
    }
    lg_je_put(e, ")");
    lg_je_close(e, &ops);
}

/* namespace(a=x) and dict(a=x): names and values alternate. */
static void keyword_call(lg_jemitter *e, const char *fn, const lg_jnode *n) {
    size_t count = 0;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        count++;
    }
    lg_joperands ops = lg_je_operands(e, count);
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        lg_je_add_operand(&ops, arg->a);
    }
    lg_je_open(e, &ops);
    lb_text_printf(&e->flat, "%s(c, %zu, ", fn, count);
    lg_je_put(e, count == 0 ? "NULL)" : "(rt_val[]){");
    size_t i = 0;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next, i++) {
        lg_je_put(e, i == 0 ? "" : ", ");
        lg_je_literal(e, arg->text, arg->n_text);
        lg_je_put(e, ", ");
        lg_je_operand(e, &ops, i);
    }
    lg_je_put(e, count == 0 ? "" : "})");
    lg_je_close(e, &ops);
}

/* str.format: positional arguments, then names and values of the others. */
static void format_call(lg_jemitter *e, const lg_jnode *n) {
    lg_joperands ops = lg_je_operands(e, 1 + LG_JFORMAT_ARGS_MAX);
    size_t n_plain = 0;
    lg_je_add_operand(&ops, n->a->a);
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        n_plain += arg->kind != LG_J_KWARG;
        lg_je_add_operand(&ops, arg->kind == LG_J_KWARG ? arg->a : arg);
    }
    lg_je_open(e, &ops);
    lg_je_put(e, "rt_m_format(c, ");
    lg_je_operand(e, &ops, 0);
    lb_text_printf(&e->flat, ", %zu, %zu, (rt_val[]){", n_plain, ops.n - 1 - n_plain);
    size_t i = 1;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next, i++) {
        lg_je_put(e, i == 1 ? "" : ", ");
        if (arg->kind == LG_J_KWARG) {
            lg_je_literal(e, arg->text, arg->n_text);
            lg_je_put(e, ", ");
        }
        lg_je_operand(e, &ops, i);
    }
    lg_je_put(e, n->list == NULL ? "rt_none()})" : "})");
    lg_je_close(e, &ops);
}

void lg_je_call(lg_jemitter *e, const lg_jnode *n) {
    const char *loop = n->scope != NULL ? n->scope->loop : "";
    switch (n->call) {
    case LG_JCALL_MACRO: macro_call(e, n); break;
    case LG_JCALL_METHOD: lg_je_builtin(e, n, n->a->a); break;
    case LG_JCALL_FORMAT: format_call(e, n); break;
    case LG_JCALL_NAMESPACE: keyword_call(e, "rt_namespace_of", n); break;
    case LG_JCALL_DICT: keyword_call(e, "rt_dict_of_names", n); break;
    case LG_JCALL_RANGE: lg_je_array_call(e, "rt_range_of", lg_je_chain(e, NULL, n->list)); break;
    case LG_JCALL_RAISE: lg_je_plain_call(e, "rt_raise", lg_je_chain(e, NULL, n->list)); break;
    case LG_JCALL_STRFTIME: lg_je_plain_call(e, "rt_strftime_now", lg_je_chain(e, NULL, n->list));
        break;
    case LG_JCALL_CYCLE: {
        lg_joperands ops = lg_je_chain(e, NULL, n->list);
        lg_je_open(e, &ops);
        lb_text_printf(&e->flat, "rt_loop_cycle(&%s, %zu, (rt_val[]){", loop, ops.n);
        for (size_t i = 0; i < ops.n; i++) {
            lg_je_put(e, i == 0 ? "" : ", ");
            lg_je_operand(e, &ops, i);
        }
        lg_je_put(e, "})");
        lg_je_close(e, &ops);
        break;
    }
    case LG_JCALL_CHANGED:
        lb_text_printf(&e->flat, "rt_loop_changed(c, &%s, ", loop);
        lg_je_value(e, n->list);
        lg_je_put(e, ")");
        break;
    case LG_JCALL_UNKNOWN:
        lg_je_put(e, "rt_unknown_function(c, ");
        lg_c_literal(&e->flat, n->a->text, n->a->n_text);
        lg_je_put(e, ")");
        break;
    }
}

void lg_je_filter(lg_jemitter *e, const lg_jnode *n) {
    lg_jspecial special = lg_jinja_special(n->text, n->n_text);
    if (special == LG_JSPECIAL_NONE) {
        lg_je_builtin(e, n, n->a);
    } else {
        special_filter(e, n, special);
    }
}
