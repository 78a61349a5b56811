/* fit.c -- see fit.h. Every size comes from planning again, so a trial costs as much as a plan: where
 * the next one is made is guessed from what a token costs between the two that are known, and what
 * a search finds is still a value that fits beside a next one that does not. */
#include "fit.h"

#include <inttypes.h>

enum { TMP_BYTES = 1 << 29, STEP_TOKENS = 1024, SMALL_CHUNK = 64, STAIR = 256, PROVED_MAX = 8 };

typedef struct fitter {
    const lg_result *r;
    const lg_pools *pools;
    lb_arena tmp; /* of one combination */
    lb_arena *arena;
    lg_limits proved[PROVED_MAX]; /* combinations that planner and prover took */
    uint32_t n_proved;
    lb_err *err;
} fitter;

/* One of the three numbers that a user may change. */
typedef enum knob { KNOB_CTX, KNOB_CHUNK, KNOB_SLOTS } knob;

static lg_limits with(const lg_limits *l, knob k, uint64_t value) {
    lg_limits v = *l;
    *(k == KNOB_CTX ? &v.ctx : k == KNOB_CHUNK ? &v.chunk : &v.slots) = value;
    return v;
}

static bool same(const lg_limits *a, const lg_limits *b) {
    return a->ctx == b->ctx && a->slots == b->slots && a->chunk == b->chunk;
}

/* What a combination needs; that of the one that was asked is known. */
static bool need_at(fitter *f, const lg_limits *l, lg_need *need, lb_err *why) {
    if (same(l, &f->r->plan->limits)) {
        return lg_need_sum(f->r->plan, need, why);
    }
    return lg_need_of(&f->r->subject, l, &f->tmp, need, why);
}

/* Plans and proves a combination whole, once. */
static bool prove_it(fitter *f, const lg_limits *l, lb_err *why) {
    lg_plan *plan = NULL;
    bool known = same(l, &f->r->plan->limits);
    for (uint32_t i = 0; i < f->n_proved; i++) {
        known = known || same(l, &f->proved[i]);
    }
    if (known) {
        return true;
    }
    bool yes = lg_run_again(&f->r->subject, l, &f->tmp, &plan, why);
    lb_arena_reset(&f->tmp);
    if (yes && f->n_proved < PROVED_MAX) {
        f->proved[f->n_proved++] = *l;
    }
    return yes;
}

static const char *too_small(const fitter *f, const lg_need *need) {
    if (f->pools->vram != 0 && need->vram > f->pools->vram) {
        return "GPU memory";
    }
    return lg_one_pool(f->r->hw) ? "memory" : "host memory";
}

/* Whether a combination fits; `proved` asks planner and prover too. Why not: *binds. Sizes that are
 * not known are 0. False only if that cannot be found out. */
static bool try_it(fitter *f, const lg_limits *asked, bool proved, bool *yes, lg_need *need,
                   const char **binds) {
    lb_err why = {0};
    lg_limits l;
    *need = (lg_need){0};
    *yes = lg_limits_make(asked->ctx, asked->slots, asked->chunk, &l, &why) &&
           need_at(f, &l, need, &why);
    if (*yes && !lg_need_fits(need, f->pools)) {
        *yes = false;
        *binds = too_small(f, need);
        return true;
    }
    if (*yes && proved) {
        *yes = prove_it(f, &l, &why);
    }
    if (!*yes && why.code == LB_NO_MEMORY) {
        *f->err = why;
        return false;
    }
    *binds = *yes ? *binds : lb_format(f->arena, f->err, "%s", why.text);
    return *binds != NULL;
}

/* A value that was tried. */
typedef struct tried {
    uint64_t at;
    lg_need need;
} tried;

/* How far above `good` a pool is full, if all that is between the two costs alike; the
 * largest number: not known. */
static uint64_t room_in(uint64_t pool, uint64_t need, uint64_t need_bad, uint64_t distance) {
    uint64_t each = need_bad > need ? (need_bad - need) / distance : 0;
    return pool == 0 || each == 0 ? UINT64_MAX : (pool - need) / each;
}

/* The value between the two to try next: where the first pool is full, and `margin` beyond it on
 * the side on which the last one was not; in the middle where that says nothing. Of those near by
 * a multiple of STAIR, and behind one that fits the next: caches grow in such steps, so that the
 * answer is mostly one. */
