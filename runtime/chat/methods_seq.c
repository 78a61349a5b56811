/* methods_seq.c -- searching methods, and methods of dicts and lists; see methods.h. */
#include <string.h>

#include "chat/loop.h"
#include "chat/methods.h"
#include "chat/ops.h"
#include "chat/print.h"
#include "chat/text.h"

/* Characters in front of byte `at`. */
static int64_t chars_before(rt_chat_ctx *c, rt_val text, size_t at) {
    int64_t n = 0;
    rt_len(c, rt_part(text, 0, at), &n);
    return n;
}

rt_val rt_m_find(rt_chat_ctx *c, rt_val text, rt_val sub) {
    if (!rt_want_str(c, text, "find") || !rt_want_text(c, sub)) {
        return rt_undefined();
    }
    size_t at = rt_find_bytes(c, text, sub, 0);
    return rt_int(at == SIZE_MAX ? -1 : chars_before(c, text, at));
}

static bool is_sequence(rt_val v) {
    return rt_is_flavor(v, RT_PLAIN) || rt_is_flavor(v, RT_TUPLE);
}

rt_val rt_m_index(rt_chat_ctx *c, rt_val v, rt_val value) {
    if (!is_sequence(v)) {
        rt_val at = rt_m_find(c, v, value);
        return at.kind == RT_INT && at.u.i < 0 ? rt_fail(c, LB_BAD_VALUE, "text not found") : at;
    }
    for (size_t i = 0; i < v.u.list->n; i++) {
        if (rt_eq(c, v.u.list->items[i], value)) {
            return rt_int((int64_t)i);
        }
    }
    return rt_fail(c, LB_BAD_VALUE, "value not in the list");
}

rt_val rt_m_count(rt_chat_ctx *c, rt_val v, rt_val value) {
    int64_t n = 0;
    if (is_sequence(v)) {
        for (size_t i = 0; i < v.u.list->n; i++) {
            n += rt_eq(c, v.u.list->items[i], value);
        }
        return rt_int(n);
    }
    if (!rt_want_str(c, v, "count") || !rt_want_text(c, value)) {
        return rt_undefined();
    }
    if (value.n_bytes == 0) {
        return rt_int(chars_before(c, v, v.n_bytes) + 1);
    }
    for (size_t at = 0; (at = rt_find_bytes(c, v, value, at)) != SIZE_MAX; at += value.n_bytes) {
        n++;
    }
    return rt_int(n);
}

static bool want_dict(rt_chat_ctx *c, rt_val v, const char *method) {
    if (v.kind == RT_UNDEFINED) {
        rt_fail_undefined(c, v);
    } else if (v.kind != RT_DICT) {
        rt_fail(c, LB_MISSING, "'%s' object has no method '%s'", rt_type_name(v), method);
    }
    return v.kind == RT_DICT && rt_work(c, 1);
}

rt_val rt_m_get_with(rt_chat_ctx *c, rt_val dict, rt_val key, rt_val otherwise) {
    if (!want_dict(c, dict, "get")) {
        return rt_undefined();
    }
    if (key.kind == RT_DICT || is_sequence(key)) {
        return rt_fail(c, LB_BAD_TYPE, "a %s cannot be a key", rt_type_name(key));
    }
    const rt_val *v = rt_find(c, dict.u.dict, key);
    return v == NULL ? otherwise : *v;
}

rt_val rt_m_get(rt_chat_ctx *c, rt_val dict, rt_val key) {
    return rt_m_get_with(c, dict, key, rt_none());
}

rt_val rt_m_items(rt_chat_ctx *c, rt_val dict) {
    if (!want_dict(c, dict, "items")) {
        return rt_undefined();
    }
    rt_val view = rt_new_list(c, RT_VIEW);
    for (size_t i = 0; i < dict.u.dict->n && !c->failed; i++) {
        const rt_pair *p = &dict.u.dict->pairs[i];
        rt_push(c, view, rt_tuple_of(c, 2, (rt_val[]){p->key, p->value}));
    }
    return view;
}

rt_val rt_m_keys(rt_chat_ctx *c, rt_val dict) {
    if (!want_dict(c, dict, "keys")) {
        return rt_undefined();
    }
    rt_val view = rt_new_list(c, RT_VIEW);
    for (size_t i = 0; i < dict.u.dict->n && !c->failed; i++) {
        rt_push(c, view, dict.u.dict->pairs[i].key);
    }
    return view;
}

rt_val rt_m_values(rt_chat_ctx *c, rt_val dict) {
    if (!want_dict(c, dict, "values")) {
        return rt_undefined();
    }
    rt_val view = rt_new_list(c, RT_VIEW);
    for (size_t i = 0; i < dict.u.dict->n && !c->failed; i++) {
        rt_push(c, view, dict.u.dict->pairs[i].value);
    }
    return view;
}

static bool want_list(rt_chat_ctx *c, rt_val v, const char *method) {
    if (v.kind == RT_UNDEFINED) {
        rt_fail_undefined(c, v);
    } else if (!rt_is_flavor(v, RT_PLAIN)) {
        rt_fail(c, LB_MISSING, "'%s' object has no method '%s'", rt_type_name(v), method);
    }
    return rt_is_flavor(v, RT_PLAIN) && rt_work(c, 1);
}

rt_val rt_m_append(rt_chat_ctx *c, rt_val list, rt_val item) {
    if (want_list(c, list, "append")) {
        rt_push(c, list, item);
    }
    return rt_none();
}

rt_val rt_m_pop_with(rt_chat_ctx *c, rt_val list, rt_val index) {
    if (!want_list(c, list, "pop")) {
        return rt_undefined();
    }
    rt_list *l = list.u.list;
    int64_t i = rt_has_int(index) ? rt_int_of(index) : INT64_MAX;
    i += i < 0 ? (int64_t)l->n : 0;
    if (i < 0 || i >= (int64_t)l->n || !rt_work(c, l->n / 8)) {
        return rt_fail(c, LB_BAD_VALUE, "pop from outside the list");
    }
    rt_val item = l->items[i];
    if (l->shared) { /* a slice looks at these items */
        rt_val *own = rt_alloc(c, l->n, sizeof *own);
        if (own == NULL) {
            return rt_undefined();
        }
        memcpy(own, l->items, l->n * sizeof *own);
        l->items = own;
        l->cap = l->n;
        l->shared = false;
    }
    memmove(l->items + i, l->items + i + 1, (l->n - (size_t)i - 1) * sizeof *l->items);
    l->n--;
    return item;
}

rt_val rt_m_pop(rt_chat_ctx *c, rt_val list) {
    return rt_m_pop_with(c, list, rt_int(-1));
}
