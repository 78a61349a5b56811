/* test_sample.c -- the sampler against a slow reference that follows docs/sampling.md in plain
 * steps: sorted arrays, libm, doubles. Where the reference stands within 1e-9 of a limit it does
 * not judge. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cands.h"
#include "fmath.h"
#include "sample.h"

enum { VOCAB_MAX = 32001, HISTORY_MAX = 200 };

/* ---- no allocation: the linker sends malloc of this program through here ---- */

static size_t n_allocs;
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__wrap_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n) {
    n_allocs++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m) {
    n_allocs++;
    return __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n) {
    n_allocs++;
    return __real_realloc(p, n);
}

/* ---- the reference ---- */

typedef struct ref_cand {
    double l;
    uint32_t id;
    double p, d;
} ref_cand;

typedef struct ref {
    ref_cand c[VOCAB_MAX];
    uint32_t n;
    bool near; /* some limit was too close to judge */
} ref;

static ref R;

static int by_order(const void *a, const void *b) {
    const ref_cand *x = a;
    const ref_cand *y = b;
    return x->l > y->l ? -1 : x->l < y->l ? 1 : x->id < y->id ? -1 : 1;
}

static int by_typical(const void *a, const void *b) {
    const ref_cand *x = a;
    const ref_cand *y = b;
    if (fabs(x->d - y->d) < 1e-6) {
        R.near = R.near || x->l != y->l;
        return by_order(a, b);
    }
    return x->d < y->d ? -1 : 1;
}

/* a >= b, and remembers when that is a close call. */
static bool not_less(double a, double b) {
    if (fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b))) {
        R.near = true;
    }
    return a >= b;
}

static double softmax(double t) {
    double sum = 0;
    for (uint32_t i = 0; i < R.n; i++) {
        R.c[i].p = exp((R.c[i].l - R.c[0].l) / t);
        sum += R.c[i].p;
    }
    double h = 0;
    for (uint32_t i = 0; i < R.n; i++) {
        R.c[i].p /= sum;
        h -= R.c[i].p > 0 ? R.c[i].p * log(R.c[i].p) : 0;
    }
    return h;
}

static void ref_dry(float *l, const rt_sample_params *p, const uint32_t *hist, uint32_t n_hist) {
    int n = p->dry_last_n < 0 || p->dry_last_n > (int)n_hist ? (int)n_hist : p->dry_last_n;
    const uint32_t *c = hist + (int)n_hist - n;
    int limit = n;
    for (uint32_t b = 0; b < p->n_dry_breakers; b++) {
        int k = (int)p->dry_breakers[b].n;
        for (int at = 0; at + k <= n; at++) {
            bool same = true;
            for (int i = 0; i < k; i++) {
                same = same && c[at + i] == p->dry_breakers[b].ids[i];
            }
            if (same && n - at - k < limit) {
                limit = n - at - k;
            }
        }
    }
    if (p->dry_multiplier == 0 || n <= p->dry_allowed_length || limit < p->dry_allowed_length) {
        return;
    }
    static int best[VOCAB_MAX];
    memset(best, 0, sizeof best);
    for (int i = 0; i < n - 1; i++) {
        int r = 0;
        while (r <= i && r < limit && c[i - r] == c[n - 1 - r]) {
            r++;
        }
        if (r >= p->dry_allowed_length && r > best[c[i + 1]]) {
            best[c[i + 1]] = r;
        }
    }
    for (uint32_t t = 0; t < VOCAB_MAX; t++) {
        bool alone = false;
        for (uint32_t b = 0; b < p->n_dry_breakers; b++) {
            alone = alone || (p->dry_breakers[b].n == 1 && p->dry_breakers[b].ids[0] == t);
        }
        if (best[t] > 0 && !alone) {
            double e = fmin(best[t] - p->dry_allowed_length,
                            floor(88.7228391 / log((double)p->dry_base)));
            l[t] -= (float)((double)p->dry_multiplier * pow((double)p->dry_base, e));
        }
    }
}

