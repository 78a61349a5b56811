/* test_prefix.c -- the prefix store over a model whose logits depend on every bit of its caches:
 * some keep the context, some a window in a ring. What a slot was made of, fed, restored or both,
 * must never show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prefix.h"
#include "session.h"

enum { BLOCK = 16, N_CACHES = 5, CTX_MAX = 1024, N_TALKS = 12, N_LOGITS = 4 };

/* ---- the model: position p of a cache holds a number made of all tokens up to p, the cache and
 * the head */

typedef struct shape {
    rt_cache caches[N_CACHES];
    rt_model model;
} shape;

static const shape *now; /* of the running test */
static long fail_in;     /* the device's copies: how many more succeed; -1: all */

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t cell_of(uint64_t history, uint32_t cache, uint32_t head) {
    return mix(mix(history, cache + 1), head + 1);
}

static uint8_t *place(uint8_t *kv, const rt_cache *c, uint32_t slot, uint32_t head, uint32_t pos) {
    uint64_t cap = c->positions / BLOCK;
    uint64_t block = (uint64_t)(slot * c->heads + head) * cap + pos % c->positions / BLOCK;
    return kv + c->offset_bytes + block * c->block_bytes + pos % BLOCK * (c->block_bytes / BLOCK);
}

static uint64_t read_cell(uint8_t *kv, const rt_cache *c, uint32_t slot, uint32_t head,
                          uint32_t pos) {
    uint64_t x = 0;
    uint32_t n = c->block_bytes / BLOCK;
    memcpy(&x, place(kv, c, slot, head, pos), n < 8 ? n : 8);
    return x;
}

static uint64_t cut_to(uint64_t x, uint32_t n) {
    return n >= 8 ? x : x & ((UINT64_C(1) << 8 * n) - 1);
}

/* What the caches show to a row at `pos`. */
static uint64_t look(uint8_t *kv, uint32_t slot, uint32_t pos) {
    uint64_t h = 1;
    for (uint32_t i = 0; i < now->model.n_caches; i++) {
        const rt_cache *c = &now->caches[i];
        uint32_t from = c->window != 0 && pos + 1 > c->window ? pos + 1 - c->window : 0;
        for (uint32_t p = from; p <= pos; p++) {
            for (uint32_t head = 0; head < c->heads; head++) {
                h = mix(h, read_cell(kv, c, slot, head, p));
            }
        }
    }
    return h;
}

/* The same from the tokens alone. */
static uint64_t expect(const uint32_t *tokens, uint32_t n) {
    static uint64_t history[CTX_MAX];
    uint64_t h = 7;
    for (uint32_t p = 0; p < n; p++) {
        history[p] = h = mix(h, tokens[p]);
    }
    h = 1;
    for (uint32_t i = 0; i < now->model.n_caches; i++) {
        const rt_cache *c = &now->caches[i];
        uint32_t from = c->window != 0 && n > c->window ? n - c->window : 0;
        for (uint32_t p = from; p < n; p++) {
            for (uint32_t head = 0; head < c->heads; head++) {
                h = mix(h, cut_to(cell_of(history[p], i, head), c->block_bytes / BLOCK));
            }
        }
    }
    return h;
}

/* The tokens so far are known from the engine: caches are what is tested. */
static rt_engine *engine;

static bool step(uint8_t *const *arenas, const rt_step *s, rt_pool *pool, lb_err *err) {
    uint8_t *kv = arenas[RT_ARENA_KV];
    uint64_t h = 7;
    (void)pool;
    (void)err;
    for (uint32_t r = 0; r < s->n_rows; r++) { /* all are stored before the first one looks */
        uint32_t slot = s->slot_of_seq[s->seq_of_row[r]];
        if (r == 0 || s->seq_of_row[r] != s->seq_of_row[r - 1]) {
            h = 7;
            for (uint32_t p = 0; p < s->pos_of_row[r]; p++) {
                h = mix(h, engine->seqs[slot].tokens[p]);
            }
        }
        h = mix(h, s->token_of_row[r]);
        for (uint32_t i = 0; i < now->model.n_caches; i++) {
            const rt_cache *c = &now->caches[i];
            for (uint32_t head = 0; head < c->heads; head++) {
                uint64_t x = cell_of(h, i, head);
                uint32_t n = c->block_bytes / BLOCK;
                memcpy(place(kv, c, slot, head, s->pos_of_row[r]), &x, n < 8 ? n : 8);
            }
        }
    }
    for (uint32_t i = 0; i < s->n_logits; i++) {
        uint32_t r = s->logit_rows[i];
        uint64_t seen = look(kv, s->slot_of_seq[s->seq_of_row[r]], s->pos_of_row[r]);
        memcpy(arenas[RT_ARENA_IO] + i * N_LOGITS * sizeof(float), &seen, sizeof seen);
    }
    return true;
}

