/* resolve_int.h -- shared by resolve.c (scopes, statements) and check.c (calls, filters, tests). */
#ifndef LG_JINJA_RESOLVE_INT_H
#define LG_JINJA_RESOLVE_INT_H

#include "base/err.h"
#include "jinja/resolve.h"

typedef struct lg_jedge {
    const lg_jnode *from; /* the calling macro, NULL for the template itself */
    const lg_jnode *to;
    struct lg_jedge *next;
} lg_jedge;

typedef struct lg_jresolver {
    lb_arena *arena;
    lb_err *err;
    lg_jtemplate *out;
    const lg_jnode *in_macro; /* whose body is being walked */
    lg_jedge *edges;
    uint32_t n_names;
    uint64_t passes; /* product of the constant ranges that enclose the current statement */
} lg_jresolver;

bool lg_jr_same(const char *a, size_t n_a, const char *b, size_t n_b);
bool lg_jr_is(const lg_jnode *n, const char *text); /* n->text equals `text` */
bool lg_jr_bad(lg_jresolver *r, lb_code code, const lg_jnode *at, const char *what);

lg_jnode *lg_jr_macro(const lg_jresolver *r, const char *name, size_t n_name);
/* range, namespace, raise_exception, ... */
bool lg_jr_is_function(const char *name, size_t n_name);

/* declare.c: the variable of this very scope, or NULL; a new one; one that a statement sets
 * (`decl`: where it may be declared, or NULL); and all that the statements of a scope set. */
lg_jvar *lg_jr_in_scope(const lg_jscope *scope, const char *name, size_t n_name);
lg_jvar *lg_jr_new_var(lg_jresolver *r, lg_jscope *scope, const char *name, size_t n_name);
bool lg_jr_declare_store(lg_jresolver *r, lg_jscope *scope, const lg_jnode *name, bool conditional,
                         const lg_jnode *decl);
bool lg_jr_declare(lg_jresolver *r, lg_jscope *scope, const lg_jnode *first);

/* The variable that a name means in `scope`, or NULL if it is nobody's (then it comes from the
 * request, or is a function). */
lg_jvar *lg_jr_find(const lg_jscope *scope, const char *name, size_t n_name);

/* The scope whose loop `loop` means in `scope`, or NULL. */
lg_jscope *lg_jr_loop(lg_jscope *scope);

/* Resolves an expression and all below it. */
bool lg_jr_expr(lg_jresolver *r, lg_jscope *scope, lg_jnode *n);

/* check.c: what a call, filter or test means; their operands are resolved already. */
bool lg_jr_call(lg_jresolver *r, lg_jscope *scope, lg_jnode *n);
bool lg_jr_filter(lg_jresolver *r, lg_jnode *n);
bool lg_jr_test(lg_jresolver *r, lg_jnode *n);

/* check.c: items of a range whose arguments are constants; false for any other expression. */
bool lg_jr_constant_range(const lg_jnode *n, uint64_t *n_items);
bool lg_jr_check_repeat(lg_jresolver *r, const lg_jnode *mul);

#endif
