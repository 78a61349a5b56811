#define _GNU_SOURCE /* memmem */
/* ops.c -- containers, truth, equality and order, output; see ops.h. */
#include "chat/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/unicode.h"
#include "chat/big.h"
#include "chat/loop.h"
#include "chat/print.h"

rt_val rt_var(rt_chat_ctx *c, const char *name) {
    const rt_val *v = rt_find(c, c->vars, rt_lit(name, strlen(name)));
    if (v != NULL) {
        return *v;
    }
    rt_val none = rt_lit(name, strlen(name)); /* remembers its name for messages */
    none.kind = RT_UNDEFINED;
    return none;
}

/* ---- containers ---- */

rt_val rt_new_list(rt_chat_ctx *c, rt_flavor flavor) {
    rt_list *list = rt_alloc(c, 1, sizeof *list);
    if (list == NULL) {
        return rt_undefined();
    }
    list->flavor = flavor;
    rt_val v = {.kind = RT_LIST};
    v.u.list = list;
    return v;
}

rt_val rt_new_dict(rt_chat_ctx *c) {
    rt_dict *dict = rt_alloc(c, 1, sizeof *dict);
    if (dict == NULL) {
        return rt_undefined();
    }
    rt_val v = {.kind = RT_DICT};
    v.u.dict = dict;
    return v;
}

void rt_push(rt_chat_ctx *c, rt_val list, rt_val item) {
    if (list.kind != RT_LIST) {
        return; /* a failed allocation; the error is kept */
    }
    rt_list *l = list.u.list;
    if (l->n == l->cap || l->shared) {
        size_t cap = l->n < 4 ? 8 : l->n * 2;
        rt_val *items = rt_alloc(c, cap, sizeof *items);
        if (items == NULL) {
            return;
        }
        if (l->n > 0) {
            memcpy(items, l->items, l->n * sizeof *items);
        }
        l->items = items;
        l->cap = cap;
        l->shared = false;
    }
    l->items[l->n++] = item;
}

static bool is_hashable(rt_val v) {
    if (rt_is_flavor(v, RT_TUPLE)) {
        return true;
    }
    return v.kind != RT_LIST && v.kind != RT_DICT;
}

const rt_val *rt_find(rt_chat_ctx *c, const rt_dict *dict, rt_val key) {
    rt_work(c, dict->n / 8);
    for (size_t i = 0; i < dict->n; i++) {
        rt_val k = dict->pairs[i].key;
        bool same = k.kind == RT_STR && key.kind == RT_STR
                        ? k.n_bytes == key.n_bytes && memcmp(k.u.s, key.u.s, k.n_bytes) == 0
                        : rt_eq(c, k, key);
        if (same) {
            return &dict->pairs[i].value;
        }
    }
    return NULL;
}

void rt_put(rt_chat_ctx *c, rt_val dict, rt_val key, rt_val value) {
    if (dict.kind != RT_DICT && dict.kind != RT_NAMESPACE) {
        return; /* a failed allocation; the error is kept */
    }
    if (!is_hashable(key)) {
        rt_fail(c, LB_BAD_TYPE, "a %s cannot be a key", rt_type_name(key));
        return;
    }
    rt_dict *d = dict.u.dict;
    rt_val *old = (rt_val *)(uintptr_t)rt_find(c, d, key);
    if (old != NULL) {
        *old = value;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap == 0 ? 4 : d->cap * 2;
        rt_pair *pairs = rt_alloc(c, cap, sizeof *pairs);
        if (pairs == NULL) {
            return;
        }
        if (d->n > 0) {
            memcpy(pairs, d->pairs, d->n * sizeof *pairs);
        }
        d->pairs = pairs;
        d->cap = cap;
    }
    d->pairs[d->n++] = (rt_pair){.key = key, .value = value};
}

static rt_val listing(rt_chat_ctx *c, rt_flavor flavor, size_t n, const rt_val *items) {
    rt_val v = rt_new_list(c, flavor);
    rt_val *copy = n == 0 || v.kind != RT_LIST ? NULL : rt_alloc(c, n, sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, items, n * sizeof *copy);
        *v.u.list = (rt_list){.items = copy, .n = n, .cap = n, .flavor = flavor};
    }
    return v;
}

rt_val rt_list_of(rt_chat_ctx *c, size_t n, const rt_val *items) {
    return listing(c, RT_PLAIN, n, items);
}

rt_val rt_tuple_of(rt_chat_ctx *c, size_t n, const rt_val *items) {
    return listing(c, RT_TUPLE, n, items);
}

