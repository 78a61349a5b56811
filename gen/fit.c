/* fit.c -- see fit.h. Every size comes from planning again; searches halve intervals, so what they
 * find is a value that fits beside a next one that does not. */
#include "fit.h"

#include <inttypes.h>

enum { TMP_BYTES = 1 << 29, STEP_TOKENS = 1024, SMALL_CHUNK = 64 };

typedef struct fitter {
    const lg_result *r;
    const lg_pools *pools;
    lb_arena tmp; /* of one combination */
    lb_arena *arena;
    lb_err *err;
} fitter;

/* One of the three numbers that a user may change. */
typedef enum knob { KNOB_CTX, KNOB_CHUNK, KNOB_SLOTS } knob;

static lg_limits with(const lg_limits *l, knob k, uint64_t value) {
    lg_limits v = *l;
    *(k == KNOB_CTX ? &v.ctx : k == KNOB_CHUNK ? &v.chunk : &v.slots) = value;
    return v;
}

/* Whether a combination fits; `proved` asks planner and prover too. Why not: *binds. False only if
 * that cannot be found out. */
static bool try_it(fitter *f, const lg_limits *asked, bool proved, bool *yes, lg_need *need,
                   const char **binds) {
    lb_err why = {0};
    lg_limits l;
    lg_plan *plan = NULL;
    *yes = lg_limits_make(asked->ctx, asked->slots, asked->chunk, &l, &why) &&
           lg_need_of(&f->r->subject, &l, &f->tmp, need, &why);
    if (*yes && !lg_need_fits(need, f->pools)) {
        *yes = false;
        *binds = f->pools->vram != 0 && need->vram > f->pools->vram ? "GPU memory" : "memory";
        return true;
    }
    if (*yes && proved) {
        *yes = lg_run_again(&f->r->subject, &l, &f->tmp, &plan, &why);
        lb_arena_reset(&f->tmp);
    }
    if (!*yes && why.code == LB_NO_MEMORY) {
        *f->err = why;
        return false;
    }
    *binds = *yes ? *binds : lb_format(f->arena, f->err, "%s", why.text);
    return *binds != NULL;
}

/* The largest value of knob k in [lo, hi] that fits, 0 if lo does not; out->binds stays what it was
 * if hi does. */
static bool search(fitter *f, const lg_limits *l, knob k, uint64_t lo, uint64_t hi, bool proved,
                   lg_most *out) {
    lg_need need;
    uint64_t at = hi; /* hi, then lo, then halves of what is between */
    out->value = 0;
    for (uint64_t bad = hi + 1; bad > lo && bad - out->value > 1;) {
        lg_limits v = with(l, k, at);
        bool yes = false;
        if (!try_it(f, &v, proved, &yes, &need, &out->binds)) {
            return false;
        }
        *(yes ? &out->value : &bad) = at;
        at = out->value == 0 ? lo : out->value + (bad - out->value) / 2;
    }
    return true;
}

/* By size first, which is quick, and then by proof, which seldom says another thing. */
static bool most(fitter *f, const lg_limits *l, knob k, uint64_t lo, uint64_t hi,
                 const char *at_limit, lg_most *out) {
    lg_need need;
    bool yes = true;
    *out = (lg_most){0, at_limit};
    if (hi < lo) {
        return true;
    }
    if (!search(f, l, k, lo, hi, false, out)) {
        return false;
    }
    if (out->value == 0) {
        return true;
    }
    lg_limits v = with(l, k, out->value);
    if (!try_it(f, &v, true, &yes, &need, &out->binds)) {
        return false;
    }
    return yes || search(f, l, k, lo, out->value - 1, true, out);
}

static bool largest(fitter *f, lg_fit *fit) {
    const lg_limits *l = &fit->need.limits;
    bool by_ctx = l->ctx < LG_CHUNK_MAX;
    uint64_t ctx_max = f->r->ctx_train < LG_CTX_MAX ? f->r->ctx_train : LG_CTX_MAX;
    return most(f, l, KNOB_CTX, l->chunk, ctx_max, "the model's context_length", &fit->ctx) &&
           most(f, l, KNOB_CHUNK, 1, by_ctx ? l->ctx : LG_CHUNK_MAX,
                by_ctx ? "the context" : "the largest chunk that lagen makes", &fit->chunk) &&
           most(f, l, KNOB_SLOTS, 1, LG_SLOTS_MAX, "the most slots that lagen makes", &fit->slots);
}

/* Takes a combination as the nearest if it fits. */
static bool take(fitter *f, lg_limits l, knob k, uint64_t value, lg_fit *fit) {
    const char *binds = "";
    l = with(&l, k, value);
    return value == 0 || try_it(f, &l, true, &fit->near, &fit->nearest, &binds);
}