static void ref_edit(float *l, const rt_sample_params *p, const uint32_t *hist, uint32_t n_hist) {
    for (uint32_t i = 0; i < p->n_bias; i++) {
        l[p->bias[i].token] += p->bias[i].bias;
    }
    static int count[VOCAB_MAX];
    memset(count, 0, sizeof count);
    int last = p->repeat_last_n < 0 ? (int)n_hist : p->repeat_last_n;
    for (int i = 0; i < (int)n_hist; i++) {
        count[hist[i]] += i >= (int)n_hist - last;
    }
    for (uint32_t t = 0; t < VOCAB_MAX; t++) {
        if (count[t] > 0) {
            l[t] = l[t] > 0 ? l[t] / p->repeat_penalty : l[t] * p->repeat_penalty;
            l[t] -= (float)count[t] * p->frequency_penalty + p->presence_penalty;
        }
    }
    ref_dry(l, p, hist, n_hist);
}

static void ref_filters(const rt_sample_params *p) {
    if (p->top_n_sigma > 0) {
        double mean = 0;
        double var = 0;
        for (uint32_t i = 0; i < R.n; i++) {
            mean += R.c[i].l / R.n;
        }
        for (uint32_t i = 0; i < R.n; i++) {
            var += (R.c[i].l - mean) * (R.c[i].l - mean) / R.n;
        }
        uint32_t n = 1;
        while (n < R.n && not_less(R.c[n].l, R.c[0].l - (double)p->top_n_sigma * sqrt(var))) {
            n++;
        }
        R.n = n;
    }
    if (p->top_k > 0) {
        uint32_t k = (uint32_t)p->top_k > p->min_keep ? (uint32_t)p->top_k : p->min_keep;
        R.n = k < R.n ? k : R.n;
    }
    if (p->typical_p < 1) {
        double h = softmax(1);
        for (uint32_t i = 0; i < R.n; i++) {
            R.c[i].d = fabs(-log(R.c[i].p) - h);
        }
        qsort(R.c, R.n, sizeof R.c[0], by_typical);
        double sum = 0;
        uint32_t n = 0;
        while (n < R.n && !(n > 0 && not_less(sum, (double)p->typical_p) && n >= p->min_keep)) {
            sum += R.c[n++].p;
        }
        R.n = n;
        qsort(R.c, R.n, sizeof R.c[0], by_order);
    }
}

static void ref_filters_2(const rt_sample_params *p) {
    if (p->top_p < 1) {
        softmax(1);
        double sum = 0;
        uint32_t n = 0;
        while (n < R.n && !(n > 0 && not_less(sum, (double)p->top_p) && n >= p->min_keep)) {
            sum += R.c[n++].p;
        }
        R.n = n;
    }
    if (p->min_p > 0) {
        uint32_t n = 1;
        while (n < R.n &&
               (n < p->min_keep || not_less(R.c[n].l, R.c[0].l + log((double)p->min_p)))) {
            n++;
        }
        R.n = n;
    }
}

static void ref_xtc(const rt_sample_params *p, rt_rng *rng) {
    if (p->xtc_probability <= 0 || p->xtc_threshold > 0.5F || R.n < 2) {
        return;
    }
    if (rt_rng_u32(rng) / 4294967296.0 > (double)p->xtc_probability) {
        return;
    }
    softmax(1);
    uint32_t n = 0;
    while (n < R.n && not_less(R.c[n].p, (double)p->xtc_threshold)) {
        n++;
    }
    if (n >= 2 && R.n - (n - 1) >= p->min_keep) {
        memmove(R.c, R.c + n - 1, (R.n - (n - 1)) * sizeof R.c[0]);
        R.n -= n - 1;
    }
}

