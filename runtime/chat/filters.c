/* filters.c -- filters of texts and numbers; see filters.h. */
#include "chat/filters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "chat/big.h"
#include "chat/case.h"
#include "chat/escape.h"
#include "chat/json_read.h"
#include "chat/ops.h"
#include "chat/print.h"
#include "chat/text.h"

rt_val rt_f_default(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_UNDEFINED ? RT_LIT("") : v;
}

rt_val rt_f_default_with(rt_chat_ctx *c, rt_val v, rt_val otherwise, rt_val if_false) {
    bool use = v.kind == RT_UNDEFINED || (rt_true(c, if_false) && !rt_true(c, v));
    return use ? otherwise : v;
}

rt_val rt_f_string(rt_chat_ctx *c, rt_val v) {
    return rt_str_of(c, v);
}

rt_val rt_f_safe(rt_chat_ctx *c, rt_val v) {
    rt_val text = rt_str_of(c, v);
    text.markup = text.kind == RT_STR;
    return text;
}

rt_val rt_f_escape(rt_chat_ctx *c, rt_val v) {
    return rt_escape(c, v);
}

rt_val rt_f_trim_with(rt_chat_ctx *c, rt_val v, rt_val chars) {
    if (chars.kind != RT_NONE && !rt_want_text(c, chars)) {
        return rt_undefined();
    }
    return rt_strip(c, rt_str_of(c, v), chars, RT_STRIP_LEFT | RT_STRIP_RIGHT);
}

rt_val rt_f_trim(rt_chat_ctx *c, rt_val v) {
    return rt_f_trim_with(c, v, rt_none());
}

rt_val rt_f_upper(rt_chat_ctx *c, rt_val v) {
    return rt_text_case(c, rt_str_of(c, v), RT_UPPER);
}

rt_val rt_f_lower(rt_chat_ctx *c, rt_val v) {
    return rt_text_case(c, rt_str_of(c, v), RT_LOWER);
}

rt_val rt_f_capitalize(rt_chat_ctx *c, rt_val v) {
    return rt_text_capitalize(c, rt_str_of(c, v));
}

/* jinja2's own title: words begin behind blanks and - ( { [ <, their first letter is in upper
 * case. */
rt_val rt_f_title(rt_chat_ctx *c, rt_val v) {
    rt_val text = rt_str_of(c, v);
    rt_sb sb = {0};
    bool in_word = false;
    uint32_t code = 0;
    for (size_t i = 0, len; i < text.n_bytes && rt_work(c, 1); i += len) {
        len = lb_utf8_decode(text.u.s + i, text.n_bytes - i, &code);
        if (len == 0) {
            break;
        }
        bool between = rt_is_space(code) || (code < 0x80 && strchr("-({[<", (int)code) != NULL &&
                                             code != 0);
        size_t end = i + len;
        while (in_word && !between && end < text.n_bytes) { /* the rest of the word at once */
            size_t more = lb_utf8_decode(text.u.s + end, text.n_bytes - end, &code);
            if (more == 0 || rt_is_space(code) ||
                (code < 0x80 && code != 0 && strchr("-({[<", (int)code) != NULL)) {
                break;
            }
            end += more;
        }
        rt_sb_text(c, &sb, rt_text_case(c, rt_part(text, i, end - i), in_word ? RT_LOWER
                                        : RT_UPPER));
        len = end - i;
        in_word = !between;
    }
    return rt_sb_value(&sb);
}

rt_val rt_f_replace_with(rt_chat_ctx *c, rt_val v, rt_val old, rt_val with, rt_val count) {
    int64_t n = rt_has_int(count) ? rt_int_of(count) : -1;
    rt_val out = rt_replace(c, rt_str_of(c, v), rt_str_of(c, old), rt_str_of(c, with), n);
    out.markup = false;
    return out;
}

rt_val rt_f_replace(rt_chat_ctx *c, rt_val v, rt_val old, rt_val with) {
    return rt_f_replace_with(c, v, old, with, rt_none());
}

/* The indent filter's margin: so many blanks, or a text. */
static rt_val margin(rt_chat_ctx *c, rt_val width) {
    if (width.kind == RT_STR) {
        return width;
    }
    return rt_mul(c, RT_LIT(" "), width);
}

rt_val rt_f_indent_with(rt_chat_ctx *c, rt_val v, rt_val width, rt_val first, rt_val blank) {
    if (!rt_want_text(c, v)) {
        return rt_undefined();
    }
    rt_val pad = margin(c, width);
    rt_val lines = rt_lines(c, rt_cat(c, 2, (rt_val[]){v, RT_LIT("\n")}));
    bool all = rt_true(c, blank);
    rt_sb sb = {0};
    if (pad.kind == RT_STR && rt_true(c, first)) {
        rt_sb_text(c, &sb, pad);
    }
    for (size_t i = 0; pad.kind == RT_STR && lines.kind == RT_LIST && i < lines.u.list->n; i++) {
        rt_val line = lines.u.list->items[i];
        if (i > 0) {
            rt_sb_text(c, &sb, RT_LIT("\n"));
        }
        if (i > 0 && (all || line.n_bytes > 0)) {
            rt_sb_text(c, &sb, pad);
        }
        rt_sb_text(c, &sb, line);
    }
    rt_val out = rt_sb_value(&sb);
    out.markup = v.markup;
    return out;
}

rt_val rt_f_indent(rt_chat_ctx *c, rt_val v) {
    return rt_f_indent_with(c, v, rt_int(4), rt_bool(false), rt_bool(false));
}

