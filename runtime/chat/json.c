/* json.c -- see json.h; and tojson, as Python's json.dumps writes it. */
#include "chat/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/unicode.h"
#include "chat/big.h"
#include "chat/filters.h"
#include "chat/json_read.h"
#include "chat/ops.h"
#include "chat/print.h"
#include "chat/text.h"

/* ---- reading ---- */

static rt_val copied_text(rt_chat_ctx *c, const char *s, size_t n, bool user) {
    rt_sb sb = {0};
    rt_sb_add(c, &sb, s, n, user);
    rt_val v = rt_sb_value(&sb);
    v.user = user;
    return v;
}

static rt_val from_json(rt_chat_ctx *c, const json_t *json, bool user, unsigned depth) {
    rt_val v = rt_none();
    const char *digits = NULL;
    size_t n_digits = 0;
    if (depth > RT_JSON_DEPTH_MAX) {
        return rt_fail(c, LB_LIMIT, "JSON nested more than %d deep", RT_JSON_DEPTH_MAX);
    }
    switch (json_typeof(json)) {
    case JSON_STRING:
        if (rt_json_big(json, &digits, &n_digits)) {
            return rt_big(c, digits, n_digits, user);
        }
        return copied_text(c, json_string_value(json), json_string_length(json), user);
    case JSON_INTEGER: v = rt_int(json_integer_value(json)); break;
    case JSON_REAL: v = rt_float(json_real_value(json)); break;
    case JSON_TRUE: v = rt_bool(true); break;
    case JSON_FALSE: v = rt_bool(false); break;
    case JSON_NULL: break;
    case JSON_ARRAY: {
        v = rt_new_list(c, RT_PLAIN);
        size_t n = json_array_size(json);
        for (size_t i = 0; i < n && !c->failed; i++) {
            rt_push(c, v, from_json(c, json_array_get(json, i), user, depth + 1));
        }
        break;
    }
    case JSON_OBJECT: {
        v = rt_new_dict(c);
        /* jansson's iterators take a pointer to non-const and only read through it */
        json_t *object = (json_t *)(uintptr_t)json;
        for (void *it = json_object_iter(object); it != NULL && !c->failed;
             it = json_object_iter_next(object, it)) {
            rt_val key = copied_text(c, json_object_iter_key(it), json_object_iter_key_len(it),
                                     user);
            rt_put(c, v, key, from_json(c, json_object_iter_value(it), user, depth + 1));
        }
        break;
    }
    }
    v.user = user;
    return v;
}

rt_val rt_from_json(rt_chat_ctx *c, const json_t *json, bool user) {
    return from_json(c, json, user, 1);
}

bool rt_parse_json(rt_chat_ctx *c, const char *s, size_t n, bool user, rt_val *out, lb_err *why) {
    json_t *json = NULL;
    if (!rt_json_read(s, n, c->arena, &json, why)) {
        return false;
    }
    *out = rt_from_json(c, json, user);
    json_decref(json);
    return true;
}

rt_val rt_f_from_json(rt_chat_ctx *c, rt_val text) {
    rt_val v = rt_undefined();
    lb_err why = {0};
    if (!rt_want_text(c, text)) {
        return v;
    }
    if (!rt_parse_json(c, text.u.s, text.n_bytes, text.user || text.mark != NULL, &v, &why)) {
        return rt_fail(c, LB_BAD_VALUE, "from_json: %s", why.text);
    }
    return v;
}

/* ---- writing ---- */

typedef struct style {
    bool ascii, sort_keys, lines; /* lines: items on lines of their own */
    rt_val margin, item_sep, key_sep;
} style;

static void write_value(rt_chat_ctx *c, rt_sb *sb, rt_val v, const style *st, unsigned depth);

/* \uXXXX, as a surrogate pair above U+FFFF. */
static void escape_code(rt_chat_ctx *c, rt_sb *sb, uint32_t code, bool user) {
    char text[16];
    if (code < 0x10000) {
        snprintf(text, sizeof text, "\\u%04x", code);
    } else {
        code -= 0x10000;
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 +
                 (code & 0x3FF));
    }
    rt_sb_add(c, sb, text, strlen(text), user);
}

