/* escape.h -- markup: text that is safe inside HTML, as the package markupsafe makes it. */
#ifndef RT_CHAT_ESCAPE_H
#define RT_CHAT_ESCAPE_H

#include "chat/ctx.h"

/* str(v) with & < > ' " replaced by entities, as markup; markup itself comes back unchanged. */
rt_val rt_escape(rt_chat_ctx *c, rt_val v);

#endif
