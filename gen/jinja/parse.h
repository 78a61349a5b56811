/* parse.h -- tokens of a chat template to its syntax tree.
 *
 * Grammar and precedence are jinja2's. Tags: if elif else for set macro filter generation break
 * continue (raw is the lexer's). Any other tag, `recursive` loops, `**`, starred arguments and
 * nested unpacking are refused by name. */
#ifndef LG_JINJA_PARSE_H
#define LG_JINJA_PARSE_H

#include "jinja/ast.h"
#include "jinja/lex.h"

/* The LG_J_TEMPLATE node of `toks`, in the arena. Fails with LB_SYNTAX, LB_UNSUPPORTED, LB_LIMIT
 * (nesting), LB_NO_MEMORY; the message has line and column. */
bool lg_jinja_parse(const lg_jtok *toks, size_t n_toks, lb_arena *arena, lg_jnode **out,
                    lb_err *err);

#endif
