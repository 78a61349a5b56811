/* device_sample.c -- test program: sampling on a device against runtime/sample.c, the one
 * specification of both (docs/sampling.md). For each vocabulary of sample_cases[]: rows of logits
 * and parameters of every kind; the plain twin and, in each order of softgpu, the CUDA kernels make
 * the same words; each choice is the token and the number of outputs used of the host's sampler, or
 * is left to it where more candidates are needed than the device keeps. Prints a line a vocabulary;
 * exit 1 with what differs. Linked with a table from test_sample.py. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_sample.h"
#include "pick.h"
#include "sample.h"
#include "softgpu.h"

enum { ROWS_MAX = 512, HISTORY = 40, ALIGN = 64 };

typedef struct row {
    rt_sample_params params;
    rt_sampler sampler;
    uint32_t history[HISTORY];
    uint32_t n_history, token; /* the host's */
    rt_sampler after;          /* the host's sampler behind it */
    lb_err err;
    bool ok;
} row;

typedef struct world {
    const sample_case *c;
    uint32_t n_rows, n_tiles, n_words; /* words: of a tile's head */
    row *rows;
    rt_pick *picks;
    float *logits;
    uint64_t *heads, *totals, *choices; /* of the plain twin */
    rt_logit_bias bias[3];
} world;

