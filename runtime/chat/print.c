/* print.c -- see print.h. */
#include "chat/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"

const char *rt_type_name(rt_val v) {
    static const char *const names[] = {"undefined", "missing", "NoneType",  "bool",  "int",
                                        "int",       "float",   "str",       "list",  "dict",
                                        "Namespace", "range",   "method"};
    if (rt_is_flavor(v, RT_TUPLE)) {
        return "tuple";
    }
    if (v.kind == RT_LIST && v.u.list->flavor != RT_PLAIN) {
        return v.u.list->flavor == RT_VIEW ? "dict view" : "generator";
    }
    return names[v.kind];
}

/* Digits of `f` without point, and the exponent of the first of them: the fewest that read back. */
static int shortest_digits(double f, char digits[32], int *exponent) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, f);
        if (strtod(text, NULL) == f) {
            break;
        }
    }
    int n = 0;
    const char *p = text;
    for (; *p != 'e' && *p != '\0'; p++) {
        if (*p >= '0' && *p <= '9') {
            digits[n++] = *p;
        }
    }
    *exponent = atoi(p + 1);
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return n;
}

/* 1.5, 0.001, 100.0: exponents from -4 to 15 are written out. */
static size_t plain_float(const char *digits, int n, int exponent, char *out, size_t size) {
    if (exponent < 0) {
        return (size_t)snprintf(out, size, "0.%.*s%s", -exponent - 1, "000", digits);
    }
    if (n > exponent + 1) {
        return (size_t)snprintf(out, size, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    }
    return (size_t)snprintf(out, size, "%s%.*s.0", digits, exponent + 1 - n, "000000000000000");
}

size_t rt_float_text(double f, char out[RT_FLOAT_BYTES]) {
    if (isnan(f)) {
        return (size_t)snprintf(out, RT_FLOAT_BYTES, "nan");
    }
    char *p = out;
    size_t left = RT_FLOAT_BYTES;
    if (signbit(f)) {
        *p++ = '-';
        left--;
        f = -f;
    }
    if (isinf(f)) {
        return (size_t)(p - out) + (size_t)snprintf(p, left, "inf");
    }
    char digits[32];
    int exponent = 0;
    int n = shortest_digits(f, digits, &exponent);
    if (exponent >= -4 && exponent < 16) {
        return (size_t)(p - out) + plain_float(digits, n, exponent, p, left);
    }
    return (size_t)(p - out) + (size_t)snprintf(p, left, "%c%s%se%c%02d", digits[0], n > 1 ? "."
                                                : "",
                                                digits + 1, exponent < 0 ? '-' : '+',
                                                    abs(exponent));
}

static void add(rt_chat_ctx *c, rt_sb *sb, const char *s, bool user) {
    rt_sb_add(c, sb, s, strlen(s), user);
}

static bool is_printable(uint32_t code) {
    uint32_t class = LB_UC(lb_unicode_category(code));
    return code == ' ' || (class & (LB_UC_C | LB_UC_Z)) == 0;
}

/* One character inside quotes. */
static void repr_char(rt_chat_ctx *c, rt_sb *sb, rt_val ch, uint32_t code, char quote) {
    bool user = ch.mark != NULL ? ch.mark[0] != 0 : ch.user;
    char text[16];
    if (code == (uint32_t)quote || code == '\\') {
        snprintf(text, sizeof text, "\\%c", (char)code);
    } else if (code == '\n' || code == '\r' || code == '\t') {
        snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    } else if (is_printable(code)) {
        rt_sb_text(c, sb, ch);
        return;
    } else if (code < 0x100) {
        snprintf(text, sizeof text, "\\x%02x", code);
    } else {
        snprintf(text, sizeof text, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    }
    add(c, sb, text, user);
}

static void repr_text(rt_chat_ctx *c, rt_sb *sb, rt_val v) {
    bool single = memchr(v.u.s, '\'', v.n_bytes) != NULL;
    bool both = single && memchr(v.u.s, '"', v.n_bytes) != NULL;
    const char *quote = single && !both ? "\"" : "'";
    bool user = v.user || v.mark != NULL;
    add(c, sb, v.markup ? "Markup(" : "", user);
    add(c, sb, quote, user);
    for (size_t i = 0; i < v.n_bytes && rt_work(c, 1);) {
        uint32_t code = 0;
        size_t len = lb_utf8_decode(v.u.s + i, v.n_bytes - i, &code);
        if (len == 0) { /* texts are UTF-8; be safe */
            break;
        }
        repr_char(c, sb, rt_part(v, i, len), code, quote[0]);
        i += len;
    }
    add(c, sb, quote, user);
    add(c, sb, v.markup ? ")" : "", user);
}

static void repr_list(rt_chat_ctx *c, rt_sb *sb, rt_val v, unsigned depth) {
    const rt_list *list = v.u.list;
    bool tuple = list->flavor == RT_TUPLE;
    if (list->flavor == RT_GENERATOR || list->flavor == RT_VIEW) {
        rt_fail(c, LB_BAD_TYPE, "a %s cannot be printed; make it a list", rt_type_name(v));
        return;
    }
    add(c, sb, tuple ? "(" : "[", v.user);
    for (size_t i = 0; i < list->n && !c->failed; i++) {
        add(c, sb, i == 0 ? "" : ", ", v.user);
        rt_sb_repr(c, sb, list->items[i], depth + 1);
    }
    add(c, sb, !tuple ? "]" : list->n == 1 ? ",)" : ")", v.user);
}

static void repr_dict(rt_chat_ctx *c, rt_sb *sb, rt_val v, unsigned depth) {
    bool ns = v.kind == RT_NAMESPACE;
    add(c, sb, ns ? "<Namespace {" : "{", v.user);
    for (size_t i = 0; i < v.u.dict->n && !c->failed; i++) {
        add(c, sb, i == 0 ? "" : ", ", v.user);
        rt_sb_repr(c, sb, v.u.dict->pairs[i].key, depth + 1);
        add(c, sb, ": ", v.user);
        rt_sb_repr(c, sb, v.u.dict->pairs[i].value, depth + 1);
    }
    add(c, sb, ns ? "}>" : "}", v.user);
}

static void repr_range(rt_chat_ctx *c, rt_sb *sb, const rt_span *r) {
    char text[80];
    if (r->step == 1) {
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ")", r->start, r->stop);
    } else {
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", r->start,
                 r->stop,
                 r->step);
    }
    add(c, sb, text, false);
}

