/* prefix.c -- see prefix.h: which pages a prompt goes through, and the way of bytes between pages
 * and slots. */
#include "prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "prefix_int.h"
#include "session.h"

enum {
    ROOM_BYTES = 4 * 1024 * 1024, /* a device's bytes come and go in pieces of this size */
    SLACK = 2 * RT_PAGE /* ring parts reach further back than the window: a prompt that parts so
                           much before a marked point can still go on there */
};
static const uint64_t DEFAULT_MAX_BYTES = UINT64_C(1) << 30;
static const uint64_t CONTROL_BYTES = UINT64_C(64) << 20;

/* ---- what the program's caches are */

static uint32_t part_of(const rt_model *m, const rt_cache *c) {
    return c->window != 0 && c->positions < m->ctx ? RT_RING : RT_WHOLE;
}

uint32_t rt_prefix_window(const rt_model *m) {
    uint32_t window = 0;
    for (uint32_t i = 0; i < m->n_caches; i++) {
        if (part_of(m, &m->caches[i]) == RT_RING && m->caches[i].window > window) {
            window = m->caches[i].window;
        }
    }
    return window;
}

uint64_t rt_prefix_default_bytes(const rt_model *m) {
    uint64_t pages = (uint64_t)m->slots * (m->ctx / RT_PAGE + 1);
    uint64_t n = m->arena_bytes[RT_ARENA_KV];
    n = n < DEFAULT_MAX_BYTES ? n + 3 * pages * sizeof(rt_page) : n;
    return m->caches == NULL ? 0 : n < DEFAULT_MAX_BYTES ? n : DEFAULT_MAX_BYTES;
}

/* Bytes of a page's parts; the runtime's tables are proved, so products fit. */
static void part_sizes(const rt_model *m, uint64_t out[RT_N_PARTS]) {
    out[RT_WHOLE] = out[RT_RING] = 0;
    for (uint32_t i = 0; i < m->n_caches; i++) {
        const rt_cache *c = &m->caches[i];
        out[part_of(m, c)] += (uint64_t)c->heads * c->block_bytes * (RT_PAGE / m->cache_block);
    }
}

bool rt_prefix_open(rt_engine *e, uint64_t n_bytes, rt_prefix **out, lb_err *err) {
    const rt_model *m = e->model;
    uint64_t parts[RT_N_PARTS];
    uint32_t per_slot = m->ctx / RT_PAGE + 1;
    if (m->caches == NULL || m->cache_block == 0 || RT_PAGE % m->cache_block != 0) {
        return lb_err_set(err, LB_UNSUPPORTED, "%s: its caches cannot be taken out of slots",
                          m->name);
    }
    rt_prefix *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for the prefix store");
    }
    p->engine = e;
    p->window = rt_prefix_window(m);
    part_sizes(m, parts);
    lb_arena_init(&p->arena, "prefix store", CONTROL_BYTES);
    p->chain = lb_alloc_n(&p->arena, per_slot, sizeof *p->chain, err);
    if (p->chain == NULL || !rt_pages_open(&p->pages, n_bytes, parts, m->slots * per_slot, err) ||
        (m->device != NULL && (p->room = lb_alloc(&p->arena, ROOM_BYTES, err)) == NULL)) {
        rt_prefix_close(p);
        return false;
    }
    *out = p;
    return true;
}

void rt_prefix_close(rt_prefix *p) {
    if (p != NULL) {
        rt_pages_close(&p->pages);
        lb_arena_reset(&p->arena);
        free(p);
    }
}

void rt_prefix_stats_of(const rt_prefix *p, rt_prefix_stats *out) {
    const rt_pages *g = &p->pages;
    uint64_t cells = g->n_cells - g->n_free_cells;
    *out = (rt_prefix_stats){.n_pages = g->n_used_pages,
                             .used_bytes = cells * g->cell_bytes,
                             .size_bytes = (uint64_t)g->n_cells * g->cell_bytes,
                             .n_evicted = g->n_evicted,
                             .position_bytes = (g->part_bytes[0] + g->part_bytes[1]) / RT_PAGE};
}

