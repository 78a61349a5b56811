/* methods.h -- methods of texts, lists and dicts, as Python has them. The object comes first;
 * `_with` takes every parameter. Texts keep the marks of what they were made from. */
#ifndef RT_CHAT_METHODS_H
#define RT_CHAT_METHODS_H

#include "chat/ctx.h"

/* str.strip and its kin: white space, or the characters of `chars` unless it is none. */
rt_val rt_m_strip(rt_chat_ctx *c, rt_val text);
rt_val rt_m_strip_with(rt_chat_ctx *c, rt_val text, rt_val chars);
rt_val rt_m_lstrip(rt_chat_ctx *c, rt_val text);
rt_val rt_m_lstrip_with(rt_chat_ctx *c, rt_val text, rt_val chars);
rt_val rt_m_rstrip(rt_chat_ctx *c, rt_val text);
rt_val rt_m_rstrip_with(rt_chat_ctx *c, rt_val text, rt_val chars);

/* str.split and str.rsplit: at runs of white space if sep is none; at most maxsplit cuts unless <
 * 0. */
rt_val rt_m_split(rt_chat_ctx *c, rt_val text);
rt_val rt_m_split_with(rt_chat_ctx *c, rt_val text, rt_val sep, rt_val maxsplit);
rt_val rt_m_rsplit(rt_chat_ctx *c, rt_val text);
rt_val rt_m_rsplit_with(rt_chat_ctx *c, rt_val text, rt_val sep, rt_val maxsplit);
rt_val rt_m_splitlines(rt_chat_ctx *c, rt_val text);

/* `affix` may be a tuple of texts. */
rt_val rt_m_startswith(rt_chat_ctx *c, rt_val text, rt_val affix);
rt_val rt_m_endswith(rt_chat_ctx *c, rt_val text, rt_val affix);
rt_val rt_m_removeprefix(rt_chat_ctx *c, rt_val text, rt_val prefix);
rt_val rt_m_removesuffix(rt_chat_ctx *c, rt_val text, rt_val suffix);

rt_val rt_m_replace(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with);
rt_val rt_m_replace_with(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with, rt_val count);
rt_val rt_m_upper(rt_chat_ctx *c, rt_val text);
rt_val rt_m_lower(rt_chat_ctx *c, rt_val text);
rt_val rt_m_title(rt_chat_ctx *c, rt_val text);
rt_val rt_m_capitalize(rt_chat_ctx *c, rt_val text);
rt_val rt_m_join(rt_chat_ctx *c, rt_val separator, rt_val texts);

/* str.format with {} {0} {name} {{ }}: n_plain positional values, then n_named names and values. */
rt_val rt_m_format(rt_chat_ctx *c, rt_val text, size_t n_plain, size_t n_named, const rt_val *args);

/* Of texts and of lists. */
rt_val rt_m_find(rt_chat_ctx *c, rt_val text, rt_val sub);
rt_val rt_m_index(rt_chat_ctx *c, rt_val v, rt_val value);
rt_val rt_m_count(rt_chat_ctx *c, rt_val v, rt_val value);

/* Of dicts. */
rt_val rt_m_get(rt_chat_ctx *c, rt_val dict, rt_val key);
rt_val rt_m_get_with(rt_chat_ctx *c, rt_val dict, rt_val key, rt_val otherwise);
rt_val rt_m_items(rt_chat_ctx *c, rt_val dict);
rt_val rt_m_keys(rt_chat_ctx *c, rt_val dict);
rt_val rt_m_values(rt_chat_ctx *c, rt_val dict);

/* Of lists, which they change. (jinja2's immutable sandbox refuses both; templates use them.) */
rt_val rt_m_append(rt_chat_ctx *c, rt_val list, rt_val item);
rt_val rt_m_pop(rt_chat_ctx *c, rt_val list);
rt_val rt_m_pop_with(rt_chat_ctx *c, rt_val list, rt_val index);

#endif