static uint64_t guess(const fitter *f, const tried *good, const tried *bad, uint64_t margin,
                      bool up) {
    uint64_t distance = bad->at - good->at;
    uint64_t vram = room_in(f->pools->vram, good->need.vram, bad->need.vram, distance);
    uint64_t ram = room_in(f->pools->ram, good->need.ram, bad->need.ram, distance);
    uint64_t n = vram < ram ? vram : ram;
    if (up && good->at % STAIR == 0) {
        return good->at + 1;
    }
    if (n >= distance + margin || distance / 4 <= margin) {
        n = distance / 2;
    } else {
        n = up ? n + margin : n > margin ? n - margin : 0;
    }
    uint64_t at = good->at + (n == 0 ? 1 : n < distance ? n : distance - 1);
    uint64_t stair = at - at % STAIR;
    stair += stair > good->at ? 0 : STAIR;
    return stair < bad->at ? stair : at;
}

/* Narrows what lies between a value that fits and one that does not to nothing. */
static bool narrow(fitter *f, const lg_limits *l, knob k, bool proved, tried *good, tried *bad,
                   const char **binds) {
    uint64_t margin = 0;
    bool up = false; /* whether the last one that was tried fits */
    while (bad->at - good->at > 1) {
        tried t = {.at = guess(f, good, bad, margin, up)};
        lg_limits v = with(l, k, t.at);
        bool yes = false;
        if (!try_it(f, &v, proved, &yes, &t.need, binds)) {
            return false;
        }
        *(yes ? good : bad) = t;
        margin = yes != up ? 0 : margin < bad->at ? 4 * margin + 1 : margin;
        up = yes;
    }
    return true;
}

/* The largest value of knob k in [lo, hi] that fits, 0 if lo does not; out->binds stays what it was
 * if hi does. */