/* ---- shapes */

static uint32_t round_up(uint32_t a, uint32_t to) {
    return (a + to - 1) / to * to;
}

/* heads, window, bytes of a position; more caches follow as long as heads > 0 */
typedef struct cache_row {
    uint32_t heads, window, bytes;
} cache_row;

static void make(shape *s, const cache_row *rows, uint32_t ctx, uint32_t slots, uint32_t chunk) {
    uint64_t at = 0;
    uint32_t n = 0;
    rt_model *m = &s->model;
    *m = (rt_model){.abi_version = RT_ABI_VERSION,
                    .name = "caches",
                    .arch_row = "any",
                    .n_vocab = N_LOGITS,
                    .ctx = ctx,
                    .slots = slots,
                    .chunk = chunk,
                    .t_max = chunk > slots ? chunk : slots,
                    .logit_rows_max = 1,
                    .weights_linked = true,
                    .cache_block = BLOCK,
                    .step = step};
    m->n_vocab = N_LOGITS;
    for (; n < N_CACHES && rows[n].heads > 0; n++) {
        rt_cache *c = &s->caches[n];
        uint32_t w = rows[n].window;
        uint32_t need = w == 0 || w - 1 + m->t_max > ctx ? ctx : w - 1 + m->t_max;
        *c = (rt_cache){at, rows[n].heads, round_up(need, BLOCK), w, rows[n].bytes * BLOCK};
        at += (uint64_t)slots * c->heads * c->positions * rows[n].bytes;
        at = (at + 63) / 64 * 64;
        if (w != 0 && c->positions < ctx) {
            uint32_t spare = c->positions - (w - 1);
            m->ring_spare = m->ring == 0 || spare < m->ring_spare ? spare : m->ring_spare;
            m->ring = m->ring == 0 || c->positions < m->ring ? c->positions : m->ring;
        }
    }
    m->caches = s->caches;
    m->n_caches = n;
    m->arena_bytes[RT_ARENA_KV] = at;
    m->arena_bytes[RT_ARENA_IO] = 64;
    now = s;
}

static void start(const shape *s) {
    lb_err e = {0};
    const rt_engine_opts o = {.n_threads = 1, .load = {.dir = "."}};
    if (!rt_engine_start(&s->model, &o, &engine, &e)) {
        fail_msg("%s", e.text);
    }
}

static rt_prefix *open_store(uint64_t n_bytes) {
    rt_prefix *p = NULL;
    lb_err e = {0};
    if (!rt_prefix_open(engine, n_bytes, &p, &e)) {
        fail_msg("%s", e.text);
    }
    return p;
}

static void stop(rt_prefix *p) {
    rt_prefix_close(p);
    rt_engine_stop(engine);
    engine = NULL;
}

/* ---- what is done with slots */

/* The prompt as the server takes it; returns how many tokens were computed. The last row must see
 * what it would if all of them had been. */
