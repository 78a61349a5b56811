/* check.c -- what calls, filters and tests mean, with their arguments in the order of their
 * parameters; and constant amounts of work that no budget would allow. See resolve.h. */
#include <string.h>

#include "base/num.h"
#include "jinja/builtin.h"
#include "jinja/lex.h"
#include "jinja/resolve_int.h"

static bool unsupported(lg_jresolver *r, const lg_jnode *at, const char *what,
                        const lg_jnode *name) {
    return lg_jinja_fail(r->err, LB_UNSUPPORTED, at->line, at->col,
                         "the %s '%.*s' is not supported",
                         what, (int)name->n_text, name->text);
}

static bool new_bound(lg_jresolver *r, lg_jnode *n, size_t n_params) {
    n->n_bound = n_params;
    n->bound = lb_alloc_n(r->arena, n_params, sizeof *n->bound, r->err);
    return n->bound != NULL;
}

/* One keyword argument to its place. */
static bool bind_keyword(lg_jresolver *r, lg_jnode *n, const lg_jnode *arg,
                         const lg_jparam *params) {
    for (size_t i = 0; i < n->n_bound; i++) {
        if (!lg_jr_same(params[i].name, params[i].n_name, arg->text, arg->n_text)) {
            continue;
        }
        if (n->bound[i] != NULL) {
            return lg_jr_bad(r, LB_SYNTAX, arg, "argument given twice");
        }
        n->bound[i] = arg->a;
        return true;
    }
    return lg_jinja_fail(r->err, LB_UNSUPPORTED, arg->line, arg->col,
                         "'%.*s' takes no argument '%.*s'", (int)n->n_text, n->text,
                         (int)arg->n_text, arg->text);
}

/* Arguments from `first` on to the parameters; required ones must be there. */
static bool bind(lg_jresolver *r, lg_jnode *n, lg_jnode *first, const lg_jparam *params,
                 size_t n_params) {
    if (!new_bound(r, n, n_params)) {
        return false;
    }
    size_t n_given = 0;
    for (lg_jnode *arg = first; arg != NULL; arg = arg->next) {
        if (arg->kind == LG_J_KWARG) {
            if (!bind_keyword(r, n, arg, params)) {
                return false;
            }
            continue;
        }
        if (n_given == n_params) {
            return lg_jr_bad(r, LB_SYNTAX, arg, "too many arguments");
        }
        n->bound[n_given++] = arg;
    }
    for (size_t i = 0; i < n_params; i++) {
        if (n->bound[i] == NULL && params[i].value == NULL) {
            return lg_jinja_fail(r->err, LB_SYNTAX, n->line, n->col, "argument '%.*s' is missing",
                                 (int)params[i].n_name, params[i].name);
        }
    }
    return true;
}

static bool bind_row(lg_jresolver *r, lg_jnode *n, lg_jnode *first) {
    lg_jparam params[LG_JPARAMS_MAX];
    return bind(r, n, first, params, lg_jinja_params(n->fn, params));
}

/* A macro's arguments; missing ones become the default, or undefined, in the macro itself. */
static bool bind_macro(lg_jresolver *r, lg_jnode *n) {
    size_t n_params = 0;
    for (const lg_jnode *p = n->macro->list; p != NULL; p = p->next) {
        n_params++;
    }
    lg_jparam *params = lb_alloc_n(r->arena, n_params, sizeof *params, r->err);
    if (params == NULL) {
        return false;
    }
    size_t i = 0;
    for (const lg_jnode *p = n->macro->list; p != NULL; p = p->next) {
        params[i++] = (lg_jparam){.name = p->text, .n_name = p->n_text, .value = ""};
    }
    lg_jedge *edge = lb_alloc(r->arena, sizeof *edge, r->err);
    if (edge == NULL) {
        return false;
    }
    *edge = (lg_jedge){.from = r->in_macro, .to = n->macro, .next = r->edges};
    r->edges = edge;
    return bind(r, n, n->list, params, n_params);
}

static bool only_keywords(lg_jresolver *r, const lg_jnode *n) {
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
        if (arg->kind != LG_J_KWARG) {
            return lg_jr_bad(r, LB_UNSUPPORTED, arg,
                             "only name=value arguments are supported here");
        }
    }
    return true;
}

/* Between `min` and `max` positional arguments. */
static bool only_positional(lg_jresolver *r, const lg_jnode *n, size_t min, size_t max) {
    size_t count = 0;
    for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next, count++) {
        if (arg->kind == LG_J_KWARG) {
            return lg_jr_bad(r, LB_UNSUPPORTED, arg, "name=value arguments are not supported here");
        }
    }
    if (count < min || count > max) {
        return lg_jr_bad(r, LB_SYNTAX, n, "wrong number of arguments");
    }
    return true;
}

