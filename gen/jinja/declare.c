/* declare.c -- the first walk over a scope: which names it sets, and whether they may be read
 * before; see resolve.h. */
#include <string.h>

#include "jinja/lex.h"
#include "jinja/resolve_int.h"

lg_jvar *lg_jr_in_scope(const lg_jscope *scope, const char *name, size_t n_name) {
    lg_jvar *v = scope->vars;
    while (v != NULL && !lg_jr_same(v->name, v->n_name, name, n_name)) {
        v = v->next;
    }
    return v;
}

/* v_name, or v2_name where an enclosing scope of the same C function has a variable of that
 * name. */
static const char *c_name_of(lg_jresolver *r, const lg_jscope *scope, const char *name,
                             size_t n_name) {
    unsigned level = 1;
    for (const lg_jscope *s = scope; !s->function; s = s->up) {
        if (s->up == r->out->globals) {
            break;
        }
        const lg_jvar *outer = lg_jr_in_scope(s->up, name, n_name);
        level += outer != NULL && outer->stored;
    }
    if (level == 1) {
        return lb_format(r->arena, r->err, "v_%.*s", (int)n_name, name);
    }
    return lb_format(r->arena, r->err, "v%u_%.*s", level, (int)n_name, name);
}

lg_jvar *lg_jr_new_var(lg_jresolver *r, lg_jscope *scope, const char *name, size_t n_name) {
    if (r->n_names++ == LG_JINJA_NAMES_MAX) {
        lb_err_set(r->err, LB_LIMIT, "chat template: more than %d variables", LG_JINJA_NAMES_MAX);
        return NULL;
    }
    lg_jvar *v = lb_alloc(r->arena, sizeof *v, r->err);
    if (v == NULL) {
        return NULL;
    }
    v->name = name;
    v->n_name = n_name;
    v->global = scope == r->out->globals;
    v->c_name = v->global ? lb_format(r->arena, r->err, "v_%.*s", (int)n_name, name)
                          : c_name_of(r, scope, name, n_name);
    if (v->c_name == NULL) {
        return NULL;
    }
    lg_jvar **tail = &scope->vars;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = v;
    return v;
}

static bool declare_load(lg_jresolver *r, lg_jscope *scope, const char *name, size_t n_name) {
    if (lg_jr_in_scope(scope, name, n_name) != NULL) {
        return true;
    }
    lg_jvar *v = lg_jr_new_var(r, scope, name, n_name);
    if (v != NULL) {
        v->read_first = true;
    }
    return v != NULL;
}

bool lg_jr_declare_store(lg_jresolver *r, lg_jscope *scope, const lg_jnode *name, bool conditional,
                          const lg_jnode *decl) {
    if (lg_jr_is(name, "loop")) {
        return lg_jr_bad(r, LB_UNSUPPORTED, name, "'loop' cannot be assigned");
    }
    if (scope == r->out->globals && lg_jr_macro(r, name->text, name->n_text) != NULL) {
        return lg_jr_bad(r, LB_UNSUPPORTED, name, "the name of a macro cannot be assigned");
    }
    lg_jvar *v = lg_jr_in_scope(scope, name->text, name->n_text);
    if (v == NULL) {
        v = lg_jr_new_var(r, scope, name->text, name->n_text);
        if (v == NULL) {
            return false;
        }
        v->read_first = conditional;
        v->decl = conditional ? NULL : decl;
    }
    v->stored = true;
    return true;
}

/* Every name that an expression reads. */
static bool declare_expr(lg_jresolver *r, lg_jscope *scope, const lg_jnode *n) {
    if (n == NULL) {
        return true;
    }
    if (n->kind == LG_J_NAME) {
        return declare_load(r, scope, n->text, n->n_text);
    }
    for (const lg_jnode *item = n->list; item != NULL; item = item->next) {
        if (!declare_expr(r, scope, item)) {
            return false;
        }
    }
    return declare_expr(r, scope, n->a) && declare_expr(r, scope, n->b) &&
           declare_expr(r, scope, n->c) && declare_expr(r, scope, n->d);
}

static bool declare_target(lg_jresolver *r, lg_jscope *scope, const lg_jnode *target,
                           bool conditional,
                           const lg_jnode *decl) {
    switch (target->kind) {
    case LG_J_NAME: return lg_jr_declare_store(r, scope, target, conditional, decl);
    case LG_J_NSREF: return declare_load(r, scope, target->a->text, target->a->n_text);
    default: break;
    }
    for (const lg_jnode *item = target->list; item != NULL; item = item->next) {
        if (!declare_target(r, scope, item, conditional, NULL)) {
            return false;
        }
    }
    return true;
}

static bool declare_body(lg_jresolver *r, lg_jscope *scope, const lg_jnode *first,
                         bool conditional);

static bool declare_if(lg_jresolver *r, lg_jscope *scope, const lg_jnode *n) {
    for (const lg_jnode *arm = n->list; arm != NULL; arm = arm->next) {
        if (!declare_expr(r, scope, arm->a) || !declare_body(r, scope, arm->body, true)) {
            return false;
        }
    }
    return true;
}

static bool declare_body(lg_jresolver *r, lg_jscope *scope, const lg_jnode *first,
                         bool conditional) {
    for (const lg_jnode *n = first; n != NULL; n = n->next) {
        bool ok = true;
        switch (n->kind) {
        case LG_J_PRINT: ok = declare_expr(r, scope, n->a); break;
        case LG_J_IF: ok = declare_if(r, scope, n); break;
        case LG_J_FOR:
        case LG_J_FILTER_BLOCK: ok = declare_expr(r, scope, n->b); break;
        case LG_J_SET:
            ok = declare_expr(r, scope, n->b) && declare_target(r, scope, n->a, conditional, n);
            break;
        case LG_J_SET_BLOCK: ok = declare_target(r, scope, n->a, conditional, NULL); break;
        default: break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Forgets names of functions that were only read: they are no variables of the globals. */
static void forget_functions(lg_jresolver *r, lg_jscope *scope) {
    for (lg_jvar **p = &scope->vars; *p != NULL;) {
        lg_jvar *v = *p;
        bool function = lg_jr_is_function(v->name, v->n_name) ||
                        lg_jr_macro(r, v->name, v->n_name) != NULL;
        if (!v->stored && function) {
            *p = v->next;
        } else {
            p = &v->next;
        }
    }
}

bool lg_jr_declare(lg_jresolver *r, lg_jscope *scope, const lg_jnode *first) {
    if (!declare_body(r, scope, first, false)) {
        return false;
    }
    forget_functions(r, scope);
    return true;
}
