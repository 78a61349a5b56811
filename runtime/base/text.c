/* text.c -- see text.h. Doubles its buffer; old halves stay in the arena until the phase ends. */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void lb_text_init(lb_text *t, lb_arena *arena) {
    *t = (lb_text){.arena = arena};
}

static bool reserve(lb_text *t, size_t more) {
    if (t->failed) {
        return false;
    }
    if (more <= t->cap_bytes - t->n_bytes) {
        return true;
    }
    size_t cap = t->cap_bytes == 0 ? 1024 : t->cap_bytes;
    while (cap - t->n_bytes < more) {
        if (cap > SIZE_MAX / 2) {
            t->failed = true;
            lb_err_set(&t->err, LB_OVERFLOW, "text of more than %zu bytes", cap);
            return false;
        }
        cap *= 2;
    }
    char *p = lb_alloc(t->arena, cap, &t->err);
    if (p == NULL) {
        t->failed = true;
        return false;
    }
    if (t->n_bytes > 0) {
        memcpy(p, t->data, t->n_bytes);
    }
    t->data = p;
    t->cap_bytes = cap;
    return true;
}

void lb_text_add_n(lb_text *t, const char *s, size_t n_bytes) {
    if (n_bytes > 0 && reserve(t, n_bytes)) {
        memcpy(t->data + t->n_bytes, s, n_bytes);
        t->n_bytes += n_bytes;
    }
}

void lb_text_add(lb_text *t, const char *s) {
    lb_text_add_n(t, s, strlen(s));
}

void lb_text_printf(lb_text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(t, (size_t)n + 1)) {
        vsnprintf(t->data + t->n_bytes, (size_t)n + 1, fmt, again);
        t->n_bytes += (size_t)n;
    }
    va_end(again);
}

bool lb_text_done(lb_text *t, lb_err *err) {
    if (reserve(t, 1)) {
        t->data[t->n_bytes] = '\0';
        return true;
    }
    if (err != NULL) {
        *err = t->err;
    }
    return false;
}
