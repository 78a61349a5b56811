/* cands.h -- the candidates of one draw, and the few operations on them that cost time.
 *
 * A candidate is one integer: the bits of its logit, mapped so that larger logits give smaller
 * integers, above its id. So the order of docs/sampling.md is the order of integers. The set is
 * either all tokens of `l` above -inf ("open", never sorted as a whole unless asked) or the list
 * key[0..n), sorted. Only prefixes of the order are ever needed: rt_cands_prefix selects them. */
#ifndef RT_CANDS_H
#define RT_CANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct rt_cands {
    float *l;         /* [n_vocab] logits; -inf = not in an open set */
    uint64_t *key;    /* [n_vocab] */
    uint64_t *tmp;    /* [n_vocab] for sorting */
    uint32_t n_vocab;
    uint32_t n;       /* candidates in key, when not open */
    bool open;
    float max;        /* the largest logit */
} rt_cands;

static inline uint64_t rt_cand_key(float logit, uint32_t id) {
    float x = logit + 0.0F; /* -0 becomes +0: they are equal logits */
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    uint32_t ascending = (b & 0x80000000U) != 0 ? ~b : b | 0x80000000U;
    return (uint64_t)~ascending << 32 | id;
}

static inline uint32_t rt_cand_id(uint64_t key) {
    return (uint32_t)key;
}

static inline float rt_cand_logit(uint64_t key) {
    uint32_t ascending = ~(uint32_t)(key >> 32);
    uint32_t b = (ascending & 0x80000000U) != 0 ? ascending & 0x7FFFFFFFU : ~ascending;
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* Ascending; n <= the size of `tmp`. */
void rt_cands_sort(uint64_t *key, uint32_t n, uint64_t *tmp);

/* Makes key[0..result) the first min(m, size of the set) candidates, in order. An open set stays
 * open: rt_cands_close makes it those. */
uint32_t rt_cands_prefix(rt_cands *c, uint32_t m);
void rt_cands_close(rt_cands *c, uint32_t n);

/* The weight of a logit, docs/sampling.md; inverse_t is 1 / T, or 1. */
uint64_t rt_cand_weight(float logit, float max, double temperature);

/* W, the sum of all weights. */
uint64_t rt_cands_total(const rt_cands *c, double temperature);

/* Removes the first n candidates, which must be in key[]; at least one more remains. */
void rt_cands_drop(rt_cands *c, uint32_t n);

#endif
