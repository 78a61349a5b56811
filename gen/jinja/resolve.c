/* resolve.c -- scopes and statements; see resolve.h. Each scope is walked twice: first to learn
 * which names it sets and whether they may be read before (declare_*), then to bind every name and
 * to enter the scopes inside (bind_*). */
#include "jinja/resolve.h"

#include <string.h>

#include "base/num.h"
#include "jinja/lex.h"
#include "jinja/resolve_int.h"

bool lg_jr_same(const char *a, size_t n_a, const char *b, size_t n_b) {
    return n_a == n_b && memcmp(a, b, n_a) == 0;
}

bool lg_jr_is(const lg_jnode *n, const char *text) {
    return lg_jr_same(n->text, n->n_text, text, strlen(text));
}

bool lg_jr_bad(lg_jresolver *r, lb_code code, const lg_jnode *at, const char *what) {
    return lg_jinja_fail(r->err, code, at->line, at->col, "%s", what);
}

bool lg_jr_is_function(const char *name, size_t n_name) {
    static const char *const names[] = {"range", "dict", "namespace", "raise_exception",
                                        "strftime_now", "lipsum", "cycler", "joiner"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (lg_jr_same(names[i], strlen(names[i]), name, n_name)) {
            return true;
        }
    }
    return false;
}

lg_jnode *lg_jr_macro(const lg_jresolver *r, const char *name, size_t n_name) {
    for (const lg_jmacro_list *m = r->out->macros; m != NULL; m = m->next) {
        if (lg_jr_same(m->macro->text, m->macro->n_text, name, n_name)) {
            return m->macro;
        }
    }
    return NULL;
}

lg_jvar *lg_jr_find(const lg_jscope *scope, const char *name, size_t n_name) {
    for (; scope != NULL; scope = scope->up) {
        lg_jvar *v = lg_jr_in_scope(scope, name, n_name);
        if (v != NULL && (v->stored || v->global)) {
            return v;
        }
    }
    return NULL;
}

lg_jscope *lg_jr_loop(lg_jscope *scope) {
    while (scope != NULL && scope->loop == NULL && !scope->function) {
        scope = scope->up;
    }
    return scope != NULL && scope->loop != NULL ? scope : NULL;
}

static lg_jscope *new_scope(lg_jresolver *r, lg_jscope *up) {
    lg_jscope *s = lb_alloc(r->arena, sizeof *s, r->err);
    if (s != NULL) {
        s->up = up;
    }
    return s;
}

/* The variable of a name that nobody sets: a global that comes from the request. */
static lg_jvar *from_request(lg_jresolver *r, const char *name, size_t n_name) {
    lg_jvar *v = lg_jr_new_var(r, r->out->globals, name, n_name);
    if (v != NULL) {
        v->read_first = true;
        v->requested = true;
    }
    return v;
}

/* True if a scope around `scope` mentions the name in its own statements. */
static bool is_mentioned(const lg_jscope *scope, const lg_jvar *name) {
    for (; scope != NULL; scope = scope->up) {
        const lg_jvar *v = lg_jr_in_scope(scope, name->name, name->n_name);
        if (v != NULL && !v->requested) {
            return true;
        }
    }
    return false;
}

/* A variable that is read before its first set in the text cannot be declared there. */
static void count_load(lg_jvar *v) {
    v->n_loads++;
    if (!v->declared) {
        v->decl = NULL;
    }
}

static bool bind_name(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    if (lg_jr_is(n, "loop") && lg_jr_loop(scope) != NULL) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "'loop' can only be used as loop.name");
    }
    n->var = lg_jr_find(scope, n->text, n->n_text);
    if (n->var == NULL && lg_jr_macro(r, n->text, n->n_text) != NULL) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "a macro can only be called");
    }
    if (n->var == NULL && lg_jr_is_function(n->text, n->n_text)) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "a built-in function can only be called");
    }
    if (n->var == NULL && (n->var = from_request(r, n->text, n->n_text)) == NULL) {
        return false;
    }
    count_load(n->var);
    return true;
}

/* `x is defined` where x is a function or macro: a constant. */
static bool is_function_defined(const lg_jresolver *r, const lg_jscope *scope, const lg_jnode *n) {
    const lg_jnode *name = n->a;
    return n->kind == LG_J_TEST && name->kind == LG_J_NAME &&
           (lg_jr_is(n, "defined") || lg_jr_is(n, "undefined")) &&
           lg_jr_find(scope, name->text, name->n_text) == NULL &&
           (lg_jr_is_function(name->text, name->n_text) ||
            lg_jr_macro(r, name->text, name->n_text) != NULL);
}