static const char *short_escape(uint32_t code) {
    switch (code) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: return NULL;
    }
}

static void write_text(rt_chat_ctx *c, rt_sb *sb, rt_val v, bool user, bool ascii) {
    size_t from = 0;
    uint32_t code = 0;
    rt_sb_add(c, sb, "\"", 1, user);
    for (size_t i = 0, len; i < v.n_bytes && rt_work(c, 1); i += len) {
        len = lb_utf8_decode(v.u.s + i, v.n_bytes - i, &code);
        if (len == 0) { /* texts are UTF-8; be safe */
            break;
        }
        const char *e = short_escape(code);
        if (e == NULL && code >= 0x20 && !(ascii && code >= 0x7F)) {
            continue;
        }
        bool from_user = v.mark != NULL ? v.mark[i] != 0 : v.user;
        rt_sb_text(c, sb, rt_part(v, from, i - from));
        if (e != NULL) {
            rt_sb_add(c, sb, e, strlen(e), from_user);
        } else {
            escape_code(c, sb, code, from_user);
        }
        from = i + len;
    }
    rt_sb_text(c, sb, rt_part(v, from, v.n_bytes - from));
    rt_sb_add(c, sb, "\"", 1, user);
}

/* A line end and the margin of `depth` levels, if items have their own lines. */
static void new_line(rt_chat_ctx *c, rt_sb *sb, const style *st, unsigned depth, bool user) {
    if (!st->lines) {
        return;
    }
    rt_sb_add(c, sb, "\n", 1, user);
    for (unsigned i = 0; i < depth; i++) {
        rt_sb_add(c, sb, st->margin.u.s, st->margin.n_bytes, user);
    }
}

static void write_list(rt_chat_ctx *c, rt_sb *sb, rt_val v, const style *st, unsigned depth) {
    const rt_list *list = v.u.list;
    rt_sb_add(c, sb, "[", 1, v.user);
    for (size_t i = 0; i < list->n && !c->failed; i++) {
        if (i > 0) {
            rt_sb_add(c, sb, st->item_sep.u.s, st->item_sep.n_bytes, v.user);
        }
        new_line(c, sb, st, depth + 1, v.user);
        write_value(c, sb, list->items[i], st, depth + 1);
    }
    if (list->n > 0) {
        new_line(c, sb, st, depth, v.user);
    }
    rt_sb_add(c, sb, "]", 1, v.user);
}

/* Keys that are no text become one: true, 1, 1.5, null. */
static void write_key(rt_chat_ctx *c, rt_sb *sb, rt_val key, const style *st) {
    if (key.kind == RT_STR) {
        write_text(c, sb, key, key.user || key.mark != NULL, st->ascii);
        return;
    }
    if (!rt_is_numeric(key) && key.kind != RT_NONE) {
        rt_fail(c, LB_BAD_TYPE, "JSON keys cannot be '%s'", rt_type_name(key));
        return;
    }
    rt_sb_add(c, sb, "\"", 1, key.user);
    write_value(c, sb, key, st, 0);
    rt_sb_add(c, sb, "\"", 1, key.user);
}

static void write_dict(rt_chat_ctx *c, rt_sb *sb, rt_val v, const style *st, unsigned depth) {
    rt_val items = st->sort_keys ? rt_f_dictsort_with(c, v, rt_bool(true), RT_LIT("key"),
                                                      rt_bool(false))
                                 : rt_undefined();
    size_t n = v.u.dict->n;
    rt_sb_add(c, sb, "{", 1, v.user);
    for (size_t i = 0; i < n && !c->failed; i++) {
        rt_pair p = v.u.dict->pairs[i];
        if (st->sort_keys) {
            p = (rt_pair){items.u.list->items[i].u.list->items[0],
                          items.u.list->items[i].u.list->items[1]};
        }
        if (i > 0) {
            rt_sb_add(c, sb, st->item_sep.u.s, st->item_sep.n_bytes, v.user);
        }
        new_line(c, sb, st, depth + 1, v.user);
        write_key(c, sb, p.key, st);
        rt_sb_add(c, sb, st->key_sep.u.s, st->key_sep.n_bytes, v.user);
        write_value(c, sb, p.value, st, depth + 1);
    }
    if (n > 0) {
        new_line(c, sb, st, depth, v.user);
    }
    rt_sb_add(c, sb, "}", 1, v.user);
}

