/* sample.c -- the chain of docs/sampling.md, step by step; parameters in sample_params.c. */
#include "sample.h"

#include <math.h>
#include <string.h>

#include "cands.h"
#include "fmath.h"

enum {
    LANES = 16,
    SIGMA_LANES = 256,
    WALK_FIRST = 256, /* candidates sorted first when a walk has no known end; then 8 times */
    WALK_MORE = 8
};

struct rt_sample_scratch {
    rt_cands c;
    uint32_t *count; /* [n_vocab], all 0 between uses */
    uint32_t *match; /* [history_max] */
    uint64_t *place; /* [n_vocab] */
    uint32_t history_max;
};

bool rt_sample_scratch_new(uint32_t n_vocab, uint32_t history_max, lb_arena *a,
                           rt_sample_scratch **out, lb_err *err) {
    rt_sample_scratch *s = lb_alloc(a, sizeof *s, err);
    if (s == NULL || (s->c.l = lb_alloc_n(a, n_vocab, sizeof(float), err)) == NULL ||
        (s->c.key = lb_alloc_n(a, n_vocab, sizeof(uint64_t), err)) == NULL ||
        (s->c.tmp = lb_alloc_n(a, n_vocab, sizeof(uint64_t), err)) == NULL ||
        (s->count = lb_alloc_n(a, n_vocab, sizeof(uint32_t), err)) == NULL ||
        (s->place = lb_alloc_n(a, n_vocab, sizeof(uint64_t), err)) == NULL ||
        (s->match = lb_alloc_n(a, history_max, sizeof(uint32_t), err)) == NULL) {
        return false;
    }
    s->c.n_vocab = n_vocab;
    s->history_max = history_max;
    *out = s;
    return true;
}

/* ---- steps 1 to 3: single logits change ---- */

static void add_bias(rt_cands *c, const rt_sample_params *p) {
    for (uint32_t i = 0; i < p->n_bias; i++) {
        c->l[p->bias[i].token] += p->bias[i].bias;
    }
}

/* The last n tokens; n = -1: all of them. */
static uint32_t window(int32_t n, const uint32_t **history, uint32_t n_history) {
    uint32_t w = n < 0 || (uint32_t)n > n_history ? n_history : (uint32_t)n;
    *history += n_history - w;
    return w;
}

static void penalise(rt_sample_scratch *s, const rt_sample_params *p, const uint32_t *history,
                     uint32_t n_history) {
    if (p->repeat_penalty == 1.0F && p->frequency_penalty == 0.0F && p->presence_penalty == 0.0F) {
        return;
    }
    uint32_t n = window(p->repeat_last_n, &history, n_history);
    for (uint32_t i = 0; i < n; i++) {
        s->count[history[i]]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = s->count[history[i]];
        s->count[history[i]] = 0;
        if (c > 0) { /* the first time that this token is met */
            float *l = &s->c.l[history[i]];
            *l = *l > 0.0F ? *l / p->repeat_penalty : *l * p->repeat_penalty;
            *l -= (float)c * p->frequency_penalty + p->presence_penalty;
        }
    }
}

/* Tokens after the most recent breaker sequence in c[0..n); n without one. */
static uint32_t since_breaker(const rt_sample_params *p, const uint32_t *c, uint32_t n) {
    uint32_t least = n;
    for (uint32_t b = 0; b < p->n_dry_breakers; b++) {
        const rt_token_seq *seq = &p->dry_breakers[b];
        for (uint32_t end = n; end >= seq->n && n - end < least; end--) {
            if (memcmp(c + end - seq->n, seq->ids, seq->n * sizeof c[0]) == 0) {
                least = n - end;
            }
        }
    }
    return least;
}

/* match[j] = length of the longest common suffix of c[0..n) and c[0..n-j), j >= 1: the Z function
 * of the reversed sequence, in linear time. */
