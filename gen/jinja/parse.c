/* parse.c -- statements of chat templates; see parse.h. */
#include "jinja/parse.h"

#include <stdio.h>
#include <string.h>

#include "jinja/parse_int.h"

bool lg_jp_bad(lg_jparser *p, lb_code code, const char *what) {
    return lg_jinja_fail(p->err, code, p->tok->line, p->tok->col, "%s", what);
}

bool lg_jp_is_op(const lg_jparser *p, int op) {
    return p->tok->kind == LG_JTOK_OP && p->tok->op == op;
}

static bool tok_is_name(const lg_jtok *t, const char *name) {
    return t->kind == LG_JTOK_NAME && t->n_text == strlen(name) &&
           memcmp(t->text, name, t->n_text) == 0;
}

bool lg_jp_is_name(const lg_jparser *p, const char *name) {
    return tok_is_name(p->tok, name);
}

bool lg_jp_skip_op(lg_jparser *p, int op) {
    bool is = lg_jp_is_op(p, op);
    p->tok += is;
    return is;
}

bool lg_jp_skip_name(lg_jparser *p, const char *name) {
    bool is = lg_jp_is_name(p, name);
    p->tok += is;
    return is;
}

bool lg_jp_want_op(lg_jparser *p, int op) {
    if (lg_jp_skip_op(p, op)) {
        return true;
    }
    return lg_jinja_fail(p->err, LB_SYNTAX, p->tok->line, p->tok->col, "expected '%c'", op);
}

bool lg_jp_enter(lg_jparser *p) {
    if (p->nesting >= LG_JINJA_DEPTH_MAX) {
        return lg_jp_bad(p, LB_LIMIT, "nested too deep");
    }
    p->nesting++;
    return true;
}

lg_jnode *lg_jp_node(lg_jparser *p, lg_jkind kind, const lg_jtok *at) {
    lg_jnode *n = lb_alloc(p->arena, sizeof *n, p->err);
    if (n != NULL) {
        n->kind = kind;
        n->line = at->line;
        n->col = at->col;
    }
    return n;
}

void lg_jp_append(lg_jchain *chain, lg_jnode *node) {
    *chain->tail = node;
    chain->tail = &node->next;
}

static uint32_t depth_of(const lg_jnode *n) {
    return n == NULL ? 0 : n->depth;
}

static uint32_t chain_depth(const lg_jnode *first) {
    uint32_t deepest = 0;
    for (; first != NULL; first = first->next) {
        deepest = first->depth > deepest ? first->depth : deepest;
    }
    return deepest;
}

lg_jnode *lg_jp_close(lg_jparser *p, lg_jnode *n) {
    if (n == NULL) {
        return NULL;
    }
    uint32_t kids[] = {depth_of(n->a),       depth_of(n->b),       depth_of(n->c), depth_of(n->d),
                       chain_depth(n->list), chain_depth(n->body), chain_depth(n->alt)};
    uint32_t deepest = 0;
    for (size_t i = 0; i < sizeof kids / sizeof kids[0]; i++) {
        deepest = kids[i] > deepest ? kids[i] : deepest;
    }
    n->depth = deepest + 1;
    if (n->depth > LG_JINJA_DEPTH_MAX) {
        lg_jinja_fail(p->err, LB_LIMIT, n->line, n->col, "nested more than %d deep",
                      LG_JINJA_DEPTH_MAX);
        return NULL;
    }
    return n;
}

static bool statements(lg_jparser *p, lg_jnode **first, const char *const *ends);

static bool want_block_end(lg_jparser *p) {
    if (p->tok->kind != LG_JTOK_BLOCK_END) {
        return lg_jp_bad(p, LB_SYNTAX, "expected the end of the tag");
    }
    p->tok++;
    return true;
}

/* The body of a tag: everything up to one of the `ends` (NULL-ended), whose name token is current
 * afterwards. */
static bool body(lg_jparser *p, lg_jnode **first, const char *const *ends) {
    lg_jp_skip_op(p, ':'); /* jinja2 allows one, as in Python */
    return want_block_end(p) && statements(p, first, ends);
}

/* A body that ends in exactly `end`, which is consumed. */
static bool whole_body(lg_jparser *p, lg_jnode **first, const char *end) {
    const char *const ends[] = {end, NULL};
    if (!body(p, first, ends)) {
        return false;
    }
    p->tok++;
    return true;
}

/* One name, as a target or parameter. */
static lg_jnode *plain_name(lg_jparser *p, lg_jkind kind) {
    static const char *const constants[] = {"true", "false", "none", "True", "False", "None"};
    bool bad = p->tok->kind != LG_JTOK_NAME;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        bad = bad || lg_jp_is_name(p, constants[i]);
    }
    if (bad) {
        lg_jp_bad(p, LB_SYNTAX, "expected a name that can be assigned");
        return NULL;
    }
    lg_jnode *n = lg_jp_node(p, kind, p->tok);
    if (n != NULL) {
        n->text = p->tok->text;
        n->n_text = p->tok->n_text;
        p->tok++;
    }
    return lg_jp_close(p, n);
}