static uint32_t random_u32(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static float noise(uint64_t *state) {
    float sum = 0.0f;
    for (int i = 0; i < 6; i++) {
        sum += (float)(random_u32(state) >> 8) * 0x1p-23f - 0.5f;
    }
    return sum;
}

/* ---- rows: logits of many shapes, parameters of many kinds */

enum shape {
    NORMAL,
    PEAKED,
    FLAT,
    TIES,
    FALLING,
    FORBIDDEN,
    ZEROS,
    ONE_LEFT,
    WIDE,
    NONE_LEFT,
    NOT_A_NUMBER,
    INFINITE,
    N_SHAPES
};

static void fill_logits(enum shape shape, uint32_t V, uint64_t *state, float *l) {
    uint32_t special = random_u32(state) % V;
    for (uint32_t i = 0; i < V; i++) {
        float x = noise(state);
        l[i] = shape == PEAKED      ? 12.0f * x
               : shape == FLAT      ? 1e-3f * x
               : shape == TIES      ? (float)(int)(4.0f * x)
               : shape == FALLING   ? 10.0f - 20.0f * (float)i / (float)V
               : shape == FORBIDDEN ? (random_u32(state) % 8 == 0 ? x : -INFINITY)
               : shape == ZEROS     ? (i % 2 == 0 ? 0.0f : -0.0f)
               : shape == ONE_LEFT  ? (i == special ? -3.0f : -INFINITY)
               : shape == WIDE      ? 1e4f * x
               : shape == NONE_LEFT ? -INFINITY
                                    : 3.0f * x;
    }
    if (shape == NOT_A_NUMBER || shape == INFINITE) {
        l[special] = shape == INFINITE ? INFINITY : NAN;
        l[V - 1] = shape == INFINITE ? NAN : INFINITY;
    }
}

static float among(uint64_t *state, const float *list, uint32_t n) {
    return list[random_u32(state) % n];
}

/* The first kinds are what people use; after them everything at random. */
static void fill_params(uint32_t kind, uint32_t V, uint64_t *state, world *w, row *r) {
    static const float temperatures[] = {0.0f, 1e-30f, 0.1f, 0.8f, 1.0f, 2.5f, 100.0f};
    static const float ps[] = {0.0f, 0.05f, 0.5f, 0.9f, 0.95f, 0.999f, 1.0f, 1.0f};
    static const float min_ps[] = {0.0f, 0.0f, 0.01f, 0.05f, 0.5f, 1.0f};
    static const int ks[] = {0, 0, 1, 2, 40, 64, 65, 200, 1000000};
    rt_sample_params *p = &r->params;
    rt_sample_defaults(NULL, p);
    p->seed = random_u32(state);
    if (kind == 0) {
        p->temperature = 0.0f;
        return;
    }
    if (kind == 1) {
        p->temperature = 0.8f;
        p->top_k = 40;
        p->top_p = 0.95f;
        p->min_p = 0.05f;
        return;
    }
    p->temperature = among(state, temperatures, 7);
    p->top_p = among(state, ps, 8);
    p->min_p = among(state, min_ps, 6);
    p->top_k = ks[random_u32(state) % 9];
    p->min_keep = random_u32(state) % 4 == 0 ? random_u32(state) % 70 : 0;
    if (random_u32(state) % 3 == 0) {
        p->repeat_penalty = 1.3f;
        p->frequency_penalty = 0.25f;
        p->presence_penalty = random_u32(state) % 2 == 0 ? -0.5f : 0.125f;
        p->repeat_last_n = (int32_t)(random_u32(state) % 50) - 1;
    }
    if (random_u32(state) % 4 == 0) {
        p->bias = w->bias;
        p->n_bias = V < 3 ? 1 : 3;
    }
}

static bool fill_row(world *w, uint32_t i, rt_sample_scratch *scratch, uint64_t *state,
                     lb_err *err) {
    row *r = &w->rows[i];
    uint32_t V = w->c->n_vocab;
    float *l = w->logits + (size_t)i * V;
    fill_logits((enum shape)(i < 2 * N_SHAPES ? i / 2 : random_u32(state) % NONE_LEFT), V, state,
                l);
    fill_params(i < 2 * N_SHAPES ? i % 2 : 2, V, state, w, r);
    r->n_history = random_u32(state) % (HISTORY + 1);
    for (uint32_t k = 0; k < r->n_history; k++) {
        r->history[k] = random_u32(state) % (V < 9 ? V : V / 3);
    }
    if (!rt_sampler_start(&r->sampler, &r->params, V, err)) {
        return false;
    }
    const rt_pick_history h = {r->history, r->history + r->n_history / 3, r->n_history / 3,
                               r->n_history - r->n_history / 3};
    if (!rt_pick_make(&r->sampler, &h, &w->picks[i])) {
        return lb_err_set(err, LB_BAD_VALUE, "row %u is not for a device", i);
    }
    r->after = r->sampler;
    r->ok = rt_sampler_pick(&r->after, scratch, l, r->history, r->n_history, &r->token, &r->err);
    return true;
}

/* ---- running the stages */

typedef struct words {
    uint64_t *heads, *totals, *choices;
} words;

static void *room(size_t n_bytes) {
    void *p = NULL;
    if (posix_memalign(&p, ALIGN, n_bytes) != 0) {
        fprintf(stderr, "sample: no memory\n");
        exit(2);
    }
    memset(p, 0xa5, n_bytes);
    return p;
}

static words new_words(const world *w) {
    size_t tiles = (size_t)w->n_rows * w->n_tiles;
    return (words){room(8 * tiles * w->n_words), room(8 * tiles), room(8 * (size_t)w->n_rows)};
}

static void free_words(words *o) {
    free(o->heads);
    free(o->totals);
    free(o->choices);
}

static bool same_words(const world *w, const words *a, const words *b) {
    size_t tiles = (size_t)w->n_rows * w->n_tiles;
    return memcmp(a->heads, b->heads, 8 * tiles * w->n_words) == 0 &&
           memcmp(a->totals, b->totals, 8 * tiles) == 0 &&
           memcmp(a->choices, b->choices, 8 * (size_t)w->n_rows) == 0;
}

static void run_plain(const world *w, const rt_step *step, const words *o) {
    const void *tiles[] = {w->logits, o->heads, step};
    const void *total[] = {w->logits, o->heads, o->totals, step};
    const void *pick[] = {o->heads, o->totals, o->choices, step};
    w->c->plain[0](tiles, 0, w->n_rows * w->n_tiles);
    w->c->plain[1](total, 0, w->n_rows * w->n_tiles);
    w->c->plain[2](pick, 0, w->n_rows);
}

static bool run_soft(const world *w, const rt_step *step, const words *o, soft_order order,
                     lb_err *err) {
    const void *params[3][4] = {{w->logits, o->heads, step},
                                {w->logits, o->heads, o->totals, step},
                                {o->heads, o->totals, o->choices, step}};
    for (int stage = 0; stage < 3; stage++) {
        const soft_launch l = {.kernel = w->c->soft[stage],
                               .params = params[stage],
                               .grid = {w->n_rows, stage == 2 ? 1 : w->n_tiles, 1},
                               .block = w->c->block[stage],
                               .smem_bytes = w->c->smem_bytes[stage],
                               .order = order};
        if (!soft_run(&l, err)) {
            return lb_err_prefix(err, "stage %d", stage);
        }
    }
    return true;
}

/* ---- judging */

static bool wrong(const world *w, uint32_t i, const char *what) {
    const row *r = &w->rows[i];
    const rt_sample_params *p = &r->params;
    fprintf(
        stderr,
        "sample: vocabulary %u, row %u: %s; choice %llx, host %s %u; temperature %g top_k %d top_p %g "
        "min_p %g min_keep %u\n",
        w->c->n_vocab, i, what, (unsigned long long)w->choices[i], r->ok ? "token" : r->err.text,
        r->token, (double)p->temperature, p->top_k, (double)p->top_p, (double)p->min_p,
        p->min_keep);
    return false;
}

/* What no host needs to be asked for: 64 candidates are always known. */
static bool must_decide(const row *r) {
    uint32_t k = (uint32_t)r->params.top_k;
    k = k > r->params.min_keep ? k : r->params.min_keep;
    return r->params.temperature <= 0.0f || (r->params.top_k > 0 && k <= 64);
}

static bool judge(const world *w, uint32_t i, uint32_t *undecided) {
    row *r = &w->rows[i];
    lb_err err = {0};
    uint32_t token = 0;
    if (rt_picked_kind_of(w->choices[i]) == RT_PICKED_UNDECIDED) {
        (*undecided)++;
        return !must_decide(r) || wrong(w, i, "left to the host");
    }
    bool ok = rt_pick_take(&r->sampler, w->choices[i], &token, &err);
    if (ok != r->ok || (ok && token != r->token)) {
        return wrong(w, i, "another choice");
    }
    if (!ok && strcmp(err.text, r->err.text) != 0) {
        return wrong(w, i, err.text);
    }
    return memcmp(&r->sampler.rng, &r->after.rng, sizeof r->after.rng) == 0 ||
           wrong(w, i, "other outputs of the generator used");
}

static bool run_case(const sample_case *c, lb_err *err) {
    world w = {.c = c, .n_rows = c->n_rows, .n_tiles = c->n_tiles, .n_words = c->n_words};
    uint64_t state = c->n_vocab;
    lb_arena arena;
    rt_sample_scratch *scratch = NULL;
    lb_arena_init(&arena, "sample", UINT64_C(1) << 30);
    w.rows = calloc(w.n_rows, sizeof *w.rows);
    w.picks = room(w.n_rows * sizeof *w.picks);
    w.logits = room(4 * (size_t)w.n_rows * c->n_vocab);
    w.bias[0] = (rt_logit_bias){0, 1.5f};
    w.bias[1] = (rt_logit_bias){c->n_vocab / 2, -INFINITY};
    w.bias[2] = (rt_logit_bias){c->n_vocab - 1, -0.75f};
    bool ok = w.rows != NULL && rt_sample_scratch_new(c->n_vocab, HISTORY, &arena, &scratch, err);
    for (uint32_t i = 0; ok && i < w.n_rows; i++) {
        ok = fill_row(&w, i, scratch, &state, err);
    }
    const rt_step step = {.n_rows = w.n_rows, .n_logits = w.n_rows, .picks = w.picks};
    words plain = new_words(&w);
    w.choices = plain.choices;
    if (ok) {
        run_plain(&w, &step, &plain);
    }
    for (int order = 0; ok && order < SOFT_N_ORDERS; order++) {
        words soft = new_words(&w);
        ok =
            run_soft(&w, &step, &soft, (soft_order)order, err) &&
            (same_words(&w, &plain, &soft) ||
             lb_err_set(err, LB_PROOF, "turns of kind %d: other words than the plain twin", order));
        free_words(&soft);
    }
    uint32_t undecided = 0;
    bool good = ok;
    for (uint32_t i = 0; ok && i < w.n_rows; i++) {
        good = judge(&w, i, &undecided) && good;
    }
    if (ok && good) {
        printf("vocabulary %u: %u rows, %u left to the host\n", c->n_vocab, w.n_rows, undecided);
    }
    free_words(&plain);
    free(w.rows);
    free(w.picks);
    free(w.logits);
    lb_arena_reset(&arena);
    return good;
}

int main(void) {
    for (uint32_t i = 0; i < n_sample_cases; i++) {
        lb_err err = {0};
        if (!run_case(&sample_cases[i], &err)) {
            fprintf(stderr, "sample: vocabulary %u: %s\n", sample_cases[i].n_vocab, err.text);
            return 1;
        }
    }
    return 0;
}