/* ---- which pages */

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t in_blocks(const rt_prefix *p, uint32_t n) {
    return n - n % p->engine->model->cache_block;
}

/* Fills p->chain with the pages that tokens[0..n) go through; returns how many tokens they share.
 */
static uint32_t walk(rt_prefix *p, const uint32_t *tokens, uint32_t n) {
    uint32_t page = 0;
    uint32_t at = 0;
    p->n_chain = 0;
    while (at < n && at % RT_PAGE == 0) {
        uint32_t same = 0;
        page = rt_pages_child(&p->pages, page, tokens + at, least(n - at, RT_PAGE), &same);
        if (page == 0) {
            break;
        }
        p->chain[p->n_chain++] = page;
        at += same;
    }
    p->n_same = at;
    return at;
}

/* The position up to which part k of the i-th page of the chain holds what the tokens need. */
static uint32_t held(const rt_prefix *p, uint32_t i, uint32_t k) {
    const rt_page *g = &p->pages.page[p->chain[i]];
    uint32_t n = p->pages.part_bytes[k] == 0 ? g->n_tokens : g->n_held[k];
    return least(i * RT_PAGE + n, p->n_same);
}

/* From position `at` on, the pages of the chain have their whole parts up to here. */
static uint32_t whole_up_to(const rt_prefix *p, uint32_t at) {
    for (uint32_t i = at / RT_PAGE; i < p->n_chain && held(p, i, RT_WHOLE) > at; i++) {
        at = held(p, i, RT_WHOLE);
        if (at % RT_PAGE != 0) {
            break;
        }
    }
    return at;
}

/* The first position that a ring must hold for a row at n, as blocks go. */
static uint32_t ring_begin(const rt_prefix *p, uint32_t n) {
    return p->window != 0 && n >= p->window ? in_blocks(p, n - (p->window - 1)) : 0;
}

/* The i-th page of the chain has its ring part from position `from` or its own begin, to n or its
 * own end. */
static bool ring_holds(const rt_prefix *p, uint32_t i, uint32_t from, uint32_t n) {
    uint32_t begin = i * RT_PAGE;
    return i < p->n_chain && held(p, i, RT_RING) >= least(n, begin + RT_PAGE) &&
           begin + p->pages.page[p->chain[i]].ring_from <= (from > begin ? from : begin);
}

static bool has_ring(const rt_prefix *p, uint32_t n) {
    uint32_t from = ring_begin(p, n);
    for (uint32_t i = from / RT_PAGE; p->window != 0 && i * RT_PAGE < n; i++) {
        if (!ring_holds(p, i, from, n)) {
            return false;
        }
    }
    return true;
}

static uint32_t in_slot(const rt_seq *seq, const uint32_t *tokens, uint32_t n) {
    uint32_t same = rt_seq_common(seq, tokens, n);
    return rt_seq_holds(seq, same) ? same : 0;
}

uint32_t rt_prefix_find(rt_prefix *p, const rt_seq *seq, const uint32_t *tokens, uint32_t n,
                        uint32_t *from_slot) {
    uint32_t best = in_slot(seq, tokens, n);
    uint32_t same = rt_seq_common(seq, tokens, n);
    if (p != NULL) {
        walk(p, tokens, n);
        uint32_t at = in_blocks(p, whole_up_to(p, same));
        while (at > best && !has_ring(p, at)) {
            at -= p->engine->model->cache_block;
        }
        best = at > best ? at : best;
    }
    if (from_slot != NULL) {
        *from_slot = least(best, same);
    }
    return best;
}

uint32_t rt_prefix_known(rt_prefix *p, const uint32_t *tokens, uint32_t n) {
    return p == NULL ? 0 : walk(p, tokens, n);
}