static uint32_t ref_draw(const rt_sample_params *p, rt_rng *rng) {
    double t = (double)p->temperature;
    if (p->dynatemp_range > 0 && t > 0) {
        double lo = fmax(0, t - (double)p->dynatemp_range);
        double h = softmax(1);
        double x = R.n < 2 ? 0 : h / log(R.n);
        t = lo + (t + (double)p->dynatemp_range - lo) * pow(x, (double)p->dynatemp_exponent);
        t = R.n < 2 ? lo : t;
    }
    if (R.n == 1 || t <= 0) {
        return R.c[0].id;
    }
    softmax(t);
    double a = rt_rng_u32(rng);
    double r = (a + rt_rng_u32(rng) * 4294967296.0) / 18446744073709551616.0;
    double sum = 0;
    for (uint32_t i = 0; i < R.n; i++) {
        sum += R.c[i].p;
        R.near = R.near || fabs(sum - r) < 1e-8;
        if (sum > r) {
            return R.c[i].id;
        }
    }
    R.near = true;
    return R.c[R.n - 1].id;
}

static uint32_t ref_pick(const rt_sample_params *p, rt_rng *rng, const float *logits, uint32_t n,
                         const uint32_t *hist, uint32_t n_hist) {
    static float l[VOCAB_MAX];
    for (uint32_t i = 0; i < VOCAB_MAX; i++) {
        l[i] = i < n ? logits[i] : -INFINITY;
    }
    ref_edit(l, p, hist, n_hist);
    R.n = 0;
    R.near = false;
    for (uint32_t i = 0; i < n; i++) {
        if (l[i] > -INFINITY) {
            R.c[R.n++] = (ref_cand){.l = (double)l[i], .id = i};
        }
    }
    qsort(R.c, R.n, sizeof R.c[0], by_order);
    ref_filters(p);
    ref_filters_2(p);
    ref_xtc(p, rng);
    return ref_draw(p, rng);
}

/* ---- helpers ---- */

static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "test", 64 << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    return 0;
}

static rt_sample_scratch *scratch_for(uint32_t n_vocab) {
    rt_sample_scratch *w = NULL;
    lb_err e = {0};
    assert_true(rt_sample_scratch_new(n_vocab, HISTORY_MAX, &arena, &w, &e));
    return w;
}

static uint32_t noise_state = 1;

static double uniform(void) {
    noise_state = noise_state * 1664525U + 1013904223U;
    return (noise_state >> 8) * (1.0 / 16777216.0);
}

static int pick_int(int lo, int hi) {
    return lo + (int)(uniform() * (hi - lo + 1));
}

/* kind 0: smooth; 1: steps of 1/2, so many ties; 2: with tokens at -inf. */
static void fill(float *l, uint32_t n, int kind) {
    double scale = uniform() * 4;
    for (uint32_t i = 0; i < n; i++) {
        double g = 0;
        for (int j = 0; j < 6; j++) {
            g += uniform() - 0.5;
        }
        l[i] = (float)(g * scale * 3);
        if (kind == 1) {
            l[i] = rintf(l[i] * 2) / 2;
        }
        if (kind == 2 && i % 3 == 1) {
            l[i] = -INFINITY;
        }
    }
}

static const uint32_t BREAK_A[] = {3};
static const uint32_t BREAK_B[] = {1, 2};
static const rt_token_seq BREAKERS[] = {{BREAK_A, 1}, {BREAK_B, 2}};
static rt_logit_bias BIAS[2];

static float one_of(float off, float lo, float hi) {
    return uniform() < 0.5 ? off : lo + (float)uniform() * (hi - lo);
}

