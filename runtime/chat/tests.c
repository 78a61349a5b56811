/* tests.c -- see tests.h. */
#include "chat/tests.h"

#include "chat/ops.h"

bool rt_is_defined(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind != RT_UNDEFINED;
}

bool rt_is_undefined(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_UNDEFINED;
}

bool rt_is_none(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_NONE;
}

bool rt_is_boolean(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_BOOL;
}

bool rt_is_true(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_BOOL && v.u.b;
}

bool rt_is_false(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_BOOL && !v.u.b;
}

bool rt_is_integer(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_INT || v.kind == RT_BIG;
}

bool rt_is_float(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_FLOAT;
}

bool rt_is_number(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return rt_is_numeric(v);
}

bool rt_is_string(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_STR;
}

bool rt_is_mapping(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_DICT;
}

bool rt_is_iterable(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_UNDEFINED || v.kind == RT_STR || v.kind == RT_LIST || v.kind == RT_DICT ||
           v.kind == RT_RANGE;
}

bool rt_is_sequence(rt_chat_ctx *c, rt_val v) {
    return rt_is_iterable(c, v) && !rt_is_flavor(v, RT_GENERATOR) && !rt_is_flavor(v, RT_VIEW);
}

bool rt_is_escaped(rt_chat_ctx *c, rt_val v) {
    (void)c;
    return v.kind == RT_STR && v.markup;
}

static bool remainder_is(rt_chat_ctx *c, rt_val v, rt_val by, int64_t rest) {
    return rt_eq(c, rt_mod(c, v, by), rt_int(rest)) && !c->failed;
}

bool rt_is_odd(rt_chat_ctx *c, rt_val v) {
    return remainder_is(c, v, rt_int(2), 1);
}

bool rt_is_even(rt_chat_ctx *c, rt_val v) {
    return remainder_is(c, v, rt_int(2), 0);
}

bool rt_is_divisibleby(rt_chat_ctx *c, rt_val v, rt_val by) {
    return remainder_is(c, v, by, 0);
}

/* Identity. Numbers and texts are never compared with it in earnest; constants are. */
bool rt_is_sameas(rt_chat_ctx *c, rt_val v, rt_val other) {
    if (v.kind != other.kind) {
        return false;
    }
    switch (v.kind) {
    case RT_LIST: return v.u.list == other.u.list;
    case RT_DICT:
    case RT_NAMESPACE: return v.u.dict == other.u.dict;
    case RT_UNDEFINED: return false;
    default: return rt_eq(c, v, other);
    }
}

bool rt_is_equalto(rt_chat_ctx *c, rt_val v, rt_val other) {
    return rt_eq(c, v, other);
}

bool rt_is_ne(rt_chat_ctx *c, rt_val v, rt_val other) {
    return !rt_eq(c, v, other);
}

bool rt_is_lt(rt_chat_ctx *c, rt_val v, rt_val other) {
    return rt_lt(c, v, other);
}

bool rt_is_le(rt_chat_ctx *c, rt_val v, rt_val other) {
    return rt_le(c, v, other);
}

bool rt_is_gt(rt_chat_ctx *c, rt_val v, rt_val other) {
    return rt_gt(c, v, other);
}

bool rt_is_ge(rt_chat_ctx *c, rt_val v, rt_val other) {
    return rt_ge(c, v, other);
}

bool rt_is_in(rt_chat_ctx *c, rt_val v, rt_val container) {
    return rt_in(c, v, container);
}
