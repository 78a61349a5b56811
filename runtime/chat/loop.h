/* loop.h -- iteration: over anything that Python iterates over, and the `loop` of a for
 * statement. */
#ifndef RT_CHAT_LOOP_H
#define RT_CHAT_LOOP_H

#include "chat/ctx.h"

typedef struct rt_iter {
    rt_val over;
    size_t at; /* item, pair or byte that comes next */
} rt_iter;

/* An iterator over v's items: list items, dict keys, characters, numbers of a range; undefined has
 * none. Fails (and iterates over nothing) for what Python cannot iterate over. */
rt_iter rt_iter_over(rt_chat_ctx *c, rt_val v);
bool rt_iter_next(rt_chat_ctx *c, rt_iter *it, rt_val *item);

typedef struct rt_loop {
    rt_val item; /* the one that was tried last */
    rt_iter it;
    rt_val current, previous; /* taken */
    rt_val ahead, changed;
    bool has_ahead;  /* `ahead` was read already */
    bool has_changed;
    int64_t index0;  /* -1 before the first item */
} rt_loop;

rt_loop rt_loop_over(rt_chat_ctx *c, rt_val sequence);

/* Moves on; false at the end or once something failed. */
bool rt_loop_next(rt_chat_ctx *c, rt_loop *loop);

/* rt_loop_next in two halves, for loops with a condition: try the next item, then count it. */
bool rt_loop_try(rt_chat_ctx *c, rt_loop *loop);
void rt_loop_take(rt_loop *loop);

/* Attributes of `loop`. */
bool rt_loop_first(rt_chat_ctx *c, const rt_loop *loop);
bool rt_loop_last(rt_chat_ctx *c, rt_loop *loop);
rt_val rt_loop_index(rt_chat_ctx *c, const rt_loop *loop);
rt_val rt_loop_index0(rt_chat_ctx *c, const rt_loop *loop);
rt_val rt_loop_revindex(rt_chat_ctx *c, rt_loop *loop);
rt_val rt_loop_revindex0(rt_chat_ctx *c, rt_loop *loop);
rt_val rt_loop_length(rt_chat_ctx *c, rt_loop *loop);
rt_val rt_loop_depth(rt_chat_ctx *c, const rt_loop *loop);
rt_val rt_loop_depth0(rt_chat_ctx *c, const rt_loop *loop);
rt_val rt_loop_previtem(rt_chat_ctx *c, const rt_loop *loop);
rt_val rt_loop_nextitem(rt_chat_ctx *c, rt_loop *loop);
rt_val rt_loop_cycle(const rt_loop *loop, size_t n, const rt_val *values);
rt_val rt_loop_changed(rt_chat_ctx *c, rt_loop *loop, rt_val value);

#endif
