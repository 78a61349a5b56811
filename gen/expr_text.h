/* expr_text.h -- for the files of expr only: a short text for error messages. */
#ifndef LG_EXPR_TEXT_H
#define LG_EXPR_TEXT_H

#include <stddef.h>

#include "expr.h"

/* The canonical text, cut to `size` bytes with its NUL. */
void lg_expr_short_text(const lg_expr *e, char *to, size_t size);

#endif
