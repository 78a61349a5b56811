/* json.h -- JSON to template values. Values to JSON: the filter tojson (filters.h). */
#ifndef RT_CHAT_JSON_H
#define RT_CHAT_JSON_H

#include <jansson.h>

#include "chat/ctx.h"

enum { RT_JSON_DEPTH_MAX = 64 }; /* nesting of what a request may hand to templates */

/* The value of `json`, copied; keys keep their order. `user` marks all texts and brackets. Fails
 * the rendering with LB_LIMIT beyond RT_JSON_DEPTH_MAX. */
rt_val rt_from_json(rt_chat_ctx *c, const json_t *json, bool user);

/* Parses one JSON text of any kind. On a syntax error returns false and leaves the rendering alone,
 * with what is wrong in `why` (may be NULL). */
bool rt_parse_json(rt_chat_ctx *c, const char *s, size_t n, bool user, rt_val *out, lb_err *why);

#endif