static uint32_t prompt(rt_prefix *p, rt_seq *q, const uint32_t *t, uint32_t n) {
    lb_err e = {0};
    uint32_t kept = 0;
    uint32_t from_slot = 0;
    uint32_t found = rt_prefix_find(p, q, t, n - 1, &from_slot);
    if (!rt_prefix_load(p, q, t, n - 1, &kept, &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(kept, found);
    assert_true(from_slot <= kept && kept <= n - 1);
    assert_int_equal(q->n_tokens, kept);
    assert_memory_equal(q->tokens, t, kept * sizeof *t);
    assert_true(rt_seq_feed(q, t + kept, n - kept, NULL, &e));
    uint64_t want = expect(t, n);
    if (memcmp(rt_engine_logits(engine, 0), &want, sizeof want) != 0) {
        fail_msg(
            "slot %u: the row after %u of %u restored tokens (%u in the slot) sees something else",
            q->slot, kept, n, from_slot);
    }
    return n - kept;
}

static uint32_t below(uint32_t n) {
    static uint64_t x = 88172645463325252U;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 33) % n;
}

/* Talks of random lengths, each with the beginning of an earlier one. */
static void make_talks(uint32_t (*talk)[CTX_MAX], uint32_t *len, uint32_t ctx) {
    for (uint32_t i = 0; i < N_TALKS; i++) {
        uint32_t from = i == 0 ? 0 : below(i);
        uint32_t same = i == 0 ? 0 : below(len[from] + 1);
        len[i] = 1 + below(ctx);
        memcpy(talk[i], talk[from], sizeof talk[i]);
        for (uint32_t p = same; p < ctx; p++) {
            talk[i][p] = below(3) % N_LOGITS; /* few tokens: accidental beginnings in common */
        }
    }
}

static void random_use(rt_prefix *p, uint32_t n_ops) {
    static uint32_t talk[N_TALKS][CTX_MAX];
    uint32_t len[N_TALKS];
    lb_err e = {0};
    const rt_model *m = engine->model;
    make_talks(talk, len, m->ctx);
    for (uint32_t i = 0; i < n_ops; i++) {
        rt_seq *q = &engine->seqs[below(m->slots)];
        uint32_t t = below(N_TALKS);
        uint32_t n = below(4) == 0 ? 1 + below(len[t]) : len[t];
        switch (below(6)) {
        case 0: assert_true(rt_prefix_save(p, q, q->n_tokens, &e)); break;
        case 1: assert_true(rt_prefix_save(p, q, below(q->n_tokens + 1), &e)); break;
        case 2: assert_true(rt_prefix_mark(p, q, below(q->n_tokens + 1), &e)); break;
        case 3: rt_seq_cut(q, below(q->n_tokens + 1)); break;
        default: engine->chunk = 1 + below(m->chunk); prompt(p, q, talk[t], n);
        }
    }
}

static void texts_do_not_depend_on_a_store(void **state) {
    (void)state;
    static shape s;
    static const uint32_t windows[] = {1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 250};
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t w1 = windows[below(11)];
        uint32_t w2 = windows[below(11)];
        const cache_row mixed[] = {{2, 0, 4}, {2, 0, 3}, {1, w1, 8}, {3, w2, 1}, {0, 0, 0}};
        const cache_row full[] = {{3, 0, 8}, {1, 0, 5}, {0, 0, 0}};
        const cache_row rings[] = {{1, w1, 8}, {2, w2, 9}, {0, 0, 0}};
        const cache_row *kinds[] = {mixed, mixed, full, rings};
        make(&s, kinds[i % 4], BLOCK * (1 + below(40)) + below(BLOCK), 1 + below(3), 1 + below(90));
        start(&s);
        rt_prefix *p = NULL; /* from a few pages to more than everything */
        for (uint64_t n = (uint64_t)20000 << below(7); p == NULL; n *= 2) {
            rt_prefix_open(engine, n, &p, NULL);
        }
        random_use(p, 120);
        stop(p);
    }
}

/* ---- what is reused */

static void fill_random(uint32_t *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        t[i] = below(N_LOGITS);
    }
}

/* A slot's talk is stored, another takes the slot, the first one comes back: at any point near its
 * end, wherever the windows lie, little is computed. */
