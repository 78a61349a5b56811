/* to_values.h -- conversations as the values that templates see. */
#ifndef RT_CHAT_TO_VALUES_H
#define RT_CHAT_TO_VALUES_H

#include "chat/ctx.h"
#include "chat/render.h"

/* The list `messages`, shaped as the template wants it. Roles are known words and count as the
 * template's own text; everything else is the request's. */
rt_val rt_messages_value(rt_chat_ctx *c, const rt_chat *chat, const rt_chat_caps *caps);

#endif
