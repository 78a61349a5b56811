/* builtin.h -- the filters, tests and methods of builtin.def, by name. */
#ifndef LG_JINJA_BUILTIN_H
#define LG_JINJA_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

enum { LG_JPARAMS_MAX = 4 };

typedef enum lg_jbuiltin_kind { LG_JFILTER, LG_JTEST, LG_JMETHOD,
                               LG_JEFFECT_METHOD } lg_jbuiltin_kind;

/* Filters that take the name of a test or filter. */
typedef enum lg_jspecial {
    LG_JSPECIAL_NONE,
    LG_JSPECIAL_MAP,
    LG_JSPECIAL_SELECT,
    LG_JSPECIAL_REJECT,
    LG_JSPECIAL_SELECTATTR,
    LG_JSPECIAL_REJECTATTR
} lg_jspecial;

typedef struct lg_jbuiltin {
    lg_jbuiltin_kind kind;
    const char *name;
    const char *symbol; /* C function in runtime/chat */
    const char *params; /* as in builtin.def */
} lg_jbuiltin;

typedef struct lg_jparam {
    const char *name; /* not NUL-terminated */
    size_t n_name;
    const char *value; /* C expression of the default, NULL for a required parameter */
    size_t n_value;
} lg_jparam;

/* The row of this kind and name, or NULL. LG_JMETHOD finds methods with effects too. */
const lg_jbuiltin *lg_jinja_builtin(lg_jbuiltin_kind kind, const char *name, size_t n_name);

/* Takes a row's parameters apart; returns how many there are (<= LG_JPARAMS_MAX). */
size_t lg_jinja_params(const lg_jbuiltin *fn, lg_jparam out[LG_JPARAMS_MAX]);

lg_jspecial lg_jinja_special(const char *name, size_t n_name);

#endif