static void suffix_matches(const uint32_t *c, uint32_t n, uint32_t *match) {
    uint32_t left = 0;
    uint32_t right = 0; /* [left, right) is the match that reaches furthest */
    for (uint32_t j = 1; j < n; j++) {
        uint32_t z = 0;
        if (j < right) {
            z = match[j - left] < right - j ? match[j - left] : right - j;
        }
        while (j + z < n && c[n - 1 - z] == c[n - 1 - j - z]) {
            z++;
        }
        match[j] = z;
        if (j + z > right) {
            left = j;
            right = j + z;
        }
    }
}

static double power(double base, uint32_t n) {
    double r = 1.0;
    for (; n > 0; n >>= 1) {
        if ((n & 1U) != 0) {
            r *= base;
        }
        base *= base;
    }
    return r;
}

static bool breaks_alone(const rt_sample_params *p, uint32_t token) {
    for (uint32_t b = 0; b < p->n_dry_breakers; b++) {
        if (p->dry_breakers[b].n == 1 && p->dry_breakers[b].ids[0] == token) {
            return true;
        }
    }
    return false;
}

static void dry_lower(rt_cands *c, const rt_sample_params *p, uint32_t token, uint32_t length) {
    if (breaks_alone(p, token)) {
        return;
    }
    uint32_t e = length - (uint32_t)p->dry_allowed_length;
    double ln_base = rt_log((double)p->dry_base);
    if (ln_base > 0.0 && (double)e > 88.7228391 / ln_base) {
        e = (uint32_t)(88.7228391 / ln_base);
    }
    c->l[token] -= (float)((double)p->dry_multiplier * power((double)p->dry_base, e));
}

static void dry(rt_sample_scratch *s, const rt_sample_params *p, const uint32_t *history,
                uint32_t n_history) {
    if (p->dry_multiplier == 0.0F || p->dry_base < 1.0F || p->dry_last_n == 0) {
        return;
    }
    const uint32_t *c = history;
    uint32_t allowed = (uint32_t)p->dry_allowed_length;
    uint32_t n = window(p->dry_last_n, &c, n_history);
    uint32_t limit = since_breaker(p, c, n);
    if (n <= allowed || limit < allowed) {
        return;
    }
    suffix_matches(c, n, s->match);
    for (uint32_t j = 1; j < n; j++) { /* the token after the suffix that ends at n - 1 - j */
        uint32_t r = s->match[j] < limit ? s->match[j] : limit;
        uint32_t token = c[n - j];
        if (r >= allowed && r > s->count[token]) {
            s->count[token] = r;
        }
    }
    for (uint32_t j = 1; j < n; j++) {
        uint32_t token = c[n - j];
        if (s->count[token] > 0) {
            dry_lower(&s->c, p, token, s->count[token]);
            s->count[token] = 0;
        }
    }
}

/* ---- what holds for all logits ---- */

/* The largest logit; false where one is NaN or +inf. Lanes, so that the compiler uses vectors. */
static bool scan(const float *l, uint32_t n, float *max) {
    float m[LANES];
    int bad = 0;
    for (int j = 0; j < LANES; j++) {
        m[j] = -INFINITY;
    }
    uint32_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            bad |= !(l[i + (uint32_t)j] < INFINITY);
            m[j] = l[i + (uint32_t)j] > m[j] ? l[i + (uint32_t)j] : m[j];
        }
    }
    for (; i < n; i++) {
        bad |= !(l[i] < INFINITY);
        m[0] = l[i] > m[0] ? l[i] : m[0];
    }
    for (int j = 1; j < LANES; j++) {
        m[0] = m[j] > m[0] ? m[j] : m[0];
    }
    *max = m[0];
    return bad == 0;
}

static bool check_all(const float *l, uint32_t n, float *max, lb_err *err) {
    if (!scan(l, n, max)) {
        uint32_t i = 0;
        while (l[i] < INFINITY) {
            i++;
        }
        return lb_err_set(err, LB_BAD_VALUE, "the logit of token %u is %s", i,
                          isnan(l[i]) ? "not a number" : "infinite");
    }
    if (*max == -INFINITY) {
        return lb_err_set(err, LB_BAD_VALUE, "none of %u tokens is allowed", n);
    }
    return true;
}

