/* resolve.h -- completes the syntax tree: which variable a name means, which runtime function a
 * call means, and whether the template uses only what exists.
 *
 * Scopes are jinja2's. The template itself, the body of a for, of its else, of a macro, of a set or
 * filter block and of a generation block are scopes; if is none. A name that a scope sets is a
 * variable of that scope. It begins with the value of the next outer variable of that name where it
 * may be read before it is set, or where an outer scope mentions the name; else it is undefined.
 * Names that nobody sets come from the request; like all names of the outermost scope they are
 * globals. */
#ifndef LG_JINJA_RESOLVE_H
#define LG_JINJA_RESOLVE_H

#include "base/arena.h"
#include "jinja/ast.h"

enum {
    LG_JINJA_NAMES_MAX = 8192,          /* different names, scope by scope */
    LG_JINJA_MACROS_MAX = 256,
    LG_JFORMAT_ARGS_MAX = 32,           /* of a str.format call */
    LG_JINJA_RANGE_MAX = 100000,        /* items of a range: the limit of jinja2's sandbox */
    LG_JINJA_LOOP_MAX = 10000000,       /* passes of constant ranges inside each other */
    LG_JINJA_REPEAT_BYTES_MAX = 1 << 24 /* a constant text times a constant */
};

typedef struct lg_jvar lg_jvar;
struct lg_jvar {
    const char *name; /* in the template; not NUL-terminated */
    size_t n_name;
    const char *c_name;   /* in the emitted C */
    bool global;          /* a field of the emitted struct of globals */
    /* the scope sets it, or it is a parameter or target; else only a mention */
    bool stored;
    bool requested;       /* a global that no statement of the outermost scope mentions */
    bool parameter;       /* a macro's parameter or a loop's target: has a value from the start */
    bool read_first;      /* may be read, or be left unset, before the first plain set */
    const lg_jnode *decl; /* the LG_J_SET that is its first mention, if it can be declared there */
    lg_jvar *outer;       /* where its first value comes from: NULL for undefined */
    bool declared;        /* while resolving: `decl` has been passed */
    uint32_t n_loads;
    lg_jvar *next;
};

typedef struct lg_jscope lg_jscope;
struct lg_jscope {
    lg_jscope *up;
    lg_jvar *vars;
    bool function;      /* the template or a macro: a C function of its own */
    const char *loop;   /* C name of the loop whose body this is, or NULL */
    bool looks_ahead;   /* the body asks for loop.last, nextitem, length or revindex */
};

typedef struct lg_jmacro_list {
    lg_jnode *macro;
    bool called; /* reachable from the template's own statements */
    struct lg_jmacro_list *next;
} lg_jmacro_list;

typedef struct lg_jtemplate {
    lg_jnode *root; /* LG_J_TEMPLATE */
    lg_jscope *globals;
    lg_jmacro_list *macros; /* in the order of the template */
} lg_jtemplate;

/* Fails with LB_UNSUPPORTED or LB_LIMIT (a construct, named with line and column), LB_SYNTAX (wrong
 * arguments, break outside a loop), LB_NO_MEMORY. */
bool lg_jinja_resolve(lg_jnode *root, lb_arena *arena, lg_jtemplate *out, lb_err *err);

#endif
