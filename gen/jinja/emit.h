/* emit.h -- a resolved chat template as one C file.
 *
 * The file defines `bool lagen_chat_render(rt_chat_ctx *c)` against runtime/chat/ops.h and its
 * companions. One C statement or block stands for one statement of the template, in order, with the
 * template's line number; macros are functions, template variables are C variables of the same name
 * behind `v_`, and those of the outermost scope are fields of a struct. */
#ifndef LG_JINJA_EMIT_H
#define LG_JINJA_EMIT_H

#include "base/text.h"
#include "jinja/resolve.h"

/* Appends the C file. Fails with LB_NO_MEMORY. */
bool lg_jinja_emit(const lg_jtemplate *t, lb_arena *arena, lb_text *out, lb_err *err);

#endif