/* Sum of f(l) over tokens above -inf, f = l or (l - mean)^2, by lanes. */
static double lane_sum(const rt_cands *c, bool squares, double mean) {
    double lane[SIGMA_LANES] = {0};
    for (uint32_t i = 0; i < c->n_vocab; i++) {
        if (c->l[i] > -INFINITY) {
            double x = (double)c->l[i] - mean;
            lane[i % SIGMA_LANES] += squares ? x * x : x;
        }
    }
    for (uint32_t s = SIGMA_LANES / 2; s > 0; s /= 2) {
        for (uint32_t i = 0; i < s; i++) {
            lane[i] += lane[i + s];
        }
    }
    return lane[0];
}

static uint32_t count_open(const rt_cands *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_vocab; i++) {
        n += c->l[i] > -INFINITY;
    }
    return n;
}

/* Open sets: removes tokens below t unless fewer than min_keep stay; returns whether it did. */
static bool cut_open(rt_cands *c, double t, uint32_t min_keep) {
    uint32_t stay = 0;
    for (uint32_t i = 0; i < c->n_vocab; i++) {
        stay += (double)c->l[i] >= t;
    }
    if (stay < min_keep) {
        return false;
    }
    for (uint32_t i = 0; i < c->n_vocab; i++) {
        if (!((double)c->l[i] >= t)) {
            c->l[i] = -INFINITY;
        }
    }
    return true;
}

/* ---- steps 4 to 9 ---- */

static void top_n_sigma(rt_cands *c, float n_sigma) {
    if (n_sigma > 0.0F) {
        double n = (double)count_open(c);
        double mean = lane_sum(c, false, 0.0) / n;
        double sigma = sqrt(lane_sum(c, true, mean) / n);
        cut_open(c, (double)c->max - (double)n_sigma * sigma, 0);
    }
}

static void top_k(rt_cands *c, const rt_sample_params *p) {
    if (p->top_k > 0) {
        uint32_t k = (uint32_t)p->top_k;
        rt_cands_close(c, rt_cands_prefix(c, k > p->min_keep ? k : p->min_keep));
    }
}

/* H of the candidates, which are closed and in order; *ln_w is ln(W / 2^40). */
static double entropy(const rt_cands *c, double *ln_w) {
    double total = (double)rt_cands_total(c, 1.0);
    *ln_w = rt_log(total * 0x1p-40);
    double h = 0.0;
    for (uint32_t i = 0; i < c->n; i++) {
        float l = rt_cand_logit(c->key[i]);
        double p = (double)rt_cand_weight(l, c->max, 1.0) / total;
        double ln_p = ((double)l - (double)c->max) - *ln_w;
        h -= p * ln_p;
    }
    return h;
}

/* Restores the order of a closed set of which tmp[0..n) names the places that stay. */
static void keep_places(rt_cands *c, uint64_t *place, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        place[i] = c->key[place[i] & UINT32_MAX];
    }
    memcpy(c->key, place, n * sizeof place[0]);
    rt_cands_sort(c->key, n, c->tmp);
    rt_cands_close(c, n);
    c->max = rt_cand_logit(c->key[0]);
}

static void typical(rt_cands *c, uint64_t *place, const rt_sample_params *p) {
    if (p->typical_p >= 1.0F) {
        return;
    }
    rt_cands_close(c, rt_cands_prefix(c, c->n_vocab));
    double ln_w = 0.0;
    double h = entropy(c, &ln_w);
    for (uint32_t i = 0; i < c->n; i++) {
        double ln_p = ((double)rt_cand_logit(c->key[i]) - (double)c->max) - ln_w;
        float d = (float)fabs(-ln_p - h);
        uint32_t bits;
        memcpy(&bits, &d, sizeof bits); /* d >= 0: its bits are in its order */
        place[i] = (uint64_t)bits << 32 | i;
    }
    rt_cands_sort(place, c->n, c->tmp);
    double limit = (double)p->typical_p * (double)rt_cands_total(c, 1.0);
    uint64_t sum = 0;
    uint32_t n = 0;
    while (n < c->n && !((double)sum > limit && n >= p->min_keep)) {
        sum += rt_cand_weight(rt_cand_logit(c->key[place[n] & UINT32_MAX]), c->max, 1.0);
        n++;
    }
    keep_places(c, place, n);
}

