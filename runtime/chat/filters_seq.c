/* filters_seq.c -- filters of sequences; see filters.h. */
#include <string.h>

#include "chat/case.h"
#include "chat/filters.h"
#include "chat/loop.h"
#include "chat/methods.h"
#include "chat/ops.h"
#include "chat/print.h"

/* ---- attribute paths ---- */

/* The part of a path as a key: digits are a number. */
static rt_val path_key(rt_val part) {
    int64_t i = 0;
    bool digits = part.n_bytes > 0 && part.n_bytes < 18;
    for (size_t k = 0; k < part.n_bytes && digits; k++) {
        digits = part.u.s[k] >= '0' && part.u.s[k] <= '9';
        i = i * 10 + (part.u.s[k] - '0');
    }
    return digits ? rt_int(i) : part;
}

/* v[a][b] for the path "a.b"; `otherwise`, unless none, replaces what is undefined on the way. */
static rt_val follow(rt_chat_ctx *c, rt_val v, rt_val path, rt_val otherwise) {
    if (path.kind == RT_NONE) {
        return v;
    }
    if (path.kind != RT_STR) {
        return rt_item(c, v, path);
    }
    rt_val parts = rt_m_split_with(c, path, RT_LIT("."), rt_int(-1));
    for (size_t i = 0; parts.kind == RT_LIST && i < parts.u.list->n && !c->failed; i++) {
        v = rt_item(c, v, path_key(parts.u.list->items[i]));
        if (v.kind == RT_UNDEFINED && otherwise.kind != RT_NONE) {
            v = otherwise;
        }
    }
    return v;
}

/* What a value is sorted by. */
static rt_val sort_key(rt_chat_ctx *c, rt_val v, rt_val path, bool case_sensitive) {
    rt_val key = follow(c, v, path, rt_none());
    return key.kind == RT_STR && !case_sensitive ? rt_text_case(c, key, RT_LOWER) : key;
}

/* ---- simple ones ---- */

rt_val rt_f_length(rt_chat_ctx *c, rt_val v) {
    int64_t n = 0;
    if (!rt_len(c, v, &n)) {
        return rt_fail(c, LB_BAD_TYPE, "'%s' object has no length", rt_type_name(v));
    }
    return rt_int(n);
}

static rt_val collect(rt_chat_ctx *c, rt_val v, rt_flavor flavor) {
    rt_val list = rt_new_list(c, flavor);
    rt_iter it = rt_iter_over(c, v);
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        rt_push(c, list, item);
    }
    list.user = v.user;
    return list;
}

rt_val rt_f_list(rt_chat_ctx *c, rt_val v) {
    return collect(c, v, RT_PLAIN);
}

rt_val rt_f_first(rt_chat_ctx *c, rt_val v) {
    rt_iter it = rt_iter_over(c, v);
    rt_val item;
    return rt_iter_next(c, &it, &item) ? item : rt_undefined();
}

rt_val rt_f_last(rt_chat_ctx *c, rt_val v) {
    if (rt_is_flavor(v, RT_GENERATOR)) {
        return rt_fail(c, LB_BAD_TYPE, "the filter 'last' needs a list, not a generator");
    }
    rt_val list = collect(c, v, RT_PLAIN);
    bool any = list.kind == RT_LIST && list.u.list->n > 0;
    return any ? list.u.list->items[list.u.list->n - 1] : rt_undefined();
}

rt_val rt_f_reverse(rt_chat_ctx *c, rt_val v) {
    if (v.kind == RT_STR) {
        return rt_slice(c, v, rt_none(), rt_none(), rt_int(-1));
    }
    rt_val list = collect(c, v, RT_PLAIN);
    rt_val out = rt_slice(c, list, rt_none(), rt_none(), rt_int(-1));
    if (out.kind == RT_LIST && !rt_is_flavor(v, RT_GENERATOR)) {
        out.u.list->flavor = RT_GENERATOR;
    }
    return out;
}

rt_val rt_f_items(rt_chat_ctx *c, rt_val dict) {
    if (dict.kind == RT_UNDEFINED) {
        return rt_new_list(c, RT_GENERATOR);
    }
    if (dict.kind != RT_DICT) {
        return rt_fail(c, LB_BAD_TYPE, "the filter 'items' needs a mapping, not '%s'",
                       rt_type_name(dict));
    }
    rt_val view = rt_m_items(c, dict);
    if (view.kind == RT_LIST) {
        view.u.list->flavor = RT_GENERATOR;
    }
    return view;
}

rt_val rt_f_attr(rt_chat_ctx *c, rt_val v, rt_val name) {
    rt_val found = rt_undefined();
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    if (name.kind != RT_STR || rt_python_attr(v, name.u.s, name.n_bytes, &found)) {
        return found;
    }
    const rt_val *value = v.kind == RT_NAMESPACE ? rt_find(c, v.u.dict, name) : NULL;
    return value == NULL ? rt_undefined() : *value;
}

