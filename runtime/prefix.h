/* prefix.h -- beginnings of conversations in host memory: what slots held of them, so that a prompt
 * that begins like an earlier one goes on from there.
 *
 * A tree of pages: RT_PAGE tokens and what the caches hold of their positions, in two parts. The
 * whole part is of caches that keep the context; the ring part, of those that keep a window, is
 * there only around points that conversations go on from (the last positions of a prompt, of a
 * slot's content, and marks on the way), because a row needs no more of it than the window before
 * it. A prompt can go on at a point up to which all pages have their whole part, and the pages of
 * the window before it their ring part. Such points are multiples of the caches' blocks.
 *
 * All memory is taken once, at rt_prefix_open, and cut into cells of one size. When none is free,
 * that part goes whose last use is the longest ago: a ring part, or a page that no other page
 * follows. Bits come back as they were stored, and by docs/numerics.md a token's bits in the caches
 * do not depend on how it came there: texts are the same with and without a store.
 *
 * One caller at a time, between steps of the engine. */
#ifndef RT_PREFIX_H
#define RT_PREFIX_H

#include "engine.h"

enum { RT_PAGE = 64 };

typedef struct rt_prefix rt_prefix;

typedef struct rt_prefix_stats {
    uint64_t n_pages, used_bytes, size_bytes; /* size: what the store may use for parts */
    uint64_t n_evicted;                       /* parts that made room, since the start */
    uint64_t position_bytes;                  /* of one token in all caches */
} rt_prefix_stats;

/* How much a store has unless it is told otherwise: as much as the caches have, and what the tree
 * needs beside it; at most 1 GiB. */
uint64_t rt_prefix_default_bytes(const rt_model *model);

/* A store of at most n_bytes for slots of `engine`, which must outlive it. LB_RESOURCES if the
 * memory is not there or too little for one page; LB_UNSUPPORTED if the program's caches cannot be
 * taken out (rt_model.caches). */
bool rt_prefix_open(rt_engine *engine, uint64_t n_bytes, rt_prefix **out, lb_err *err);
void rt_prefix_close(rt_prefix *p); /* NULL is allowed */

/* With how many of tokens[0..n) rt_prefix_load could fill the slot: from what is in it, from the
 * store, or both. *in_slot (may be NULL) tells how many of them need not be copied. `p` may be
 * NULL: then what the slot gives alone. */
uint32_t rt_prefix_find(rt_prefix *p, const rt_seq *seq, const uint32_t *tokens, uint32_t n,
                        uint32_t *in_slot);

/* How many of tokens[0..n) the store knows, whether or not it could go on there. */
uint32_t rt_prefix_known(rt_prefix *p, const uint32_t *tokens, uint32_t n);

/* Makes the slot hold as many of tokens[0..n) as rt_prefix_find said; *n_kept (may be NULL) is how
 * many. Fails if the device does, with the slot empty then. `p` may be NULL. */
bool rt_prefix_load(rt_prefix *p, rt_seq *seq, const uint32_t *tokens, uint32_t n, uint32_t *n_kept,
                    lb_err *err);

/* Stores the first n tokens of the slot, n <= seq->n_tokens: both parts, ring parts where the slot
 * still has them; and ring parts alone around n. What does not fit is left out. Fails if the
 * device does: what was stored before is there. */
bool rt_prefix_save(rt_prefix *p, const rt_seq *seq, uint32_t n, lb_err *err);
bool rt_prefix_mark(rt_prefix *p, const rt_seq *seq, uint32_t n, lb_err *err);

/* The longest window of layers that keep no more than one; 0: there are none. */
uint32_t rt_prefix_window(const rt_model *model);

void rt_prefix_stats_of(const rt_prefix *p, rt_prefix_stats *out);

#endif
