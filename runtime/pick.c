/* pick.c -- see pick.h. */
#include "pick.h"

#include "fmath.h"

/* The entry of a token: an old one, a new one, or NULL if there is no room. */
static rt_pick_change *change_of(rt_pick *p, uint32_t token) {
    for (uint32_t i = 0; i < p->n_changes; i++) {
        if (p->changes[i].token == token) {
            return &p->changes[i];
        }
    }
    if (p->n_changes == RT_PICK_CHANGES) {
        return NULL;
    }
    p->changes[p->n_changes] = (rt_pick_change){.token = token};
    return &p->changes[p->n_changes++];
}

/* Two biases of one token would have to be added one after the other. */
static bool add_biases(const rt_sample_params *s, rt_pick *p) {
    for (uint32_t i = 0; i < s->n_bias; i++) {
        rt_pick_change *c = change_of(p, s->bias[i].token);
        if (c == NULL || p->n_changes != i + 1) {
            return false;
        }
        c->bias = s->bias[i].bias;
    }
    return true;
}

/* Occurrences among the last repeat_last_n tokens. */
static bool count_tokens(const rt_sample_params *s, const rt_pick_history *h, rt_pick *p) {
    uint64_t all = (uint64_t)h->n_tokens + h->n_more;
    uint64_t n =
        s->repeat_last_n < 0 || (uint64_t)s->repeat_last_n > all ? all : (uint64_t)s->repeat_last_n;
    if (s->repeat_penalty == 1.0F && s->frequency_penalty == 0.0F && s->presence_penalty == 0.0F) {
        return true;
    }
    for (uint64_t i = all - n; i < all; i++) {
        uint32_t token = i < h->n_tokens ? h->tokens[i] : h->more[i - h->n_tokens];
        rt_pick_change *c = change_of(p, token);
        if (c == NULL) {
            return false;
        }
        c->count++;
    }
    return true;
}

/* Whether every step that is on is one that a device does. */
static bool known_steps(const rt_sample_params *s) {
    bool dry = s->dry_multiplier != 0.0F && s->dry_base >= 1.0F && s->dry_last_n != 0;
    bool xtc = s->xtc_probability > 0.0F && s->xtc_threshold <= 0.5F;
    return !dry && !xtc && s->top_n_sigma <= 0.0F && s->typical_p >= 1.0F &&
           (s->dynatemp_range <= 0.0F || s->temperature <= 0.0F);
}

bool rt_pick_make(const rt_sampler *s, const rt_pick_history *history, rt_pick *out) {
    const rt_sample_params *p = &s->params;
    rt_rng next = s->rng;
    if (!known_steps(p)) {
        return false;
    }
    *out = (rt_pick){.temperature = p->temperature,
                     .top_p = p->top_p,
                     .min_p = p->min_p,
                     .repeat = p->repeat_penalty,
                     .frequency = p->frequency_penalty,
                     .presence = p->presence_penalty,
                     .top_k = p->top_k,
                     .min_keep = p->min_keep};
    out->min_log = p->min_p > 0.0F ? rt_log((double)p->min_p) : 0.0;
    out->random = p->temperature > 0.0F ? rt_rng_u64(&next) : 0;
    return add_biases(p, out) && count_tokens(p, history, out);
}

bool rt_pick_take(rt_sampler *s, rt_picked choice, uint32_t *token, lb_err *err) {
    uint32_t id = (uint32_t)choice;
    switch (rt_picked_kind_of(choice)) {
    case RT_PICKED_TOKEN:
        if ((choice >> 40 & 1) != 0) {
            rt_rng_u64(&s->rng);
        }
        *token = id;
        return true;
    case RT_PICKED_NOT_A_NUMBER:
        return lb_err_set(err, LB_BAD_VALUE, "the logit of token %u is not a number", id);
    case RT_PICKED_INFINITE:
        return lb_err_set(err, LB_BAD_VALUE, "the logit of token %u is infinite", id);
    case RT_PICKED_NONE_ALLOWED:
        return lb_err_set(err, LB_BAD_VALUE, "none of %u tokens is allowed", s->n_vocab);
    default: return lb_err_set(err, LB_BAD_VALUE, "a choice of kind %u", (unsigned)(choice >> 32));
    }
}