static bool bind_attr(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    static const char *const of_loop[] = {"index", "index0", "first", "previtem", "depth", "depth0",
                                          "last", "nextitem", "length", "revindex", "revindex0"};
    if (n->n_text >= 2 && memcmp(n->text, "__", 2) == 0) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "attributes that begin with '__' are refused");
    }
    if (n->a->kind != LG_J_NAME || !lg_jr_is(n->a, "loop") || lg_jr_loop(scope) == NULL) {
        return lg_jr_expr(r, scope, n->a);
    }
    for (size_t i = 0; i < sizeof of_loop / sizeof of_loop[0]; i++) {
        if (lg_jr_is(n, of_loop[i])) {
            n->scope = lg_jr_loop(scope);
            n->scope->looks_ahead = n->scope->looks_ahead || i >= 6;
            return true;
        }
    }
    return lg_jinja_fail(r->err, LB_UNSUPPORTED, n->line, n->col, "'loop.%.*s' is not supported",
                         (int)n->n_text, n->text);
}

/* The callee's own operand, then the arguments, then what the call is. */
static bool bind_call(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    lg_jnode *callee = n->a;
    if (callee->kind == LG_J_ATTR) {
        bool of_loop = callee->a->kind == LG_J_NAME && lg_jr_is(callee->a, "loop") &&
                       lg_jr_loop(scope) != NULL;
        if (of_loop) {
            n->scope = lg_jr_loop(scope);
        } else if (!lg_jr_expr(r, scope, callee->a)) {
            return false;
        }
        n->effect = callee->a->effect;
    }
    for (lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        if (!lg_jr_expr(r, scope, arg)) {
            return false;
        }
        n->effect = n->effect || arg->effect;
    }
    return lg_jr_call(r, scope, n);
}

static bool bind_children(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    lg_jnode *kids[] = {n->a, n->b, n->c, n->d};
    for (size_t i = 0; i < sizeof kids / sizeof kids[0]; i++) {
        if (kids[i] != NULL) {
            if (!lg_jr_expr(r, scope, kids[i])) {
                return false;
            }
            n->effect = n->effect || kids[i]->effect;
        }
    }
    for (lg_jnode *item = n->list; item != NULL; item = item->next) {
        if (!lg_jr_expr(r, scope, item)) {
            return false;
        }
        n->effect = n->effect || item->effect;
    }
    return true;
}

bool lg_jr_expr(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    if (is_function_defined(r, scope, n)) {
        n->i = lg_jr_is(n, "defined");
        n->kind = LG_J_BOOL;
        return true;
    }
    switch (n->kind) {
    case LG_J_NAME: return bind_name(r, scope, n);
    case LG_J_ATTR: {
        bool ok = bind_attr(r, scope, n);
        n->effect = n->a->effect;
        return ok;
    }
    case LG_J_CALL: return bind_call(r, scope, n);
    case LG_J_FILTER: return bind_children(r, scope, n) && lg_jr_filter(r, n);
    case LG_J_TEST: return bind_children(r, scope, n) && lg_jr_test(r, n);
    case LG_J_MUL: return bind_children(r, scope, n) && lg_jr_check_repeat(r, n);
    default: return bind_children(r, scope, n);
    }
}

static bool bind_target(lg_jresolver *r, lg_jscope *scope, lg_jnode *target) {
    if (target->kind == LG_J_NSREF) {
        return bind_name(r, scope, target->a);
    }
    if (target->kind == LG_J_NAME) {
        target->var = lg_jr_in_scope(scope, target->text, target->n_text);
        return true;
    }
    for (lg_jnode *item = target->list; item != NULL; item = item->next) {
        if (item->kind == LG_J_NSREF) {
            return lg_jr_bad(r, LB_UNSUPPORTED, item,
                             "attributes cannot be set together with others");
        }
        item->var = lg_jr_in_scope(scope, item->text, item->n_text);
        count_load(item->var); /* its address is taken */
    }
    return true;
}

static bool bind_body(lg_jresolver *r, lg_jscope *scope, lg_jnode *first);