static void top_p(rt_cands *c, const rt_sample_params *p) {
    if (p->top_p >= 1.0F) {
        return;
    }
    double need = (double)p->top_p * (double)rt_cands_total(c, 1.0);
    uint64_t sum = 0;
    uint32_t i = 0;
    for (uint32_t m = WALK_FIRST;; m *= WALK_MORE) {
        uint32_t n = rt_cands_prefix(c, m);
        while (i < n) {
            sum += rt_cand_weight(rt_cand_logit(c->key[i++]), c->max, 1.0);
            if ((double)sum >= need && i >= p->min_keep) {
                rt_cands_close(c, i);
                return;
            }
        }
        if (n < m) {
            rt_cands_close(c, n);
            return;
        }
    }
}

static void min_p(rt_cands *c, const rt_sample_params *p) {
    if (p->min_p <= 0.0F) {
        return;
    }
    double t = (double)c->max + rt_log((double)p->min_p);
    if (c->open && cut_open(c, t, p->min_keep)) {
        return;
    }
    if (c->open) {
        rt_cands_close(c, rt_cands_prefix(c, p->min_keep));
        return;
    }
    uint32_t n = 1; /* the first one is the maximum */
    while (n < c->n && (n < p->min_keep || (double)rt_cand_logit(c->key[n]) >= t)) {
        n++;
    }
    c->n = n;
}

/* How many of the first candidates have at least `limit`; they are then in key[]. */
static uint32_t count_above(rt_cands *c, double limit) {
    uint32_t i = 0;
    for (uint32_t m = WALK_FIRST;; m *= WALK_MORE) {
        uint32_t n = rt_cands_prefix(c, m);
        while (i < n && (double)rt_cand_weight(rt_cand_logit(c->key[i]), c->max, 1.0) >= limit) {
            i++;
        }
        if (i < n || n < m) {
            return i;
        }
    }
}

static void xtc(rt_cands *c, const rt_sample_params *p, rt_rng *rng) {
    if (p->xtc_probability <= 0.0F || p->xtc_threshold > 0.5F || rt_cands_prefix(c, 2) < 2) {
        return;
    }
    if ((double)rt_rng_u32(rng) * 0x1p-32 > (double)p->xtc_probability) {
        return;
    }
    uint32_t size = c->open ? count_open(c) : c->n;
    uint32_t n = count_above(c, (double)p->xtc_threshold * (double)rt_cands_total(c, 1.0));
    if (n >= 2 && size - (n - 1) >= p->min_keep) {
        rt_cands_drop(c, n - 1);
    }
}

/* ---- steps 10 and 11 ---- */

static double temperature(rt_cands *c, const rt_sample_params *p) {
    double t = (double)p->temperature;
    double range = (double)p->dynatemp_range;
    if (range <= 0.0 || t <= 0.0) {
        return t;
    }
    rt_cands_close(c, rt_cands_prefix(c, c->n_vocab));
    double low = t > range ? t - range : 0.0;
    double ln_w = 0.0;
    double x = c->n < 2 ? 0.0 : entropy(c, &ln_w) / rt_log((double)c->n);
    double y = x > 0x1p-1000 ? rt_exp((double)p->dynatemp_exponent * rt_log(x)) : 0.0;
    return low + (t + range - low) * y;
}

static uint32_t draw(rt_cands *c, double t, rt_rng *rng) {
    uint32_t n = rt_cands_prefix(c, 2);
    if (n < 2 || t <= 0.0) {
        return rt_cand_id(c->key[0]);
    }
    __extension__ typedef unsigned __int128 u128;
    u128 product = (u128)rt_rng_u64(rng) * rt_cands_total(c, t);
    uint64_t target = (uint64_t)(product >> 64);
    uint64_t sum = 0;
    uint32_t i = 0;
    for (uint32_t m = WALK_FIRST;; m *= WALK_MORE) {
        n = rt_cands_prefix(c, m);
        for (; i < n; i++) {
            sum += rt_cand_weight(rt_cand_logit(c->key[i]), c->max, t);
            if (sum > target) {
                return rt_cand_id(c->key[i]);
            }
        }
    }
}

