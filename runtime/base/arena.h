/* arena.h -- memory of one phase: allocated piece by piece, released at once.
 *
 * An arena holds chunks from malloc and never gives single pieces back. `limit_bytes` bounds the sum
 * of its chunks: a hostile input runs into LB_NO_MEMORY, not into the machine. Tests make the n-th
 * allocation fail through `fail_after`. Not thread-safe. */
#ifndef LB_ARENA_H
#define LB_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct lb_arena_chunk lb_arena_chunk;

typedef struct lb_arena {
    lb_arena_chunk *head;  /* newest chunk, or NULL */
    uint64_t used_bytes;   /* sum of all chunk sizes */
    uint64_t limit_bytes;
    int64_t fail_after;    /* tests: this many more allocations succeed; < 0 = no such limit */
    const char *name;      /* appears in "out of memory" errors */
} lb_arena;

/* An empty arena; allocates nothing yet. `name` must outlive it. */
void lb_arena_init(lb_arena *a, const char *name, uint64_t limit_bytes);

/* Releases everything; the arena may be used again. */
void lb_arena_reset(lb_arena *a);

/* `bytes` zeroed bytes (at least 1) aligned to 16, or NULL with LB_NO_MEMORY / LB_OVERFLOW. */
void *lb_alloc(lb_arena *a, uint64_t bytes, lb_err *err);

/* `n` zeroed elements of `elem_bytes`; the product is checked. */
void *lb_alloc_n(lb_arena *a, uint64_t n, uint64_t elem_bytes, lb_err *err);

/* A NUL-terminated copy of `n_bytes` bytes. */
char *lb_strndup(lb_arena *a, const char *s, uint64_t n_bytes, lb_err *err);

/* printf into the arena; NUL-terminated. */
char *lb_format(lb_arena *a, lb_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
