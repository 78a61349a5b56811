#define _GNU_SOURCE /* memmem */
/* text.c -- see text.h. */
#include "chat/text.h"

#include <string.h>

#include "base/unicode.h"
#include "chat/case.h"
#include "chat/ops.h"
#include "chat/print.h"

bool rt_want_text(rt_chat_ctx *c, rt_val v) {
    if (v.kind == RT_UNDEFINED) {
        rt_fail_undefined(c, v);
    } else if (v.kind != RT_STR) {
        rt_fail(c, LB_BAD_TYPE, "expected text, not '%s'", rt_type_name(v));
    }
    return v.kind == RT_STR && !c->failed;
}

bool rt_want_str(rt_chat_ctx *c, rt_val v, const char *method) {
    if (v.kind != RT_UNDEFINED && v.kind != RT_STR) {
        rt_fail(c, LB_MISSING, "'%s' object has no method '%s'", rt_type_name(v), method);
        return false;
    }
    return rt_want_text(c, v);
}

size_t rt_find_bytes(rt_chat_ctx *c, rt_val text, rt_val sub, size_t from) {
    size_t left = text.n_bytes - from;
    if (!rt_work(c, 1) || sub.n_bytes > left) {
        return SIZE_MAX;
    }
    if (sub.n_bytes == 0) {
        return from;
    }
    const char *p = memmem(text.u.s + from, left, sub.u.s, sub.n_bytes);
    size_t at = p == NULL ? SIZE_MAX : (size_t)(p - text.u.s);
    rt_work(c, (p == NULL ? left : at - from) / 64); /* what was looked at */
    return at;
}

/* True if the character of `len` bytes at `s` is to be stripped. */
static bool is_stripped(const char *s, size_t len, uint32_t code, rt_val chars) {
    if (chars.kind != RT_STR) {
        return rt_is_space(code);
    }
    return memmem(chars.u.s, chars.n_bytes, s, len) != NULL; /* characters only match whole ones */
}

rt_val rt_strip(rt_chat_ctx *c, rt_val text, rt_val chars, unsigned sides) {
    size_t from = 0;
    size_t end = text.n_bytes;
    uint32_t code = 0;
    while ((sides & RT_STRIP_LEFT) != 0 && from < end && rt_work(c, 1 + chars.n_bytes / 16)) {
        size_t len = lb_utf8_decode(text.u.s + from, end - from, &code);
        if (len == 0 || !is_stripped(text.u.s + from, len, code, chars)) {
            break;
        }
        from += len;
    }
    while ((sides & RT_STRIP_RIGHT) != 0 && from < end && rt_work(c, 1 + chars.n_bytes / 16)) {
        size_t at = end - 1;
        while (at > from && ((unsigned char)text.u.s[at] & 0xC0) == 0x80) {
            at--;
        }
        size_t len = lb_utf8_decode(text.u.s + at, end - at, &code);
        if (len == 0 || !is_stripped(text.u.s + at, len, code, chars)) {
            break;
        }
        end = at;
    }
    return rt_part(text, from, end - from);
}

/* An empty `old`: `with` goes in front of every character and behind the last one. */
static rt_val replace_empty(rt_chat_ctx *c, rt_val text, rt_val with, int64_t count) {
    rt_sb sb = {0};
    uint32_t code = 0;
    for (size_t i = 0, len = 0; i <= text.n_bytes && rt_work(c, 1); i += len) {
        if (count != 0) {
            rt_sb_text(c, &sb, with);
            count -= count > 0;
        }
        len = lb_utf8_decode(text.u.s + i, text.n_bytes - i, &code);
        if (len == 0) {
            break;
        }
        rt_sb_text(c, &sb, rt_part(text, i, len));
    }
    return rt_sb_value(&sb);
}

rt_val rt_replace(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with, int64_t count) {
    if (old.n_bytes == 0) {
        return replace_empty(c, text, with, count);
    }
    rt_sb sb = {0};
    size_t from = 0;
    while (count != 0 && rt_work(c, 1)) {
        size_t at = rt_find_bytes(c, text, old, from);
        if (at == SIZE_MAX) {
            break;
        }
        rt_sb_text(c, &sb, rt_part(text, from, at - from));
        rt_sb_text(c, &sb, with);
        from = at + old.n_bytes;
        count -= count > 0;
    }
    rt_sb_text(c, &sb, rt_part(text, from, text.n_bytes - from));
    return rt_sb_value(&sb);
}

static bool ends_line(uint32_t code) {
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

rt_val rt_lines(rt_chat_ctx *c, rt_val text) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    size_t from = 0;
    uint32_t code = 0;
    for (size_t i = 0, len; i < text.n_bytes && rt_work(c, 1); i += len) {
        len = lb_utf8_decode(text.u.s + i, text.n_bytes - i, &code);
        if (len == 0) {
            break;
        }
        if (!ends_line(code)) {
            continue;
        }
        rt_push(c, list, rt_part(text, from, i - from));
        if (code == '\r' && i + 1 < text.n_bytes && text.u.s[i + 1] == '\n') {
            len++;
        }
        from = i + len;
    }
    if (from < text.n_bytes) {
        rt_push(c, list, rt_part(text, from, text.n_bytes - from));
    }
    return list;
}
