/* parse_primary.c -- names, literals, calls, subscripts, filters and tests of chat templates; see
 * parse.h. */
#include <string.h>

#include "jinja/parse_int.h"

lg_jnode *lg_jp_binary(lg_jparser *p, lg_jkind kind, const lg_jtok *at, lg_jnode *a, lg_jnode *b) {
    if (a == NULL || b == NULL) {
        return NULL;
    }
    lg_jnode *n = lg_jp_node(p, kind, at);
    if (n != NULL) {
        n->a = a;
        n->b = b;
    }
    return lg_jp_close(p, n);
}

lg_jnode *lg_jp_unary(lg_jparser *p, lg_jkind kind, const lg_jtok *at, lg_jnode *a) {
    if (a == NULL) {
        return NULL;
    }
    lg_jnode *n = lg_jp_node(p, kind, at);
    if (n != NULL) {
        n->a = a;
    }
    return lg_jp_close(p, n);
}

/* Expressions up to `close`, with a trailing comma allowed, as the list of `n`. */
static lg_jnode *listing(lg_jparser *p, lg_jnode *n, int close) {
    lg_jchain chain = {n != NULL ? &n->list : NULL};
    while (n != NULL && !lg_jp_is_op(p, close)) {
        if (n->list != NULL && !lg_jp_want_op(p, ',')) {
            return NULL;
        }
        if (lg_jp_is_op(p, close)) {
            break;
        }
        lg_jnode *item = lg_jp_expr(p);
        if (item == NULL) {
            return NULL;
        }
        lg_jp_append(&chain, item);
        if (n->kind != LG_J_DICT) {
            continue;
        }
        if (!lg_jp_want_op(p, ':') || (item = lg_jp_expr(p)) == NULL) {
            return NULL;
        }
        lg_jp_append(&chain, item);
    }
    return n != NULL && lg_jp_want_op(p, close) ? lg_jp_close(p, n) : NULL;
}

/* Adjacent string literals are one. */
static lg_jnode *string(lg_jparser *p) {
    lg_jnode *n = lg_jp_node(p, LG_J_STR, p->tok);
    size_t bytes = 0;
    const lg_jtok *first = p->tok;
    for (; p->tok->kind == LG_JTOK_STRING; p->tok++) {
        bytes += p->tok->n_text;
    }
    char *text = n == NULL ? NULL : lb_alloc(p->arena, bytes, p->err);
    if (text == NULL) {
        return NULL;
    }
    n->text = text;
    for (; first != p->tok; first++) {
        memcpy(text + n->n_text, first->text, first->n_text);
        n->n_text += first->n_text;
    }
    return lg_jp_close(p, n);
}

static lg_jnode *name_or_constant(lg_jparser *p) {
    lg_jnode *n = lg_jp_node(p, LG_J_NAME, p->tok);
    if (n == NULL) {
        return NULL;
    }
    bool yes = lg_jp_is_name(p, "true") || lg_jp_is_name(p, "True");
    if (yes || lg_jp_is_name(p, "false") || lg_jp_is_name(p, "False")) {
        n->kind = LG_J_BOOL;
        n->i = yes;
    } else if (lg_jp_is_name(p, "none") || lg_jp_is_name(p, "None")) {
        n->kind = LG_J_NONE;
    } else {
        n->text = p->tok->text;
        n->n_text = p->tok->n_text;
    }
    p->tok++;
    return lg_jp_close(p, n);
}

static lg_jnode *number(lg_jparser *p) {
    lg_jnode *n = lg_jp_node(p, p->tok->kind == LG_JTOK_INT ? LG_J_INT : LG_J_FLOAT, p->tok);
    if (n != NULL) {
        n->i = p->tok->i;
        n->f = p->tok->f;
        p->tok++;
    }
    return lg_jp_close(p, n);
}

/* ( ... ): an expression in brackets, or a tuple. */
static lg_jnode *bracketed(lg_jparser *p) {
    const lg_jtok *at = p->tok++;
    lg_jnode *n = lg_jp_is_op(p, ')') ? lg_jp_close(p, lg_jp_node(p, LG_J_TUPLE, at))
                                      : lg_jp_tuple(p, true);
    return n != NULL && lg_jp_want_op(p, ')') ? n : NULL;
}

static lg_jnode *primary(lg_jparser *p) {
    const lg_jtok *t = p->tok;
    switch (t->kind) {
    case LG_JTOK_NAME: return name_or_constant(p);
    case LG_JTOK_STRING: return string(p);
    case LG_JTOK_INT:
    case LG_JTOK_FLOAT: return number(p);
    default: break;
    }
    if (lg_jp_is_op(p, '(')) {
        return bracketed(p);
    }
    if (lg_jp_skip_op(p, '[')) {
        return listing(p, lg_jp_node(p, LG_J_LIST, t), ']');
    }
    if (lg_jp_skip_op(p, '{')) {
        return listing(p, lg_jp_node(p, LG_J_DICT, t), '}');
    }
    lg_jp_bad(p, LB_SYNTAX, "expected an expression");
    return NULL;
}

