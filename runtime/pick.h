/* pick.h -- a sampler's next choice as a device makes it: the same token as rt_sampler_pick, by the
 * same rule (docs/sampling.md), without the logits on the host. */
#ifndef RT_PICK_H
#define RT_PICK_H

#include "sample.h"

/* The tokens so far, in two pieces. */
typedef struct rt_pick_history {
    const uint32_t *tokens, *more;
    uint32_t n_tokens, n_more;
} rt_pick_history;

/* Writes what a device needs to choose the sampler's next token. False for what only the host does:
 * DRY, top_n_sigma, typical, XTC, a dynamic temperature; a token biased twice; more than
 * RT_PICK_CHANGES tokens that are biased or occur in the window of the penalties. The sampler stays
 * as it is. */
bool rt_pick_make(const rt_sampler *s, const rt_pick_history *history, rt_pick *out);

/* Takes a choice that a device made of it: *token, and the generator moves on. Fails as
 * rt_sampler_pick. Not for RT_PICKED_UNDECIDED. */
bool rt_pick_take(rt_sampler *s, rt_picked choice, uint32_t *token, lb_err *err);

static inline rt_picked_kind rt_picked_kind_of(rt_picked c) {
    return (rt_picked_kind)(c >> 32 & 255);
}

#endif