void rt_sb_repr(rt_chat_ctx *c, rt_sb *sb, rt_val v, unsigned depth) {
    char text[RT_FLOAT_BYTES];
    if (depth > RT_CHAT_VALUE_DEPTH_MAX) {
        rt_fail(c, LB_LIMIT, "a value is nested more than %d deep", RT_CHAT_VALUE_DEPTH_MAX);
        return;
    }
    if (!rt_work(c, 1)) {
        return;
    }
    switch (v.kind) {
    case RT_UNDEFINED: add(c, sb, depth == 0 ? "" : "Undefined", false); break;
    case RT_NONE: add(c, sb, "None", v.user); break;
    case RT_BOOL: add(c, sb, v.u.b ? "True" : "False", v.user); break;
    case RT_INT:
        snprintf(text, sizeof text, "%" PRId64, v.u.i);
        add(c, sb, text, v.user);
        break;
    case RT_BIG: rt_sb_add(c, sb, v.u.s, v.n_bytes, v.user); break;
    case RT_FLOAT: rt_sb_add(c, sb, text, rt_float_text(v.u.f, text), v.user); break;
    case RT_STR: repr_text(c, sb, v); break;
    case RT_LIST: repr_list(c, sb, v, depth); break;
    case RT_DICT:
    case RT_NAMESPACE: repr_dict(c, sb, v, depth); break;
    case RT_RANGE: repr_range(c, sb, v.u.range); break;
    default: rt_fail(c, LB_BAD_TYPE, "a %s cannot be printed", rt_type_name(v)); break;
    }
}

void rt_sb_str(rt_chat_ctx *c, rt_sb *sb, rt_val v) {
    if (v.kind == RT_STR) {
        rt_sb_text(c, sb, v);
    } else {
        rt_sb_repr(c, sb, v, 0);
    }
}

rt_val rt_str_of(rt_chat_ctx *c, rt_val v) {
    if (v.kind == RT_STR) {
        return v;
    }
    rt_sb sb = {0};
    rt_sb_str(c, &sb, v);
    return rt_sb_value(&sb);
}
