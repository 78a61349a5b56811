/* jinja.h -- compiles a model file's chat template (Jinja) to C. */
#ifndef LG_JINJA_JINJA_H
#define LG_JINJA_JINJA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Appends to `c_out` one C file that defines `bool lagen_chat_render(rt_chat_ctx *c)` (see
 * runtime/chat/render.h), readable beside the template and clean under the project's warnings.
 *   src    the template, n bytes of UTF-8; nothing of it but names and escaped literals gets into C
 *   arena  working memory; nothing in it is needed afterwards but c_out's own text
 * Fails with LB_SYNTAX, LB_UNSUPPORTED, LB_BAD_FORMAT, LB_BAD_VALUE or LB_LIMIT, the message
 * naming line, column and construct of the template; LB_NO_MEMORY. */
bool lg_jinja_compile(const char *src, size_t n, lb_arena *arena, lb_text *c_out, lb_err *err);

#endif
