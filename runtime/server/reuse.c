/* reuse.c -- see reuse.h. */
#include "server/reuse.h"

#include <stdlib.h>
#include <string.h>

#include "session.h"

enum {
    OTHER_LEAST = 256,  /* tokens more that another slot must give, to be worth copying */
    NEAR = 2 * RT_PAGE, /* a prompt that parts no further before the end of the last one goes on
                           from it: templates write the beginning of an answer anew */
    MARK_LEAST = 2048,  /* tokens between marks on the way, and windows: */
    MARK_WINDOWS = 16
};

/* What is known of a slot beside what it holds. */
typedef struct slot {
    uint64_t used_at;    /* a clock of answers */
    uint32_t prompt_end; /* of the last prompt */
    uint32_t unmarked;   /* prompt_end, while the store does not know it; else 0 */
    uint32_t branch;  /* where the prompt parted from what is known; marked on the way. 0: none */
    uint32_t tried;   /* how much others knew when the slot last took from them */
    uint32_t n_saved; /* tokens that the store was given since the slot last changed hands */
} slot;

struct rt_reuse {
    rt_engine *engine;
    rt_prefix *store;
    rt_metrics *metrics;
    uint32_t n_slots, mark_every;
    uint64_t clock;
    slot *slots; /* [n_slots] */
};

bool rt_reuse_open(rt_engine *engine, rt_prefix *store, uint32_t n_slots, rt_metrics *metrics,
                   rt_reuse **out, lb_err *err) {
    rt_reuse *r = calloc(1, sizeof *r);
    slot *slots = calloc(n_slots, sizeof *slots);
    if (r == NULL || slots == NULL) {
        free(r);
        free(slots);
        return lb_err_set(err, LB_RESOURCES, "no memory for what is known of slots");
    }
    uint32_t window = rt_prefix_window(engine->model);
    *r = (rt_reuse){engine, store, metrics, n_slots, MARK_LEAST, 0, slots};
    if (window > MARK_LEAST / MARK_WINDOWS) {
        r->mark_every = window < UINT32_MAX / MARK_WINDOWS ? MARK_WINDOWS * window : UINT32_MAX;
    }
    *out = r;
    return true;
}

void rt_reuse_close(rt_reuse *r) {
    if (r != NULL) {
        free(r->slots);
        free(r);
    }
}

/* ---- an answer begins */

uint32_t rt_reuse_choose(rt_reuse *r, const bool *busy, const uint32_t *prompt, uint32_t n) {
    uint32_t best = UINT32_MAX;
    uint32_t oldest = UINT32_MAX;
    uint32_t most = 0;
    for (uint32_t i = 0; i < r->n_slots; i++) {
        const rt_seq *q = &r->engine->seqs[i];
        if (busy[i]) {
            continue;
        }
        uint32_t gives = rt_prefix_find(r->store, q, prompt, n - 1, NULL);
        if (gives > most && rt_seq_common(q, prompt, n) >= q->n_tokens / 2) {
            most = gives;
            best = i;
        }
        if (oldest == UINT32_MAX || r->slots[i].used_at < r->slots[oldest].used_at) {
            oldest = i;
        }
    }
    bool from_store = best == UINT32_MAX || rt_prefix_find(r->store, &r->engine->seqs[oldest],
                                                           prompt, n - 1, NULL) > most;
    return from_store ? oldest : best;
}

/* The slot's content goes to the store: all of it, and the rings around the end of its prompt. */
bool rt_reuse_save(rt_reuse *r, uint32_t i, lb_err *err) {
    const rt_seq *q = &r->engine->seqs[i];
    slot *s = &r->slots[i];
    if (r->store == NULL || q->n_tokens <= s->n_saved || q->n_tokens < RT_PAGE) {
        return true;
    }
    if (!rt_prefix_save(r->store, q, q->n_tokens, err) ||
        (s->unmarked > 0 && s->unmarked <= q->n_tokens &&
         !rt_prefix_mark(r->store, q, s->unmarked, err))) {
        return false;
    }
    s->unmarked = 0;
    s->n_saved = q->n_tokens;
    return true;
}

/* A prompt that goes on from the slot's last one leaves behind no more than the end of an answer
 * that was written anew: nobody will ask for that. */
static bool goes_on(const rt_reuse *r, uint32_t i, const uint32_t *prompt, uint32_t n) {
    const rt_seq *q = &r->engine->seqs[i];
    uint32_t same = rt_seq_common(q, prompt, n);
    uint32_t end = r->slots[i].prompt_end;
    return (same + NEAR >= end && same >= end / 2) || same == q->n_tokens;
}

/* The slot that holds most of the prompt, if that is more than `most`; *most is how much. */
static uint32_t who_knows(const rt_reuse *r, const uint32_t *prompt, uint32_t n, uint32_t *most) {
    uint32_t who = UINT32_MAX;
    for (uint32_t i = 0; i < r->n_slots; i++) {
        uint32_t same = rt_seq_common(&r->engine->seqs[i], prompt, n - 1);
        if (same > *most) {
            *most = same;
            who = i;
        }
    }
    return who;
}