static lg_jnode *single_target(lg_jparser *p, bool with_namespace) {
    if (lg_jp_is_op(p, '(')) {
        lg_jp_bad(p, LB_UNSUPPORTED, "targets in brackets are not supported");
        return NULL;
    }
    lg_jnode *name = plain_name(p, LG_J_NAME);
    if (name == NULL || !with_namespace || !lg_jp_is_op(p, '.')) {
        return name;
    }
    lg_jnode *n = lg_jp_node(p, LG_J_NSREF, p->tok++);
    if (n == NULL || p->tok->kind != LG_JTOK_NAME) {
        return n == NULL || lg_jp_bad(p, LB_SYNTAX, "expected a name behind '.'") ? NULL : NULL;
    }
    n->a = name;
    n->text = p->tok->text;
    n->n_text = p->tok->n_text;
    p->tok++;
    return lg_jp_close(p, n);
}

lg_jnode *lg_jp_target(lg_jparser *p, bool with_namespace) {
    const lg_jtok *at = p->tok;
    lg_jnode *first = single_target(p, with_namespace);
    if (first == NULL || !lg_jp_is_op(p, ',')) {
        return first;
    }
    lg_jnode *n = lg_jp_node(p, LG_J_TUPLE, at);
    if (n == NULL) {
        return NULL;
    }
    lg_jchain chain = {&n->list};
    lg_jp_append(&chain, first);
    while (lg_jp_skip_op(p, ',') && p->tok->kind == LG_JTOK_NAME && !lg_jp_is_name(p, "in")) {
        lg_jnode *item = single_target(p, with_namespace);
        if (item == NULL) {
            return NULL;
        }
        lg_jp_append(&chain, item);
    }
    return lg_jp_close(p, n);
}

/* if and elif arms, then else. */
static bool if_tag(lg_jparser *p, lg_jnode *n) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    lg_jchain chain = {&n->list};
    bool more = true;
    while (more) {
        lg_jnode *arm = lg_jp_node(p, LG_J_ARM, p->tok);
        if (arm == NULL || (arm->a = lg_jp_tuple(p, false)) == NULL || !body(p, &arm->body, ends) ||
            lg_jp_close(p, arm) == NULL) {
            return false;
        }
        lg_jp_append(&chain, arm);
        more = lg_jp_skip_name(p, "elif");
    }
    if (!lg_jp_is_name(p, "else")) {
        p->tok++;
        return true;
    }
    lg_jnode *arm = lg_jp_node(p, LG_J_ARM, p->tok++);
    if (arm == NULL || !whole_body(p, &arm->body, "endif") || lg_jp_close(p, arm) == NULL) {
        return false;
    }
    lg_jp_append(&chain, arm);
    return true;
}

static bool for_tag(lg_jparser *p, lg_jnode *n) {
    static const char *const ends[] = {"endfor", "else", NULL};
    n->a = lg_jp_target(p, false);
    if (n->a == NULL) {
        return false;
    }
    if (!lg_jp_skip_name(p, "in")) {
        return lg_jp_bad(p, LB_SYNTAX, "expected 'in'");
    }
    n->b = lg_jp_tuple(p, false);
    if (n->b == NULL || (lg_jp_skip_name(p, "if") && (n->c = lg_jp_expr(p)) == NULL)) {
        return false;
    }
    if (lg_jp_is_name(p, "recursive")) {
        return lg_jp_bad(p, LB_UNSUPPORTED, "recursive loops are not supported");
    }
    if (!body(p, &n->body, ends)) {
        return false;
    }
    if (lg_jp_skip_name(p, "else")) {
        return whole_body(p, &n->alt, "endfor");
    }
    p->tok++;
    return true;
}

static bool set_tag(lg_jparser *p, lg_jnode *n) {
    n->a = lg_jp_target(p, true);
    if (n->a == NULL) {
        return false;
    }
    if (lg_jp_skip_op(p, '=')) {
        n->b = lg_jp_tuple(p, true);
        return n->b != NULL;
    }
    n->kind = LG_J_SET_BLOCK;
    if (n->a->kind == LG_J_TUPLE) {
        return lg_jp_bad(p, LB_UNSUPPORTED, "a block cannot be set to several names");
    }
    if (lg_jp_is_op(p, '|') && (n->b = lg_jp_filters(p, NULL, false)) == NULL) {
        return false;
    }
    return whole_body(p, &n->body, "endset");
}

static bool filter_tag(lg_jparser *p, lg_jnode *n) {
    n->b = lg_jp_filters(p, NULL, true);
    return n->b != NULL && whole_body(p, &n->body, "endfilter");
}