static bool call_function(lg_jresolver *r, lg_jnode *n) {
    const lg_jnode *name = n->a;
    if (lg_jr_is(name, "namespace") || lg_jr_is(name, "dict")) {
        n->call = lg_jr_is(name, "dict") ? LG_JCALL_DICT : LG_JCALL_NAMESPACE;
        return only_keywords(r, n);
    }
    if (lg_jr_is(name, "range")) {
        n->call = LG_JCALL_RANGE;
        uint64_t n_items = 0;
        if (lg_jr_constant_range(n, &n_items) && n_items > LG_JINJA_RANGE_MAX) {
            return lg_jinja_fail(r->err, LB_LIMIT, n->line, n->col,
                                 "range of %llu items; the limit is %d",
                                     (unsigned long long)n_items,
                                 LG_JINJA_RANGE_MAX);
        }
        return only_positional(r, n, 1, 3);
    }
    if (lg_jr_is(name, "raise_exception") || lg_jr_is(name, "strftime_now")) {
        bool raise = lg_jr_is(name, "raise_exception");
        n->call = raise ? LG_JCALL_RAISE : LG_JCALL_STRFTIME;
        n->effect = n->effect || raise;
        return only_positional(r, n, 1, 1);
    }
    return unsupported(r, n, "function", name);
}

static bool call_name(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    const lg_jnode *name = n->a;
    if (lg_jr_find(scope, name->text, name->n_text) == NULL) {
        n->macro = lg_jr_macro(r, name->text, name->n_text);
        if (n->macro != NULL) {
            n->call = LG_JCALL_MACRO;
            n->effect = true;
            return bind_macro(r, n);
        }
        if (lg_jr_is_function(name->text, name->n_text)) {
            return call_function(r, n);
        }
    }
    n->call = LG_JCALL_UNKNOWN;
    n->effect = true;
    return true;
}

static bool call_loop(lg_jresolver *r, lg_jnode *n) {
    if (lg_jr_is(n->a, "cycle")) {
        n->call = LG_JCALL_CYCLE;
        return only_positional(r, n, 1, SIZE_MAX);
    }
    if (lg_jr_is(n->a, "changed")) {
        n->call = LG_JCALL_CHANGED;
        n->effect = true;
        return only_positional(r, n, 1, 1);
    }
    return unsupported(r, n, "loop method", n->a);
}

bool lg_jr_call(lg_jresolver *r, lg_jscope *scope, lg_jnode *n) {
    const lg_jnode *callee = n->a;
    if (callee->kind == LG_J_NAME) {
        return call_name(r, scope, n);
    }
    if (callee->kind != LG_J_ATTR) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "only functions, macros and methods can be called");
    }
    if (callee->a->kind == LG_J_NAME && lg_jr_is(callee->a, "loop") && lg_jr_loop(scope) != NULL) {
        return call_loop(r, n);
    }
    if (lg_jr_is(callee, "format")) {
        n->call = LG_JCALL_FORMAT;
        size_t count = 0;
        for (const lg_jnode *arg = n->list; arg != NULL; arg = arg->next) {
            count++;
        }
        return count <= LG_JFORMAT_ARGS_MAX || lg_jr_bad(r, LB_LIMIT, n, "too many arguments");
    }
    n->fn = lg_jinja_builtin(LG_JMETHOD, callee->text, callee->n_text);
    if (n->fn == NULL) {
        return unsupported(r, callee, "method", callee);
    }
    n->call = LG_JCALL_METHOD;
    n->effect = n->effect || n->fn->kind == LG_JEFFECT_METHOD;
    return bind_row(r, n, n->list);
}

static size_t required_params(const lg_jbuiltin *fn) {
    lg_jparam params[LG_JPARAMS_MAX];
    size_t n = lg_jinja_params(fn, params);
    size_t required = 0;
    while (required < n && params[required].value == NULL) {
        required++;
    }
    return required;
}

/* map('upper') or map(attribute='x', default=y): bound is {attribute, default}. */
static bool special_map(lg_jresolver *r, lg_jnode *n) {
    static const lg_jparam params[] = {
        {.name = "attribute", .n_name = 9, .value = ""},
        {.name = "default", .n_name = 7, .value = ""},
    };
    lg_jnode *first = n->list;
    if (first == NULL) {
        return lg_jr_bad(r, LB_SYNTAX, n, "map needs a filter or an attribute");
    }
    if (first->kind == LG_J_KWARG) {
        return bind(r, n, first, params, 2);
    }
    if (first->kind != LG_J_STR || first->next != NULL) {
        return lg_jr_bad(r, LB_UNSUPPORTED, n, "map takes one constant filter name or attribute=");
    }
    n->fn = lg_jinja_builtin(LG_JFILTER, first->text, first->n_text);
    if (n->fn == NULL || required_params(n->fn) > 0) {
        return unsupported(r, first, "filter inside map", first);
    }
    return new_bound(r, n, 2);
}

