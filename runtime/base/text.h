/* text.h -- a growing text buffer over an arena: dumps, JSON and emitted files are built in it.
 *
 * Errors stick: after a failed append the buffer stays failed and further appends do nothing, so
 * writers check once, at the end, with lb_text_done. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct lb_text {
    lb_arena *arena;
    char *data; /* not terminated until lb_text_done */
    size_t n_bytes;
    size_t cap_bytes;
    bool failed;
    lb_err err; /* the first failure */
} lb_text;

void lb_text_init(lb_text *t, lb_arena *arena);
void lb_text_add(lb_text *t, const char *s);
void lb_text_add_n(lb_text *t, const char *s, size_t n_bytes);
void lb_text_printf(lb_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Terminates the text (the NUL is not counted in n_bytes) and reports the first failure, if any. */
bool lb_text_done(lb_text *t, lb_err *err);

#endif
