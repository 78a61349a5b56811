/* loop.c -- see loop.h. Lists are read by index, so items appended on the way are seen, as in
 * Python. */
#include "chat/loop.h"

#include "base/unicode.h"
#include "chat/ops.h"
#include "chat/print.h"

rt_iter rt_iter_over(rt_chat_ctx *c, rt_val v) {
    switch (v.kind) {
    case RT_UNDEFINED:
    case RT_STR:
    case RT_LIST:
    case RT_DICT:
    case RT_RANGE: return (rt_iter){.over = v};
    default: break;
    }
    rt_fail(c, LB_BAD_TYPE, "'%s' object is not iterable", rt_type_name(v));
    return (rt_iter){.over = rt_undefined()};
}

static bool next_of_list(rt_iter *it, rt_val *item) {
    rt_list *list = it->over.u.list;
    size_t *at = list->flavor == RT_GENERATOR ? &list->taken : &it->at;
    if (*at >= list->n) {
        return false;
    }
    *item = list->items[(*at)++];
    return true;
}

static bool next_of_text(rt_iter *it, rt_val *item) {
    uint32_t code = 0;
    size_t len = lb_utf8_decode(it->over.u.s + it->at, it->over.n_bytes - it->at, &code);
    if (len == 0) {
        return false;
    }
    *item = rt_part(it->over, it->at, len);
    item->markup = false;
    it->at += len;
    return true;
}

static bool next_of_range(rt_iter *it, rt_val *item) {
    const rt_span *r = it->over.u.range;
    if (it->at >= (uint64_t)r->n) {
        return false;
    }
    *item = rt_int(r->start + (int64_t)it->at * r->step); /* within start..stop: no overflow */
    it->at++;
    return true;
}

bool rt_iter_next(rt_chat_ctx *c, rt_iter *it, rt_val *item) {
    if (!rt_work(c, 1)) {
        return false;
    }
    switch (it->over.kind) {
    case RT_LIST: return next_of_list(it, item);
    case RT_STR: return next_of_text(it, item);
    case RT_RANGE: return next_of_range(it, item);
    case RT_DICT:
        if (it->at >= it->over.u.dict->n) {
            return false;
        }
        *item = it->over.u.dict->pairs[it->at++].key;
        return true;
    default: return false;
    }
}

rt_loop rt_loop_over(rt_chat_ctx *c, rt_val sequence) {
    return (rt_loop){.it = rt_iter_over(c, sequence), .index0 = -1};
}

bool rt_loop_try(rt_chat_ctx *c, rt_loop *loop) {
    if (loop->has_ahead) {
        loop->has_ahead = false;
        loop->item = loop->ahead;
        return !c->failed;
    }
    return rt_iter_next(c, &loop->it, &loop->item);
}

void rt_loop_take(rt_loop *loop) {
    loop->previous = loop->current;
    loop->current = loop->item;
    loop->index0++;
}

bool rt_loop_next(rt_chat_ctx *c, rt_loop *loop) {
    if (!rt_loop_try(c, loop)) {
        return false;
    }
    rt_loop_take(loop);
    return true;
}

bool rt_loop_first(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    return loop->index0 == 0;
}

/* Reads one item ahead; false at the end. */
static bool look_ahead(rt_chat_ctx *c, rt_loop *loop) {
    if (!loop->has_ahead) {
        loop->has_ahead = rt_iter_next(c, &loop->it, &loop->ahead);
    }
    return loop->has_ahead;
}

bool rt_loop_last(rt_chat_ctx *c, rt_loop *loop) {
    return !look_ahead(c, loop);
}

rt_val rt_loop_index(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    return rt_int(loop->index0 + 1);
}

rt_val rt_loop_index0(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    return rt_int(loop->index0);
}

/* A generator has no length of its own: what was taken from it and what is left. */
static int64_t length(rt_chat_ctx *c, const rt_loop *loop) {
    if (rt_is_flavor(loop->it.over, RT_GENERATOR)) {
        const rt_list *list = loop->it.over.u.list;
        return loop->index0 + 1 + (int64_t)loop->has_ahead + (int64_t)(list->n - list->taken);
    }
    int64_t n = 0;
    rt_len(c, loop->it.over, &n);
    return n;
}

rt_val rt_loop_length(rt_chat_ctx *c, rt_loop *loop) {
    return rt_int(length(c, loop));
}

rt_val rt_loop_revindex(rt_chat_ctx *c, rt_loop *loop) {
    return rt_int(length(c, loop) - loop->index0);
}

rt_val rt_loop_revindex0(rt_chat_ctx *c, rt_loop *loop) {
    return rt_int(length(c, loop) - loop->index0 - 1);
}

rt_val rt_loop_depth(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    (void)loop;
    return rt_int(1); /* recursive loops do not exist here */
}

rt_val rt_loop_depth0(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    (void)loop;
    return rt_int(0);
}

rt_val rt_loop_previtem(rt_chat_ctx *c, const rt_loop *loop) {
    (void)c;
    return loop->index0 > 0 ? loop->previous : rt_undefined();
}

rt_val rt_loop_nextitem(rt_chat_ctx *c, rt_loop *loop) {
    return look_ahead(c, loop) ? loop->ahead : rt_undefined();
}

rt_val rt_loop_cycle(const rt_loop *loop, size_t n, const rt_val *values) {
    return n == 0 || loop->index0 < 0 ? rt_undefined() : values[(uint64_t)loop->index0 % n];
}

rt_val rt_loop_changed(rt_chat_ctx *c, rt_loop *loop, rt_val value) {
    bool changed = !loop->has_changed || !rt_eq(c, loop->changed, value);
    loop->has_changed = true;
    loop->changed = value;
    return rt_bool(changed);
}