static bool parameters(lg_jparser *p, lg_jnode *macro) {
    lg_jchain chain = {&macro->list};
    bool defaults = false;
    while (!lg_jp_is_op(p, ')')) {
        if (macro->list != NULL && !lg_jp_want_op(p, ',')) {
            return false;
        }
        lg_jnode *param = plain_name(p, LG_J_PARAM);
        if (param == NULL) {
            return false;
        }
        if (lg_jp_skip_op(p, '=')) {
            defaults = true;
            param->a = lg_jp_expr(p);
            if (param->a == NULL || lg_jp_close(p, param) == NULL) {
                return false;
            }
        } else if (defaults) {
            return lg_jp_bad(p, LB_SYNTAX, "parameter without a default behind one that has one");
        }
        lg_jp_append(&chain, param);
    }
    return lg_jp_want_op(p, ')');
}

static bool macro_tag(lg_jparser *p, lg_jnode *n) {
    lg_jnode *name = plain_name(p, LG_J_NAME);
    if (name == NULL) {
        return false;
    }
    n->text = name->text;
    n->n_text = name->n_text;
    return lg_jp_want_op(p, '(') && parameters(p, n) && whole_body(p, &n->body, "endmacro");
}

static bool generation_tag(lg_jparser *p, lg_jnode *n) {
    return whole_body(p, &n->body, "endgeneration");
}

static bool bare_tag(lg_jparser *p, lg_jnode *n) {
    (void)p;
    (void)n;
    return true;
}

/* One statement, from its name to the end of its last tag. */
static lg_jnode *statement(lg_jparser *p) {
    static const struct {
        const char *name;
        lg_jkind kind;
        bool (*parse)(lg_jparser *p, lg_jnode *n);
    } tags[] = {
        {"if", LG_J_IF, if_tag},
        {"for", LG_J_FOR, for_tag},
        {"set", LG_J_SET, set_tag},
        {"macro", LG_J_MACRO, macro_tag},
        {"filter", LG_J_FILTER_BLOCK, filter_tag},
        {"generation", LG_J_GENERATION, generation_tag},
        {"break", LG_J_BREAK, bare_tag},
        {"continue", LG_J_CONTINUE, bare_tag},
    };
    const lg_jtok *at = p->tok;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!lg_jp_skip_name(p, tags[i].name)) {
            continue;
        }
        lg_jnode *n = lg_jp_node(p, tags[i].kind, at);
        bool ok = n != NULL && lg_jp_enter(p) && tags[i].parse(p, n);
        p->nesting--;
        return ok && want_block_end(p) ? lg_jp_close(p, n) : NULL;
    }
    if (at->kind != LG_JTOK_NAME) {
        lg_jp_bad(p, LB_SYNTAX, "expected the name of a tag");
        return NULL;
    }
    lg_jinja_fail(p->err, LB_UNSUPPORTED, at->line, at->col, "the tag '%.*s' is not supported here",
                  (int)at->n_text, at->text);
    return NULL;
}

static bool is_one_of(const lg_jtok *t, const char *const *names) {
    for (; names != NULL && *names != NULL; names++) {
        if (tok_is_name(t, *names)) {
            return true;
        }
    }
    return false;
}

static lg_jnode *text(lg_jparser *p) {
    lg_jnode *n = lg_jp_node(p, LG_J_TEXT, p->tok);
    if (n != NULL) {
        n->text = p->tok->text;
        n->n_text = p->tok->n_text;
        p->tok++;
    }
    return lg_jp_close(p, n);
}

static lg_jnode *print(lg_jparser *p) {
    lg_jnode *n = lg_jp_node(p, LG_J_PRINT, p->tok++);
    if (n == NULL || (n->a = lg_jp_tuple(p, true)) == NULL) {
        return NULL;
    }
    if (p->tok->kind != LG_JTOK_VAR_END) {
        lg_jp_bad(p, LB_SYNTAX, "expected '}}'");
        return NULL;
    }
    p->tok++;
    return lg_jp_close(p, n);
}

/* Statements up to one of `ends`, or up to the end of the template if `ends` is NULL. */
static bool statements(lg_jparser *p, lg_jnode **first, const char *const *ends) {
    lg_jchain chain = {first};
    while (p->tok->kind != LG_JTOK_EOF) {
        lg_jnode *n = NULL;
        if (p->tok->kind == LG_JTOK_DATA) {
            n = text(p);
        } else if (p->tok->kind == LG_JTOK_VAR_BEGIN) {
            n = print(p);
        } else {
            p->tok++; /* nothing else begins a statement: BLOCK_BEGIN */
            if (is_one_of(p->tok, ends)) {
                return true;
            }
            n = statement(p);
        }
        if (n == NULL) {
            return false;
        }
        lg_jp_append(&chain, n);
    }
    return ends == NULL || lg_jp_bad(p, LB_SYNTAX, "the template ends inside a block");
}

bool lg_jinja_parse(const lg_jtok *toks, size_t n_toks, lb_arena *arena, lg_jnode **out,
                    lb_err *err) {
    lg_jparser p = {.tok = toks, .arena = arena, .err = err};
    (void)n_toks;
    lg_jnode *n = lg_jp_node(&p, LG_J_TEMPLATE, toks);
    if (n == NULL || !statements(&p, &n->body, NULL) || lg_jp_close(&p, n) == NULL) {
        return false;
    }
    *out = n;
    return true;
}
