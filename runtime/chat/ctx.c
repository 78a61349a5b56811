/* ctx.c -- see ctx.h. */
#include "chat/ctx.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

rt_val rt_fail(rt_chat_ctx *c, lb_code code, const char *fmt, ...) {
    if (c->failed) {
        return rt_undefined();
    }
    char what[LB_ERR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    lb_err_set(&c->err, code, "chat template line %u: %s", c->line, what);
    c->failed = true;
    return rt_undefined();
}

rt_val rt_fail_undefined(rt_chat_ctx *c, rt_val v) {
    if (v.n_bytes == 0) {
        return rt_fail(c, LB_MISSING, "a value is undefined");
    }
    return rt_fail(c, LB_MISSING, "'%.*s' is undefined", v.n_bytes > 100 ? 100 : (int)v.n_bytes,
                   v.u.s);
}

bool rt_work(rt_chat_ctx *c, uint64_t n) {
    if (n > c->work_left) {
        c->work_left = 0;
        rt_fail(c, LB_LIMIT, "the template takes more steps than its budget allows");
        return false;
    }
    c->work_left -= n;
    return !c->failed;
}

void *rt_alloc(rt_chat_ctx *c, uint64_t n, uint64_t elem_bytes) {
    uint64_t bytes = 0;
    uint64_t total = 0;
    bool fits = lb_mul(n, elem_bytes, &bytes) && lb_add(bytes, c->arena->used_bytes, &total) &&
                total <= c->arena->limit_bytes;
    if (!fits) {
        rt_fail(c, LB_LIMIT, "rendering takes more than %" PRIu64 " bytes of memory",
                c->arena->limit_bytes);
        return NULL;
    }
    if (!rt_work(c, 1 + bytes / 64)) {
        return NULL;
    }
    lb_err err = {0};
    void *p = lb_alloc(c->arena, bytes, &err);
    if (p == NULL && !c->failed) {
        c->err = err;
        c->failed = true;
    }
    return p;
}

/* Makes room for n more bytes, marks included where they are kept apart. */
static bool reserve(rt_chat_ctx *c, rt_sb *sb, size_t n) {
    if (n <= sb->cap - sb->n) {
        return true;
    }
    uint64_t cap = sb->cap == 0 ? 64 : sb->cap;
    while (cap - sb->n < n) {
        cap *= 2; /* n and cap are bounded by the arena, far below overflow */
    }
    if (cap > UINT32_MAX) {
        rt_fail(c, LB_LIMIT, "text of more than 4 GiB");
        return false;
    }
    char *s = rt_alloc(c, cap, 1);
    uint8_t *mark = s == NULL || sb->mark == NULL ? NULL : rt_alloc(c, cap, 1);
    if (s == NULL || (sb->mark != NULL && mark == NULL)) {
        return false;
    }
    if (sb->n > 0) {
        memcpy(s, sb->s, sb->n);
    }
    if (mark != NULL) {
        memcpy(mark, sb->mark, sb->n);
    }
    sb->s = s;
    sb->mark = mark;
    sb->cap = cap;
    return true;
}

/* From here on bytes of both origins are in the text. */
static bool split_marks(rt_chat_ctx *c, rt_sb *sb) {
    if (sb->mark != NULL) {
        return true;
    }
    sb->mark = rt_alloc(c, sb->cap, 1);
    if (sb->mark != NULL) {
        memset(sb->mark, sb->user, sb->n);
    }
    return sb->mark != NULL;
}

void rt_sb_add(rt_chat_ctx *c, rt_sb *sb, const char *s, size_t n, bool user) {
    if (n == 0 || !rt_work(c, 1 + n / 64) || !reserve(c, sb, n)) {
        return;
    }
    if (sb->n == 0 && sb->mark == NULL) {
        sb->user = user;
    }
    if (sb->user != user && !split_marks(c, sb)) {
        return;
    }
    memcpy(sb->s + sb->n, s, n);
    if (sb->mark != NULL) {
        memset(sb->mark + sb->n, user, n);
    }
    sb->n += n;
}

void rt_sb_text(rt_chat_ctx *c, rt_sb *sb, rt_val text) {
    if (text.mark == NULL) {
        rt_sb_add(c, sb, text.u.s, text.n_bytes, text.user);
        return;
    }
    size_t n = text.n_bytes;
    if (n == 0 || !rt_work(c, 1 + n / 64) || !reserve(c, sb, n) || !split_marks(c, sb)) {
        return;
    }
    memcpy(sb->s + sb->n, text.u.s, n);
    memcpy(sb->mark + sb->n, text.mark, n);
    sb->n += n;
}

rt_val rt_sb_value(const rt_sb *sb) {
    rt_val v = rt_lit(sb->n == 0 ? "" : sb->s, sb->n);
    v.user = sb->n > 0 && sb->user;
    v.mark = sb->n > 0 ? sb->mark : NULL;
    return v;
}

rt_val rt_part(rt_val text, size_t at, size_t n) {
    text.u.s += at;
    text.n_bytes = (uint32_t)n;
    if (text.mark != NULL) {
        text.mark += at;
    }
    return text;
}
