/* access.c -- attributes, subscripts and slices, as Python and jinja2's sandbox have them. */
#include <string.h>

#include "base/unicode.h"
#include "chat/ops.h"
#include "chat/print.h"

/* Attributes of Python's types: a template that names one gets a method, not a key. Names are
 * between blanks; those behind '!' change their object, and the sandbox makes them undefined. */
static const char *attributes_of(rt_val v) {
    switch (v.kind) {
    case RT_STR:
        return " capitalize casefold center count encode endswith expandtabs find format format_map"
               " index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric"
               " isprintable isspace istitle isupper join ljust lower lstrip maketrans partition"
               " removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip"
               " split splitlines startswith strip swapcase title translate upper zfill ";
    case RT_DICT:
        return " !clear copy fromkeys get items keys !pop !popitem !setdefault !update values ";
    case RT_LIST: break;
    case RT_BOOL:
    case RT_INT:
    case RT_BIG:
        return " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag"
               " numerator real to_bytes ";
    case RT_FLOAT:
        return " as_integer_ratio conjugate fromhex hex imag is_integer real ";
    case RT_RANGE: return " count index start step stop ";
    default: return " ";
    }
    switch (v.u.list->flavor) {
    case RT_PLAIN:
        return " !append !clear copy count !extend index !insert !pop !remove !reverse !sort ";
    case RT_TUPLE: return " count index ";
    case RT_VIEW: return " isdisjoint mapping ";
    default: return " close gi_code gi_frame gi_running gi_yieldfrom send throw ";
    }
}

bool rt_python_attr(rt_val v, const char *name, size_t n_name, rt_val *out) {
    const char *list = attributes_of(v);
    for (const char *p = list + 1; *p != '\0';) {
        bool hidden = *p == '!';
        p += hidden;
        size_t len = strcspn(p, " ");
        if (len == n_name && memcmp(p, name, len) == 0) {
            *out = rt_undefined();
            out->kind = hidden ? RT_UNDEFINED : RT_METHOD;
            return true;
        }
        p += len + 1;
    }
    return false;
}

static rt_val not_there(rt_val key) {
    rt_val v = rt_undefined();
    if (key.kind == RT_STR) {
        v.u.s = key.u.s;
        v.n_bytes = key.n_bytes;
    }
    return v;
}

rt_val rt_attr(rt_chat_ctx *c, rt_val v, const char *name) {
    rt_val key = rt_lit(name, strlen(name));
    rt_val found;
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    if (!rt_work(c, 1)) {
        return rt_undefined();
    }
    if (rt_python_attr(v, name, key.n_bytes, &found)) {
        return found;
    }
    bool keyed = v.kind == RT_DICT || v.kind == RT_NAMESPACE;
    const rt_val *value = keyed ? rt_find(c, v.u.dict, key) : NULL;
    return value != NULL ? *value : not_there(key);
}

/* Byte offset of character `index` (0 <= index <= length). */
static size_t offset_of(rt_val text, int64_t index) {
    size_t at = 0;
    while (at < text.n_bytes && index > 0) {
        at++;
        while (at < text.n_bytes && ((unsigned char)text.u.s[at] & 0xC0) == 0x80) {
            at++;
        }
        index--;
    }
    return at;
}

static rt_val char_at(rt_chat_ctx *c, rt_val text, int64_t index) {
    rt_work(c, text.n_bytes / 16);
    size_t from = offset_of(text, index);
    return rt_part(text, from, offset_of(rt_part(text, from, text.n_bytes - from), 1));
}

/* v[i] for sequences; false if v is none or the index is outside. */
static bool by_index(rt_chat_ctx *c, rt_val v, int64_t i, rt_val *out) {
    int64_t n = 0;
    bool sequence = v.kind == RT_STR || v.kind == RT_RANGE || rt_is_flavor(v, RT_PLAIN) ||
                    rt_is_flavor(v, RT_TUPLE);
    if (!sequence || !rt_len(c, v, &n)) {
        return false;
    }
    if (i < 0) {
        i += n;
    }
    if (i < 0 || i >= n) {
        return false;
    }
    *out = v.kind == RT_STR     ? char_at(c, v, i)
           : v.kind == RT_RANGE ? rt_int(v.u.range->start + i * v.u.range->step)
                                : v.u.list->items[i];
    return true;
}

rt_val rt_item(rt_chat_ctx *c, rt_val v, rt_val key) {
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    if (!rt_work(c, 1)) {
        return rt_undefined();
    }
    rt_val found;
    if (v.kind == RT_DICT) {
        const rt_val *value = rt_find(c, v.u.dict, key);
        if (value != NULL) {
            return *value;
        }
    } else if (rt_has_int(key) && by_index(c, v, rt_int_of(key), &found)) {
        return found;
    }
    if (key.kind == RT_STR && rt_python_attr(v, key.u.s, key.n_bytes, &found)) {
        return found;
    }
    if (key.kind == RT_STR && v.kind == RT_NAMESPACE) {
        const rt_val *value = rt_find(c, v.u.dict, key);
        return value != NULL ? *value : not_there(key);
    }
    return not_there(key);
}