/* The chain up to position n was used: pages after those that follow them. */
static void touch(rt_prefix *p, uint32_t n) {
    for (uint32_t i = least(p->n_chain, (n + RT_PAGE - 1) / RT_PAGE); i > 0; i--) {
        rt_pages_touch(&p->pages, p->chain[i - 1], RT_WHOLE);
    }
}

/* ---- bytes of blocks [from, to) of one head: between a slot's cache and the chain's pages */

typedef struct run {
    const rt_seq *seq;
    const rt_cache *cache;
    uint32_t part, head;
    uint64_t part_offset; /* of the head in a page's part */
    uint32_t from, to;    /* blocks */
    bool save;
} run;

/* Blocks [from, from + n), which lie at `at`, to or from their pages. */
static void move_pages(rt_prefix *p, const run *r, uint32_t from, uint32_t n, uint8_t *at) {
    uint32_t per_page = RT_PAGE / p->engine->model->cache_block;
    uint64_t bytes = r->cache->block_bytes;
    for (uint32_t done = 0; done < n;) {
        uint32_t i = (from + done) / per_page;
        uint32_t in_page = (from + done) % per_page;
        uint32_t now = least(n - done, per_page - in_page);
        uint32_t cell = p->pages.page[p->chain[i]].cell[r->part];
        uint64_t offset = r->part_offset + in_page * bytes;
        if (r->save) {
            rt_pages_put(&p->pages, cell, offset, at + done * bytes, now * bytes);
        } else {
            rt_pages_get(&p->pages, cell, offset, at + done * bytes, now * bytes);
        }
        done += now;
    }
}

static bool move_head(rt_prefix *p, const run *r, lb_err *err) {
    const rt_engine *e = p->engine;
    const rt_cache *c = r->cache;
    uint32_t cap = c->positions / e->model->cache_block;
    uint32_t most = e->model->device == NULL ? cap : ROOM_BYTES / c->block_bytes;
    uint64_t head = (uint64_t)r->seq->slot * c->heads + r->head;
    for (uint32_t b = r->from; b < r->to;) {
        uint32_t n = least(least(r->to - b, cap - b % cap), most);
        uint64_t at = c->offset_bytes + (head * cap + b % cap) * c->block_bytes;
        uint64_t n_bytes = (uint64_t)n * c->block_bytes;
        if (r->save) {
            const uint8_t *from =
                rt_memory_read(&e->memory, RT_ARENA_KV, at, p->room, n_bytes, err);
            if (from == NULL) {
                return false;
            }
            move_pages(p, r, b, n, (uint8_t *)(uintptr_t)from);
        } else {
            uint8_t *to = rt_memory_room(&e->memory, RT_ARENA_KV, at, p->room);
            move_pages(p, r, b, n, to);
            if (!rt_memory_write(&e->memory, RT_ARENA_KV, at, to, n_bytes, err)) {
                return false;
            }
        }
        b += n;
    }
    return true;
}

/* Positions [from, to), in whole blocks, of all caches of a part. */
static bool move(rt_prefix *p, const rt_seq *seq, uint32_t part, uint32_t from, uint32_t to,
                 bool save, lb_err *err) {
    const rt_model *m = p->engine->model;
    run r = {.seq = seq,
             .part = part,
             .from = from / m->cache_block,
             .to = to / m->cache_block,
             .save = save};
    for (uint32_t i = 0; i < m->n_caches; i++) {
        r.cache = &m->caches[i];
        if (part_of(m, r.cache) != part) {
            continue;
        }
        for (r.head = 0; r.head < r.cache->heads; r.head++) {
            if (!move_head(p, &r, err)) {
                return false;
            }
            r.part_offset += (uint64_t)r.cache->block_bytes * (RT_PAGE / m->cache_block);
        }
    }
    return true;
}

/* ---- from the store */

