/* parse_int.h -- shared by parse.c (statements), parse_expr.c (operators) and
 * parse_primary.c (their operands). */
#ifndef LG_JINJA_PARSE_INT_H
#define LG_JINJA_PARSE_INT_H

#include "jinja/ast.h"
#include "jinja/lex.h"

typedef struct lg_jparser {
    const lg_jtok *tok; /* the current one; LG_JTOK_EOF ends the array */
    lb_arena *arena;
    lb_err *err;
    uint32_t nesting;   /* recursive calls that are open */
} lg_jparser;

/* Where a chain of nodes grows; the first append sets *head. */
typedef struct lg_jchain {
    lg_jnode **tail;
} lg_jchain;

bool lg_jp_bad(lg_jparser *p, lb_code code, const char *what); /* at the current token */
bool lg_jp_is_op(const lg_jparser *p, int op);
bool lg_jp_is_name(const lg_jparser *p, const char *name);
bool lg_jp_skip_op(lg_jparser *p, int op);           /* moves on if it is there */
bool lg_jp_skip_name(lg_jparser *p, const char *name);
bool lg_jp_want_op(lg_jparser *p, int op);           /* an error if it is not there */
bool lg_jp_enter(lg_jparser *p);                     /* counts nesting; pair with p->nesting-- */

/* A node at the place of `at`; NULL with err set. */
lg_jnode *lg_jp_node(lg_jparser *p, lg_jkind kind, const lg_jtok *at);
void lg_jp_append(lg_jchain *chain, lg_jnode *node);

/* Sets depth from the children and refuses what is too deep; NULL in, NULL out. */
lg_jnode *lg_jp_close(lg_jparser *p, lg_jnode *node);

/* Nodes over one or two others; NULL if one of those is. */
lg_jnode *lg_jp_unary(lg_jparser *p, lg_jkind kind, const lg_jtok *at, lg_jnode *a);
lg_jnode *lg_jp_binary(lg_jparser *p, lg_jkind kind, const lg_jtok *at, lg_jnode *a, lg_jnode *b);

/* Expressions. All return NULL with err set on failure. */
lg_jnode *lg_jp_expr(lg_jparser *p);
lg_jnode *lg_jp_or(lg_jparser *p);                   /* an expression without `x if y else z` */
lg_jnode *lg_jp_signed(lg_jparser *p, bool with_filter); /* the operands of * / % */
lg_jnode *lg_jp_tuple(lg_jparser *p, bool with_if);  /* a, b or a single expression */
lg_jnode *lg_jp_target(lg_jparser *p, bool with_namespace); /* name, name.attr or name, name */
lg_jnode *lg_jp_filters(lg_jparser *p, lg_jnode *inner, bool inline_first);

#endif