/* Where the variables of a finished scope get their first value. */
static bool link_outer(lg_jresolver *r, lg_jscope *scope) {
    for (lg_jvar *v = scope->vars; v != NULL; v = v->next) {
        bool declared_by_set = v->decl != NULL;
        bool inherits = v->read_first || is_mentioned(scope->up, v);
        if (!v->stored || v->parameter || v->n_loads == 0 || declared_by_set || !inherits) {
            continue;
        }
        v->outer = lg_jr_find(scope->up, v->name, v->n_name);
        if (v->outer == NULL && (v->outer = from_request(r, v->name, v->n_name)) == NULL) {
            return false;
        }
        count_load(v->outer);
    }
    return true;
}

/* A scope whose parameters, if any, are in it already. */
static bool inner_scope(lg_jresolver *r, lg_jscope *scope, lg_jnode *first) {
    return lg_jr_declare(r, scope, first) && bind_body(r, scope, first) && link_outer(r, scope);
}

static bool add_parameter(lg_jresolver *r, lg_jscope *scope, lg_jnode *name) {
    if (!lg_jr_declare_store(r, scope, name, false, NULL)) {
        return false;
    }
    name->var = lg_jr_in_scope(scope, name->text, name->n_text);
    name->var->parameter = true;
    return true;
}

static bool add_loop_targets(lg_jresolver *r, lg_jscope *scope, lg_jnode *target) {
    if (target->kind == LG_J_NAME) {
        return add_parameter(r, scope, target);
    }
    for (lg_jnode *item = target->list; item != NULL; item = item->next) {
        if (!add_parameter(r, scope, item)) {
            return false;
        }
        item->var->n_loads++; /* its address is taken */
    }
    return true;
}

static const char *loop_name(lg_jresolver *r, const lg_jscope *outer) {
    unsigned depth = 1;
    for (const lg_jscope *s = outer; s != NULL; s = s->function ? NULL : s->up) {
        depth += s->loop != NULL;
    }
    return depth == 1 ? "loop" : lb_format(r->arena, r->err, "loop%u", depth);
}

/* Multiplies the passes of constant ranges; restores them through *before. */
static bool count_passes(lg_jresolver *r, const lg_jnode *n, uint64_t *before) {
    uint64_t items = 0;
    *before = r->passes;
    if (!lg_jr_constant_range(n->b, &items)) {
        return true;
    }
    r->passes *= items == 0 ? 1 : items; /* both factors are bounded: no overflow */
    if (r->passes > LG_JINJA_LOOP_MAX) {
        return lg_jinja_fail(r->err, LB_LIMIT, n->line, n->col,
                             "%llu passes through nested ranges; the limit is %d",
                             (unsigned long long)r->passes, LG_JINJA_LOOP_MAX);
    }
    return true;
}

static bool bind_for(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    uint64_t passes = 0;
    n->scope = new_scope(r, scope);
    if (n->scope == NULL || !lg_jr_expr(r, scope, n->b) || !count_passes(r, n, &passes) ||
        !add_loop_targets(r, n->scope, n->a) ||
        (n->c != NULL && !lg_jr_expr(r, n->scope, n->c))) {
        return false;
    }
    n->scope->loop = loop_name(r, scope);
    if (n->scope->loop == NULL || !inner_scope(r, n->scope, n->body)) {
        return false;
    }
    r->passes = passes;
    if (n->alt == NULL) {
        return true;
    }
    n->alt_scope = new_scope(r, scope);
    return n->alt_scope != NULL && inner_scope(r, n->alt_scope, n->alt);
}

/* Set blocks, filter blocks, generation blocks: a scope around the body. */
static bool bind_block(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    n->scope = new_scope(r, scope);
    return n->scope != NULL && (n->b == NULL || lg_jr_expr(r, scope, n->b)) &&
           (n->a == NULL || bind_target(r, scope, n->a)) && inner_scope(r, n->scope, n->body);
}

static bool bind_macro_body(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    if (scope != r->out->globals || lg_jr_macro(r, n->text, n->n_text) != n) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n,
                         "a macro must be defined once, outside of if, for and other blocks");
    }
    n->scope = new_scope(r, scope);
    if (n->scope == NULL) {
        return false;
    }
    n->scope->function = true;
    for (lg_jnode *p = n->list; p != NULL; p = p->next) {
        if (lg_jr_in_scope(n->scope, p->text, p->n_text) != NULL) {
            return lg_jr_bad(r, LB_SYNTAX, p, "two parameters of the same name");
        }
        if (!add_parameter(r, n->scope, p)) {
            return false;
        }
    }
    const lg_jnode *before = r->in_macro;
    r->in_macro = n;
    for (lg_jnode *p = n->list; p != NULL; p = p->next) {
        if (p->a != NULL && !lg_jr_expr(r, n->scope, p->a)) {
            return false;
        }
    }
    bool ok = inner_scope(r, n->scope, n->body);
    r->in_macro = before;
    return ok;
}