/* Every step keeps the first candidate: the answer is the maximum. */
static bool is_greedy(const rt_sample_params *p) {
    return p->temperature <= 0.0F && p->typical_p >= 1.0F &&
           (p->xtc_probability <= 0.0F || p->xtc_threshold > 0.5F);
}

static uint32_t first_equal(const float *l, float x) {
    uint32_t i = 0;
    while (l[i] != x) {
        i++;
    }
    return i;
}

static uint32_t chain(rt_sampler *s, rt_sample_scratch *w) {
    const rt_sample_params *p = &s->params;
    rt_cands *c = &w->c;
    top_n_sigma(c, p->top_n_sigma);
    top_k(c, p);
    typical(c, w->place, p);
    top_p(c, p);
    min_p(c, p);
    xtc(c, p, &s->rng);
    return draw(c, temperature(c, p), &s->rng);
}

bool rt_sampler_pick(rt_sampler *s, rt_sample_scratch *w, const float *logits,
                     const uint32_t *history, uint32_t n_history, uint32_t *token, lb_err *err) {
    const rt_sample_params *p = &s->params;
    rt_cands *c = &w->c;
    if (n_history > w->history_max || s->n_vocab != c->n_vocab) {
        return lb_err_set(err, LB_LIMIT, "sampler: %u tokens of history, %u of vocabulary; made "
                          "for %u and %u", n_history, s->n_vocab, w->history_max, c->n_vocab);
    }
    memcpy(c->l, logits, c->n_vocab * sizeof c->l[0]);
    add_bias(c, p);
    penalise(w, p, history, n_history);
    dry(w, p, history, n_history);
    if (!check_all(c->l, c->n_vocab, &c->max, err)) {
        return false;
    }
    c->open = true;
    *token = is_greedy(p) ? first_equal(c->l, c->max) : chain(s, w);
    return true;
}

/* ---- probabilities ---- */

static double log_sum(const float *l, uint32_t n, float max) {
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        sum += rt_exp((double)l[i] - (double)max);
    }
    return rt_log(sum);
}

bool rt_sample_top(rt_sample_scratch *w, const float *logits, uint32_t n_vocab, uint32_t n,
                   rt_token_prob *out, uint32_t *n_out, lb_err *err) {
    rt_cands *c = &w->c;
    if (n_vocab != c->n_vocab) {
        return lb_err_set(err, LB_LIMIT, "sampler: a vocabulary of %u; made for %u", n_vocab,
                          c->n_vocab);
    }
    memcpy(c->l, logits, n_vocab * sizeof c->l[0]);
    if (!check_all(c->l, n_vocab, &c->max, err)) {
        return false;
    }
    c->open = true;
    double ln_sum = log_sum(c->l, n_vocab, c->max);
    *n_out = rt_cands_prefix(c, n);
    for (uint32_t i = 0; i < *n_out; i++) {
        float l = rt_cand_logit(c->key[i]);
        out[i] = (rt_token_prob){.token = rt_cand_id(c->key[i]), .logit = l,
                                 .log_prob = ((double)l - (double)c->max) - ln_sum};
    }
    return true;
}

bool rt_log_prob(const float *logits, uint32_t n_vocab, uint32_t token, double *out, lb_err *err) {
    float max = 0.0F;
    if (token >= n_vocab) {
        return lb_err_set(err, LB_BAD_VALUE, "token %u of a vocabulary of %u", token, n_vocab);
    }
    if (!check_all(logits, n_vocab, &max, err)) {
        return false;
    }
    *out = ((double)logits[token] - (double)max) - log_sum(logits, n_vocab, max);
    return true;
}
