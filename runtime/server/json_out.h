/* json_out.h -- JSON as answers need it: appended to a text, one line, no blanks to spare. */
#ifndef RT_SERVER_JSON_OUT_H
#define RT_SERVER_JSON_OUT_H

#include "base/text.h"

/* "..." with escapes; a byte that is no UTF-8 becomes U+FFFD. */
void rt_jo_string(lb_text *t, const char *s, size_t n_bytes);
void rt_jo_text(lb_text *t, const char *s); /* NUL-terminated; NULL: null */

/* The inside of "...", for strings that are put together. */
void rt_jo_chars(lb_text *t, const char *s, size_t n_bytes);

/* A number that is finite; null otherwise. */
void rt_jo_real(lb_text *t, double x);

#endif
