/* text.h -- searching and cutting texts, shared by methods and filters. */
#ifndef RT_CHAT_TEXT_H
#define RT_CHAT_TEXT_H

#include "chat/ctx.h"

enum { RT_STRIP_LEFT = 1, RT_STRIP_RIGHT = 2 };

/* `text` without white space, or without the characters of `chars` (a text, or none), at the
 * sides. */
rt_val rt_strip(rt_chat_ctx *c, rt_val text, rt_val chars, unsigned sides);

/* Byte offset of `sub` in `text` from byte `from` on, or SIZE_MAX. */
size_t rt_find_bytes(rt_chat_ctx *c, rt_val text, rt_val sub, size_t from);

/* Every `old` becomes `with`, at most `count` times unless count < 0. */
rt_val rt_replace(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with, int64_t count);

/* Lines as Python's str.splitlines has them, as a list. */
rt_val rt_lines(rt_chat_ctx *c, rt_val text);

/* The argument as text; fails otherwise. */
bool rt_want_text(rt_chat_ctx *c, rt_val v);

/* The object of a str method: as rt_want_text, with jinja2's error for others. */
bool rt_want_str(rt_chat_ctx *c, rt_val v, const char *method);

#endif
