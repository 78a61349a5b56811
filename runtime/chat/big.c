/* big.c -- see big.h. */
#include "chat/big.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/json_read.h"

rt_val rt_big(rt_chat_ctx *c, const char *s, size_t n, bool user) {
    if (n > RT_BIG_DIGITS_MAX) {
        return rt_fail(c, LB_LIMIT, "an integer of %zu digits: at most %d", n, RT_BIG_DIGITS_MAX);
    }
    char *copy = rt_alloc(c, n + 1, 1);
    if (copy == NULL) {
        return rt_undefined();
    }
    memcpy(copy, s, n);
    copy[n] = '\0';
    rt_val v = {.kind = RT_BIG, .user = user, .n_bytes = (uint32_t)n};
    v.u.s = copy;
    return v;
}

double rt_big_real(rt_val v) {
    return strtod(v.u.s, NULL);
}

static int compare_bigs(rt_val a, rt_val b) {
    bool a_negative = a.u.s[0] == '-';
    bool b_negative = b.u.s[0] == '-';
    if (a_negative != b_negative) {
        return a_negative ? -1 : 1;
    }
    int order = a.n_bytes != b.n_bytes ? (a.n_bytes > b.n_bytes ? 1 : -1)
                                       : memcmp(a.u.s, b.u.s, a.n_bytes);
    order = (order > 0) - (order < 0);
    return a_negative ? -order : order;
}

int rt_big_compare(rt_val a, rt_val b) {
    if (a.kind == RT_BIG && b.kind == RT_BIG) {
        return compare_bigs(a, b);
    }
    if (b.kind == RT_BIG) {
        int order = rt_big_compare(b, a);
        return order == 2 ? 2 : -order;
    }
    if (b.kind != RT_FLOAT) { /* beyond every other integer */
        return a.u.s[0] == '-' ? -1 : 1;
    }
    double x = rt_big_real(a);
    return isnan(b.u.f) ? 2 : (x > b.u.f) - (x < b.u.f);
}

rt_val rt_big_of_real(rt_chat_ctx *c, double f, bool user) {
    char text[320]; /* DBL_MAX has 309 digits */
    int n = snprintf(text, sizeof text, "%.0f", trunc(f));
    return rt_big(c, text, (size_t)n, user);
}
