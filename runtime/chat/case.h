/* case.h -- upper, lower and title case of texts, as Python's str methods have them. */
#ifndef RT_CHAT_CASE_H
#define RT_CHAT_CASE_H

#include "chat/ctx.h"

typedef enum rt_case { RT_UPPER, RT_LOWER, RT_TITLE } rt_case;

/* The whole text in upper or lower case (final sigma included). */
rt_val rt_text_case(rt_chat_ctx *c, rt_val text, rt_case to);

/* Every word's first letter in title case, the others in lower case; or only the text's first. */
rt_val rt_text_title(rt_chat_ctx *c, rt_val text);
rt_val rt_text_capitalize(rt_chat_ctx *c, rt_val text);

/* Python's str.isspace for one code point. */
bool rt_is_space(uint32_t code);

#endif
