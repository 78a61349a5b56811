/* arith.c -- + - * / // %, joining text, and formatting with %; see ops.h. */
#include <math.h>
#include <string.h>

#include "base/unicode.h"
#include "chat/escape.h"
#include "chat/ops.h"
#include "chat/print.h"

static bool is_number(rt_val v) {
    return rt_has_int(v) || v.kind == RT_FLOAT;
}

static double real_of(rt_val v) {
    return v.kind == RT_FLOAT ? v.u.f : (double)rt_int_of(v);
}

static rt_val bad_operands(rt_chat_ctx *c, const char *op, rt_val a, rt_val b) {
    if (a.kind == RT_UNDEFINED || b.kind == RT_UNDEFINED) {
        return rt_fail_undefined(c, a.kind == RT_UNDEFINED ? a : b);
    }
    if ((a.kind == RT_BIG && rt_is_numeric(b)) || (b.kind == RT_BIG && rt_is_numeric(a))) {
        return rt_fail(c, LB_OVERFLOW, "an integer does not fit 64 bits");
    }
    return rt_fail(c, LB_BAD_TYPE, "'%s' and '%s' cannot be combined with %s", rt_type_name(a),
                   rt_type_name(b), op);
}

/* The result of an integer operation, or its failure. */
static rt_val integer(rt_chat_ctx *c, bool overflow, int64_t i, rt_val a, rt_val b) {
    if (overflow) {
        return rt_fail(c, LB_OVERFLOW, "an integer does not fit 64 bits");
    }
    rt_val v = rt_int(i);
    v.user = a.user || b.user;
    return v;
}

static rt_val real(double f, rt_val a, rt_val b) {
    rt_val v = rt_float(f);
    v.user = a.user || b.user;
    return v;
}

/* Two texts; if one is markup, the other one is escaped and so is the result markup. */
static rt_val join_texts(rt_chat_ctx *c, rt_val a, rt_val b) {
    bool markup = a.markup || b.markup;
    rt_sb sb = {0};
    rt_sb_text(c, &sb, markup ? rt_escape(c, a) : a);
    rt_sb_text(c, &sb, markup ? rt_escape(c, b) : b);
    rt_val v = rt_sb_value(&sb);
    v.markup = markup;
    return v;
}

static rt_val join_lists(rt_chat_ctx *c, rt_val a, rt_val b) {
    rt_val v = rt_new_list(c, a.u.list->flavor);
    v.user = a.user && b.user;
    for (size_t i = 0; i < a.u.list->n; i++) {
        rt_push(c, v, a.u.list->items[i]);
    }
    for (size_t i = 0; i < b.u.list->n; i++) {
        rt_push(c, v, b.u.list->items[i]);
    }
    return v;
}

static bool is_sequence_pair(rt_val a, rt_val b) {
    return a.kind == RT_LIST && b.kind == RT_LIST && a.u.list->flavor == b.u.list->flavor &&
           (a.u.list->flavor == RT_PLAIN || a.u.list->flavor == RT_TUPLE);
}

rt_val rt_add(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (a.kind == RT_STR && b.kind == RT_STR) {
        return join_texts(c, a, b);
    }
    if (rt_has_int(a) && rt_has_int(b)) {
        int64_t r = 0;
        bool overflow = __builtin_add_overflow(rt_int_of(a), rt_int_of(b), &r);
        return integer(c, overflow, r, a, b);
    }
    if (is_number(a) && is_number(b)) {
        return real(real_of(a) + real_of(b), a, b);
    }
    return is_sequence_pair(a, b) ? join_lists(c, a, b) : bad_operands(c, "+", a, b);
}

rt_val rt_sub(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (rt_has_int(a) && rt_has_int(b)) {
        int64_t r = 0;
        bool overflow = __builtin_sub_overflow(rt_int_of(a), rt_int_of(b), &r);
        return integer(c, overflow, r, a, b);
    }
    if (is_number(a) && is_number(b)) {
        return real(real_of(a) - real_of(b), a, b);
    }
    return bad_operands(c, "-", a, b);
}

