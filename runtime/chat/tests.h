/* tests.h -- tests of templates (`x is string`), as jinja2 has them. */
#ifndef RT_CHAT_TESTS_H
#define RT_CHAT_TESTS_H

#include "chat/ctx.h"

bool rt_is_defined(rt_chat_ctx *c, rt_val v);
bool rt_is_undefined(rt_chat_ctx *c, rt_val v);
bool rt_is_none(rt_chat_ctx *c, rt_val v);
bool rt_is_boolean(rt_chat_ctx *c, rt_val v);
bool rt_is_true(rt_chat_ctx *c, rt_val v);
bool rt_is_false(rt_chat_ctx *c, rt_val v);
bool rt_is_integer(rt_chat_ctx *c, rt_val v);
bool rt_is_float(rt_chat_ctx *c, rt_val v);
bool rt_is_number(rt_chat_ctx *c, rt_val v);   /* booleans too */
bool rt_is_string(rt_chat_ctx *c, rt_val v);
bool rt_is_mapping(rt_chat_ctx *c, rt_val v);
bool rt_is_iterable(rt_chat_ctx *c, rt_val v); /* undefined too: it has no items */
bool rt_is_sequence(rt_chat_ctx *c, rt_val v); /* texts, dicts and undefined too */
bool rt_is_escaped(rt_chat_ctx *c, rt_val v);
bool rt_is_odd(rt_chat_ctx *c, rt_val v);
bool rt_is_even(rt_chat_ctx *c, rt_val v);
bool rt_is_divisibleby(rt_chat_ctx *c, rt_val v, rt_val by);
bool rt_is_sameas(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_equalto(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_ne(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_lt(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_le(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_gt(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_ge(rt_chat_ctx *c, rt_val v, rt_val other);
bool rt_is_in(rt_chat_ctx *c, rt_val v, rt_val container);

#endif