static bool search(fitter *f, const lg_limits *l, knob k, uint64_t lo, uint64_t hi, bool proved,
                   lg_most *out) {
    tried good = {.at = lo};
    tried bad = {.at = hi};
    lg_limits high = with(l, k, hi);
    lg_limits low = with(l, k, lo);
    bool yes = false;
    out->value = 0;
    if (hi < lo) {
        return true;
    }
    if (!try_it(f, &high, proved, &yes, &bad.need, &out->binds)) {
        return false;
    }
    if (yes || lo == hi) {
        out->value = yes ? hi : 0;
        return true;
    }
    if (!try_it(f, &low, proved, &yes, &good.need, &out->binds) ||
        (yes && !narrow(f, l, k, proved, &good, &bad, &out->binds))) {
        return false;
    }
    out->value = yes ? good.at : 0;
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

/* What was asked is known: it bounds the search from below if it fits, else from above. */
static bool most_of(fitter *f, const lg_fit *fit, knob k, uint64_t lo, uint64_t hi,
                    const char *at_limit, lg_most *out) {
    const lg_limits *l = &fit->need.limits;
    uint64_t now = k == KNOB_CTX ? l->ctx : k == KNOB_CHUNK ? l->chunk : l->slots;
    return most(f, l, k, fit->fits ? now : lo, fit->fits ? hi : now, at_limit, out);
}

static bool largest(fitter *f, lg_fit *fit) {
    const lg_limits *l = &fit->need.limits;
    bool by_ctx = l->ctx < LG_CHUNK_MAX;
    uint64_t ctx_max = f->r->ctx_train < LG_CTX_MAX ? f->r->ctx_train : LG_CTX_MAX;
    return most_of(f, fit, KNOB_CTX, l->chunk, ctx_max, "the model's context_length", &fit->ctx) &&
           most_of(f, fit, KNOB_CHUNK, 1, by_ctx ? l->ctx : LG_CHUNK_MAX,
                   by_ctx ? "the context" : "the largest chunk that lagen makes", &fit->chunk) &&
           most_of(f, fit, KNOB_SLOTS, 1, LG_SLOTS_MAX, "the most slots that lagen makes",
                   &fit->slots);
}

/* Takes a combination as the nearest if it fits. */
static bool take(fitter *f, lg_limits l, knob k, uint64_t value, lg_fit *fit) {
    const char *binds = "";
    l = with(&l, k, value);
    return value == 0 || try_it(f, &l, true, &fit->near, &fit->nearest, &binds);
}

/* The largest context with this chunk and slots, if there is one that holds the chunk. With those
 * that were asked it is known by now. */
static bool take_ctx(fitter *f, lg_limits l, lg_fit *fit) {
    const lg_limits *asked = &fit->need.limits;
    lg_most m = fit->ctx;
    if (l.slots != asked->slots || l.chunk != asked->chunk || m.value > l.ctx) {
        l.chunk = l.chunk < l.ctx ? l.chunk : l.ctx;
        if (!most(f, &l, KNOB_CTX, l.chunk, l.ctx, "", &m)) {
            return false;
        }
    }
    return take(f, l, KNOB_CTX, m.value, fit);
}

/* Context and slots of the nearest are known: the chunk grows into what room is left. */
static bool grow_chunk(fitter *f, lg_fit *fit) {
    const lg_limits l = fit->nearest.limits;
    const uint64_t asked = fit->need.limits.chunk;
    lg_most m;
    return most(f, &l, KNOB_CHUNK, l.chunk, asked < l.ctx ? asked : l.ctx, "", &m) &&
           (m.value <= l.chunk || take(f, l, KNOB_CHUNK, m.value, fit));
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
    return !fit->near || fit->nearest.limits.chunk >= SMALL_CHUNK || grow_chunk(f, fit);
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

/* The answer to "does it fit?", where a pool was named. What the least program does not find room
 * for, no other does. */
static bool answer(fitter *f, lg_fit *fit) {
    lg_limits least;
    if (!lg_limits_make(1, 1, 1, &least, f->err) ||
        !lg_need_of(&f->r->subject, &least, &f->tmp, &fit->least, f->err)) {
        return false;
    }
    if (!lg_need_fits(&fit->least, f->pools)) {
        fit->ctx = fit->chunk = fit->slots = (lg_most){0, too_small(f, &fit->least)};
        return true;
    }
    return largest(f, fit) && (fit->fits || nearest(f, fit));
}

static bool find(fitter *f, lg_fit *fit) {
    const lg_limits *l = &f->r->plan->limits;
    uint64_t chunk_max = l->ctx < LG_CHUNK_MAX ? l->ctx : LG_CHUNK_MAX;
    if (!lg_need_sum(f->r->plan, &fit->need, f->err) ||
        !cost(f, &fit->need, KNOB_CTX, l->ctx, f->r->ctx_train, &fit->ctx_cost) ||
        !cost(f, &fit->need, KNOB_CHUNK, l->chunk, chunk_max, &fit->chunk_cost)) {
        return false;
    }
    fit->asked = f->pools->vram != 0 || f->pools->ram != 0;
    fit->fits = lg_need_fits(&fit->need, f->pools);
    return !fit->asked || answer(f, fit);
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

/* What stands against every program of this model. */
static const char *nothing_fits(const lg_fit *fit, const lg_pools *pools, const char *why,
                                lb_arena *arena, lb_err *err) {
    const lg_need *n = &fit->least;
    bool gpu = pools->vram != 0 && n->vram > pools->vram;
    if (gpu || pools->ram == 0) {
        return lb_format(arena, err, "%s; nothing fits: one slot of one token would need %" PRIu64,
                         why, n->vram);
    }
    return lb_format(arena, err,
                     "%s; nothing fits: one slot of one token would need %" PRIu64 ", of it %" PRIu64
                     " for all else, whatever the model",
                     why, n->ram, n->heap);
}

const char *lg_fit_refusal(const lg_fit *fit, const lg_pools *pools, lb_arena *arena, lb_err *err) {
    const lg_need *n = &fit->need;
    bool gpu = pools->vram != 0 && n->vram > pools->vram;
    const char *why = lb_format(arena, err,
                                "%s: %" PRIu64 " bytes are needed, there are %" PRIu64,
                                gpu ? "--vram" : "--ram", gpu ? n->vram : n->ram,
                                gpu ? pools->vram : pools->ram);
    if (why == NULL || !fit->near) {
        return why == NULL ? NULL : nothing_fits(fit, pools, why, arena, err);
    }
    const lg_limits *l = &fit->nearest.limits;
    return lb_format(arena, err,
                     "%s; nearest: --ctx %" PRIu64 " --chunk %" PRIu64 " --slots %" PRIu64, why,
                     l->ctx, l->chunk, l->slots);
}
