/* emit_int.h -- shared by emit.c (statements), emit_expr.c, emit_call.c and emit_operand.c
 * (expressions). */
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
    uint32_t loops;    /* of the current function, so far */
    bool uses_globals; /* the current function does */
    bool failed;
} lg_jemitter;

/* Operands of one C expression; those with temp >= 0 were evaluated ahead of it. */
typedef struct lg_joperands {
    const lg_jnode **node;
    int64_t *temp;
    size_t n, cap;
    bool opened;
} lg_joperands;

void lg_je_put(lg_jemitter *e, const char *s);
void lg_je_literal(lg_jemitter *e, const char *s, size_t n); /* RT_LIT("...") */
uint32_t lg_je_temp(lg_jemitter *e);                         /* the number of a new temporary */

/* New operands: none yet of up to `cap`; a chain, behind `first` unless that is NULL; one or
 * two. */
lg_joperands lg_je_operands(lg_jemitter *e, size_t cap);
lg_joperands lg_je_chain(lg_jemitter *e, const lg_jnode *first, const lg_jnode *chain);
lg_joperands lg_je_two(lg_jemitter *e, const lg_jnode *a, const lg_jnode *b);
void lg_je_add_operand(lg_joperands *ops, const lg_jnode *n); /* NULL: written otherwise */

/* Around an expression over operands: opens it, with those that must not wait; writes operand i;
 * closes. */
void lg_je_open(lg_jemitter *e, lg_joperands *ops);
void lg_je_operand(lg_jemitter *e, const lg_joperands *ops, size_t i);
void lg_je_close(lg_jemitter *e, const lg_joperands *ops);

/* fn(c, n, (rt_val[]){a, b}) and fn(c, a, b). */
void lg_je_array_call(lg_jemitter *e, const char *fn, lg_joperands ops);
void lg_je_plain_call(lg_jemitter *e, const char *fn, lg_joperands ops);

/* emit_call.c: a call; a filter; a function of builtin.def on `object` (NULL: the text of a
 * block). */
void lg_je_call(lg_jemitter *e, const lg_jnode *n);
void lg_je_filter(lg_jemitter *e, const lg_jnode *n);
void lg_je_builtin(lg_jemitter *e, const lg_jnode *n, const lg_jnode *object);

/* The expression as a C expression of type rt_val, or of type bool, onto e->flat. */
void lg_je_value(lg_jemitter *e, const lg_jnode *n);
void lg_je_bool(lg_jemitter *e, const lg_jnode *n);

/* A variable as it is written in C. */
void lg_je_var(lg_jemitter *e, const lg_jvar *v);

#endif
