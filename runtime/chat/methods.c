/* methods.c -- methods of texts; see methods.h. */
#include "chat/methods.h"

#include <string.h>

#include "base/unicode.h"
#include "chat/case.h"
#include "chat/escape.h"
#include "chat/loop.h"
#include "chat/ops.h"
#include "chat/print.h"
#include "chat/text.h"

static rt_val strip(rt_chat_ctx *c, rt_val text, rt_val chars, unsigned sides, const char *method) {
    if (!rt_want_str(c, text, method) || (chars.kind != RT_NONE && !rt_want_text(c, chars))) {
        return rt_undefined();
    }
    return rt_strip(c, text, chars, sides);
}

rt_val rt_m_strip(rt_chat_ctx *c, rt_val text) {
    return strip(c, text, rt_none(), RT_STRIP_LEFT | RT_STRIP_RIGHT, "strip");
}

rt_val rt_m_strip_with(rt_chat_ctx *c, rt_val text, rt_val chars) {
    return strip(c, text, chars, RT_STRIP_LEFT | RT_STRIP_RIGHT, "strip");
}

rt_val rt_m_lstrip(rt_chat_ctx *c, rt_val text) {
    return strip(c, text, rt_none(), RT_STRIP_LEFT, "lstrip");
}

rt_val rt_m_lstrip_with(rt_chat_ctx *c, rt_val text, rt_val chars) {
    return strip(c, text, chars, RT_STRIP_LEFT, "lstrip");
}

rt_val rt_m_rstrip(rt_chat_ctx *c, rt_val text) {
    return strip(c, text, rt_none(), RT_STRIP_RIGHT, "rstrip");
}

rt_val rt_m_rstrip_with(rt_chat_ctx *c, rt_val text, rt_val chars) {
    return strip(c, text, chars, RT_STRIP_RIGHT, "rstrip");
}

/* ---- split ---- */

static void reverse(rt_val list) {
    if (list.kind != RT_LIST) {
        return;
    }
    rt_list *l = list.u.list;
    for (size_t i = 0, k = l->n; i + 1 < k; i++) {
        k--;
        rt_val swap = l->items[i];
        l->items[i] = l->items[k];
        l->items[k] = swap;
    }
}

static rt_val split_at(rt_chat_ctx *c, rt_val text, rt_val sep, int64_t cuts) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    size_t from = 0;
    while (cuts != 0 && rt_work(c, 1)) {
        size_t at = rt_find_bytes(c, text, sep, from);
        if (at == SIZE_MAX) {
            break;
        }
        rt_push(c, list, rt_part(text, from, at - from));
        from = at + sep.n_bytes;
        cuts -= cuts > 0;
    }
    rt_push(c, list, rt_part(text, from, text.n_bytes - from));
    return list;
}

/* Where the last `sep` that ends at or before `end` begins, or SIZE_MAX. */
static size_t find_last(rt_chat_ctx *c, rt_val text, rt_val sep, size_t end) {
    for (size_t at = end; at >= sep.n_bytes && rt_work(c, 1); at--) {
        if (memcmp(text.u.s + at - sep.n_bytes, sep.u.s, sep.n_bytes) == 0) {
            return at - sep.n_bytes;
        }
    }
    return SIZE_MAX;
}

static rt_val rsplit_at(rt_chat_ctx *c, rt_val text, rt_val sep, int64_t cuts) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    size_t end = text.n_bytes;
    while (cuts != 0 && rt_work(c, 1)) {
        size_t at = find_last(c, text, sep, end);
        if (at == SIZE_MAX) {
            break;
        }
        rt_push(c, list, rt_part(text, at + sep.n_bytes, end - at - sep.n_bytes));
        end = at;
        cuts -= cuts > 0;
    }
    rt_push(c, list, rt_part(text, 0, end));
    reverse(list);
    return list;
}

/* Bytes of the first word of a text: up to white space. */
static size_t word_bytes(rt_chat_ctx *c, rt_val text) {
    uint32_t code = 0;
    size_t i = 0;
    for (size_t len; (len = lb_utf8_decode(text.u.s + i, text.n_bytes - i, &code)) > 0; i += len) {
        if (rt_is_space(code) || !rt_work(c, 1)) {
            break;
        }
    }
    return i;
}

static rt_val split_words(rt_chat_ctx *c, rt_val text, int64_t cuts) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    for (rt_val rest = rt_strip(c, text, rt_none(), RT_STRIP_LEFT); rest.n_bytes > 0;) {
        size_t n = word_bytes(c, rest);
        if (cuts == 0 || n == 0) {
            rt_push(c, list, rest);
            break;
        }
        rt_push(c, list, rt_part(rest, 0, n));
        cuts -= cuts > 0;
        rest = rt_strip(c, rt_part(rest, n, rest.n_bytes - n), rt_none(), RT_STRIP_LEFT);
    }
    return list;
}