rt_val rt_f_join_with(rt_chat_ctx *c, rt_val v, rt_val separator, rt_val attribute) {
    rt_val sep = rt_str_of(c, separator);
    rt_iter it = rt_iter_over(c, v);
    rt_sb sb = {0};
    bool first = true;
    for (rt_val item; rt_iter_next(c, &it, &item); first = false) {
        if (!first) {
            rt_sb_text(c, &sb, sep);
        }
        rt_sb_str(c, &sb, follow(c, item, attribute, rt_none()));
    }
    return rt_sb_value(&sb);
}

rt_val rt_f_join(rt_chat_ctx *c, rt_val v) {
    return rt_f_join_with(c, v, RT_LIT(""), rt_none());
}

rt_val rt_f_sum_with(rt_chat_ctx *c, rt_val v, rt_val attribute, rt_val start) {
    rt_iter it = rt_iter_over(c, v);
    rt_val total = start;
    if (start.kind == RT_STR) {
        return rt_fail(c, LB_BAD_TYPE, "the filter 'sum' cannot add texts");
    }
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        total = rt_add(c, total, follow(c, item, attribute, rt_none()));
    }
    return total;
}

rt_val rt_f_sum(rt_chat_ctx *c, rt_val v) {
    return rt_f_sum_with(c, v, rt_none(), rt_int(0));
}

/* ---- order ---- */

static rt_val extreme(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute,
                      bool largest) {
    rt_iter it = rt_iter_over(c, v);
    rt_val best;
    if (!rt_iter_next(c, &it, &best)) {
        return rt_undefined();
    }
    bool exact = rt_true(c, case_sensitive);
    rt_val best_key = sort_key(c, best, attribute, exact);
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        rt_val key = sort_key(c, item, attribute, exact);
        if (largest ? rt_gt(c, key, best_key) : rt_lt(c, key, best_key)) {
            best = item;
            best_key = key;
        }
    }
    return best;
}

rt_val rt_f_min_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute) {
    return extreme(c, v, case_sensitive, attribute, false);
}

rt_val rt_f_min(rt_chat_ctx *c, rt_val v) {
    return extreme(c, v, rt_bool(false), rt_none(), false);
}

rt_val rt_f_max_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute) {
    return extreme(c, v, case_sensitive, attribute, true);
}

rt_val rt_f_max(rt_chat_ctx *c, rt_val v) {
    return extreme(c, v, rt_bool(false), rt_none(), true);
}

/* Merges the sorted halves [from, mid) and [mid, end); equal keys keep their order. */
static void merge(rt_chat_ctx *c, rt_pair *a, rt_pair *spare, size_t from, size_t mid, size_t end,
                  bool reverse) {
    size_t i = from, k = mid;
    for (size_t out = from; out < end; out++) {
        bool right = i == mid;
        if (i < mid && k < end) {
            right = reverse ? rt_lt(c, a[i].key, a[k].key) : rt_lt(c, a[k].key, a[i].key);
        }
        spare[out] = right ? a[k++] : a[i++];
    }
    memcpy(a + from, spare + from, (end - from) * sizeof *a);
}

static void sort_pairs(rt_chat_ctx *c, rt_pair *a, size_t n, bool reverse) {
    rt_pair *spare = rt_alloc(c, n, sizeof *spare);
    for (size_t width = 1; spare != NULL && width < n && !c->failed; width *= 2) {
        for (size_t from = 0; from + width < n; from += 2 * width) {
            size_t end = n - from < 2 * width ? n : from + 2 * width;
            merge(c, a, spare, from, from + width, end, reverse);
        }
    }
}

/* The keys of a path list "a,b": jinja2 compares lists of keys. */
static rt_val sort_keys(rt_chat_ctx *c, rt_val v, rt_val attribute, bool exact) {
    if (attribute.kind != RT_STR) {
        return sort_key(c, v, attribute, exact);
    }
    rt_val paths = rt_m_split_with(c, attribute, RT_LIT(","), rt_int(-1));
    rt_val keys = rt_new_list(c, RT_PLAIN);
    for (size_t i = 0; paths.kind == RT_LIST && i < paths.u.list->n && !c->failed; i++) {
        rt_push(c, keys, sort_key(c, v, paths.u.list->items[i], exact));
    }
    return keys;
}

rt_val rt_f_sort_with(rt_chat_ctx *c, rt_val v, rt_val reverse, rt_val case_sensitive,
                      rt_val attribute) {
    rt_val list = collect(c, v, RT_PLAIN);
    size_t n = list.kind == RT_LIST ? list.u.list->n : 0;
    rt_pair *pairs = rt_alloc(c, n, sizeof *pairs);
    bool exact = rt_true(c, case_sensitive);
    for (size_t i = 0; pairs != NULL && i < n && !c->failed; i++) {
        rt_val item = list.u.list->items[i];
        pairs[i] = (rt_pair){.key = sort_keys(c, item, attribute, exact), .value = item};
    }
    if (pairs == NULL || c->failed) {
        return rt_undefined();
    }
    sort_pairs(c, pairs, n, rt_true(c, reverse));
    for (size_t i = 0; i < n; i++) {
        list.u.list->items[i] = pairs[i].value;
    }
    return list;
}

