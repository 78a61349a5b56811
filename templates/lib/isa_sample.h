/* isa_sample.h -- the arithmetic of docs/sampling.md over an instruction layer: weights, the order of
 * candidates, what single logits become. The same text in C and in CUDA, and the same bits as
 * runtime/fmath.h and runtime/cands.h have. It needs rt_pick (model_abi.h, isa_cuda.h). */
#ifndef ISA_SAMPLE_H
#define ISA_SAMPLE_H

#ifndef ISA_CUDA_H
#include <stdbool.h>

#include "isa_soft.h"

ISA_FN uint32_t isa_bits(float x) {
    return isa_soft_bits(x);
}

ISA_FN float isa_float(uint32_t bits) {
    return isa_soft_float(bits);
}

ISA_FN uint64_t isa_bits64(double x) {
    return isa_soft_bits64(x);
}

ISA_FN double isa_double(uint64_t bits) {
    return isa_soft_double(bits);
}
#endif

/* No candidate; behind all of them. */
#define ISA_SAMPLE_NONE 0xffffffffffffffffull
#define ISA_SAMPLE_LARGEST 0x1.fffffep127f

/* Whether a logit can be used: neither NaN nor +inf; whether its token is a candidate. */
ISA_FN bool isa_sample_good(float l) {
    return l <= ISA_SAMPLE_LARGEST;
}

ISA_FN bool isa_sample_open(float l) {
    return l >= -ISA_SAMPLE_LARGEST;
}

/* Candidates in order are these in ascending order: larger logits first, then lower ids. */
ISA_FN uint64_t isa_sample_key(float l, uint32_t id) {
    const uint32_t b = isa_bits(l + 0.0f); /* -0 becomes +0: they are equal logits */
    const uint32_t ascending = (b & 0x80000000u) != 0 ? ~b : b | 0x80000000u;
    return isa_sample_open(l) ? (uint64_t)~ascending << 32 | id : ISA_SAMPLE_NONE;
}

ISA_FN float isa_sample_logit(uint64_t key) {
    const uint32_t ascending = ~(uint32_t)(key >> 32);
    return isa_float((ascending & 0x80000000u) != 0 ? ascending & 0x7fffffffu : ~ascending);
}

/* e^x for x <= 0; 0 below -708 and for NaN. */
ISA_FN double isa_sample_exp(double x) {
    const double y = x > -708.0 ? x : -708.0;
    const double shifted = y * 1.44269504088896338700 + 0x1.8p52; /* rounds to an integer */
    const double k = shifted - 0x1.8p52;
    const double r = (y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const double scale = isa_double((isa_bits64(shifted) + 1023) << 52); /* 2^k: its low bits are k */
    return x > -708.0 ? p * scale : 0.0;
}

ISA_FN uint64_t isa_sample_weight(float l, float max, double temperature) {
    return (uint64_t)(isa_sample_exp(((double)l - (double)max) / temperature) * 0x1p40);
}

/* Steps 1 and 2 for one token. */
ISA_FN float isa_sample_change(float l, const rt_pick *pick, const rt_pick_change *c) {
    l += c->bias;
    if (c->count > 0) {
        l = l > 0.0f ? l / pick->repeat : l * pick->repeat;
        const float taken = (float)c->count * pick->frequency;
        l -= taken + pick->presence;
    }
    return l;
}

/* A bad token as a tile's head has it: the lowest id is the least. */
ISA_FN uint64_t isa_sample_bad(float l, uint32_t id) {
    return (uint64_t)id << 32 | (l > 0.0f ? 3u : 2u); /* +inf or NaN, as rt_picked_kind */
}

/* A row's result (rt_picked of model_abi.h). */
ISA_FN uint64_t isa_sample_choice(uint32_t token, uint32_t kind, bool drawn) {
    return (uint64_t)(kind | (drawn ? 256u : 0u)) << 32 | token;
}

/* Whether the sum over the whole vocabulary is needed, and at which temperature its weights are. */
ISA_FN bool isa_sample_sums(const rt_pick *pick) {
    return pick->temperature > 0.0f && pick->top_k <= 0 && (pick->top_p < 1.0f || pick->min_p <= 0.0f);
}

ISA_FN double isa_sample_sum_temperature(const rt_pick *pick) {
    return pick->top_p < 1.0f ? 1.0 : (double)pick->temperature;
}

/* Where a walk along the running sum of weights ends. */
typedef struct isa_sample_limit {
    double need; /* a step's share of the sum */
    uint64_t target; /* a draw's place in it */
    uint32_t keep; /* candidates at least */
    bool draw;
} isa_sample_limit;

/* Whether it ends at candidate i, with which the sum is this. */
ISA_FN bool isa_sample_met(const isa_sample_limit *l, uint64_t sum, uint32_t i) {
    return l->draw ? sum > l->target : (double)sum >= l->need && i + 1 >= l->keep;
}

/* floor(a * b / 2^64). */
ISA_FN uint64_t isa_sample_high(uint64_t a, uint64_t b) {
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32);
    const uint64_t other = a0 * b1 + (cross & 0xffffffffu);
    return a1 * b1 + (cross >> 32) + (other >> 32);
}

#endif