/* The arguments of split; false after an error. */
static bool split_args(rt_chat_ctx *c, rt_val text, rt_val sep, rt_val maxsplit, int64_t *cuts) {
    if (!rt_want_str(c, text, "split") || (sep.kind != RT_NONE && !rt_want_text(c, sep))) {
        return false;
    }
    if (!rt_has_int(maxsplit)) {
        rt_fail(c, LB_BAD_TYPE, "maxsplit must be an integer, not '%s'", rt_type_name(maxsplit));
        return false;
    }
    if (sep.kind == RT_STR && sep.n_bytes == 0) {
        rt_fail(c, LB_BAD_VALUE, "empty separator");
        return false;
    }
    *cuts = rt_int_of(maxsplit);
    return true;
}

rt_val rt_m_split_with(rt_chat_ctx *c, rt_val text, rt_val sep, rt_val maxsplit) {
    int64_t cuts = 0;
    if (!split_args(c, text, sep, maxsplit, &cuts)) {
        return rt_undefined();
    }
    return sep.kind == RT_NONE ? split_words(c, text, cuts) : split_at(c, text, sep, cuts);
}

rt_val rt_m_split(rt_chat_ctx *c, rt_val text) {
    return rt_m_split_with(c, text, rt_none(), rt_int(-1));
}

rt_val rt_m_rsplit_with(rt_chat_ctx *c, rt_val text, rt_val sep, rt_val maxsplit) {
    int64_t cuts = 0;
    if (!split_args(c, text, sep, maxsplit, &cuts)) {
        return rt_undefined();
    }
    if (sep.kind == RT_NONE && cuts >= 0) {
        return rt_fail(c, LB_UNSUPPORTED, "rsplit with maxsplit needs a separator");
    }
    return sep.kind == RT_NONE ? split_words(c, text, -1) : rsplit_at(c, text, sep, cuts);
}

rt_val rt_m_rsplit(rt_chat_ctx *c, rt_val text) {
    return rt_m_split(c, text);
}

rt_val rt_m_splitlines(rt_chat_ctx *c, rt_val text) {
    return rt_want_str(c, text, "splitlines") ? rt_lines(c, text) : rt_undefined();
}

/* ---- beginnings and ends ---- */

static bool has_affix(rt_val text, rt_val affix, bool at_end) {
    if (affix.n_bytes > text.n_bytes) {
        return false;
    }
    const char *s = text.u.s + (at_end ? text.n_bytes - affix.n_bytes : 0);
    return affix.n_bytes == 0 || memcmp(s, affix.u.s, affix.n_bytes) == 0;
}

static rt_val affix_test(rt_chat_ctx *c, rt_val text, rt_val affix, bool at_end) {
    if (!rt_want_str(c, text, at_end ? "endswith" : "startswith") || !rt_work(c, 1)) {
        return rt_undefined();
    }
    if (!rt_is_flavor(affix, RT_TUPLE)) {
        return rt_bool(rt_want_text(c, affix) && has_affix(text, affix, at_end));
    }
    for (size_t i = 0; i < affix.u.list->n; i++) {
        rt_val one = affix.u.list->items[i];
        if (rt_want_text(c, one) && has_affix(text, one, at_end)) {
            return rt_bool(true);
        }
    }
    return rt_bool(false);
}

rt_val rt_m_startswith(rt_chat_ctx *c, rt_val text, rt_val affix) {
    return affix_test(c, text, affix, false);
}

rt_val rt_m_endswith(rt_chat_ctx *c, rt_val text, rt_val affix) {
    return affix_test(c, text, affix, true);
}

rt_val rt_m_removeprefix(rt_chat_ctx *c, rt_val text, rt_val prefix) {
    if (!rt_want_str(c, text, "removeprefix") || !rt_want_text(c, prefix)) {
        return rt_undefined();
    }
    size_t n = has_affix(text, prefix, false) ? prefix.n_bytes : 0;
    return rt_part(text, n, text.n_bytes - n);
}

rt_val rt_m_removesuffix(rt_chat_ctx *c, rt_val text, rt_val suffix) {
    if (!rt_want_str(c, text, "removesuffix") || !rt_want_text(c, suffix)) {
        return rt_undefined();
    }
    return rt_part(text, 0, text.n_bytes - (has_affix(text, suffix, true) ? suffix.n_bytes : 0));
}

/* ---- new texts ---- */

rt_val rt_m_replace_with(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with, rt_val count) {
    if (!rt_want_str(c, text, "replace") || !rt_want_text(c, old) || !rt_want_text(c, with)) {
        return rt_undefined();
    }
    if (!rt_has_int(count)) {
        return rt_fail(c, LB_BAD_TYPE, "count must be an integer, not '%s'", rt_type_name(count));
    }
    if (text.markup) { /* markup escapes what is put into it */
        old = rt_escape(c, old);
        with = rt_escape(c, with);
    }
    rt_val out = rt_replace(c, text, old, with, rt_int_of(count));
    out.markup = text.markup;
    return out;
}

rt_val rt_m_replace(rt_chat_ctx *c, rt_val text, rt_val old, rt_val with) {
    return rt_m_replace_with(c, text, old, with, rt_int(-1));
}