static void random_params(rt_sample_params *p, uint32_t n_vocab) {
    rt_sample_defaults(NULL, p);
    BIAS[0] = (rt_logit_bias){0, uniform() < 0.5 && n_vocab > 2 ? -INFINITY : 1.5F};
    BIAS[1] = (rt_logit_bias){n_vocab - 1, -2.0F};
    p->bias = BIAS;
    p->n_bias = uniform() < 0.3 ? 2 : 0;
    p->repeat_penalty = one_of(1.0F, 0.8F, 1.5F);
    p->frequency_penalty = one_of(0, -0.2F, 0.5F);
    p->presence_penalty = one_of(0, -0.2F, 0.5F);
    p->repeat_last_n = pick_int(-1, 70);
    p->dry_multiplier = one_of(0, 0.1F, 1.0F);
    p->dry_base = 1.0F + (float)uniform() * 2;
    p->dry_allowed_length = pick_int(1, 4);
    p->dry_last_n = pick_int(-1, 100);
    p->dry_breakers = BREAKERS;
    p->n_dry_breakers = (uint32_t)pick_int(0, 2);
    p->top_n_sigma = one_of(-1, 0.1F, 3);
    p->top_k = uniform() < 0.5 ? 0 : pick_int(1, 60);
    p->typical_p = one_of(1, 0, 1);
    p->top_p = one_of(1, 0, 1);
    p->min_p = one_of(0, 0, 0.5F);
    p->xtc_probability = one_of(0, 0, 1);
    p->xtc_threshold = (float)uniform() * 0.55F;
    p->temperature = one_of(1, 0, 2);
    p->dynatemp_range = one_of(0, 0, 1);
    p->dynatemp_exponent = one_of(1, 0, 2);
    p->min_keep = uniform() < 0.7 ? 0 : (uint32_t)pick_int(1, 20);
    p->seed = (uint32_t)(uniform() * 4e9);
}

/* ---- tests ---- */

static void rng_known_answer(void **state) {
    (void)state;
    rt_rng r;
    rt_rng_seed(&r, 5489);
    uint32_t x = 0;
    for (int i = 0; i < 10000; i++) {
        x = rt_rng_u32(&r);
    }
    assert_int_equal(x, 4123659995U); /* ISO C++ [rand.predef] */
    rt_rng_seed(&r, 7);
    rt_rng again = r;
    uint64_t low = rt_rng_u32(&again);
    assert_true(rt_rng_u64(&r) == (low | (uint64_t)rt_rng_u32(&again) << 32));
}

static void exp_and_log_are_close(void **state) {
    (void)state;
    for (int i = 0; i < 200000; i++) {
        double x = -uniform() * (i % 2 ? 1 : 700);
        assert_true(fabs(rt_exp(x) - exp(x)) <= 1e-14 * exp(x));
        double y = exp((uniform() - 0.5) * 1400);
        assert_true(fabs(rt_log(y) - log(y)) <= 1e-15 * (1 + fabs(log(y))));
    }
    assert_true(rt_exp(0) == 1 && rt_exp(-0.0) == 1 && rt_log(1) == 0);
    assert_true(rt_exp(-INFINITY) == 0 && rt_exp(-709) == 0 && rt_exp((double)NAN) == 0);
}

static void keys_order_as_logits(void **state) {
    (void)state;
    static const float l[] = {INFINITY, 3.5F, 1e-40F, 0.0F, -0.0F, -1e-40F, -2, -INFINITY};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(rt_cand_id(rt_cand_key(l[i], 77)), 77);
        assert_true(rt_cand_logit(rt_cand_key(l[i], 77)) == l[i]);
        for (uint32_t j = i + 1; j < 8; j++) {
            assert_true(rt_cand_key(l[i], i) < rt_cand_key(l[j], j));
            assert_true(l[i] == l[j] || rt_cand_key(l[i], 9) < rt_cand_key(l[j], 0));
        }
    }
}