static void set_tokens(rt_prefix *p, rt_seq *seq, const uint32_t *tokens, uint32_t n) {
    uint32_t begin = p->window == 0 ? 0 : ring_begin(p, n);
    memcpy(seq->tokens, tokens, n * sizeof *tokens);
    seq->n_tokens = n;
    seq->n_stored = n;
    seq->chosen_by = NULL;
    seq->least_cut = begin == 0 ? 0 : begin + p->window - 1;
}

bool rt_prefix_load(rt_prefix *p, rt_seq *seq, const uint32_t *tokens, uint32_t n, uint32_t *n_kept,
                    lb_err *err) {
    uint32_t same = rt_seq_common(seq, tokens, n);
    uint32_t to = rt_prefix_find(p, seq, tokens, n, NULL);
    if (n_kept != NULL) {
        *n_kept = to;
    }
    if (to <= same && rt_seq_holds(seq, to)) {
        rt_seq_cut(seq, to);
        return true;
    }
    rt_seq_cut(seq, 0); /* should the device fail, nothing is believed of the slot */
    if ((to > same && !move(p, seq, RT_WHOLE, in_blocks(p, same), to, false, err)) ||
        (p->window != 0 && !move(p, seq, RT_RING, ring_begin(p, to), to, false, err))) {
        return false;
    }
    p->pages.clock++;
    touch(p, to);
    for (uint32_t i = ring_begin(p, to) / RT_PAGE; p->window != 0 && i * RT_PAGE < to; i++) {
        rt_pages_touch(&p->pages, p->chain[i], RT_RING);
    }
    set_tokens(p, seq, tokens, to);
    return true;
}

/* ---- to the store */

/* Makes the chain reach as far as tokens[0..n) do, or as far as there is room; returns how far. */
static uint32_t grow(rt_prefix *p, const uint32_t *tokens, uint32_t n) {
    uint32_t at = walk(p, tokens, n);
    touch(p, at);
    if (at % RT_PAGE != 0) { /* the last page goes on, or parts from the tokens */
        rt_page *g = &p->pages.page[p->chain[p->n_chain - 1]];
        uint32_t begin = g->begin;
        if (at < n && at - begin == g->n_tokens) {
            g->n_tokens = least(n - begin, RT_PAGE);
            memcpy(g->tokens, tokens + begin, g->n_tokens * sizeof *tokens);
            rt_pages_changed(&p->pages, p->chain[p->n_chain - 1], true);
            at = begin + g->n_tokens;
        } else if (at < n) {
            p->n_chain--;
            at = begin;
        }
    }
    while (at < n && at % RT_PAGE == 0) {
        uint32_t parent = p->n_chain == 0 ? 0 : p->chain[p->n_chain - 1];
        uint32_t now = least(n - at, RT_PAGE);
        uint32_t page = rt_pages_add(&p->pages, parent, tokens + at, now);
        if (page == 0) {
            break;
        }
        p->chain[p->n_chain++] = page;
        at += now;
    }
    p->n_same = at;
    return at;
}

/* The first position that all of the slot's rings hold, where a block begins. */
static uint32_t ring_lowest(const rt_prefix *p, const rt_seq *seq) {
    const rt_model *m = p->engine->model;
    uint32_t stored = seq->n_stored > m->ring ? seq->n_stored - m->ring : 0;
    uint32_t restored = seq->least_cut == 0 ? 0 : seq->least_cut - (p->window - 1);
    uint32_t lowest = stored > restored ? stored : restored;
    return (lowest + m->cache_block - 1) / m->cache_block * m->cache_block;
}

/* Whether the i-th page of the chain lacks something of a part that positions [from, n) could give
 * it. */
static bool lacks(const rt_prefix *p, uint32_t i, uint32_t k, uint32_t from, uint32_t n) {
    return k == RT_RING ? !ring_holds(p, i, from, n) : held(p, i, k) < least(n, (i + 1) * RT_PAGE);
}