/* Slots that are in use or kept for others know more of the prompt: by way of the store. */
static bool borrow(rt_reuse *r, uint32_t to, const uint32_t *prompt, uint32_t n, lb_err *err) {
    uint32_t most =
        rt_prefix_find(r->store, &r->engine->seqs[to], prompt, n - 1, NULL) + OTHER_LEAST;
    uint32_t from = who_knows(r, prompt, n, &most);
    r->slots[to].tried = from == UINT32_MAX ? 0 : most;
    return from == UINT32_MAX || from == to ||
           rt_prefix_save(r->store, &r->engine->seqs[from], most, err);
}

bool rt_reuse_join(rt_reuse *r, uint32_t i, const uint32_t *prompt, uint32_t n, lb_err *err) {
    rt_seq *q = &r->engine->seqs[i];
    slot *s = &r->slots[i];
    uint32_t n_fed = q->n_tokens;
    uint32_t most = (s->tried > n_fed ? s->tried : n_fed) + OTHER_LEAST;
    uint32_t from = r->store == NULL ? UINT32_MAX : who_knows(r, prompt, n, &most);
    if (from == UINT32_MAX) {
        return true;
    }
    s->tried = most;
    if (!rt_prefix_save(r->store, &r->engine->seqs[from], most, err)) {
        return false;
    }
    if (rt_prefix_find(r->store, q, prompt, n - 1, NULL) <= n_fed) {
        return true;
    }
    if (!rt_prefix_load(r->store, q, prompt, n - 1, NULL, err)) {
        return false;
    }
    atomic_fetch_add(&r->metrics->restored_tokens, q->n_tokens - n_fed);
    return true;
}

static void count(rt_reuse *r, uint32_t kept, uint32_t from_slot) {
    rt_metrics *m = r->metrics;
    atomic_fetch_add(&m->prefix_hits_slot, kept > 0 && kept == from_slot);
    atomic_fetch_add(&m->prefix_hits_store, kept > from_slot);
    atomic_fetch_add(&m->prefix_misses, kept == 0);
    atomic_fetch_add(&m->restored_tokens, kept - from_slot);
    if (r->store != NULL) {
        rt_prefix_stats s;
        rt_prefix_stats_of(r->store, &s);
        atomic_store(&m->store_bytes, s.used_bytes);
        atomic_store(&m->store_pages, s.n_pages);
        atomic_store(&m->store_evicted, s.n_evicted);
    }
}

bool rt_reuse_begin(rt_reuse *r, uint32_t i, const uint32_t *prompt, uint32_t n, uint32_t *n_kept,
                    lb_err *err) {
    rt_seq *q = &r->engine->seqs[i];
    slot *s = &r->slots[i];
    uint32_t from_slot = 0;
    bool ok = true;
    s->used_at = ++r->clock;
    if (r->store != NULL) {
        ok = (goes_on(r, i, prompt, n) || rt_reuse_save(r, i, err)) && borrow(r, i, prompt, n, err);
    }
    uint32_t known = ok ? rt_prefix_known(r->store, prompt, n - 1) : 0;
    if (ok) {
        rt_prefix_find(r->store, q, prompt, n - 1, &from_slot);
        ok = rt_prefix_load(r->store, q, prompt, n - 1, n_kept, err);
    }
    if (!ok) {
        rt_seq_cut(q, 0);
        *n_kept = 0;
    }
    *s = (slot){.used_at = s->used_at, .prompt_end = n, .unmarked = n, .tried = s->tried};
    s->branch = known > *n_kept ? known : 0;
    count(r, *n_kept, from_slot);
    return ok;
}

/* ---- marks */

/* The last token of a prompt is often computed again; templates write what follows anew: the point
 * is no use if the slot cannot be rewound a little before it. */
static uint32_t early(uint32_t n) {
    return n > NEAR ? n - NEAR : 0;
}

bool rt_reuse_before(rt_reuse *r, const rt_seq *q, uint32_t n, lb_err *err) {
    slot *s = &r->slots[q->slot];
    uint32_t end = q->n_tokens + n;
    const rt_seq then = {.engine = q->engine,
                         .n_tokens = end,
                         .n_stored = end > q->n_stored ? end : q->n_stored,
                         .least_cut = q->least_cut};
    if (r->store == NULL || s->unmarked == 0 || q->n_tokens < s->unmarked ||
        rt_seq_holds(&then, early(s->unmarked))) {
        return true;
    }
    uint32_t at = s->unmarked;
    s->unmarked = 0;
    return rt_prefix_mark(r->store, q, at, err);
}

/* Whether one of the points k, 2k, .. lies in (from, to]; the last such. */
static uint32_t last_multiple(uint32_t k, uint32_t from, uint32_t to) {
    uint32_t at = to - to % k;
    return at > from ? at : 0;
}

bool rt_reuse_after(rt_reuse *r, const rt_seq *q, uint32_t n, lb_err *err) {
    slot *s = &r->slots[q->slot];
    uint32_t from = q->n_tokens - n;
    if (r->store == NULL || from >= s->prompt_end) {
        return true;
    }
    uint32_t at = last_multiple(r->mark_every, from, q->n_tokens);
    if (s->branch > from && s->branch <= q->n_tokens) {
        if (!rt_prefix_mark(r->store, q, s->branch, err)) {
            return false;
        }
        s->branch = 0;
    }
    return at == 0 || rt_prefix_mark(r->store, q, at, err);
}