rt_val rt_f_sort(rt_chat_ctx *c, rt_val v) {
    return rt_f_sort_with(c, v, rt_bool(false), rt_bool(false), rt_none());
}

rt_val rt_f_unique_with(rt_chat_ctx *c, rt_val v, rt_val case_sensitive, rt_val attribute) {
    rt_val out = rt_new_list(c, RT_GENERATOR);
    rt_val seen = rt_new_dict(c);
    rt_iter it = rt_iter_over(c, v);
    bool exact = rt_true(c, case_sensitive);
    for (rt_val item; rt_iter_next(c, &it, &item) && seen.kind == RT_DICT;) {
        rt_val key = sort_key(c, item, attribute, exact);
        size_t before = seen.u.dict->n;
        rt_put(c, seen, key, rt_none());
        if (seen.u.dict->n > before) {
            rt_push(c, out, item);
        }
    }
    return out;
}

rt_val rt_f_unique(rt_chat_ctx *c, rt_val v) {
    return rt_f_unique_with(c, v, rt_bool(false), rt_none());
}

rt_val rt_f_dictsort_with(rt_chat_ctx *c, rt_val dict, rt_val case_sensitive, rt_val by,
                          rt_val reverse) {
    bool by_value = by.kind == RT_STR && by.n_bytes == 5 && memcmp(by.u.s, "value", 5) == 0;
    rt_val list = rt_f_list(c, rt_m_items(c, dict));
    size_t n = list.kind == RT_LIST ? list.u.list->n : 0;
    rt_pair *pairs = rt_alloc(c, n, sizeof *pairs);
    bool exact = rt_true(c, case_sensitive);
    for (size_t i = 0; pairs != NULL && i < n && !c->failed; i++) {
        rt_val item = list.u.list->items[i];
        rt_val key = item.u.list->items[by_value ? 1 : 0];
        pairs[i] = (rt_pair){.key = sort_key(c, key, rt_none(), exact), .value = item};
    }
    if (pairs == NULL || c->failed) {
        return rt_undefined();
    }
    sort_pairs(c, pairs, n, rt_true(c, reverse));
    for (size_t i = 0; i < n; i++) {
        list.u.list->items[i] = pairs[i].value;
    }
    return list;
}

rt_val rt_f_dictsort(rt_chat_ctx *c, rt_val dict) {
    return rt_f_dictsort_with(c, dict, rt_bool(false), RT_LIT("key"), rt_bool(false));
}

/* ---- map and select: of what is false they make nothing, whatever it is ---- */

rt_val rt_f_map(rt_chat_ctx *c, rt_val v, rt_val (*filter)(rt_chat_ctx *c, rt_val v)) {
    rt_val out = rt_new_list(c, RT_GENERATOR);
    rt_iter it = rt_iter_over(c, rt_true(c, v) ? v : rt_undefined());
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        rt_push(c, out, filter(c, item));
    }
    return out;
}

rt_val rt_f_map_attribute(rt_chat_ctx *c, rt_val v, rt_val attribute, rt_val otherwise) {
    rt_val out = rt_new_list(c, RT_GENERATOR);
    rt_iter it = rt_iter_over(c, rt_true(c, v) ? v : rt_undefined());
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        rt_push(c, out, follow(c, item, attribute, otherwise));
    }
    return out;
}

rt_val rt_f_select(rt_chat_ctx *c, rt_val v, bool keep, rt_val attribute,
                   bool (*test)(rt_chat_ctx *c, rt_val v)) {
    rt_val out = rt_new_list(c, RT_GENERATOR);
    rt_iter it = rt_iter_over(c, rt_true(c, v) ? v : rt_undefined());
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        if (test(c, follow(c, item, attribute, rt_none())) == keep) {
            rt_push(c, out, item);
        }
    }
    return out;
}

rt_val rt_f_select_with(rt_chat_ctx *c, rt_val v, bool keep, rt_val attribute,
                        bool (*test)(rt_chat_ctx *c, rt_val v, rt_val arg), rt_val arg) {
    rt_val out = rt_new_list(c, RT_GENERATOR);
    rt_iter it = rt_iter_over(c, rt_true(c, v) ? v : rt_undefined());
    for (rt_val item; rt_iter_next(c, &it, &item);) {
        if (test(c, follow(c, item, attribute, rt_none()), arg) == keep) {
            rt_push(c, out, item);
        }
    }
    return out;
}
