/* sample_params.c -- defaults and limits of the sampler's parameters; see sample.h. */
#include <float.h>
#include <math.h>

#include "sample.h"

void rt_sample_defaults(const rt_sampling *d, rt_sample_params *out) {
    *out = (rt_sample_params){
        .repeat_penalty = 1.0F, .repeat_last_n = 64, .dry_base = 1.75F, .dry_allowed_length = 2,
        .dry_last_n = 64, .typical_p = 1.0F, .top_p = 1.0F, .xtc_threshold = 0.1F,
        .temperature = 1.0F, .dynatemp_exponent = 1.0F};
    if (d != NULL) {
        out->temperature = d->temperature;
        out->top_k = d->top_k;
        out->top_p = d->top_p;
        out->min_p = d->min_p;
        out->repeat_penalty = d->repeat_penalty;
        out->frequency_penalty = d->frequency_penalty;
        out->presence_penalty = d->presence_penalty;
        out->repeat_last_n = d->repeat_last_n;
    }
}

static bool in_range(const char *name, float x, float least, float most, lb_err *err) {
    if (!(x >= least && x <= most)) {
        return lb_err_set(err, LB_BAD_VALUE, "%s is %g; it must be in %g..%g", name, (double)x,
                          (double)least, (double)most);
    }
    return true;
}

static bool at_least(const char *name, int32_t x, int32_t least, lb_err *err) {
    if (x < least) {
        return lb_err_set(err, LB_BAD_VALUE, "%s is %d; the least is %d", name, x, least);
    }
    return true;
}

static bool check_numbers(const rt_sample_params *p, lb_err *err) {
    return at_least("repeat_last_n", p->repeat_last_n, -1, err) &&
           in_range("repeat_penalty", p->repeat_penalty, FLT_MIN, FLT_MAX, err) &&
           in_range("frequency_penalty", p->frequency_penalty, -FLT_MAX, FLT_MAX, err) &&
           in_range("presence_penalty", p->presence_penalty, -FLT_MAX, FLT_MAX, err) &&
           in_range("dry_multiplier", p->dry_multiplier, 0.0F, FLT_MAX, err) &&
           in_range("dry_base", p->dry_base, 0.0F, FLT_MAX, err) &&
           at_least("dry_allowed_length", p->dry_allowed_length, 1, err) &&
           at_least("dry_last_n", p->dry_last_n, -1, err) &&
           in_range("top_n_sigma", p->top_n_sigma, -FLT_MAX, FLT_MAX, err) &&
           in_range("typical_p", p->typical_p, 0.0F, 1.0F, err) &&
           in_range("top_p", p->top_p, 0.0F, 1.0F, err) &&
           in_range("min_p", p->min_p, 0.0F, 1.0F, err) &&
           in_range("xtc_probability", p->xtc_probability, 0.0F, 1.0F, err) &&
           in_range("xtc_threshold", p->xtc_threshold, 0.0F, 1.0F, err) &&
           in_range("temperature", p->temperature, 0.0F, FLT_MAX, err) &&
           in_range("dynatemp_range", p->dynatemp_range, 0.0F, FLT_MAX, err) &&
           in_range("dynatemp_exponent", p->dynatemp_exponent, 0.0F, FLT_MAX, err);
}

static bool token_ok(const char *name, uint32_t token, uint32_t n_vocab, lb_err *err) {
    if (token >= n_vocab) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: token %u of a vocabulary of %u", name, token,
                          n_vocab);
    }
    return true;
}

static bool check_lists(const rt_sample_params *p, uint32_t n_vocab, lb_err *err) {
    for (uint32_t i = 0; i < p->n_bias; i++) {
        if (!token_ok("logit_bias", p->bias[i].token, n_vocab, err)) {
            return false;
        }
        if (!(p->bias[i].bias < INFINITY)) {
            return lb_err_set(err, LB_BAD_VALUE, "logit_bias of token %u is %g",
                              p->bias[i].token, (double)p->bias[i].bias);
        }
    }
    for (uint32_t i = 0; i < p->n_dry_breakers; i++) {
        if (p->dry_breakers[i].n == 0) {
            return lb_err_set(err, LB_BAD_VALUE, "DRY breaker %u is empty", i);
        }
    }
    return true;
}

bool rt_sampler_start(rt_sampler *s, const rt_sample_params *p, uint32_t n_vocab, lb_err *err) {
    if (!check_numbers(p, err) || !check_lists(p, n_vocab, err)) {
        return false;
    }
    s->params = *p;
    s->n_vocab = n_vocab;
    rt_rng_seed(&s->rng, p->seed);
    return true;
}