static void a_stored_talk_goes_on(void **state) {
    (void)state;
    static shape s;
    static uint32_t a[CTX_MAX], b[CTX_MAX], c[CTX_MAX];
    const cache_row rows[] = {{2, 0, 4}, {1, 100, 8}, {2, 100, 3}, {0, 0, 0}};
    lb_err e = {0};
    make(&s, rows, 1000, 2, 160);
    fill_random(a, 1000);
    fill_random(b, 1000);
    for (uint32_t back = 0; back < 200; back += 7) {
        start(&s);
        rt_prefix *p = open_store(1 << 20);
        rt_seq *q = &engine->seqs[0];
        assert_int_equal(prompt(p, q, a, 700), 700);
        assert_true(rt_prefix_save(p, q, 700, &e));
        prompt(p, q, b, 600);
        memcpy(c, a, sizeof c);
        for (uint32_t i = 700 - back; i < 900; i++) {
            c[i] = (a[i] + 1) % N_LOGITS;
        }
        uint32_t computed = prompt(p, &engine->seqs[back % 2], c, 900);
        uint32_t least = 900 - (700 - back); /* 140: the slack, and the rest of its block */
        assert_true(computed >= least && (back > 112 || computed < least + BLOCK));
        stop(p);
    }
}

/* A mark keeps the window around a point that the slot itself soon forgets. */
static void a_mark_outlives_the_ring(void **state) {
    (void)state;
    static shape s;
    static uint32_t a[CTX_MAX], c[CTX_MAX];
    const cache_row rows[] = {{2, 0, 4}, {1, 40, 8}, {0, 0, 0}};
    lb_err e = {0};
    make(&s, rows, 1000, 1, 32);
    start(&s);
    rt_prefix *p = open_store(1 << 20);
    rt_seq *q = &engine->seqs[0];
    fill_random(a, 1000);
    memcpy(c, a, sizeof c);
    c[300] = (a[300] + 1) % N_LOGITS;
    prompt(p, q, a, 300);
    assert_true(rt_prefix_mark(p, q, 300, &e));
    assert_true(rt_seq_feed(q, a + 300, 500, NULL, &e)); /* an answer of 500 tokens */
    assert_int_equal(prompt(p, q, c, 400), 400 - 288);   /* 300 in whole blocks */
    assert_int_equal(prompt(p, q, a, 295), 295 - 288);   /* and without the store, from the slot */
    rt_seq_cut(q, 0);
    assert_int_equal(prompt(p, q, a, 400), 400); /* whole parts were not stored: only marked */
    stop(p);
}

static void the_oldest_goes(void **state) {
    (void)state;
    static shape s;
    static uint32_t t[8][CTX_MAX];
    const cache_row rows[] = {{1, 0, 64}, {0, 0, 0}};
    lb_err e = {0};
    rt_prefix_stats st;
    make(&s, rows, 256, 1, 64);
    start(&s);
    rt_prefix *p = open_store(100000); /* about 20 pages of 4 KiB: 5 talks of 256 tokens */
    rt_seq *q = &engine->seqs[0];
    for (uint32_t i = 0; i < 8; i++) {
        fill_random(t[i], 256);
        t[i][0] = i % N_LOGITS;
        t[i][1] = i / N_LOGITS;
        rt_seq_cut(q, 0);
        prompt(p, q, t[i], 256);
        assert_true(rt_prefix_save(p, q, 256, &e));
        rt_seq_cut(q, 0);
        assert_true(prompt(p, q, t[0], 256) <= 16); /* used each time: it stays */
    }
    rt_prefix_stats_of(p, &st);
    assert_true(st.n_evicted > 0 && st.used_bytes <= st.size_bytes && st.size_bytes <= 100000);
    rt_seq_cut(q, 0);
    assert_true(prompt(p, q, t[7], 256) <= 16);
    rt_seq_cut(q, 0);
    assert_true(prompt(p, q, t[1], 256) > 100);
    stop(p);
}

/* A store that cannot hold a talk holds its beginning. */
static void a_small_store_keeps_beginnings(void **state) {
    (void)state;
    static shape s;
    static uint32_t a[CTX_MAX];
    const cache_row rows[] = {{1, 0, 64}, {0, 0, 0}};
    lb_err e = {0};
    make(&s, rows, 1000, 1, 64);
    start(&s);
    rt_prefix *p = open_store(40000);
    rt_seq *q = &engine->seqs[0];
    fill_random(a, 1000);
    prompt(p, q, a, 1000);
    for (int i = 0; i < 3; i++) {
        assert_true(rt_prefix_save(p, q, 1000, &e));
        rt_seq_cut(q, 0);
        assert_in_range(1000 - prompt(p, q, a, 1000), 4 * 64, 9 * 64);
    }
    stop(p);
}

