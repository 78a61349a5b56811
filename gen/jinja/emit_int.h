/* emit_int.h -- shared by emit.c (statements) and emit_expr.c (expressions). */
#ifndef LG_JINJA_EMIT_INT_H
#define LG_JINJA_EMIT_INT_H

#include "base/text.h"
#include "jinja/resolve.h"

typedef struct lg_jemitter {
    lb_arena *arena;
    lb_err *err;
    lb_text *out;      /* lines of the current C function's body */
    lb_text flat;      /* the statement being written, on one line */
    size_t indent;
    uint32_t line;     /* what c->line holds here; 0 if unknown */
    uint32_t n_temps;  /* used by the current statement */
    uint32_t max_temps; /* of the current function */
    uint32_t captures; /* captures that are open */
    bool uses_globals; /* the current function does */
    bool failed;
} lg_jemitter;

/* The expression as a C expression of type rt_val, or of type bool, onto e->flat. */
void lg_je_value(lg_jemitter *e, const lg_jnode *n);
void lg_je_bool(lg_jemitter *e, const lg_jnode *n);

/* A variable as it is written in C. */
void lg_je_var(lg_jemitter *e, const lg_jvar *v);

#endif
