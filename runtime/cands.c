/* cands.c -- see cands.h. */
#include "cands.h"

#include <math.h>

#include "fmath.h"

enum {
    INSERT_MAX = 48, /* up to here insertion beats seven counting passes */
    LANES = 16,
    SELECT_MIN = 128 /* smallest buffer of a selection */
};

static void insertion_sort(uint64_t *key, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        uint64_t x = key[i];
        uint32_t j = i;
        for (; j > 0 && key[j - 1] > x; j--) {
            key[j] = key[j - 1];
        }
        key[j] = x;
    }
}

/* One stable counting pass over byte `shift / 8`; false (nothing moved) if all bytes are equal. */
static bool radix_pass(const uint64_t *from, uint64_t *to, uint32_t n, uint32_t *count, int shift) {
    if (count[from[0] >> shift & 255U] == n) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t here = count[b];
        count[b] = at;
        at += here;
    }
    for (uint32_t i = 0; i < n; i++) {
        to[count[from[i] >> shift & 255U]++] = from[i];
    }
    return true;
}

void rt_cands_sort(uint64_t *key, uint32_t n, uint64_t *tmp) {
    if (n <= INSERT_MAX) {
        insertion_sort(key, n);
        return;
    }
    uint32_t count[8][256] = {{0}};
    for (uint32_t i = 0; i < n; i++) {
        for (int b = 0; b < 8; b++) {
            count[b][key[i] >> (8 * b) & 255U]++;
        }
    }
    uint64_t *from = key;
    uint64_t *to = tmp;
    for (int b = 0; b < 8; b++) {
        if (radix_pass(from, to, n, count[b], 8 * b)) {
            uint64_t *swap = from;
            from = to;
            to = swap;
        }
    }
    if (from != key) {
        memcpy(key, from, n * sizeof key[0]);
    }
}

/* True if any of LANES logits is above t. No early exit, so that the compiler uses vectors. */
static bool any_above(const float *l, float t) {
    int any = 0;
    for (int i = 0; i < LANES; i++) {
        any |= l[i] > t;
    }
    return any != 0;
}

/* Keeps at least m candidates in a buffer of 2 m, cut back to m whenever it is full; the worst of
 * them is what a logit has to beat. Equal logits that come later have higher ids: they lose.
 * Linear in n_vocab for every input, whatever its order. */
static uint32_t select_top(rt_cands *c, uint32_t m) {
    uint64_t *buf = c->key;
    uint32_t cap = m > c->n_vocab / 2 ? c->n_vocab : 2 * m;
    cap = cap < SELECT_MIN ? SELECT_MIN : cap;
    cap = cap < c->n_vocab ? cap : c->n_vocab;
    uint32_t n = 0;
    float t = -INFINITY;
    for (uint32_t i = 0; i < c->n_vocab; i += LANES) {
        uint32_t end = c->n_vocab - i < LANES ? c->n_vocab : i + LANES;
        if (end - i == LANES && !any_above(c->l + i, t)) {
            continue;
        }
        for (uint32_t j = i; j < end; j++) {
            if (c->l[j] > t) {
                buf[n++] = rt_cand_key(c->l[j], j);
                if (n == cap && m < cap) {
                    rt_cands_sort(buf, n, c->tmp);
                    n = m;
                    t = rt_cand_logit(buf[m - 1]);
                }
            }
        }
    }
    rt_cands_sort(buf, n, c->tmp);
    return n < m ? n : m;
}

uint32_t rt_cands_prefix(rt_cands *c, uint32_t m) {
    if (c->open) {
        return select_top(c, m < c->n_vocab ? m : c->n_vocab);
    }
    return m < c->n ? m : c->n;
}

void rt_cands_close(rt_cands *c, uint32_t n) {
    c->open = false;
    c->n = n;
}

uint64_t rt_cand_weight(float logit, float max, double temperature) {
    double x = ((double)logit - (double)max) / temperature;
    return (uint64_t)(rt_exp(x) * 0x1p40);
}

uint64_t rt_cands_total(const rt_cands *c, double temperature) {
    uint64_t sum = 0;
    for (uint32_t i = 0; c->open && i < c->n_vocab; i++) {
        sum += rt_cand_weight(c->l[i], c->max, temperature);
    }
    for (uint32_t i = 0; !c->open && i < c->n; i++) {
        sum += rt_cand_weight(rt_cand_logit(c->key[i]), c->max, temperature);
    }
    return sum;
}

void rt_cands_drop(rt_cands *c, uint32_t n) {
    c->max = rt_cand_logit(c->key[n]);
    if (c->open) {
        for (uint32_t i = 0; i < n; i++) {
            c->l[rt_cand_id(c->key[i])] = -INFINITY;
        }
        return;
    }
    memmove(c->key, c->key + n, (c->n - n) * sizeof c->key[0]);
    c->n -= n;
}