/* Positions [from, n) of the i-th page were stored. */
static void note(rt_prefix *p, uint32_t i, uint32_t k, uint32_t from, uint32_t n) {
    rt_page *g = &p->pages.page[p->chain[i]];
    uint32_t begin = i * RT_PAGE;
    uint32_t begin_held = from > begin ? from - begin : 0;
    uint32_t end_held = least(n - begin, RT_PAGE);
    if (k == RT_RING) { /* beside what is there already, if the two meet */
        bool meet = g->n_held[k] > 0 && begin_held <= g->n_held[k] && g->ring_from <= end_held;
        g->ring_from = meet ? least(g->ring_from, begin_held) : begin_held;
        end_held = meet && g->n_held[k] > end_held ? g->n_held[k] : end_held;
    }
    g->n_held[k] = end_held;
    rt_pages_changed(&p->pages, p->chain[i], false);
    rt_pages_touch(&p->pages, p->chain[i], k);
}

/* Pages [i, end) of the chain get what they lack of a part: as many of them as lack something and
 * have room, but at least one, if there is room. Returns the page after them; `end` if there is no
 * room. */
static uint32_t take_run(rt_prefix *p, uint32_t k, uint32_t i, uint32_t end, uint32_t from,
                         uint32_t n, uint32_t *run_end) {
    uint32_t at = i;
    while (at < end && lacks(p, at, k, from, n)) {
        uint32_t page = p->chain[at];
        if (p->pages.page[page].cell[k] == RT_NO_CELL && !rt_pages_add_part(&p->pages, page, k)) {
            *run_end = at;
            return end;
        }
        rt_pages_touch(&p->pages, page, k); /* the next one must not make room with it */
        at++;
    }
    *run_end = at;
    return at;
}

/* Gives the pages of the chain from position `from` to n what they lack of a part, as far as there
 * is room. */
static bool fill(rt_prefix *p, const rt_seq *seq, uint32_t k, uint32_t from, uint32_t n,
                 lb_err *err) {
    uint32_t end = (n + RT_PAGE - 1) / RT_PAGE;
    bool ok = true;
    for (uint32_t i = from / RT_PAGE; ok && p->pages.part_bytes[k] > 0 && from < n && i < end;) {
        uint32_t to = i;
        uint32_t next = take_run(p, k, i, end, from, n, &to);
        if (to > i) {
            uint32_t begin = i * RT_PAGE > from ? i * RT_PAGE : from;
            ok = move(p, seq, k, begin, least(n, to * RT_PAGE), true, err);
        }
        for (; i < to; i++) {
            if (ok) {
                note(p, i, k, from, n);
            } else {
                rt_pages_drop_part(&p->pages, p->chain[i], k);
            }
        }
        i = next > to ? next : to + 1;
    }
    return ok;
}

/* Ring parts from SLACK before the window of a row at n, as far as the slot has them. */
static bool fill_ring(rt_prefix *p, const rt_seq *seq, uint32_t n, lb_err *err) {
    uint32_t back = p->window + SLACK;
    uint32_t from = n > back ? in_blocks(p, n - back) : 0;
    uint32_t lowest = ring_lowest(p, seq);
    return p->window == 0 || fill(p, seq, RT_RING, from > lowest ? from : lowest, n, err);
}

static bool store(rt_prefix *p, const rt_seq *seq, uint32_t n, bool whole, lb_err *err) {
    p->pages.clock++;
    n = grow(p, seq->tokens, in_blocks(p, n));
    bool ok =
        (n == 0 || fill_ring(p, seq, n, err)) && (!whole || fill(p, seq, RT_WHOLE, 0, n, err));
    touch(p, n);
    return ok;
}

bool rt_prefix_save(rt_prefix *p, const rt_seq *seq, uint32_t n, lb_err *err) {
    return store(p, seq, n, true, err);
}

bool rt_prefix_mark(rt_prefix *p, const rt_seq *seq, uint32_t n, lb_err *err) {
    return p->window == 0 || store(p, seq, n, false, err);
}
