/* reuse.h -- which slot an answer takes, and what of its prompt need not be computed: what is in
 * the slot, and what the prefix store (prefix.h) has. On the scheduler's thread. */
#ifndef RT_SERVER_REUSE_H
#define RT_SERVER_REUSE_H

#include "prefix.h"
#include "server/metrics.h"

typedef struct rt_reuse rt_reuse;

/* `store` may be NULL; it and the engine stay the caller's. LB_RESOURCES. */
bool rt_reuse_open(rt_engine *engine, rt_prefix *store, uint32_t n_slots, rt_metrics *metrics,
                   rt_reuse **out, lb_err *err);
void rt_reuse_close(rt_reuse *r); /* NULL is allowed */

/* A free slot for a prompt; there must be one. `busy` [n_slots]. The slot that holds most of the
 * prompt, if that is most of what it holds; otherwise the one that was used the longest ago, so
 * that conversations in others go on. */
uint32_t rt_reuse_choose(rt_reuse *r, const bool *busy, const uint32_t *prompt, uint32_t n);

/* Makes the slot hold what it can of prompt[0..n - 1): *n_kept tokens. What it held of another
 * conversation goes to the store first. Fails if the device does, with the slot empty. */
bool rt_reuse_begin(rt_reuse *r, uint32_t slot, const uint32_t *prompt, uint32_t n,
                    uint32_t *n_kept, lb_err *err);

/* Later, while the slot holds prompt[0..n_fed) and the rest is still to be computed: others may
 * know more by now, as answers that began together have much of their prompts in common. The slot
 * then holds more than n_fed tokens. Fails if the device does, with the slot empty. */
bool rt_reuse_join(rt_reuse *r, uint32_t slot, const uint32_t *prompt, uint32_t n, lb_err *err);

/* Before a step that puts n more tokens into the slot, and after it: points of the prompt are
 * marked in the store before the rings of windows forget them. Fails if the device does. */
bool rt_reuse_before(rt_reuse *r, const rt_seq *seq, uint32_t n, lb_err *err);
bool rt_reuse_after(rt_reuse *r, const rt_seq *seq, uint32_t n, lb_err *err);

/* What the slot holds now goes to the store, if it is not there. */
bool rt_reuse_save(rt_reuse *r, uint32_t slot, lb_err *err);

#endif