static bool is_keyword_argument(const lg_jparser *p) {
    return p->tok->kind == LG_JTOK_NAME && p->tok[1].kind == LG_JTOK_OP && p->tok[1].op == '=';
}

static lg_jnode *argument(lg_jparser *p, bool *keyword) {
    if (lg_jp_is_op(p, '*') || lg_jp_is_op(p, LG_JOP_POW)) {
        lg_jp_bad(p, LB_UNSUPPORTED, "starred arguments are not supported");
        return NULL;
    }
    if (!is_keyword_argument(p)) {
        if (*keyword) {
            lg_jp_bad(p, LB_SYNTAX, "positional argument behind a keyword argument");
            return NULL;
        }
        return lg_jp_expr(p);
    }
    *keyword = true;
    lg_jnode *n = lg_jp_node(p, LG_J_KWARG, p->tok);
    if (n == NULL) {
        return NULL;
    }
    n->text = p->tok->text;
    n->n_text = p->tok->n_text;
    p->tok += 2;
    n->a = lg_jp_expr(p);
    return n->a == NULL ? NULL : lg_jp_close(p, n);
}

/* ( args ) into n->list. */
static bool arguments(lg_jparser *p, lg_jnode *n) {
    lg_jchain chain = {&n->list};
    bool keyword = false;
    if (!lg_jp_want_op(p, '(')) {
        return false;
    }
    while (!lg_jp_is_op(p, ')')) {
        if (n->list != NULL && !lg_jp_want_op(p, ',')) {
            return false;
        }
        if (n->list != NULL && lg_jp_is_op(p, ')')) {
            break;
        }
        lg_jnode *arg = argument(p, &keyword);
        if (arg == NULL) {
            return false;
        }
        lg_jp_append(&chain, arg);
    }
    return lg_jp_want_op(p, ')');
}

static lg_jnode *call(lg_jparser *p, lg_jnode *callee) {
    lg_jnode *n = lg_jp_node(p, LG_J_CALL, p->tok);
    if (n == NULL) {
        return NULL;
    }
    n->a = callee;
    return arguments(p, n) ? lg_jp_close(p, n) : NULL;
}

/* A node of `left` and the name that stands here. */
static lg_jnode *named(lg_jparser *p, lg_jkind kind, const lg_jtok *at, lg_jnode *left) {
    lg_jnode *n = lg_jp_node(p, kind, at);
    if (n != NULL) {
        n->a = left;
        n->text = p->tok->text;
        n->n_text = p->tok->n_text;
        p->tok++;
    }
    return n;
}

static lg_jnode *dot(lg_jparser *p, lg_jnode *left) {
    const lg_jtok *at = p->tok++;
    if (p->tok->kind == LG_JTOK_INT) { /* x.0 is x[0] */
        return lg_jp_binary(p, LG_J_ITEM, at, left, number(p));
    }
    if (p->tok->kind != LG_JTOK_NAME) {
        lg_jp_bad(p, LB_SYNTAX, "expected a name or number behind '.'");
        return NULL;
    }
    lg_jnode *n = named(p, LG_J_ATTR, at, left);
    return n == NULL ? NULL : lg_jp_close(p, n);
}

static bool ends_slice_part(const lg_jparser *p) {
    return lg_jp_is_op(p, ':') || lg_jp_is_op(p, ']');
}

static lg_jnode *subscript(lg_jparser *p, lg_jnode *left) {
    const lg_jtok *at = p->tok++;
    lg_jnode *part[3] = {NULL, NULL, NULL};
    size_t n_parts = 0;
    do {
        if (n_parts == 3) {
            lg_jp_bad(p, LB_SYNTAX, "a slice has at most three parts");
            return NULL;
        }
        if (!ends_slice_part(p) && (part[n_parts] = lg_jp_expr(p)) == NULL) {
            return NULL;
        }
        n_parts++;
    } while (lg_jp_skip_op(p, ':'));
    if (lg_jp_is_op(p, ',')) {
        lg_jp_bad(p, LB_UNSUPPORTED, "subscripts with ',' are not supported");
        return NULL;
    }
    if (n_parts == 1 && part[0] == NULL) {
        lg_jp_bad(p, LB_SYNTAX, "empty subscript");
        return NULL;
    }
    lg_jnode *n = lg_jp_want_op(p, ']') ? lg_jp_node(p, n_parts == 1 ? LG_J_ITEM : LG_J_SLICE, at)
                                        : NULL;
    if (n == NULL) {
        return NULL;
    }
    n->a = left;
    n->b = part[0];
    n->c = part[1];
    n->d = part[2];
    return lg_jp_close(p, n);
}