/* The largest context with this chunk and slots, if there is one that holds the chunk. */
static bool take_ctx(fitter *f, lg_limits l, lg_fit *fit) {
    lg_most m;
    l.chunk = l.chunk < l.ctx ? l.chunk : l.ctx;
    return most(f, &l, KNOB_CTX, l.chunk, l.ctx, "", &m) && take(f, l, KNOB_CTX, m.value, fit);
}

static bool nearest(fitter *f, lg_fit *fit) {
    const lg_limits *asked = &fit->need.limits;
    const uint64_t slots[] = {asked->slots, 1};
    const uint64_t chunks[] = {asked->chunk, SMALL_CHUNK, 1};
    if (fit->chunk.value >= SMALL_CHUNK && fit->chunk.value < asked->chunk &&
        !take(f, *asked, KNOB_CHUNK, fit->chunk.value, fit)) {
        return false;
    }
    for (int s = 0; s < 2; s++) {
        for (int c = 0; c < 3 && !fit->near; c++) {
            lg_limits l = *asked;
            l.slots = slots[s];
            l.chunk = chunks[c];
            if (l.chunk <= asked->chunk && !take_ctx(f, l, fit)) {
                return false;
            }
        }
    }
    return true;
}

/* Both pools. */
static uint64_t all_of(const lg_need *n) {
    return n->vram + n->ram;
}

/* What STEP_TOKENS more of a knob cost; at the limit, what the last ones did. */
static bool cost(fitter *f, const lg_need *at, knob k, uint64_t now, uint64_t max, lg_cost *out) {
    bool up = now <= max && max - now >= STEP_TOKENS;
    uint64_t least = k == KNOB_CTX ? at->limits.chunk : 1;
    lg_need other;
    lg_limits l;
    *out = (lg_cost){0};
    if (!up && (now < STEP_TOKENS || now - STEP_TOKENS < least)) {
        return true;
    }
    lg_limits v = with(&at->limits, k, up ? now + STEP_TOKENS : now - STEP_TOKENS);
    if (!lg_limits_make(v.ctx, v.slots, v.chunk, &l, f->err) ||
        !lg_need_of(&f->r->subject, &l, &f->tmp, &other, f->err)) {
        return false;
    }
    uint64_t a = all_of(up ? at : &other);
    uint64_t b = all_of(up ? &other : at);
    *out = (lg_cost){true, b > a ? b - a : 0};
    return true;
}

static bool find(fitter *f, lg_fit *fit) {
    const lg_limits *l = &f->r->plan->limits;
    uint64_t chunk_max = l->ctx < LG_CHUNK_MAX ? l->ctx : LG_CHUNK_MAX;
    lg_limits least;
    if (!lg_need_sum(f->r->plan, &fit->need, f->err) ||
        !cost(f, &fit->need, KNOB_CTX, l->ctx, f->r->ctx_train, &fit->ctx_cost) ||
        !cost(f, &fit->need, KNOB_CHUNK, l->chunk, chunk_max, &fit->chunk_cost)) {
        return false;
    }
    fit->asked = f->pools->vram != 0 || f->pools->ram != 0;
    fit->fits = lg_need_fits(&fit->need, f->pools);
    return !fit->asked ||
           (largest(f, fit) && (fit->fits || nearest(f, fit)) &&
            lg_limits_make(1, 1, 1, &least, f->err) &&
            lg_need_of(&f->r->subject, &least, &f->tmp, &fit->least, f->err));
}

bool lg_fit_find(const lg_result *r, const lg_pools *pools, lb_arena *arena, lg_fit *out,
                 lb_err *err) {
    fitter f = {.r = r, .pools = pools, .arena = arena, .err = err};
    *out = (lg_fit){0};
    lb_arena_init(&f.tmp, "planning again", TMP_BYTES);
    bool ok = find(&f, out);
    lb_arena_reset(&f.tmp);
    return ok;
}

const char *lg_fit_refusal(const lg_fit *fit, const lg_pools *pools, lb_arena *arena, lb_err *err) {
    const lg_need *n = &fit->need;
    bool gpu = pools->vram != 0 && n->vram > pools->vram;
    const char *why = lb_format(arena, err,
                                "%s: %" PRIu64 " bytes are needed, there are %" PRIu64,
                                gpu ? "--vram" : "--ram", gpu ? n->vram : n->ram,
                                gpu ? pools->vram : pools->ram);
    if (why == NULL || !fit->near) {
        return why == NULL ? NULL
                           : lb_format(arena, err, "%s; one slot of one token would need %" PRIu64,
                                       why, gpu ? fit->least.vram : fit->least.ram);
    }
    const lg_limits *l = &fit->nearest.limits;
    return lb_format(arena, err,
                     "%s; nearest: --ctx %" PRIu64 " --chunk %" PRIu64 " --slots %" PRIu64, why,
                     l->ctx, l->chunk, l->slots);
}
