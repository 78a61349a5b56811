/* lex_string.h -- string literals of Jinja templates: Python's escapes to UTF-8. */
#ifndef LG_JINJA_LEX_STRING_H
#define LG_JINJA_LEX_STRING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* The text between the quotes to its value, in the arena. Escapes are Python's (\n \t \\ \' \" \a
 * \b \f \v \r, \ooo, \xHH, \uXXXX, \UXXXXXXXX, backslash-newline); an unknown one keeps its
 * backslash. Fails with LB_SYNTAX for a cut escape, LB_BAD_VALUE for a code point that is no
 * character (surrogates included), LB_UNSUPPORTED for \N{name}; the text names no place. */
bool lg_jinja_unescape(const char *s, size_t n, lb_arena *arena, const char **out, size_t *n_out,
                       lb_err *err);

#endif