static lg_jnode *postfix(lg_jparser *p, lg_jnode *n) {
    while (n != NULL) {
        if (lg_jp_is_op(p, '.')) {
            n = dot(p, n);
        } else if (lg_jp_is_op(p, '[')) {
            n = subscript(p, n);
        } else if (lg_jp_is_op(p, '(')) {
            n = call(p, n);
        } else {
            break;
        }
    }
    return n;
}

lg_jnode *lg_jp_filters(lg_jparser *p, lg_jnode *inner, bool inline_first) {
    lg_jnode *n = inner;
    while (inline_first || lg_jp_skip_op(p, '|')) {
        inline_first = false;
        lg_jnode *f = lg_jp_node(p, LG_J_FILTER, p->tok);
        if (f == NULL) {
            return NULL;
        }
        if (p->tok->kind != LG_JTOK_NAME) {
            lg_jp_bad(p, LB_SYNTAX, "expected the name of a filter");
            return NULL;
        }
        f->a = n;
        f->text = p->tok->text;
        f->n_text = p->tok->n_text;
        p->tok++;
        if (lg_jp_is_op(p, '(') && !arguments(p, f)) {
            return NULL;
        }
        n = lg_jp_close(p, f);
        if (n == NULL) {
            return NULL;
        }
    }
    return n;
}

/* True if the token can begin the bracketless argument of a test: `x is divisibleby 3`. */
static bool begins_test_argument(const lg_jparser *p) {
    switch (p->tok->kind) {
    case LG_JTOK_STRING:
    case LG_JTOK_INT:
    case LG_JTOK_FLOAT: return true;
    case LG_JTOK_NAME:
        return !lg_jp_is_name(p, "else") && !lg_jp_is_name(p, "or") && !lg_jp_is_name(p, "and");
    default: return lg_jp_is_op(p, '[') || lg_jp_is_op(p, '{');
    }
}

static lg_jnode *test(lg_jparser *p, lg_jnode *left) {
    const lg_jtok *at = p->tok++;
    bool negated = lg_jp_skip_name(p, "not");
    if (p->tok->kind != LG_JTOK_NAME) {
        lg_jp_bad(p, LB_SYNTAX, "expected the name of a test");
        return NULL;
    }
    lg_jnode *n = named(p, LG_J_TEST, at, left);
    if (n == NULL) {
        return NULL;
    }
    if (lg_jp_is_op(p, '(')) {
        if (!arguments(p, n)) {
            return NULL;
        }
    } else if (begins_test_argument(p)) {
        if (lg_jp_is_name(p, "is")) {
            lg_jp_bad(p, LB_SYNTAX, "tests cannot be chained with 'is'");
            return NULL;
        }
        n->list = postfix(p, primary(p));
        if (n->list == NULL) {
            return NULL;
        }
    }
    n = lg_jp_close(p, n);
    return negated ? lg_jp_unary(p, LG_J_NOT, at, n) : n;
}

static lg_jnode *filters_and_tests(lg_jparser *p, lg_jnode *n) {
    while (n != NULL) {
        if (lg_jp_is_op(p, '|')) {
            n = lg_jp_filters(p, n, false);
        } else if (lg_jp_is_name(p, "is")) {
            n = test(p, n);
        } else if (lg_jp_is_op(p, '(')) {
            n = call(p, n);
        } else {
            break;
        }
    }
    return n;
}

/* A sign binds tighter than a filter: -x|abs is (-x)|abs. */
lg_jnode *lg_jp_signed(lg_jparser *p, bool with_filter) {
    const lg_jtok *at = p->tok;
    if (!lg_jp_enter(p)) {
        return NULL;
    }
    lg_jnode *n = NULL;
    if (lg_jp_skip_op(p, '-')) {
        n = lg_jp_unary(p, LG_J_NEG, at, lg_jp_signed(p, false));
    } else if (lg_jp_skip_op(p, '+')) {
        n = lg_jp_unary(p, LG_J_POS, at, lg_jp_signed(p, false));
    } else {
        n = primary(p);
    }
    n = postfix(p, n);
    if (with_filter) {
        n = filters_and_tests(p, n);
    }
    p->nesting--;
    if (n != NULL && lg_jp_is_op(p, LG_JOP_POW)) {
        lg_jp_bad(p, LB_UNSUPPORTED, "the operator ** is not supported");
        return NULL;
    }
    return n;
}