/* A part of a slice: an integer, or `absent`. */
static bool slice_part(rt_chat_ctx *c, rt_val v, int64_t *out, bool *absent) {
    *absent = v.kind == RT_NONE;
    if (rt_has_int(v)) {
        *out = rt_int_of(v);
        return true;
    }
    if (!*absent) {
        rt_fail(c, LB_BAD_TYPE, "slice parts must be integers, not '%s'", rt_type_name(v));
    }
    return *absent;
}

/* One end of a slice over n items, counted from the end if negative, kept within [low, high]. */
static int64_t clamp(int64_t at, int64_t n, int64_t low, int64_t high) {
    if (at < 0) {
        at += n; /* n >= 0 and at < 0: no overflow */
    }
    return at < low ? low : at > high ? high : at;
}

typedef struct extent {
    int64_t from, step, count;
} extent;

static bool slice_extent(rt_chat_ctx *c, int64_t n, rt_val lo, rt_val hi, rt_val step,
                         extent *out) {
    int64_t a = 0, b = 0, s = 1;
    bool no_a, no_b, no_s;
    if (!slice_part(c, step, &s, &no_s) || !slice_part(c, lo, &a, &no_a) ||
        !slice_part(c, hi, &b, &no_b)) {
        return false;
    }
    if (s == 0 || s == INT64_MIN) {
        rt_fail(c, LB_BAD_VALUE, "slice step %lld", (long long)s);
        return false;
    }
    int64_t low = s > 0 ? 0 : -1;
    int64_t high = s > 0 ? n : n - 1;
    int64_t from = no_a ? (s > 0 ? low : high) : clamp(a, n, low, high);
    int64_t to = no_b ? (s > 0 ? high : low) : clamp(b, n, low, high);
    int64_t span = s > 0 ? to - from : from - to;
    int64_t stride = s > 0 ? s : -s;
    *out = (extent){.from = from, .step = s, .count = span <= 0 ? 0 : (span - 1) / stride + 1};
    return true;
}

static rt_val slice_text(rt_chat_ctx *c, rt_val text, extent x) {
    if (x.count == 0) {
        return rt_part(text, 0, 0);
    }
    rt_work(c, text.n_bytes / 8);
    if (x.step == 1) {
        size_t from = offset_of(text, x.from);
        rt_val rest = rt_part(text, from, text.n_bytes - from);
        return rt_part(rest, 0, offset_of(rest, x.count));
    }
    /* Offsets of all characters, so that a stride over a long text stays linear. */
    uint32_t *at = rt_alloc(c, (uint64_t)text.n_bytes + 1, sizeof *at);
    size_t n = 0;
    for (uint32_t i = 0; at != NULL && i < text.n_bytes; i++) {
        if (((unsigned char)text.u.s[i] & 0xC0) != 0x80) {
            at[n++] = i;
        }
    }
    rt_sb sb = {0};
    for (int64_t k = 0; at != NULL && k < x.count && !c->failed; k++) {
        size_t i = (size_t)(x.from + k * x.step);
        size_t end = i + 1 < n ? at[i + 1] : text.n_bytes;
        rt_sb_text(c, &sb, rt_part(text, at[i], end - at[i]));
    }
    rt_val v = rt_sb_value(&sb);
    v.markup = text.markup;
    return v;
}

static rt_val slice_list(rt_chat_ctx *c, rt_val v, extent x) {
    rt_val out = rt_new_list(c, v.u.list->flavor);
    out.user = v.user;
    if (x.step == 1 && x.count > 0 && out.kind == RT_LIST) { /* looks at the same items */
        v.u.list->shared = true;
        *out.u.list = (rt_list){.items = v.u.list->items + x.from, .n = (size_t)x.count,
                                .cap = (size_t)x.count, .flavor = v.u.list->flavor, .shared = true};
        return out;
    }
    for (int64_t k = 0; k < x.count && rt_work(c, 1); k++) {
        rt_push(c, out, v.u.list->items[x.from + k * x.step]);
    }
    return out;
}

rt_val rt_slice(rt_chat_ctx *c, rt_val v, rt_val lo, rt_val hi, rt_val step) {
    int64_t n = 0;
    extent x;
    if (v.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, v);
    }
    bool can = v.kind == RT_STR || rt_is_flavor(v, RT_PLAIN) || rt_is_flavor(v, RT_TUPLE);
    if (!can) {
        return rt_fail(c, LB_BAD_TYPE, "'%s' object cannot be sliced", rt_type_name(v));
    }
    if (!rt_len(c, v, &n) || !slice_extent(c, n, lo, hi, step, &x)) {
        return rt_undefined();
    }
    return v.kind == RT_STR ? slice_text(c, v, x) : slice_list(c, v, x);
}