static rt_val repeat_text(rt_chat_ctx *c, rt_val text, int64_t times) {
    rt_sb sb = {0};
    for (int64_t i = 0; i < times && text.n_bytes > 0 && rt_work(c, 1); i++) {
        rt_sb_text(c, &sb, text);
    }
    rt_val v = rt_sb_value(&sb);
    v.markup = text.markup;
    return v;
}

static rt_val repeat_list(rt_chat_ctx *c, rt_val list, int64_t times) {
    rt_val v = rt_new_list(c, list.u.list->flavor);
    v.user = list.user;
    for (int64_t i = 0; i < times && list.u.list->n > 0 && rt_work(c, 1); i++) {
        for (size_t k = 0; k < list.u.list->n && rt_work(c, 1); k++) {
            rt_push(c, v, list.u.list->items[k]);
        }
    }
    return v;
}

rt_val rt_mul(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (rt_has_int(a) && rt_has_int(b)) {
        int64_t r = 0;
        bool overflow = __builtin_mul_overflow(rt_int_of(a), rt_int_of(b), &r);
        return integer(c, overflow, r, a, b);
    }
    if (is_number(a) && is_number(b)) {
        return real(real_of(a) * real_of(b), a, b);
    }
    if (rt_has_int(a)) { /* 3 * "x" is "x" * 3 */
        rt_val swap = a;
        a = b;
        b = swap;
    }
    if (a.kind == RT_STR && rt_has_int(b)) {
        return repeat_text(c, a, rt_int_of(b));
    }
    if (is_sequence_pair(a, a) && rt_has_int(b)) {
        return repeat_list(c, a, rt_int_of(b));
    }
    return bad_operands(c, "*", a, b);
}

static bool divisor_is_zero(rt_chat_ctx *c, rt_val b) {
    bool zero = real_of(b) == 0.0;
    if (zero) {
        rt_fail(c, LB_BAD_VALUE, "division by zero");
    }
    return zero;
}

rt_val rt_div(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (!is_number(a) || !is_number(b)) {
        return bad_operands(c, "/", a, b);
    }
    return divisor_is_zero(c, b) ? rt_undefined() : real(real_of(a) / real_of(b), a, b);
}

/* Quotient rounded down and the remainder that goes with it, which has b's sign. */
static rt_val floor_division(rt_chat_ctx *c, rt_val a, rt_val b, bool want_rest) {
    if (divisor_is_zero(c, b)) {
        return rt_undefined();
    }
    if (!rt_has_int(a) || !rt_has_int(b)) {
        double x = real_of(a);
        double y = real_of(b);
        double rest = fmod(x, y);
        if (rest != 0.0 && (rest < 0.0) != (y < 0.0)) {
            rest += y;
        }
        if (rest == 0.0) {
            rest = copysign(0.0, y);
        }
        return real(want_rest ? rest : floor((x - rest) / y + 0.5), a, b);
    }
    int64_t x = rt_int_of(a);
    int64_t y = rt_int_of(b);
    if (x == INT64_MIN && y == -1) {
        return integer(c, !want_rest, 0, a, b);
    }
    bool down = x % y != 0 && (x % y < 0) != (y < 0);
    return integer(c, false, want_rest ? x % y + (down ? y : 0) : x / y - down, a, b);
}

rt_val rt_floordiv(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (!is_number(a) || !is_number(b)) {
        return bad_operands(c, "//", a, b);
    }
    return floor_division(c, a, b, false);
}

/* One conversion of text % values: appends it and returns true; false if it is not supported. */
static bool convert(rt_chat_ctx *c, rt_sb *sb, char kind, rt_val v) {
    if (kind == 's') {
        rt_sb_str(c, sb, v);
    } else if (kind == 'r') {
        rt_sb_repr(c, sb, v, 0);
    } else if ((kind == 'd' || kind == 'i') && v.kind == RT_BIG) {
        rt_sb_str(c, sb, v);
    } else if ((kind == 'd' || kind == 'i') && rt_has_int(v)) {
        rt_val i = rt_int(rt_int_of(v));
        i.user = v.user;
        rt_sb_str(c, sb, i);
    } else {
        return false;
    }
    return true;
}

