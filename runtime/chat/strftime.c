/* strftime.c -- strftime_now(format) of templates, from the clock that the caller gave; see
 * ops.h. */
#include <string.h>
#include <time.h>

#include "chat/ops.h"
#include "chat/text.h"

/* One %x at `s`, through the C library; Python's %f is microseconds, and %z %Z are empty for a time
 * without zone. */
static void field(rt_chat_ctx *c, rt_sb *sb, const char *s, size_t n, bool user) {
    char spec[16] = {0};
    char out[256];
    char kind = s[n - 1];
    if (kind == 'f' && n == 2) {
        rt_sb_add(c, sb, "000000", 6, user);
        return;
    }
    if (kind == 'z' || kind == 'Z') {
        return;
    }
    memcpy(spec, s, n);
    size_t len = strftime(out, sizeof out, spec, &c->now);
    rt_sb_add(c, sb, out, len, user);
}

/* Length of the conversion that begins at `s`: %, flags, one letter. 0 if it is none. */
static size_t conversion(const char *s, size_t n) {
    size_t i = 1;
    while (i < n && i < 3 && strchr("-_0^#EO", s[i]) != NULL && s[i] != '\0') {
        i++;
    }
    bool letter = i < n && ((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] ==
                            '%');
    return letter ? i + 1 : 0;
}

/* A conversion with a width: nothing needs them, and they could be huge. */
static bool has_width(const char *s, size_t n) {
    size_t i = 1;
    while (s[0] == '%' && i < n && s[i] != '\0' && strchr("-_0^#", s[i]) != NULL) {
        i++;
    }
    return s[0] == '%' && i < n && s[i] >= '1' && s[i] <= '9';
}

rt_val rt_strftime_now(rt_chat_ctx *c, rt_val format) {
    rt_sb sb = {0};
    if (!rt_want_text(c, format)) {
        return rt_undefined();
    }
    bool user = format.user || format.mark != NULL;
    for (size_t i = 0; i < format.n_bytes && rt_work(c, 1);) {
        if (has_width(format.u.s + i, format.n_bytes - i)) {
            return rt_fail(c, LB_BAD_VALUE, "strftime_now: a width, as in '%%5d'");
        }
        size_t n = format.u.s[i] == '%' ? conversion(format.u.s + i, format.n_bytes - i) : 0;
        if (n > 0) {
            field(c, &sb, format.u.s + i, n, user);
            i += n;
        } else {
            rt_sb_add(c, &sb, format.u.s + i, 1, user);
            i++;
        }
    }
    return rt_sb_value(&sb);
}