static void every_step_agrees_with_the_reference(void **state) {
    (void)state;
    static const struct {
        uint32_t n_vocab;
        int cases;
    } sizes[] = {{1, 50}, {2, 300}, {17, 3000}, {300, 1500}, {32001, 12}};
    static float l[VOCAB_MAX];
    static float copy[VOCAB_MAX];
    uint32_t hist[HISTORY_MAX];
    int judged = 0;
    int near = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint32_t n = sizes[s].n_vocab;
        rt_sample_scratch *w = scratch_for(n);
        for (int k = 0; k < sizes[s].cases; k++) {
            rt_sample_params p;
            rt_sampler sampler;
            lb_err e = {0};
            random_params(&p, n);
            assert_true(rt_sampler_start(&sampler, &p, n, &e));
            rt_rng rng = sampler.rng;
            uint32_t n_hist = (uint32_t)pick_int(0, HISTORY_MAX);
            for (uint32_t i = 0; i < n_hist; i++) { /* few different ones: long repeats */
                hist[i] = (uint32_t)pick_int(0, n < 5 ? (int)n - 1 : 4);
            }
            fill(l, n, n < 3 ? 0 : k % 3);
            memcpy(copy, l, n * sizeof l[0]);
            uint32_t got = 0;
            uint32_t want = ref_pick(&p, &rng, l, n, hist, n_hist);
            assert_true(rt_sampler_pick(&sampler, w, l, hist, n_hist, &got, &e));
            assert_memory_equal(l, copy, n * sizeof l[0]);
            near += R.near;
            if (!R.near) {
                judged++;
                assert_int_equal(got, want);
                assert_int_equal(sampler.rng.next, rng.next); /* as many outputs taken */
            }
        }
    }
    assert_true(near * 12 < judged); /* typical_p over ties is most of it */
}

