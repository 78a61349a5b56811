/* queue.h -- pairs of symbols waiting to be merged, taken out lowest rank first and, among equals,
 * leftmost first.
 *
 * One list per rank and a tree of bits over the ranks that have one. Pairs are put at the end of
 * their list, mostly in order; a list is sorted, if it must be, when its turn comes. A merge of the
 * lowest rank r can only bring up lower or equal ranks beside the merged symbol, left of all that
 * r's list still holds, so those are put in their place at once, in at most two steps. Every
 * operation but that one sort takes constant time. */
#ifndef RT_TOKEN_QUEUE_H
#define RT_TOKEN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define RT_QUEUE_NONE UINT32_MAX
enum { RT_QUEUE_LEVELS = 5 }; /* 64^5 ranks: more than 2^30 */

/* An item. All of it lies together: a long word's items do not fit a cache. */
typedef struct rt_queued {
    uint32_t rank;  /* RT_QUEUE_NONE: not in the queue */
    uint32_t next;  /* RT_QUEUE_NONE behind the last */
    uint32_t prev;  /* of the first: the last */
    uint32_t value; /* the caller's */
} rt_queued;

typedef struct rt_queue {
    uint32_t n_ranks;
    uint32_t n_levels;
    uint32_t *head;                  /* [n_ranks], first item of each list */
    uint64_t *bits[RT_QUEUE_LEVELS]; /* a bit says that the list, or the word below, is not empty */
    uint64_t *mixed;                 /* a bit for each rank: its list may be out of order */
    rt_queued *items;                /* [n_items] */
    uint32_t sorted;                 /* lists of lower ranks than this are kept in order */
    uint32_t lowest;                 /* no list of a lower rank has items */
} rt_queue;

/* An empty queue for ranks 0..n_ranks-1 (below 2^30), without room for items. */
bool rt_queue_new(rt_queue *q, uint32_t n_ranks, lb_arena *arena, lb_err *err);

/* Makes room for items 0..n_items-1 in an empty queue. */
bool rt_queue_reserve(rt_queue *q, uint64_t n_items, lb_arena *arena, lb_err *err);

/* To be called on an empty queue before a new word: items 0..n_items-1 are out. */
void rt_queue_begin(rt_queue *q, uint32_t n_items);

/* Puts item `i`, which must be out, in at `rank`; `value` stays with it. */
void rt_queue_push(rt_queue *q, uint32_t i, uint32_t rank, uint32_t value);

/* Takes item `i` out if it is in. */
void rt_queue_remove(rt_queue *q, uint32_t i);

/* Takes out and returns the first item, its rank in *rank; RT_QUEUE_NONE if there is none. */
uint32_t rt_queue_pop(rt_queue *q, uint32_t *rank);

#endif
