/* print.h -- values as text: Python's str() and repr(). */
#ifndef RT_CHAT_PRINT_H
#define RT_CHAT_PRINT_H

#include "chat/ctx.h"

enum { RT_FLOAT_BYTES = 32 };

/* Appends str(v): text as it is, True, None, 1.5, ['a', 1], nothing for undefined. */
void rt_sb_str(rt_chat_ctx *c, rt_sb *sb, rt_val v);

/* Appends repr(v): text in quotes with Python's escapes. `depth` is that of the walk so far. */
void rt_sb_repr(rt_chat_ctx *c, rt_sb *sb, rt_val v, unsigned depth);

/* str(v) as a value; a text is returned as it is, `markup` included. */
rt_val rt_str_of(rt_chat_ctx *c, rt_val v);

/* repr of a float: the shortest digits that read back the same, as Python writes them. Returns the
 * length. */
size_t rt_float_text(double f, char out[RT_FLOAT_BYTES]);

/* Name of the value's Python type, for messages. */
const char *rt_type_name(rt_val v);

#endif
