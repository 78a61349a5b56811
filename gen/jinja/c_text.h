/* c_text.h -- text from a model file as C, so that nothing in it can end the literal that holds it;
 * and statements wrapped to the page. */
#ifndef LG_JINJA_C_TEXT_H
#define LG_JINJA_C_TEXT_H

#include <stddef.h>

#include "base/text.h"

enum { LG_C_COLUMNS = 100 };

/* Appends `s` as one or more adjacent string literals with a space between, cut behind newlines and
 * at about 70 columns. Printable ASCII stays, save " \ and ? (trigraphs); all else is \n or three
 * octal digits, which no following digit can lengthen. An empty text is "". */
void lg_c_literal(lb_text *out, const char *s, size_t n);

/* Appends `line` at `indent` columns, broken at spaces outside of literals so that lines stay
 * within
 * LG_C_COLUMNS where they can; further lines are indented by 4 more. A \1 outside of literals is a
 * space that never breaks. Ends in a newline. */
void lg_c_wrap(lb_text *out, const char *line, size_t n, size_t indent);

#endif
