/* filters.h -- filters of templates, as jinja2 has them with Hugging Face's settings. The value
 * comes first; `_with` takes every parameter, in builtin.def's order (gen/jinja/). */
#ifndef RT_CHAT_FILTERS_H
#define RT_CHAT_FILTERS_H

#include "chat/ctx.h"

rt_val rt_f_default(rt_chat_ctx *c, rt_val v);
rt_val rt_f_default_with(rt_chat_ctx *c, rt_val v, rt_val otherwise, rt_val if_false);

/* Of texts; anything else is made text first. */
rt_val rt_f_string(rt_chat_ctx *c, rt_val v);
rt_val rt_f_safe(rt_chat_ctx *c, rt_val v);
rt_val rt_f_escape(rt_chat_ctx *c, rt_val v);
rt_val rt_f_trim(rt_chat_ctx *c, rt_val v);
rt_val rt_f_trim_with(rt_chat_ctx *c, rt_val v, rt_val chars);
rt_val rt_f_upper(rt_chat_ctx *c, rt_val v);
rt_val rt_f_lower(rt_chat_ctx *c, rt_val v);
rt_val rt_f_capitalize(rt_chat_ctx *c, rt_val v);
rt_val rt_f_title(rt_chat_ctx *c, rt_val v);
rt_val rt_f_replace(rt_chat_ctx *c, rt_val v, rt_val old, rt_val with);
rt_val rt_f_replace_with(rt_chat_ctx *c, rt_val v, rt_val old, rt_val with, rt_val count);
rt_val rt_f_indent(rt_chat_ctx *c, rt_val v);
rt_val rt_f_indent_with(rt_chat_ctx *c, rt_val v, rt_val width, rt_val first, rt_val blank);

/* Numbers. */
rt_val rt_f_abs(rt_chat_ctx *c, rt_val v);
rt_val rt_f_int(rt_chat_ctx *c, rt_val v);
rt_val rt_f_int_with(rt_chat_ctx *c, rt_val v, rt_val otherwise, rt_val base);
rt_val rt_f_float(rt_chat_ctx *c, rt_val v);
rt_val rt_f_float_with(rt_chat_ctx *c, rt_val v, rt_val otherwise);

/* JSON: json.dumps and json.loads of Python. ensure_ascii is false by default; indent is none, a
 * number or a text; separators none or a tuple of two texts. */
rt_val rt_f_tojson(rt_chat_ctx *c, rt_val v);
rt_val rt_f_tojson_with(rt_chat_ctx *c, rt_val v, rt_val ensure_ascii, rt_val indent,
                        rt_val separators, rt_val sort_keys);
rt_val rt_f_from_json(rt_chat_ctx *c, rt_val text);

/* Sequences. `attribute` is none, or a key, a number or a path "a.b.0". */
rt_val rt_f_length(rt_chat_ctx *c, rt_val v);
rt_val rt_f_list(rt_chat_ctx *c, rt_val v);
rt_val rt_f_first(rt_chat_ctx *c, rt_val v);
rt_val rt_f_last(rt_chat_ctx *c, rt_val v);
rt_val rt_f_reverse(rt_chat_ctx *c, rt_val v);
rt_val rt_f_items(rt_chat_ctx *c, rt_val dict);
rt_val rt_f_attr(rt_chat_ctx *c, rt_val v, rt_val name);
rt_val rt_f_join(rt_chat_ctx *c, rt_val v);
rt_val rt_f_join_with(rt_chat_ctx *c, rt_val v, rt_val separator, rt_val attribute);
rt_val rt_f_sum(rt_chat_ctx *c, rt_val v);
rt_val rt_f_sum_with(rt_chat_ctx *c, rt_val v, rt_val attribute, rt_val start);
rt_val rt_f_min(rt_chat_ctx *c, rt_val v);
rt_val rt_f_min_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute);
rt_val rt_f_max(rt_chat_ctx *c, rt_val v);
rt_val rt_f_max_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute);
rt_val rt_f_sort(rt_chat_ctx *c, rt_val v);
rt_val rt_f_sort_with(rt_chat_ctx *c, rt_val v, rt_val reverse, rt_val case_sensitive,
                      rt_val attribute);
rt_val rt_f_unique(rt_chat_ctx *c, rt_val v);
rt_val rt_f_unique_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute);
rt_val rt_f_dictsort(rt_chat_ctx *c, rt_val dict);
rt_val rt_f_dictsort_with(rt_chat_ctx *c, rt_val dict, rt_val case_sensitive, rt_val by,
                          rt_val reverse);

/* map('filter') and map(attribute=..., default=...). */
rt_val rt_f_map(rt_chat_ctx *c, rt_val v, rt_val (*filter)(rt_chat_ctx *c, rt_val v));
rt_val rt_f_map_attribute(rt_chat_ctx *c, rt_val v, rt_val attribute, rt_val otherwise);

/* select and selectattr keep (`keep`) what passes the test, reject and rejectattr what does not. */
rt_val rt_f_select(rt_chat_ctx *c, rt_val v, bool keep, rt_val attribute,
                   bool (*test)(rt_chat_ctx *c, rt_val v));
rt_val rt_f_select_with(rt_chat_ctx *c, rt_val v, bool keep, rt_val attribute,
                        bool (*test)(rt_chat_ctx *c, rt_val v, rt_val arg), rt_val arg);

#endif