/* A single value that a format text need not use: Python takes it for a mapping. */
static bool may_be_ignored(rt_val v) {
    return v.kind == RT_DICT || v.kind == RT_UNDEFINED || v.kind == RT_RANGE ||
           rt_is_flavor(v, RT_PLAIN);
}

static rt_val format_percent(rt_chat_ctx *c, rt_val text, rt_val values) {
    const rt_list *list = rt_is_flavor(values, RT_TUPLE) ? values.u.list : NULL;
    size_t n = list == NULL ? 1 : list->n;
    size_t used = 0;
    rt_sb sb = {0};
    for (size_t i = 0; i < text.n_bytes && rt_work(c, 1); i++) {
        if (text.u.s[i] != '%') {
            rt_sb_text(c, &sb, rt_part(text, i, 1));
            continue;
        }
        char kind = ++i < text.n_bytes ? text.u.s[i] : '\0';
        if (kind == '%') {
            rt_sb_text(c, &sb, rt_part(text, i, 1));
            continue;
        }
        if (used == n) {
            return rt_fail(c, LB_BAD_TYPE, "not enough values for a format text");
        }
        rt_val v = list == NULL ? values : list->items[used];
        used++;
        if (!convert(c, &sb, kind, v)) {
            return rt_fail(c, LB_UNSUPPORTED,
                           "only %%s %%r %%d %%%% are supported in a format text");
        }
    }
    if (used < n && (list != NULL || !may_be_ignored(values))) {
        return rt_fail(c, LB_BAD_TYPE, "not all values were used by a format text");
    }
    return rt_sb_value(&sb);
}

rt_val rt_mod(rt_chat_ctx *c, rt_val a, rt_val b) {
    if (a.kind == RT_STR && !a.markup) {
        return format_percent(c, a, b);
    }
    if (!is_number(a) || !is_number(b)) {
        return bad_operands(c, "%", a, b);
    }
    return floor_division(c, a, b, true);
}

rt_val rt_neg(rt_chat_ctx *c, rt_val a) {
    if (a.kind == RT_FLOAT) {
        return real(-a.u.f, a, a);
    }
    if (!rt_has_int(a)) {
        return bad_operands(c, "a sign", a, a);
    }
    int64_t r = 0;
    bool overflow = __builtin_sub_overflow((int64_t)0, rt_int_of(a), &r);
    return integer(c, overflow, r, a, a);
}

rt_val rt_pos(rt_chat_ctx *c, rt_val a) {
    if (a.kind == RT_FLOAT || a.kind == RT_BIG) {
        return a;
    }
    return rt_has_int(a) ? integer(c, false, rt_int_of(a), a, a) : bad_operands(c, "a sign", a, a);
}

rt_val rt_cat(rt_chat_ctx *c, size_t n, const rt_val *texts) {
    bool markup = false;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].kind != RT_STR) {
            return bad_operands(c, "+", texts[i == 0 ? 1 : 0], texts[i]);
        }
        markup = markup || texts[i].markup;
    }
    if (markup) { /* what is escaped depends on the order of the additions */
        rt_val all = texts[0];
        for (size_t i = 1; i < n; i++) {
            all = join_texts(c, all, texts[i]);
        }
        return all;
    }
    rt_sb sb = {0};
    for (size_t i = 0; i < n; i++) {
        rt_sb_text(c, &sb, texts[i]);
    }
    return rt_sb_value(&sb);
}

rt_val rt_tilde(rt_chat_ctx *c, size_t n, const rt_val *values) {
    rt_sb sb = {0};
    for (size_t i = 0; i < n; i++) {
        rt_sb_str(c, &sb, values[i]);
    }
    return rt_sb_value(&sb);
}