/* ---- what is refused */

static void stores_that_cannot_be(void **state) {
    (void)state;
    static shape s;
    const cache_row rows[] = {{1, 0, 64}, {0, 0, 0}};
    rt_prefix *p = NULL;
    lb_err e = {0};
    make(&s, rows, 256, 1, 64);
    start(&s);
    assert_false(rt_prefix_open(engine, 100, &p, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    assert_false(rt_prefix_open(engine, UINT64_C(1) << 62, &p, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    rt_model without = s.model;
    without.caches = NULL;
    engine->model = &without;
    assert_false(rt_prefix_open(engine, 1 << 20, &p, &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    assert_int_equal(rt_prefix_default_bytes(&without), 0);
    engine->model = &s.model;
    assert_true(rt_prefix_open(engine, rt_prefix_default_bytes(&s.model), &p, &e));
    rt_prefix_stats st;
    rt_prefix_stats_of(p, &st);
    assert_true(st.size_bytes >= s.model.arena_bytes[RT_ARENA_KV]);
    rt_prefix_close(p);
    p = NULL;
    without = s.model;
    without.arena_bytes[RT_ARENA_KV] = UINT64_C(5) << 30;
    assert_int_equal(rt_prefix_default_bytes(&without), UINT64_C(1) << 30);
    assert_null(p);
    stop(NULL);
}

/* ---- a device of its own: bytes come and go by its functions, which fail */

static bool device_get(const rt_memory *mem, rt_arena_kind kind, uint64_t offset, void *to,
                       uint64_t n, lb_err *err) {
    if (fail_in == 0) {
        return lb_err_set(err, LB_DEVICE_LOST, "lost while reading");
    }
    fail_in--;
    memcpy(to, mem->arenas[kind] + offset, n);
    return true;
}

static bool device_set(const rt_memory *mem, rt_arena_kind kind, uint64_t offset, const void *from,
                       uint64_t n, lb_err *err) {
    if (fail_in == 0) {
        return lb_err_set(err, LB_DEVICE_LOST, "lost while writing");
    }
    fail_in--;
    memcpy(mem->arenas[kind] + offset, from, n);
    return true;
}

static const rt_device_ops DEVICE = {.get = device_get, .set = device_set};

static void a_device_that_fails(void **state) {
    (void)state;
    static shape s;
    static uint32_t a[CTX_MAX];
    const cache_row rows[] = {{2, 0, 4}, {2, 50, 8}, {0, 0, 0}};
    make(&s, rows, 600, 1, 32);
    start(&s);
    rt_model with = s.model;
    with.device = &DEVICE;
    engine->model = &with;
    engine->memory.device = &DEVICE;
    fail_in = -1;
    rt_prefix *p = open_store(1 << 20);
    rt_seq *q = &engine->seqs[0];
    uint32_t failed = 0;
    for (long k = 0; k < 40; k++) {
        lb_err e = {0};
        uint32_t kept = 0;
        fail_in = -1;
        if (k % 2 == 0) {
            fill_random(a, 600);
        }
        prompt(p, q, a, 500);
        fail_in = k / 2; /* a save or a load of all takes 8 copies */
        failed += !rt_prefix_save(p, q, 500, &e);
        fail_in = k / 2;
        rt_seq_cut(q, 0);
        if (!rt_prefix_load(p, q, a, 600, &kept, &e)) {
            failed++;
            assert_int_equal(e.code, LB_DEVICE_LOST);
            assert_int_equal(q->n_tokens, 0);
        }
    }
    assert_in_range(failed, 10, 60);
    fail_in = -1;
    prompt(p, q, a, 600);
    engine->memory.device = NULL;
    engine->model = &s.model;
    stop(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_do_not_depend_on_a_store),
        cmocka_unit_test(a_stored_talk_goes_on),
        cmocka_unit_test(a_mark_outlives_the_ring),
        cmocka_unit_test(the_oldest_goes),
        cmocka_unit_test(a_small_store_keeps_beginnings),
        cmocka_unit_test(stores_that_cannot_be),
        cmocka_unit_test(a_device_that_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prefix", tests, NULL, NULL);
}