static void ties_go_to_the_lowest_id(void **state) {
    (void)state;
    static float l[VOCAB_MAX];
    lb_err e = {0};
    for (uint32_t n = 1; n < 70; n++) {
        rt_sample_scratch *w = scratch_for(n);
        rt_sample_params p;
        rt_sampler s;
        rt_sample_defaults(NULL, &p);
        p.temperature = 0;
        assert_true(rt_sampler_start(&s, &p, n, &e));
        for (uint32_t at = 0; at < n; at++) {
            for (uint32_t i = 0; i < n; i++) {
                l[i] = i >= at && (i - at) % 3 == 0 ? 5.0F : -0.5F;
            }
            uint32_t t = n;
            assert_true(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
            assert_int_equal(t, at);
        }
        l[0] = -0.0F; /* equal to +0 */
        for (uint32_t i = 1; i < n; i++) {
            l[i] = 0.0F;
        }
        uint32_t t = n;
        assert_true(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
        assert_int_equal(t, 0);
    }
}

/* Selection must not depend on how the values lie: ascending, descending, equal, random. */
static void top_tokens_of_any_arrangement(void **state) {
    (void)state;
    static float l[VOCAB_MAX];
    static rt_token_prob top[VOCAB_MAX];
    static const uint32_t ns[] = {1, 40, 129, 5000, VOCAB_MAX};
    rt_sample_scratch *w = scratch_for(VOCAB_MAX);
    lb_err e = {0};
    for (int kind = 0; kind < 4; kind++) {
        for (uint32_t i = 0; i < VOCAB_MAX; i++) {
            const uint32_t kinds[] = {i, VOCAB_MAX - i, 7, i * 7919U % 997};
            l[i] = (float)kinds[kind] * 0.01F;
            R.c[i] = (ref_cand){.l = (double)l[i], .id = i};
        }
        qsort(R.c, VOCAB_MAX, sizeof R.c[0], by_order);
        R.n = VOCAB_MAX;
        softmax(1);
        for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++) {
            uint32_t n = 0;
            assert_true(rt_sample_top(w, l, VOCAB_MAX, ns[k], top, &n, &e));
            assert_int_equal(n, ns[k]);
            for (uint32_t i = 0; i < n; i++) {
                double lp = 0;
                assert_int_equal(top[i].token, R.c[i].id);
                assert_true(top[i].logit == l[R.c[i].id]);
                assert_true(fabs(top[i].log_prob - log(R.c[i].p)) < 1e-9 ||
                            R.c[i].p < 1e-300);
                if (i < 3) {
                    assert_true(rt_log_prob(l, VOCAB_MAX, top[i].token, &lp, &e));
                    assert_true(lp == top[i].log_prob);
                }
            }
        }
    }
}

static void draws_follow_the_probabilities(void **state) {
    (void)state;
    const float l[4] = {logf(0.5F), logf(0.25F), -INFINITY, logf(0.25F)};
    rt_sample_scratch *w = scratch_for(4);
    rt_sample_params p;
    rt_sampler s;
    lb_err e = {0};
    rt_sample_defaults(NULL, &p);
    assert_true(rt_sampler_start(&s, &p, 4, &e));
    int count[4] = {0};
    for (int i = 0; i < 40000; i++) {
        uint32_t t = 0;
        assert_true(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
        count[t]++;
    }
    assert_int_equal(count[2], 0);
    assert_true(abs(count[0] - 20000) < 500 && abs(count[1] - 10000) < 450);
}

static void bad_logits_are_errors(void **state) {
    (void)state;
    float l[40] = {0};
    rt_sample_scratch *w = scratch_for(40);
    rt_sample_params p;
    rt_sampler s;
    lb_err e = {0};
    uint32_t t = 99;
    double lp = 0;
    rt_sample_defaults(NULL, &p);
    for (int greedy = 0; greedy < 2; greedy++) {
        p.temperature = greedy ? 0.0F : 1.0F;
        assert_true(rt_sampler_start(&s, &p, 40, &e));
        for (uint32_t i = 0; i < 40; i++) {
            char name[32];
            snprintf(name, sizeof name, "token %u is not a number", i);
            l[i] = NAN;
            assert_false(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
            assert_int_equal(e.code, LB_BAD_VALUE);
            assert_non_null(strstr(e.text, name));
            l[i] = INFINITY;
            assert_false(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
            assert_non_null(strstr(e.text, "is infinite"));
            assert_false(rt_log_prob(l, 40, 0, &lp, &e));
            l[i] = 0;
        }
    }
    for (int i = 0; i < 40; i++) {
        l[i] = -INFINITY;
    }
    assert_false(rt_sampler_pick(&s, w, l, NULL, 0, &t, &e));
    assert_non_null(strstr(e.text, "none of 40 tokens"));
    assert_int_equal(t, 99);
    static const uint32_t long_history[HISTORY_MAX + 1];
    l[0] = 0;
    assert_true(rt_sampler_pick(&s, w, l, long_history, HISTORY_MAX, &t, &e));
    assert_false(rt_sampler_pick(&s, w, l, long_history, HISTORY_MAX + 1, &t, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_false(rt_log_prob(l, 40, 40, &lp, &e));
    uint32_t n = 0;
    rt_token_prob top[1];
    assert_false(rt_sample_top(w, l, 41, 1, top, &n, &e));
}

static void bad_parameters_are_named(void **state) {
    (void)state;
    rt_logit_bias bias = {0, 0};
    rt_token_seq breaker = {NULL, 0};
    for (int k = 0; k < 22; k++) {
        static const char *const names[] = {
            "temperature", "temperature", "top_p", "top_p", "min_p", "typical_p",
            "repeat_penalty", "repeat_penalty", "repeat_last_n", "frequency_penalty",
            "presence_penalty", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_last_n",
            "top_n_sigma", "xtc_probability", "xtc_threshold", "dynatemp_range", "logit_bias",
            "logit_bias", "DRY breaker"};
        rt_sample_params p;
        rt_sampler s;
        lb_err e = {0};
        rt_sample_defaults(NULL, &p);
        p.bias = &bias;
        p.n_bias = 1;
        bias = (rt_logit_bias){4, -INFINITY};
        assert_true(rt_sampler_start(&s, &p, 5, &e));
        switch (k) {
        case 0: p.temperature = -0.1F; break;
        case 1: p.temperature = NAN; break;
        case 2: p.top_p = 1.01F; break;
        case 3: p.top_p = NAN; break;
        case 4: p.min_p = -1; break;
        case 5: p.typical_p = 2; break;
        case 6: p.repeat_penalty = 0; break;
        case 7: p.repeat_penalty = INFINITY; break;
        case 8: p.repeat_last_n = -2; break;
        case 9: p.frequency_penalty = NAN; break;
        case 10: p.presence_penalty = INFINITY; break;
        case 11: p.dry_multiplier = -1; break;
        case 12: p.dry_base = -1; break;
        case 13: p.dry_allowed_length = 0; break;
        case 14: p.dry_last_n = -2; break;
        case 15: p.top_n_sigma = NAN; break;
        case 16: p.xtc_probability = 1.5F; break;
        case 17: p.xtc_threshold = -0.5F; break;
        case 18: p.dynatemp_range = INFINITY; break;
        case 19: bias.token = 5; break;
        case 20: bias.bias = INFINITY; break;
        default: p.dry_breakers = &breaker; p.n_dry_breakers = 1; break;
        }
        assert_false(rt_sampler_start(&s, &p, 5, &e));
        assert_int_equal(e.code, LB_BAD_VALUE);
        assert_non_null(strstr(e.text, names[k]));
    }
}

static void picking_allocates_nothing(void **state) {
    (void)state;
    static float l[VOCAB_MAX];
    uint32_t hist[HISTORY_MAX] = {0};
    rt_sample_scratch *w = scratch_for(VOCAB_MAX);
    fill(l, VOCAB_MAX, 0);
    for (int k = 0; k < 30; k++) {
        rt_sample_params p;
        rt_sampler s;
        uint32_t t = 0;
        lb_err e = {0};
        random_params(&p, VOCAB_MAX);
        size_t before = n_allocs;
        bool ok = rt_sampler_start(&s, &p, VOCAB_MAX, &e) &&
                  rt_sampler_pick(&s, w, l, hist, HISTORY_MAX, &t, &e);
        size_t after = n_allocs;
        assert_true(ok);
        assert_int_equal(before, after);
    }
}

static void scratch_survives_every_failed_allocation(void **state) {
    (void)state;
    lb_arena a;
    lb_err e = {0};
    rt_sample_scratch *w = NULL;
    for (int64_t n = 0; n < 10; n++) {
        lb_arena_init(&a, "test", 1 << 20);
        a.fail_after = n;
        bool ok = rt_sample_scratch_new(100, 10, &a, &w, &e);
        assert_int_equal(ok, n >= 7);
        lb_arena_reset(&a);
    }
}

static void model_defaults_are_taken(void **state) {
    (void)state;
    const rt_sampling d = {.temperature = 0.7F, .top_p = 0.9F, .min_p = 0.1F,
                           .repeat_penalty = 1.1F, .frequency_penalty = 0.2F,
                           .presence_penalty = 0.3F, .top_k = 20, .repeat_last_n = 32};
    rt_sample_params p;
    rt_sample_defaults(&d, &p);
    assert_true(p.temperature == 0.7F && p.top_p == 0.9F && p.min_p == 0.1F && p.top_k == 20);
    assert_true(p.repeat_penalty == 1.1F && p.frequency_penalty == 0.2F);
    assert_true(p.presence_penalty == 0.3F && p.repeat_last_n == 32);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_known_answer),
        cmocka_unit_test(exp_and_log_are_close),
        cmocka_unit_test(keys_order_as_logits),
        cmocka_unit_test(every_step_agrees_with_the_reference),
        cmocka_unit_test(ties_go_to_the_lowest_id),
        cmocka_unit_test(top_tokens_of_any_arrangement),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(bad_logits_are_errors),
        cmocka_unit_test(bad_parameters_are_named),
        cmocka_unit_test(picking_allocates_nothing),
        cmocka_unit_test(scratch_survives_every_failed_allocation),
        cmocka_unit_test(model_defaults_are_taken),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