static void write_number(rt_chat_ctx *c, rt_sb *sb, rt_val v) {
    char text[RT_FLOAT_BYTES];
    size_t n = 0;
    if (v.kind == RT_BIG) {
        rt_sb_add(c, sb, v.u.s, v.n_bytes, v.user);
        return;
    }
    if (v.kind == RT_INT) {
        n = (size_t)snprintf(text, sizeof text, "%" PRId64, v.u.i);
    } else if (isfinite(v.u.f)) {
        n = rt_float_text(v.u.f, text);
    } else {
        n = (size_t)snprintf(text, sizeof text, isnan(v.u.f) ? "NaN" : v.u.f > 0 ? "Infinity"
                             : "-Infinity");
    }
    rt_sb_add(c, sb, text, n, v.user);
}

static void write_value(rt_chat_ctx *c, rt_sb *sb, rt_val v, const style *st, unsigned depth) {
    if (depth > RT_CHAT_VALUE_DEPTH_MAX) {
        rt_fail(c, LB_LIMIT, "a value is nested more than %d deep", RT_CHAT_VALUE_DEPTH_MAX);
        return;
    }
    if (!rt_work(c, 1)) {
        return;
    }
    bool list = rt_is_flavor(v, RT_PLAIN) || rt_is_flavor(v, RT_TUPLE);
    if (v.kind == RT_STR) {
        write_text(c, sb, v, v.user || v.mark != NULL, st->ascii);
    } else if (v.kind == RT_INT || v.kind == RT_FLOAT || v.kind == RT_BIG) {
        write_number(c, sb, v);
    } else if (v.kind == RT_BOOL) {
        rt_sb_add(c, sb, v.u.b ? "true" : "false", v.u.b ? 4 : 5, v.user);
    } else if (v.kind == RT_NONE) {
        rt_sb_add(c, sb, "null", 4, v.user);
    } else if (list) {
        write_list(c, sb, v, st, depth);
    } else if (v.kind == RT_DICT) {
        write_dict(c, sb, v, st, depth);
    } else {
        rt_fail(c, LB_BAD_TYPE, "a value of type '%s' has no JSON form", rt_type_name(v));
    }
}

/* `separators`, if given: a tuple or list of two texts. */
static bool read_separators(rt_chat_ctx *c, rt_val separators, style *st) {
    if (separators.kind == RT_NONE) {
        return true;
    }
    bool ok = (rt_is_flavor(separators, RT_TUPLE) || rt_is_flavor(separators, RT_PLAIN)) &&
              separators.u.list->n == 2 && separators.u.list->items[0].kind == RT_STR &&
              separators.u.list->items[1].kind == RT_STR;
    if (!ok) {
        rt_fail(c, LB_BAD_TYPE, "tojson: separators must be two texts");
        return false;
    }
    st->item_sep = separators.u.list->items[0];
    st->key_sep = separators.u.list->items[1];
    return true;
}

rt_val rt_f_tojson_with(rt_chat_ctx *c, rt_val v, rt_val ensure_ascii, rt_val indent,
                        rt_val separators, rt_val sort_keys) {
    style st = {.item_sep = RT_LIT(", "), .key_sep = RT_LIT(": "), .margin = RT_LIT("")};
    st.ascii = rt_true(c, ensure_ascii);
    st.sort_keys = rt_true(c, sort_keys);
    if (indent.kind != RT_NONE) {
        st.lines = true;
        st.item_sep = RT_LIT(",");
        st.margin = indent.kind == RT_STR ? indent : rt_mul(c, RT_LIT(" "), indent);
    }
    rt_sb sb = {0};
    if (read_separators(c, separators, &st) && st.margin.kind == RT_STR) {
        write_value(c, &sb, v, &st, 0);
    }
    return rt_sb_value(&sb);
}

rt_val rt_f_tojson(rt_chat_ctx *c, rt_val v) {
    return rt_f_tojson_with(c, v, rt_bool(false), rt_none(), rt_none(), rt_bool(false));
}
