/* emit_operand.c -- operands of emitted expressions, in the order of the template.
 *
 * C leaves the order of operands open, Python does not: where a later operand has an effect (a
 * macro call, append, raise_exception), the earlier ones are put into temporaries t[i] first, with
 * the comma operator. */
#include <inttypes.h>
#include <string.h>

#include "jinja/c_text.h"
#include "jinja/emit_int.h"

void lg_je_put(lg_jemitter *e, const char *s) {
    lb_text_add(&e->flat, s);
}

void lg_je_literal(lg_jemitter *e, const char *s, size_t n) {
    lg_je_put(e, "RT_LIT(");
    lg_c_literal(&e->flat, s, n);
    lg_je_put(e, ")");
}

void lg_je_var(lg_jemitter *e, const lg_jvar *v) {
    if (v->global) {
        lg_je_put(e, "g->");
        e->uses_globals = true;
    }
    lg_je_put(e, v->c_name);
}

uint32_t lg_je_temp(lg_jemitter *e) {
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

lg_joperands lg_je_operands(lg_jemitter *e, size_t cap) {
    lg_joperands ops = {.cap = cap};
    ops.node = lb_alloc_n(e->arena, cap, sizeof *ops.node, e->err);
    ops.temp = lb_alloc_n(e->arena, cap, sizeof *ops.temp, e->err);
    if (ops.node == NULL || ops.temp == NULL) {
        ops.cap = 0;
        e->failed = true;
    }
    return ops;
}

/* Adds an operand; a NULL node stands for one that is written otherwise. */
void lg_je_add_operand(lg_joperands *ops, const lg_jnode *n) {
    if (ops->n < ops->cap) {
        ops->node[ops->n] = n;
        ops->temp[ops->n] = -1;
        ops->n++;
    }
}

lg_joperands lg_je_chain(lg_jemitter *e, const lg_jnode *first_or_null,
                               const lg_jnode *chain) {
    size_t n = first_or_null != NULL;
    for (const lg_jnode *item = chain; item != NULL; item = item->next) {
        n++;
    }
    lg_joperands ops = lg_je_operands(e, n);
    if (first_or_null != NULL) {
        lg_je_add_operand(&ops, first_or_null);
    }
    for (const lg_jnode *item = chain; item != NULL; item = item->next) {
        lg_je_add_operand(&ops, item);
    }
    return ops;
}

/* Writes "(t[0] = first, " for every operand that must not wait. */
void lg_je_open(lg_jemitter *e, lg_joperands *ops) {
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
        lg_je_put(e, ops->opened ? "" : "(");
        ops->opened = true;
        ops->temp[i] = lg_je_temp(e);
        lb_text_printf(&e->flat, "t[%" PRId64 "] = ", ops->temp[i]);
        lg_je_value(e, ops->node[i]);
        lg_je_put(e, ", ");
    }
}

void lg_je_operand(lg_jemitter *e, const lg_joperands *ops, size_t i) {
    if (i >= ops->n) {
        return; /* out of memory; e->failed is set */
    }
    if (ops->temp[i] >= 0) {
        lb_text_printf(&e->flat, "t[%" PRId64 "]", ops->temp[i]);
    } else {
        lg_je_value(e, ops->node[i]);
    }
}

void lg_je_close(lg_jemitter *e, const lg_joperands *ops) {
    lg_je_put(e, ops->opened ? ")" : "");
}

/* "fn(c, n, (rt_val[]){a, b})" of a chain of operands. */
void lg_je_array_call(lg_jemitter *e, const char *fn, lg_joperands ops) {
    lg_je_open(e, &ops);
    if (ops.n == 0) {
        lb_text_printf(&e->flat, "%s(c, 0, NULL)", fn);
    } else {
        lb_text_printf(&e->flat, "%s(c, %zu, (rt_val[]){", fn, ops.n);
        for (size_t i = 0; i < ops.n; i++) {
            lg_je_put(e, i == 0 ? "" : ", ");
            lg_je_operand(e, &ops, i);
        }
        lg_je_put(e, "})");
    }
    lg_je_close(e, &ops);
}

/* "fn(c, a, b)". */
void lg_je_plain_call(lg_jemitter *e, const char *fn, lg_joperands ops) {
    lg_je_open(e, &ops);
    lb_text_printf(&e->flat, "%s(c", fn);
    for (size_t i = 0; i < ops.n; i++) {
        lg_je_put(e, ", ");
        lg_je_operand(e, &ops, i);
    }
    lg_je_put(e, ")");
    lg_je_close(e, &ops);
}

lg_joperands lg_je_two(lg_jemitter *e, const lg_jnode *a, const lg_jnode *b) {
    lg_joperands ops = lg_je_operands(e, 2);
    lg_je_add_operand(&ops, a);
    if (b != NULL) {
        lg_je_add_operand(&ops, b);
    }
    return ops;
}
