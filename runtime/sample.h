/* sample.h -- chooses the next token from logits, exactly as docs/sampling.md says.
 *
 * A sampler is the parameters and the generator of one sequence. The scratch holds arrays over
 * the vocabulary; one serves any number of samplers, one call at a time. Nothing is allocated
 * after it. */
#ifndef RT_SAMPLE_H
#define RT_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "model_abi.h"
#include "rng.h"

typedef struct rt_logit_bias {
    uint32_t token;
    float bias; /* finite, or -INFINITY to forbid the token */
} rt_logit_bias;

typedef struct rt_token_seq {
    const uint32_t *ids;
    uint32_t n;
} rt_token_seq;

/* Arrays are borrowed and stay the caller's. Values that switch a step off: docs/sampling.md. */
typedef struct rt_sample_params {
    const rt_logit_bias *bias;
    uint32_t n_bias;
    int32_t repeat_last_n; /* >= -1 */
    float repeat_penalty;  /* > 0 */
    float frequency_penalty, presence_penalty;
    float dry_multiplier, dry_base;
    int32_t dry_allowed_length, dry_last_n; /* >= 1, >= -1 */
    const rt_token_seq *dry_breakers;
    uint32_t n_dry_breakers;
    float top_n_sigma;
    int32_t top_k;
    float typical_p, top_p, min_p; /* 0..1 */
    float xtc_probability, xtc_threshold; /* 0..1 */
    float temperature, dynatemp_range, dynatemp_exponent; /* >= 0 */
    uint32_t min_keep;
    uint32_t seed;
} rt_sample_params;

typedef struct rt_sampler {
    rt_sample_params params;
    rt_rng rng;
    uint32_t n_vocab;
} rt_sampler;

typedef struct rt_sample_scratch rt_sample_scratch;

/* Everything off but what `defaults` (may be NULL: temperature 1) says; seed 0. */
void rt_sample_defaults(const rt_sampling *defaults, rt_sample_params *out);

/* Scratch for vocabularies of n_vocab tokens and histories of up to history_max: about
 * 32 bytes per token of the vocabulary and 4 per token of history. LB_NO_MEMORY. */
bool rt_sample_scratch_new(uint32_t n_vocab, uint32_t history_max, lb_arena *arena,
                           rt_sample_scratch **out, lb_err *err);

/* Checks the parameters (LB_BAD_VALUE names the one that is out of range, and its limits; nothing
 * is clamped) and seeds the generator. */
bool rt_sampler_start(rt_sampler *s, const rt_sample_params *params, uint32_t n_vocab, lb_err *err);

/* Chooses a token. `logits` is [n_vocab], unchanged; `history` the n_history tokens so far, all of
 * them < n_vocab. LB_BAD_VALUE: NaN or +inf, no candidate; LB_LIMIT: history longer than the
 * scratch. */
bool rt_sampler_pick(rt_sampler *s, rt_sample_scratch *scratch, const float *logits,
                     const uint32_t *history, uint32_t n_history, uint32_t *token, lb_err *err);

typedef struct rt_token_prob {
    uint32_t token;
    float logit;
    double log_prob; /* natural, over the whole vocabulary */
} rt_token_prob;

/* The n most likely tokens by the plain logits, most likely first; n >= 1. *n_out <= n: tokens at
 * -inf are left out. Fails as rt_sampler_pick. */
bool rt_sample_top(rt_sample_scratch *scratch, const float *logits, uint32_t n_vocab, uint32_t n,
                   rt_token_prob *out, uint32_t *n_out, lb_err *err);

/* ln softmax(logits)[token]; -INFINITY for a token at -inf. Sums in double, in order of ids. */
bool rt_log_prob(const float *logits, uint32_t n_vocab, uint32_t token, double *out, lb_err *err);

#endif
