/* arena.c -- chunked bump allocation; see arena.h. */
#include "base/arena.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

enum { CHUNK_BYTES = 64 * 1024, ALIGN_BYTES = 16 };

struct lb_arena_chunk {
    lb_arena_chunk *next;
    uint64_t size_bytes; /* of data */
    uint64_t used_bytes;
    _Alignas(ALIGN_BYTES) unsigned char data[];
};

void lb_arena_init(lb_arena *a, const char *name, uint64_t limit_bytes) {
    *a = (lb_arena){.name = name, .limit_bytes = limit_bytes, .fail_after = -1};
}

void lb_arena_reset(lb_arena *a) {
    for (lb_arena_chunk *c = a->head; c != NULL;) {
        lb_arena_chunk *next = c->next;
        free(c);
        c = next;
    }
    a->head = NULL;
    a->used_bytes = 0;
}

static bool add_chunk(lb_arena *a, uint64_t need, lb_err *err) {
    uint64_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;
    uint64_t total = 0;
    if (!lb_add(a->used_bytes, size, &total) || total > a->limit_bytes) {
        return lb_err_set(err, LB_NO_MEMORY,
                          "%s: %" PRIu64 " more bytes would pass the arena's limit of %" PRIu64,
                          a->name, need, a->limit_bytes);
    }
    uint64_t with_head = 0;
    lb_arena_chunk *c = NULL;
    if (lb_add(size, sizeof *c, &with_head)) {
        c = malloc(with_head);
    }
    if (c == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "%s: no memory for %" PRIu64 " bytes", a->name, size);
    }
    c->next = a->head;
    c->size_bytes = size;
    c->used_bytes = 0;
    a->head = c;
    a->used_bytes = total;
    return true;
}

void *lb_alloc(lb_arena *a, uint64_t bytes, lb_err *err) {
    if (a->fail_after == 0) {
        lb_err_set(err, LB_NO_MEMORY, "%s: allocation refused by a test", a->name);
        return NULL;
    }
    if (a->fail_after > 0) {
        a->fail_after--;
    }
    uint64_t need = 0;
    if (!lb_round_up(bytes == 0 ? 1 : bytes, ALIGN_BYTES, &need)) {
        lb_err_set(err, LB_OVERFLOW, "%s: %" PRIu64 " bytes cannot be rounded up", a->name, bytes);
        return NULL;
    }
    if (a->head == NULL || need > a->head->size_bytes - a->head->used_bytes) {
        if (!add_chunk(a, need, err)) {
            return NULL;
        }
    }
    void *p = a->head->data + a->head->used_bytes;
    a->head->used_bytes += need;
    memset(p, 0, need);
    return p;
}

void *lb_alloc_n(lb_arena *a, uint64_t n, uint64_t elem_bytes, lb_err *err) {
    uint64_t bytes = 0;
    if (!lb_mul(n, elem_bytes, &bytes)) {
        lb_err_set(err, LB_OVERFLOW, "%s: %" PRIu64 " x %" PRIu64 " bytes overflow", a->name, n,
                   elem_bytes);
        return NULL;
    }
    return lb_alloc(a, bytes, err);
}

char *lb_strndup(lb_arena *a, const char *s, uint64_t n_bytes, lb_err *err) {
    uint64_t with_nul = 0;
    if (!lb_add(n_bytes, 1, &with_nul)) {
        lb_err_set(err, LB_OVERFLOW, "%s: string of %" PRIu64 " bytes", a->name, n_bytes);
        return NULL;
    }
    char *p = lb_alloc(a, with_nul, err);
    if (p != NULL && n_bytes > 0) {
        memcpy(p, s, n_bytes);
    }
    return p;
}

char *lb_format(lb_arena *a, lb_err *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : lb_alloc(a, (uint64_t)n + 1, err);
    if (p != NULL) {
        vsnprintf(p, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return p;
}