rt_val rt_f_abs(rt_chat_ctx *c, rt_val v) {
    if (v.kind == RT_FLOAT) {
        v.u.f = fabs(v.u.f);
        return v;
    }
    if (v.kind == RT_BIG && v.u.s[0] == '-') {
        return rt_big(c, v.u.s + 1, v.n_bytes - 1, v.user);
    }
    if (v.kind == RT_BIG) {
        return v;
    }
    return rt_has_int(v) && rt_int_of(v) >= 0 ? rt_pos(c, v) : rt_neg(c, v);
}

/* A number's text without blanks and digit groups, NUL-terminated; false if it cannot be one. */
static bool number_text(rt_chat_ctx *c, rt_val v, char out[80]) {
    rt_val t = rt_strip(c, v, rt_none(), RT_STRIP_LEFT | RT_STRIP_RIGHT);
    size_t n = 0;
    for (size_t i = 0; i < t.n_bytes; i++) {
        char ch = t.u.s[i];
        bool group = ch == '_' && i > 0 && i + 1 < t.n_bytes && t.u.s[i - 1] != '_';
        if (group) {
            continue;
        }
        if (ch == '_' || ch == '\0' || n + 1 >= 80) {
            return false;
        }
        out[n++] = ch;
    }
    out[n] = '\0';
    return n > 0;
}

/* Python's float(text): no hex, whole text. */
static bool parse_float(rt_chat_ctx *c, rt_val v, double *out) {
    char text[80];
    char *end = NULL;
    if (!number_text(c, v, text) || strpbrk(text, "xXpP(") != NULL) {
        return false;
    }
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

static bool parse_int(rt_chat_ctx *c, rt_val v, int64_t base, int64_t *out) {
    char text[80];
    char *end = NULL;
    if (base < 2 || base > 36 || !number_text(c, v, text)) {
        return false;
    }
    const char *p = text + (text[0] == '-' || text[0] == '+');
    char prefix = base == 2 ? 'b' : base == 8 ? 'o' : base == 16 ? 'x' : '\0';
    if (prefix != '\0' && p[0] == '0' && (p[1] | 0x20) == prefix) {
        p += 2;
    }
    char first = (char)(p[0] | 0x20);
    if (!((p[0] >= '0' && p[0] <= '9') || (first >= 'a' && first <= 'z'))) {
        return false;
    }
    errno = 0;
    *out = strtoll(p, &end, (int)base);
    if (text[0] == '-') {
        *out = -*out;
    }
    return end != p && *end == '\0' && errno == 0;
}

/* A decimal integer beyond 64 bits that a text is, or undefined. */
static rt_val big_of_text(rt_chat_ctx *c, rt_val v) {
    rt_val t = rt_strip(c, v, rt_none(), RT_STRIP_LEFT | RT_STRIP_RIGHT);
    bool user = v.user || v.mark != NULL;
    return rt_is_big(t.u.s, t.n_bytes) ? rt_big(c, t.u.s, t.n_bytes, user) : rt_undefined();
}

/* The integer part of a real: a big integer where 64 bits do not hold it. Not for NaN. */
static rt_val int_of_real(rt_chat_ctx *c, double f, bool user) {
    if (fabs(f) >= 0x1p63) {
        return rt_big_of_real(c, f, user);
    }
    rt_val out = rt_int((int64_t)f);
    out.user = user;
    return out;
}

rt_val rt_f_int_with(rt_chat_ctx *c, rt_val v, rt_val otherwise, rt_val base) {
    int64_t i = 0;
    double f = 0.0;
    bool text = v.kind == RT_STR;
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    rt_val big = text && rt_has_int(base) && rt_int_of(base) == 10 ? big_of_text(c, v) : v;
    if (big.kind == RT_BIG || c->failed) {
        return big;
    }
    if (rt_has_int(v) || (text && parse_int(c, v, rt_has_int(base) ? rt_int_of(base) : 10, &i))) {
        rt_val out = rt_int(text ? i : rt_int_of(v));
        out.user = v.user || v.mark != NULL;
        return out;
    }
    if (v.kind == RT_FLOAT || (text && parse_float(c, v, &f))) {
        f = text ? f : v.u.f;
        if (isinf(f) && !text) {
            return rt_fail(c, LB_OVERFLOW, "infinity is no integer");
        }
        return isfinite(f) ? int_of_real(c, f, v.user || v.mark != NULL) : otherwise;
    }
    return otherwise;
}

rt_val rt_f_int(rt_chat_ctx *c, rt_val v) {
    return rt_f_int_with(c, v, rt_int(0), rt_int(10));
}

rt_val rt_f_float_with(rt_chat_ctx *c, rt_val v, rt_val otherwise) {
    double f = 0.0;
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    if (v.kind == RT_FLOAT) {
        return v;
    }
    if (v.kind == RT_BIG) {
        f = rt_big_real(v);
        return isfinite(f) ? rt_float(f) : rt_fail(c, LB_OVERFLOW, "an integer beyond all reals");
    }
    if (!rt_has_int(v) && !(v.kind == RT_STR && parse_float(c, v, &f))) {
        return otherwise;
    }
    rt_val out = rt_float(rt_has_int(v) ? (double)rt_int_of(v) : f);
    out.user = v.user || v.mark != NULL;
    return out;
}

rt_val rt_f_float(rt_chat_ctx *c, rt_val v) {
    return rt_f_float_with(c, v, rt_float(0.0));
}
