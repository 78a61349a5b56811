/* escape.c -- see escape.h. */
#include "chat/escape.h"

#include <string.h>

#include "chat/print.h"

static const char *entity(char ch) {
    switch (ch) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '\'': return "&#39;";
    case '"': return "&#34;";
    default: return NULL;
    }
}

rt_val rt_escape(rt_chat_ctx *c, rt_val v) {
    if (v.kind == RT_STR && v.markup) {
        return v;
    }
    rt_val text = rt_str_of(c, v);
    rt_sb sb = {0};
    size_t from = 0;
    for (size_t i = 0; i < text.n_bytes; i++) {
        const char *e = entity(text.u.s[i]);
        if (e != NULL) {
            rt_sb_text(c, &sb, rt_part(text, from, i - from));
            rt_sb_add(c, &sb, e, strlen(e), text.mark != NULL ? text.mark[i] != 0 : text.user);
            from = i + 1;
        }
    }
    rt_sb_text(c, &sb, rt_part(text, from, text.n_bytes - from));
    rt_val out = rt_sb_value(&sb);
    out.markup = true;
    return out;
}