/* select(test, argument), selectattr(attribute, test, argument): bound is {attribute, argument}. */
static bool special_select(lg_jresolver *r, lg_jnode *n, bool with_attribute) {
    if (!only_positional(r, n, with_attribute ? 1 : 0, with_attribute ? 3 : 2) ||
        !new_bound(r, n, 2)) {
        return false;
    }
    lg_jnode *test = n->list;
    if (with_attribute) {
        n->bound[0] = test;
        test = test->next;
    }
    if (test == NULL) {
        return true;
    }
    n->fn = test->kind == LG_J_STR ? lg_jinja_builtin(LG_JTEST, test->text, test->n_text) : NULL;
    if (n->fn == NULL) {
        return test->kind == LG_J_STR
                   ? unsupported(r, test, "test", test)
                   : lg_jr_bad(r, LB_UNSUPPORTED, test, "the name of a test must be constant");
    }
    n->bound[1] = test->next;
    if ((test->next != NULL) != (required_params(n->fn) == 1)) {
        return lg_jr_bad(r, LB_SYNTAX, test, "wrong number of arguments of a test");
    }
    return true;
}

bool lg_jr_filter(lg_jresolver *r, lg_jnode *n) {
    switch (lg_jinja_special(n->text, n->n_text)) {
    case LG_JSPECIAL_MAP: return special_map(r, n);
    case LG_JSPECIAL_SELECT:
    case LG_JSPECIAL_REJECT: return special_select(r, n, false);
    case LG_JSPECIAL_SELECTATTR:
    case LG_JSPECIAL_REJECTATTR: return special_select(r, n, true);
    case LG_JSPECIAL_NONE: break;
    }
    n->fn = lg_jinja_builtin(LG_JFILTER, n->text, n->n_text);
    return n->fn == NULL ? unsupported(r, n, "filter", n) : bind_row(r, n, n->list);
}

bool lg_jr_test(lg_jresolver *r, lg_jnode *n) {
    n->fn = lg_jinja_builtin(LG_JTEST, n->text, n->n_text);
    return n->fn == NULL ? unsupported(r, n, "test", n) : bind_row(r, n, n->list);
}

/* The value of an integer constant, perhaps with a sign. */
static bool constant_int(const lg_jnode *n, int64_t *out) {
    if (n->kind == LG_J_NEG && n->a->kind == LG_J_INT) {
        *out = -n->a->i; /* literals are never INT64_MIN */
        return true;
    }
    *out = n->i;
    return n->kind == LG_J_INT;
}

bool lg_jr_constant_range(const lg_jnode *n, uint64_t *n_items) {
    int64_t arg[3] = {0, 0, 1};
    size_t count = 0;
    if (n->kind != LG_J_CALL || n->call != LG_JCALL_RANGE) {
        return false;
    }
    for (const lg_jnode *a = n->list; a != NULL; a = a->next, count++) {
        if (count == 3 || !constant_int(a, &arg[count])) {
            return false;
        }
    }
    if (count == 1) {
        arg[1] = arg[0];
        arg[0] = 0;
    }
    bool up = arg[2] > 0;
    *n_items = 0;
    if (arg[2] != 0 && (up ? arg[0] < arg[1] : arg[0] > arg[1])) {
        uint64_t span = up ? (uint64_t)arg[1] - (uint64_t)arg[0] : (uint64_t)arg[0] -
            (uint64_t)arg[1];
        *n_items = lb_ceil_div(span, up ? (uint64_t)arg[2] : 0 - (uint64_t)arg[2]);
    }
    return true;
}

bool lg_jr_check_repeat(lg_jresolver *r, const lg_jnode *mul) {
    const lg_jnode *text = mul->a->kind == LG_J_STR ? mul->a : mul->b;
    const lg_jnode *times = text == mul->a ? mul->b : mul->a;
    int64_t n = 0;
    uint64_t bytes = 0;
    if (text->kind != LG_J_STR || !constant_int(times, &n) || n <= 0) {
        return true;
    }
    if (lb_mul(text->n_text, (uint64_t)n, &bytes) && bytes <= LG_JINJA_REPEAT_BYTES_MAX) {
        return true;
    }
    return lg_jinja_fail(r->err, LB_LIMIT, mul->line, mul->col,
                         "text of %zu bytes repeated %lld times; the limit is %d bytes",
                             text->n_text,
                         (long long)n, LG_JINJA_REPEAT_BYTES_MAX);
}