static bool bind_set(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    if (!lg_jr_expr(r, scope, n->b) || !bind_target(r, scope, n->a)) {
        return false;
    }
    if (n->a->kind == LG_J_NAME && n->b->kind == LG_J_NAME && n->a->var == n->b->var) {
        n->a->var->n_loads--; /* x = x is not emitted */
    }
    if (n->a->kind == LG_J_NAME && n->a->var->decl == n) {
        n->a->var->declared = true;
    }
    return true;
}

static bool bind_if(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    for (lg_jnode *arm = n->list; arm != NULL; arm = arm->next) {
        if (arm->a != NULL && !lg_jr_expr(r, scope, arm->a)) {
            return false;
        }
        for (lg_jnode *m = arm->body; m != NULL; m = m->next) {
            if (m->kind == LG_J_MACRO) {
                return lg_jr_bad(r, LB_UNSUPPORTED, m, "a macro inside an if is not supported");
            }
        }
        if (!bind_body(r, scope, arm->body)) {
            return false;
        }
    }
    return true;
}

static bool bind_statement(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    switch (n->kind) {
    case LG_J_PRINT: return lg_jr_expr(r, scope, n->a);
    case LG_J_IF: return bind_if(r, scope, n);
    case LG_J_FOR: return bind_for(r, scope, n);
    case LG_J_SET: return bind_set(r, scope, n);
    case LG_J_SET_BLOCK:
    case LG_J_FILTER_BLOCK:
    case LG_J_GENERATION: return bind_block(r, scope, n);
    case LG_J_MACRO: return bind_macro_body(r, scope, n);
    case LG_J_BREAK:
    case LG_J_CONTINUE:
        return scope->loop != NULL ||
               lg_jr_bad(r, LB_SYNTAX, n, "break and continue belong directly into a loop");
    default: return true;
    }
}

static bool bind_body(lg_jresolver *r, lg_jscope *scope, lg_jnode *first) {
    for (lg_jnode *n = first; n != NULL; n = n->next) {
        if (!bind_statement(r, scope, n)) {
            return false;
        }
    }
    return true;
}

/* ---- the template ---- */

static bool list_macros(lg_jresolver *r) {
    lg_jmacro_list **tail = &r->out->macros;
    uint32_t count = 0;
    for (lg_jnode *n = r->out->root->body; n != NULL; n = n->next) {
        if (n->kind != LG_J_MACRO) {
            continue;
        }
        if (count++ == LG_JINJA_MACROS_MAX) {
            return lg_jr_bad(r, LB_LIMIT, n, "too many macros");
        }
        *tail = lb_alloc(r->arena, sizeof **tail, r->err);
        if (*tail == NULL) {
            return false;
        }
        (*tail)->macro = n;
        tail = &(*tail)->next;
    }
    return true;
}

static lg_jmacro_list *entry_of(const lg_jresolver *r, const lg_jnode *macro) {
    lg_jmacro_list *m = r->out->macros;
    while (m->macro != macro) {
        m = m->next;
    }
    return m;
}

/* Marks the macros that the template itself can reach. */
static void mark_called(lg_jresolver *r) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (const lg_jedge *e = r->edges; e != NULL; e = e->next) {
            lg_jmacro_list *to = entry_of(r, e->to);
            if (!to->called && (e->from == NULL || entry_of(r, e->from)->called)) {
                to->called = true;
                changed = true;
            }
        }
    }
}

bool lg_jinja_resolve(lg_jnode *root, lb_arena *arena, lg_jtemplate *out, lb_err *err) {
    lg_jtemplate t = {.root = root};
    lg_jresolver r = {.arena = arena, .err = err, .out = &t, .passes = 1};
    t.globals = new_scope(&r, NULL);
    if (t.globals == NULL) {
        return false;
    }
    t.globals->function = true;
    if (!list_macros(&r) || !lg_jr_declare(&r, t.globals, root->body) ||
        !bind_body(&r, t.globals, root->body)) {
        return false;
    }
    mark_called(&r);
    *out = t;
    return true;
}