rt_val rt_dict_of(rt_chat_ctx *c, size_t n, const rt_val *items) {
    rt_val v = rt_new_dict(c);
    for (size_t i = 0; i + 1 < n; i += 2) {
        rt_put(c, v, items[i], items[i + 1]);
    }
    return v;
}

rt_val rt_dict_of_names(rt_chat_ctx *c, size_t n, const rt_val *names_and_values) {
    return rt_dict_of(c, 2 * n, names_and_values);
}

rt_val rt_namespace_of(rt_chat_ctx *c, size_t n, const rt_val *names_and_values) {
    rt_val v = rt_dict_of(c, 2 * n, names_and_values);
    if (v.kind == RT_DICT) {
        v.kind = RT_NAMESPACE;
    }
    return v;
}

void rt_ns_set(rt_chat_ctx *c, rt_val ns, const char *name, rt_val value) {
    if (ns.kind != RT_NAMESPACE) {
        rt_fail(c, LB_BAD_TYPE, "'%s' is set on something that is no namespace", name);
        return;
    }
    rt_put(c, ns, rt_lit(name, strlen(name)), value);
}

void rt_unpack(rt_chat_ctx *c, rt_val sequence, size_t n, rt_val *const *targets) {
    rt_iter it = rt_iter_over(c, sequence);
    rt_val item;
    size_t got = 0;
    rt_val items[16];
    while (got <= n && got < sizeof items / sizeof items[0] && rt_iter_next(c, &it, &item)) {
        items[got++] = item;
    }
    if (got != n) {
        rt_fail(c, LB_BAD_VALUE, "expected exactly %zu values to unpack", n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        *targets[i] = items[i];
    }
}

bool rt_len(rt_chat_ctx *c, rt_val v, int64_t *n) {
    switch (v.kind) {
    case RT_UNDEFINED: *n = 0; return true;
    case RT_DICT: *n = (int64_t)v.u.dict->n; return true;
    case RT_RANGE: *n = v.u.range->n; return true;
    case RT_LIST: *n = (int64_t)v.u.list->n; return v.u.list->flavor != RT_GENERATOR;
    case RT_STR: break;
    default: return false;
    }
    *n = 0;
    rt_work(c, v.n_bytes / 64);
    for (size_t i = 0; i < v.n_bytes; i++) {
        *n += ((unsigned char)v.u.s[i] & 0xC0) != 0x80;
    }
    return true;
}

static bool range_args(rt_chat_ctx *c, size_t n, const rt_val *args, rt_span *r) {
    for (size_t i = 0; i < n; i++) {
        if (!rt_has_int(args[i])) {
            rt_fail(c, LB_BAD_TYPE, "range takes integers, not '%s'", rt_type_name(args[i]));
            return false;
        }
    }
    r->start = n > 1 ? rt_int_of(args[0]) : 0;
    r->stop = rt_int_of(args[n > 1 ? 1 : 0]);
    r->step = n > 2 ? rt_int_of(args[2]) : 1;
    if (r->step == 0) {
        rt_fail(c, LB_BAD_VALUE, "range with step 0");
        return false;
    }
    return true;
}

rt_val rt_range_of(rt_chat_ctx *c, size_t n, const rt_val *args) {
    rt_span r = {0};
    if (!range_args(c, n, args, &r)) {
        return rt_undefined();
    }
    bool up = r.step > 0;
    uint64_t count = 0;
    if (up ? r.start < r.stop : r.start > r.stop) {
        uint64_t span = up ? (uint64_t)r.stop - (uint64_t)r.start : (uint64_t)r.start -
            (uint64_t)r.stop;
        count = lb_ceil_div(span, up ? (uint64_t)r.step : 0 - (uint64_t)r.step);
    }
    if (count > RT_CHAT_RANGE_MAX) {
        return rt_fail(c, LB_LIMIT, "range of %llu items; the limit is %d",
                       (unsigned long long)count,
                       RT_CHAT_RANGE_MAX);
    }
    r.n = (int64_t)count;
    rt_span *kept = rt_alloc(c, 1, sizeof *kept);
    if (kept == NULL) {
        return rt_undefined();
    }
    *kept = r;
    rt_val v = {.kind = RT_RANGE};
    v.u.range = kept;
    return v;
}

/* ---- truth, equality, order ---- */

bool rt_true(rt_chat_ctx *c, rt_val v) {
    if (!rt_work(c, 1)) {
        return false;
    }
    switch (v.kind) {
    case RT_BOOL: return v.u.b;
    case RT_INT: return v.u.i != 0;
    case RT_FLOAT: return v.u.f != 0.0;
    case RT_STR: return v.n_bytes > 0;
    case RT_LIST: return v.u.list->flavor == RT_GENERATOR || v.u.list->n > 0;
    case RT_DICT: return v.u.dict->n > 0;
    case RT_RANGE: return v.u.range->n > 0;
    case RT_BIG:
    case RT_NAMESPACE:
    case RT_METHOD: return true;
    default: return false;
    }
}

/* -1, 0, 1, or 2 if one of them is NaN. Exact: a long double holds every int64 (64-bit mantissa or
 * more on the targets that lagen has). */
static int compare_numbers(rt_val a, rt_val b) {
    if (a.kind == RT_BIG || b.kind == RT_BIG) {
        return rt_big_compare(a, b);
    }
    if (rt_has_int(a) && rt_has_int(b)) {
        int64_t x = rt_int_of(a);
        int64_t y = rt_int_of(b);
        return (x > y) - (x < y);
    }
    long double x = a.kind == RT_FLOAT ? (long double)a.u.f : (long double)rt_int_of(a);
    long double y = b.kind == RT_FLOAT ? (long double)b.u.f : (long double)rt_int_of(b);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static int compare_texts(rt_chat_ctx *c, rt_val a, rt_val b) {
    uint32_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
    rt_work(c, n / 64);
    int order = n == 0 ? 0 : memcmp(a.u.s, b.u.s, n); /* UTF-8 sorts like its code points */
    return order != 0 ? (order > 0) - (order < 0) : (a.n_bytes > b.n_bytes) -
        (a.n_bytes < b.n_bytes);
}

static bool equal(rt_chat_ctx *c, rt_val a, rt_val b, unsigned depth);

static bool equal_lists(rt_chat_ctx *c, const rt_list *a, const rt_list *b, unsigned depth) {
    if (a == b) {
        return true;
    }
    bool comparable = a->flavor == b->flavor && (a->flavor == RT_PLAIN || a->flavor == RT_TUPLE);
    if (!comparable || a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!equal(c, a->items[i], b->items[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_dicts(rt_chat_ctx *c, const rt_dict *a, const rt_dict *b, unsigned depth) {
    if (a == b) {
        return true;
    }
    if (a->n != b->n) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        const rt_val *other = rt_find(c, b, a->pairs[i].key);
        if (other == NULL || !equal(c, a->pairs[i].value, *other, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_ranges(const rt_span *a, const rt_span *b) {
    return a->n == b->n && (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step ==
                                                                   b->step)));
}

static bool equal(rt_chat_ctx *c, rt_val a, rt_val b, unsigned depth) {
    if (depth > RT_CHAT_VALUE_DEPTH_MAX) {
        rt_fail(c, LB_LIMIT, "a value is nested more than %d deep", RT_CHAT_VALUE_DEPTH_MAX);
    }
    if (!rt_work(c, 1)) {
        return false;
    }
    if (rt_is_numeric(a) && rt_is_numeric(b)) {
        return compare_numbers(a, b) == 0;
    }
    if (a.kind != b.kind) {
        return false;
    }
    switch (a.kind) {
    case RT_UNDEFINED:
    case RT_NONE: return true;
    case RT_STR: return a.n_bytes == b.n_bytes && compare_texts(c, a, b) == 0;
    case RT_LIST: return equal_lists(c, a.u.list, b.u.list, depth);
    case RT_DICT: return equal_dicts(c, a.u.dict, b.u.dict, depth);
    case RT_RANGE: return equal_ranges(a.u.range, b.u.range);
    case RT_NAMESPACE: return a.u.dict == b.u.dict;
    default: return false;
    }
}

bool rt_eq(rt_chat_ctx *c, rt_val a, rt_val b) {
    return equal(c, a, b, 0);
}

/* -1, 0, 1, or 2 for NaN; fails for what has no order. */
static int order(rt_chat_ctx *c, rt_val a, rt_val b, unsigned depth) {
    if (rt_is_numeric(a) && rt_is_numeric(b)) {
        return compare_numbers(a, b);
    }
    if (a.kind == RT_STR && b.kind == RT_STR) {
        return compare_texts(c, a, b);
    }
    if (a.kind == RT_UNDEFINED || b.kind == RT_UNDEFINED) {
        rt_fail_undefined(c, a.kind == RT_UNDEFINED ? a : b);
        return 2;
    }
    bool lists = a.kind == RT_LIST && b.kind == RT_LIST && a.u.list->flavor == b.u.list->flavor &&
                 (a.u.list->flavor == RT_PLAIN || a.u.list->flavor == RT_TUPLE);
    if (!lists || depth > RT_CHAT_VALUE_DEPTH_MAX) {
        rt_fail(c, LB_BAD_TYPE, "'%s' and '%s' have no order", rt_type_name(a), rt_type_name(b));
        return 2;
    }
    const rt_list *x = a.u.list;
    const rt_list *y = b.u.list;
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        if (!equal(c, x->items[i], y->items[i], depth + 1)) {
            return c->failed ? 2 : order(c, x->items[i], y->items[i], depth + 1);
        }
    }
    return (x->n > y->n) - (x->n < y->n);
}

bool rt_lt(rt_chat_ctx *c, rt_val a, rt_val b) {
    return rt_work(c, 1) && order(c, a, b, 0) == -1;
}

bool rt_le(rt_chat_ctx *c, rt_val a, rt_val b) {
    return rt_work(c, 1) && order(c, a, b, 0) <= 0;
}

bool rt_gt(rt_chat_ctx *c, rt_val a, rt_val b) {
    return rt_work(c, 1) && order(c, a, b, 0) == 1;
}

bool rt_ge(rt_chat_ctx *c, rt_val a, rt_val b) {
    int o = rt_work(c, 1) ? order(c, a, b, 0) : 2;
    return o == 0 || o == 1;
}

static bool in_text(rt_chat_ctx *c, rt_val item, rt_val text) {
    if (item.kind != RT_STR) {
        rt_fail(c, LB_BAD_TYPE, "'in' on text needs text on its left, not '%s'",
                rt_type_name(item));
        return false;
    }
    rt_work(c, text.n_bytes / 16);
    return item.n_bytes == 0 || memmem(text.u.s, text.n_bytes, item.u.s, item.n_bytes) != NULL;
}

bool rt_in(rt_chat_ctx *c, rt_val item, rt_val container) {
    if (!rt_work(c, 1)) {
        return false;
    }
    if (container.kind == RT_STR) {
        return in_text(c, item, container);
    }
    if (container.kind == RT_DICT) {
        if (!is_hashable(item)) {
            rt_fail(c, LB_BAD_TYPE, "a %s cannot be a key", rt_type_name(item));
            return false;
        }
        return rt_find(c, container.u.dict, item) != NULL;
    }
    rt_iter it = rt_iter_over(c, container);
    for (rt_val each; rt_iter_next(c, &it, &each);) {
        if (rt_eq(c, each, item)) {
            return true;
        }
    }
    return false;
}

/* ---- output ---- */

void rt_out(rt_chat_ctx *c, rt_val v) {
    if (rt_work(c, 1)) {
        rt_sb_str(c, &c->out, v);
    }
}

void rt_out_filtered(rt_chat_ctx *c, rt_val v) {
    if (v.kind != RT_STR) {
        rt_fail(c, LB_BAD_TYPE, "a filter block must give text, not '%s'", rt_type_name(v));
        return;
    }
    rt_out(c, v);
}

size_t rt_capture(rt_chat_ctx *c) {
    return c->out.n;
}

rt_val rt_captured(rt_chat_ctx *c, size_t start) {
    rt_sb copy = {0};
    rt_val all = rt_sb_value(&c->out);
    if (start < c->out.n) {
        rt_sb_text(c, &copy, rt_part(all, start, c->out.n - start));
        c->out.n = start;
    }
    return rt_sb_value(&copy);
}

bool rt_macro_enter(rt_chat_ctx *c) {
    if (c->macro_depth >= RT_CHAT_MACRO_DEPTH_MAX) {
        rt_fail(c, LB_LIMIT, "macros call each other more than %d deep", RT_CHAT_MACRO_DEPTH_MAX);
        return false;
    }
    if (!rt_work(c, 1)) {
        return false;
    }
    c->macro_depth++;
    return true;
}

rt_val rt_macro_leave(rt_chat_ctx *c, size_t start) {
    c->macro_depth--;
    return rt_captured(c, start);
}

rt_val rt_raise(rt_chat_ctx *c, rt_val message) {
    rt_val text = rt_str_of(c, message);
    if (!c->failed) {
        lb_err_set(&c->err, LB_BAD_VALUE, "%.*s", text.n_bytes > 1000 ? 1000 : (int)text.n_bytes,
                   text.u.s);
        c->failed = true;
    }
    return rt_undefined();
}

rt_val rt_unknown_function(rt_chat_ctx *c, const char *name) {
    return rt_fail(c, LB_MISSING, "the function '%s' does not exist", name);
}
