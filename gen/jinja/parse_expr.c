/* parse_expr.c -- operators of chat templates, by recursive descent; see parse.h. */
#include <string.h>

#include "jinja/parse_int.h"

static lg_jnode *product(lg_jparser *p) {
    lg_jnode *n = lg_jp_signed(p, true);
    while (n != NULL) {
        const lg_jtok *at = p->tok;
        lg_jkind kind = lg_jp_is_op(p, '*')               ? LG_J_MUL
                        : lg_jp_is_op(p, '/')             ? LG_J_DIV
                        : lg_jp_is_op(p, LG_JOP_FLOORDIV) ? LG_J_FLOORDIV
                        : lg_jp_is_op(p, '%')             ? LG_J_MOD
                                                          : LG_J_NONE;
        if (kind == LG_J_NONE) {
            break;
        }
        p->tok++;
        n = lg_jp_binary(p, kind, at, n, lg_jp_signed(p, true));
    }
    return n;
}

static lg_jnode *concat(lg_jparser *p) {
    lg_jnode *first = product(p);
    if (first == NULL || !lg_jp_is_op(p, '~')) {
        return first;
    }
    lg_jnode *n = lg_jp_node(p, LG_J_TILDE, p->tok);
    if (n == NULL) {
        return NULL;
    }
    lg_jchain chain = {&n->list};
    lg_jp_append(&chain, first);
    while (lg_jp_skip_op(p, '~')) {
        lg_jnode *item = product(p);
        if (item == NULL) {
            return NULL;
        }
        lg_jp_append(&chain, item);
    }
    return lg_jp_close(p, n);
}

static lg_jnode *sum(lg_jparser *p) {
    lg_jnode *n = concat(p);
    while (n != NULL && (lg_jp_is_op(p, '+') || lg_jp_is_op(p, '-'))) {
        const lg_jtok *at = p->tok++;
        n = lg_jp_binary(p, at->op == '+' ? LG_J_ADD : LG_J_SUB, at, n, concat(p));
    }
    return n;
}

static bool compare_op(lg_jparser *p, lg_jcompare *op) {
    static const struct { int tok; lg_jcompare op; } table[] = {
        {LG_JOP_EQ, LG_JCMP_EQ}, {LG_JOP_NE, LG_JCMP_NE}, {'<', LG_JCMP_LT},
        {LG_JOP_LE, LG_JCMP_LE}, {'>', LG_JCMP_GT},       {LG_JOP_GE, LG_JCMP_GE},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (lg_jp_skip_op(p, table[i].tok)) {
            *op = table[i].op;
            return true;
        }
    }
    *op = LG_JCMP_IN;
    if (lg_jp_skip_name(p, "in")) {
        return true;
    }
    bool not_in = lg_jp_is_name(p, "not") && p->tok[1].kind == LG_JTOK_NAME &&
                  p->tok[1].n_text == 2 && memcmp(p->tok[1].text, "in", 2) == 0;
    if (not_in) {
        *op = LG_JCMP_NOT_IN;
        p->tok += 2;
    }
    return not_in;
}

static lg_jnode *compare(lg_jparser *p) {
    lg_jnode *first = sum(p);
    const lg_jtok *at = p->tok;
    lg_jcompare op;
    if (first == NULL || !compare_op(p, &op)) {
        return first;
    }
    lg_jnode *n = lg_jp_node(p, LG_J_COMPARE, at);
    if (n == NULL) {
        return NULL;
    }
    n->a = first;
    lg_jchain chain = {&n->list};
    do {
        lg_jnode *right = lg_jp_unary(p, LG_J_OPERAND, at, sum(p));
        if (right == NULL) {
            return NULL;
        }
        right->op = op;
        lg_jp_append(&chain, right);
    } while (compare_op(p, &op));
    return lg_jp_close(p, n);
}

static lg_jnode *negation(lg_jparser *p) {
    const lg_jtok *at = p->tok;
    if (!lg_jp_skip_name(p, "not")) {
        return compare(p);
    }
    if (!lg_jp_enter(p)) {
        return NULL;
    }
    lg_jnode *n = lg_jp_unary(p, LG_J_NOT, at, negation(p));
    p->nesting--;
    return n;
}

static lg_jnode *conjunction(lg_jparser *p) {
    lg_jnode *n = negation(p);
    for (const lg_jtok *at = p->tok; n != NULL && lg_jp_skip_name(p, "and"); at = p->tok) {
        n = lg_jp_binary(p, LG_J_AND, at, n, negation(p));
    }
    return n;
}

lg_jnode *lg_jp_or(lg_jparser *p) {
    lg_jnode *n = conjunction(p);
    for (const lg_jtok *at = p->tok; n != NULL && lg_jp_skip_name(p, "or"); at = p->tok) {
        n = lg_jp_binary(p, LG_J_OR, at, n, conjunction(p));
    }
    return n;
}

lg_jnode *lg_jp_expr(lg_jparser *p) {
    if (!lg_jp_enter(p)) {
        return NULL;
    }
    lg_jnode *value = lg_jp_or(p);
    for (const lg_jtok *at = p->tok; value != NULL && lg_jp_skip_name(p, "if"); at = p->tok) {
        lg_jnode *n = lg_jp_node(p, LG_J_IF_EXPR, at);
        lg_jnode *cond = n == NULL ? NULL : lg_jp_or(p);
        if (cond == NULL) {
            return NULL;
        }
        n->a = cond;
        n->b = value;
        if (lg_jp_skip_name(p, "else") && (n->c = lg_jp_expr(p)) == NULL) {
            return NULL;
        }
        value = lg_jp_close(p, n);
    }
    p->nesting--;
    return value;
}

static bool ends_tuple(const lg_jparser *p) {
    return p->tok->kind == LG_JTOK_VAR_END || p->tok->kind == LG_JTOK_BLOCK_END ||
           lg_jp_is_op(p, ')');
}

lg_jnode *lg_jp_tuple(lg_jparser *p, bool with_if) {
    const lg_jtok *at = p->tok;
    lg_jnode *first = with_if ? lg_jp_expr(p) : lg_jp_or(p);
    if (first == NULL || !lg_jp_is_op(p, ',')) {
        return first;
    }
    lg_jnode *n = lg_jp_node(p, LG_J_TUPLE, at);
    if (n == NULL) {
        return NULL;
    }
    lg_jchain chain = {&n->list};
    lg_jp_append(&chain, first);
    while (lg_jp_skip_op(p, ',') && !ends_tuple(p)) {
        lg_jnode *item = with_if ? lg_jp_expr(p) : lg_jp_or(p);
        if (item == NULL) {
            return NULL;
        }
        lg_jp_append(&chain, item);
    }
    return lg_jp_close(p, n);
}
