/* ctx.h -- one rendering: its memory, its budget, its first error, and the text written so far.
 *
 * Errors stick: the first one is kept, everything after it is harmless and ends soon (loops stop,
 * macros are not entered), so that emitted code need not check every step. Budgets bound what a
 * template or request can cost: work in steps of roughly ten nanoseconds, memory by the arena. */
#ifndef RT_CHAT_CTX_H
#define RT_CHAT_CTX_H

#include <time.h>

#include "base/arena.h"
#include "chat/value.h"

enum {
    RT_CHAT_MACRO_DEPTH_MAX = 100, /* macro calls inside each other */
    RT_CHAT_VALUE_DEPTH_MAX = 200, /* lists and dicts inside each other, where they are walked */
    RT_CHAT_RANGE_MAX = 100000,    /* items of a range: the limit of jinja2's sandbox */
    RT_CHAT_WORK_DEFAULT = 100000000
};

/* A text being written. */
typedef struct rt_sb {
    char *s;
    uint8_t *mark; /* NULL as long as all bytes are `user` */
    size_t n, cap;
    bool user;
} rt_sb;

typedef struct rt_chat_ctx {
    uint32_t line; /* of the template; emitted code sets it */
    uint32_t macro_depth;
    bool failed;
    lb_err err;
    lb_arena *arena;
    uint64_t work_left;
    rt_sb out;
    const rt_dict *vars; /* what the request gives the template */
    struct tm now;       /* local time for strftime_now */
} rt_chat_ctx;

/* Keeps the first error ("chat template line N: ..."). Returns undefined, for `return
 * rt_fail(...)`. */
rt_val rt_fail(rt_chat_ctx *c, lb_code code, const char *fmt, ...) __attribute__((format(printf, 3,
                                                                                         4)));

/* rt_fail for an operation on an undefined value; returns undefined. */
rt_val rt_fail_undefined(rt_chat_ctx *c, rt_val v);

/* Takes `n` steps from the budget; false (and LB_LIMIT) once it is used up. */
bool rt_work(rt_chat_ctx *c, uint64_t n);

/* n elements of zeroed memory for this rendering; NULL with LB_LIMIT or LB_NO_MEMORY. */
void *rt_alloc(rt_chat_ctx *c, uint64_t n, uint64_t elem_bytes);

/* Appends. A value must be text; anything else is left to rt_sb_str in print.h. */
void rt_sb_add(rt_chat_ctx *c, rt_sb *sb, const char *s, size_t n, bool user);
void rt_sb_text(rt_chat_ctx *c, rt_sb *sb, rt_val text);

/* The text so far, which may grow on without changing it. */
rt_val rt_sb_value(const rt_sb *sb);

/* n bytes of a text from byte `at`. */
rt_val rt_part(rt_val text, size_t at, size_t n);

#endif