rt_val rt_m_upper(rt_chat_ctx *c, rt_val text) {
    return rt_want_str(c, text, "upper") ? rt_text_case(c, text, RT_UPPER) : rt_undefined();
}

rt_val rt_m_lower(rt_chat_ctx *c, rt_val text) {
    return rt_want_str(c, text, "lower") ? rt_text_case(c, text, RT_LOWER) : rt_undefined();
}

rt_val rt_m_title(rt_chat_ctx *c, rt_val text) {
    return rt_want_str(c, text, "title") ? rt_text_title(c, text) : rt_undefined();
}

rt_val rt_m_capitalize(rt_chat_ctx *c, rt_val text) {
    return rt_want_str(c, text, "capitalize") ? rt_text_capitalize(c, text) : rt_undefined();
}

rt_val rt_m_join(rt_chat_ctx *c, rt_val separator, rt_val texts) {
    if (!rt_want_str(c, separator, "join")) {
        return rt_undefined();
    }
    rt_iter it = rt_iter_over(c, texts);
    rt_sb sb = {0};
    bool first = true;
    for (rt_val item; rt_iter_next(c, &it, &item); first = false) {
        if (!rt_want_text(c, item)) {
            break;
        }
        if (!first) {
            rt_sb_text(c, &sb, separator);
        }
        rt_sb_text(c, &sb, separator.markup ? rt_escape(c, item) : item);
    }
    rt_val out = rt_sb_value(&sb);
    out.markup = separator.markup;
    return out;
}

/* ---- format ---- */

typedef struct format_args {
    size_t n_plain, n_named, next; /* next: of {} without a name */
    const rt_val *args;
} format_args;

/* The value that a replacement field names; false if there is none. */
static bool field_value(rt_val name, format_args *a, rt_val *out) {
    if (name.n_bytes == 0 || (name.u.s[0] >= '0' && name.u.s[0] <= '9')) {
        size_t i = 0;
        for (size_t k = 0; k < name.n_bytes; k++) {
            if (name.u.s[k] < '0' || name.u.s[k] > '9' || i > 1000) {
                return false;
            }
            i = i * 10 + (size_t)(name.u.s[k] - '0');
        }
        i = name.n_bytes == 0 ? a->next++ : i;
        if (i >= a->n_plain) {
            return false;
        }
        *out = a->args[i];
        return true;
    }
    for (size_t i = 0; i < a->n_named; i++) {
        rt_val key = a->args[a->n_plain + 2 * i];
        if (key.n_bytes == name.n_bytes && memcmp(key.u.s, name.u.s, key.n_bytes) == 0) {
            *out = a->args[a->n_plain + 2 * i + 1];
            return true;
        }
    }
    return false;
}

/* One brace of a format text at byte i; returns the bytes it takes, 0 after an error. */
static size_t format_brace(rt_chat_ctx *c, rt_sb *sb, rt_val text, size_t i, format_args *a) {
    char brace = text.u.s[i];
    if (i + 1 < text.n_bytes && text.u.s[i + 1] == brace) {
        rt_sb_text(c, sb, rt_part(text, i, 1));
        return 2;
    }
    const char *close = memchr(text.u.s + i, '}', text.n_bytes - i);
    if (brace == '}' || close == NULL) {
        rt_fail(c, LB_BAD_VALUE, "single '%c' in a format text", brace);
        return 0;
    }
    size_t n = (size_t)(close - text.u.s) - i - 1;
    rt_val name = rt_part(text, i + 1, n);
    rt_val v;
    if (n > 0 && (memchr(name.u.s, ':', n) != NULL || memchr(name.u.s, '!', n) != NULL ||
                  memchr(name.u.s, '.', n) != NULL || memchr(name.u.s, '[', n) != NULL)) {
        rt_fail(c, LB_UNSUPPORTED, "only {}, {0} and {name} are supported in a format text");
        return 0;
    }
    if (!field_value(name, a, &v)) {
        rt_fail(c, LB_BAD_VALUE, "a format text names a value that is not given");
        return 0;
    }
    rt_sb_str(c, sb, v);
    return n + 2;
}

rt_val rt_m_format(rt_chat_ctx *c, rt_val text, size_t n_plain, size_t n_named,
                   const rt_val *args) {
    if (!rt_want_str(c, text, "format")) {
        return rt_undefined();
    }
    if (text.markup) {
        return rt_fail(c, LB_UNSUPPORTED, "format of escaped text is not supported");
    }
    format_args a = {.n_plain = n_plain, .n_named = n_named, .args = args};
    rt_sb sb = {0};
    for (size_t i = 0; i < text.n_bytes && rt_work(c, 1);) {
        size_t plain = 0;
        while (i + plain < text.n_bytes && text.u.s[i + plain] != '{' && text.u.s[i +
                                                                                  plain] != '}') {
            plain++;
        }
        rt_sb_text(c, &sb, rt_part(text, i, plain));
        i += plain;
        size_t used = i < text.n_bytes ? format_brace(c, &sb, text, i, &a) : 1;
        if (used == 0) {
            break;
        }
        i += used;
    }
    return rt_sb_value(&sb);
}
