/* test_token_merge.c -- the merging of one word against a reference that looks through all pairs at
 * every step, over random tables whose merges do not come in the order of their making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tok_fixture.h"
#include "token/merge.h"

enum { TOKENS_MAX = 400, WORD_MAX = 300 };

typedef struct world {
    tok_row rows[TOKENS_MAX];
    char text[TOKENS_MAX][32];
    uint32_t n;
    rt_merge merges[2000];
    uint32_t n_merges;
} world;

static uint32_t random_below(uint64_t *seed, uint32_t n) {
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

static void add_token(world *w, const char *text, size_t n) {
    memcpy(w->text[w->n], text, n);
    w->rows[w->n] = (tok_row){w->text[w->n], n, RT_TOKEN_NORMAL, 0};
    w->n++;
}

static uint32_t find(const world *w, const char *text, size_t n) {
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->rows[i].n_bytes == n && memcmp(w->rows[i].text, text, n) == 0) {
            return i;
        }
    }
    return RT_TOKEN_NONE;
}

/* Letters a.. and random joins of earlier tokens; merges are all splits of a token into two tokens,
 * in random order. With `n_ranks`, ranks of tokens are random and shared by several. */
static void make_world(world *w, uint64_t *seed, uint32_t letters, uint32_t tokens,
                       uint32_t n_ranks) {
    *w = (world){.n = 0};
    for (uint32_t i = 0; i < letters; i++) {
        add_token(w, &"abcdefgh"[i], 1);
    }
    for (uint32_t tries = 0; w->n < tokens && tries < 4 * tokens; tries++) {
        const tok_row *a = &w->rows[random_below(seed, w->n)];
        const tok_row *b = &w->rows[random_below(seed, w->n)];
        char text[64];
        memcpy(text, a->text, a->n_bytes);
        memcpy(text + a->n_bytes, b->text, b->n_bytes);
        size_t n = a->n_bytes + b->n_bytes;
        if (n <= 12 && find(w, text, n) == RT_TOKEN_NONE) {
            add_token(w, text, n);
        }
    }
    for (uint32_t i = 0; i < w->n; i++) {
        w->rows[i].rank = random_below(seed, n_ranks);
        for (size_t cut = 1; cut < w->rows[i].n_bytes && w->n_merges < 2000; cut++) {
            uint32_t left = find(w, w->rows[i].text, cut);
            uint32_t right = find(w, w->rows[i].text + cut, w->rows[i].n_bytes - cut);
            if (left == RT_TOKEN_NONE || right == RT_TOKEN_NONE) {
                continue;
            }
            uint32_t at = random_below(seed, w->n_merges + 1);
            w->merges[w->n_merges++] = w->merges[at];
            w->merges[at] = (rt_merge){left, right, i};
        }
    }
}

static uint32_t pair_rank(const rt_tokenizer *t, const world *w, uint32_t left, uint32_t right,
                          uint32_t *id) {
    if (t->kind != RT_TOKENIZER_SCORES) {
        for (uint32_t i = 0; i < w->n_merges; i++) {
            if (w->merges[i].left == left && w->merges[i].right == right) {
                *id = w->merges[i].id;
                return i;
            }
        }
        return RT_TOKEN_NONE;
    }
    char text[64];
    memcpy(text, w->rows[left].text, w->rows[left].n_bytes);
    memcpy(text + w->rows[left].n_bytes, w->rows[right].text, w->rows[right].n_bytes);
    *id = find(w, text, w->rows[left].n_bytes + w->rows[right].n_bytes);
    return *id == RT_TOKEN_NONE ? RT_TOKEN_NONE : w->rows[*id].rank;
}

static size_t reference(const rt_tokenizer *t, const world *w, uint32_t *ids, size_t n) {
    for (;;) {
        uint32_t best = RT_TOKEN_NONE, best_id = 0;
        size_t best_at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t id = 0;
            uint32_t rank = pair_rank(t, w, ids[i], ids[i + 1], &id);
            if (rank < best) {
                best = rank;
                best_at = i;
                best_id = id;
            }
        }
        if (best == RT_TOKEN_NONE) {
            return n;
        }
        ids[best_at] = best_id;
        memmove(ids + best_at + 1, ids + best_at + 2, (n - best_at - 2) * sizeof *ids);
        n--;
    }
}

static void compare_word(const rt_tokenizer *t, const world *w, rt_merger *m, const char *word,
                         size_t n) {
    static uint32_t want[WORD_MAX], got[WORD_MAX];
    for (size_t i = 0; i < n; i++) {
        want[i] = (uint32_t)(word[i] - 'a');
    }
    size_t n_want = reference(t, w, want, n);
    rt_token_sink sink = {got, WORD_MAX, 0};
    lb_err err = {0};
    assert_true(rt_merge_word(m, t, word, n, &sink, &err));
    assert_int_equal(sink.n, n_want);
    assert_memory_equal(got, want, n_want * sizeof *want);
}

static void equal_to_reference(rt_tokenizer_kind kind) {
    static world w;
    uint64_t seed = 7;
    for (uint32_t round = 0; round < 120; round++) {
        lb_arena arena;
        lb_arena_init(&arena, "test", UINT64_C(1) << 30);
        uint32_t letters = 1 + random_below(&seed, 4);
        make_world(&w, &seed, letters, 8 + random_below(&seed, 80), 1 + random_below(&seed, 40));
        const rt_merge *merges = kind == RT_TOKENIZER_SCORES ? NULL : w.merges;
        rt_tokenizer *t = tok_fixture(kind, w.rows, w.n, merges, w.n_merges, &arena);
        rt_merger m;
        lb_err err = {0};
        assert_true(rt_merger_new(&m, t, WORD_MAX, &arena, &err));
        for (uint32_t i = 0; i < 25; i++) {
            char word[WORD_MAX];
            size_t n = random_below(&seed, i == 0 ? WORD_MAX : 40);
            for (size_t k = 0; k < n; k++) {
                word[k] = (char)('a' + random_below(&seed, letters));
            }
            compare_word(t, &w, &m, word, n);
        }
        lb_arena_reset(&arena);
    }
}

static void bytes_are_merged_as_by_hand(void **state) {
    (void)state;
    equal_to_reference(RT_TOKENIZER_BYTES);
}

static void characters_are_merged_as_by_hand(void **state) {
    (void)state;
    equal_to_reference(RT_TOKENIZER_CHARS);
}

static void scores_are_merged_as_by_hand(void **state) {
    (void)state;
    equal_to_reference(RT_TOKENIZER_SCORES);
}

static void queue_orders_by_rank_then_place(void **state) {
    (void)state;
    lb_arena arena;
    lb_arena_init(&arena, "test", UINT64_C(1) << 30);
    lb_err err = {0};
    rt_queue q;
    enum { N = 5000, RANKS = 300000 };
    assert_true(rt_queue_new(&q, RANKS, &arena, &err) && rt_queue_reserve(&q, N, &arena, &err));
    uint64_t seed = 1;
    for (int round = 0; round < 20; round++) {
        rt_queue_begin(&q, N);
        uint32_t ranks = round % 2 == 0 ? 3 : RANKS;
        for (uint32_t k = 0; k < N; k++) {
            uint32_t i = (k * 1009 + (uint32_t)round) % N; /* 1009 and 5000 are coprime */
            rt_queue_push(&q, i, random_below(&seed, ranks) * (RANKS / ranks), i);
        }
        for (uint32_t i = 0; i < N; i += 7) {
            rt_queue_remove(&q, i);
            rt_queue_remove(&q, i);
        }
        uint32_t rank = 0, last_rank = 0, n = 0;
        int64_t last = -1;
        for (uint32_t i; (i = rt_queue_pop(&q, &rank)) != RT_QUEUE_NONE; n++) {
            assert_true(rank > last_rank || (rank == last_rank && (int64_t)i > last));
            assert_int_not_equal(i % 7, 0);
            last_rank = rank;
            last = i;
        }
        assert_int_equal(n, N - (N + 6) / 7);
    }
    lb_arena_reset(&arena);
}

static void a_missing_byte_is_an_error_or_unknown(void **state) {
    (void)state;
    lb_arena arena;
    lb_arena_init(&arena, "test", UINT64_C(1) << 30);
    lb_err err = {0};
    tok_row rows[] = {{"a", 1, RT_TOKEN_NORMAL, 0}, {"?", 1, RT_TOKEN_NORMAL, 0}};
    static const rt_merge none[1];
    rt_tokenizer *t = tok_fixture(RT_TOKENIZER_BYTES, rows, 2, none, 0, &arena);
    rt_merger m;
    assert_true(rt_merger_new(&m, t, 8, &arena, &err));
    uint32_t out[8];
    rt_token_sink sink = {out, 8, 0};
    assert_false(rt_merge_word(&m, t, "ab", 2, &sink, &err));
    assert_int_equal(err.code, LB_BAD_VALUE);
    assert_string_equal(err.text, "the text holds byte 0x62, for which this model has no token");
    t->unknown = 1;
    sink.n = 0;
    assert_true(rt_merge_word(&m, t, "ab", 2, &sink, &err));
    assert_int_equal(sink.n, 2);
    assert_int_equal(out[1], 1);
    lb_arena_reset(&arena);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A run of one letter and random letters, 1 MiB each; generous bounds, the numbers are printed. */
static void long_words_take_linear_time(void **state) {
    (void)state;
    static world w;
    uint64_t seed = 3;
    lb_arena arena;
    lb_arena_init(&arena, "test", UINT64_C(1) << 30);
    make_world(&w, &seed, 4, 300, 1);
    rt_tokenizer *t = tok_fixture(RT_TOKENIZER_BYTES, w.rows, w.n, w.merges, w.n_merges, &arena);
    enum { N = 1 << 20 };
    rt_merger m;
    lb_err err = {0};
    assert_true(rt_merger_new(&m, t, N, &arena, &err));
    char *word = lb_alloc(&arena, N, &err);
    for (int mixed = 0; mixed < 2; mixed++) {
        for (size_t i = 0; i < N; i++) {
            word[i] = (char)('a' + (mixed ? random_below(&seed, 4) : 0));
        }
        rt_token_sink sink = {NULL, 0, 0};
        double start = seconds();
        assert_true(rt_merge_word(&m, t, word, N, &sink, &err));
        double took = seconds() - start;
        print_message("# 1 MiB of %s: %zu tokens, %.0f ms\n", mixed ? "4 letters" : "1 letter",
                      sink.n, took * 1e3);
        assert_true(took < 5);
    }
    lb_arena_reset(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_merged_as_by_hand),
        cmocka_unit_test(characters_are_merged_as_by_hand),
        cmocka_unit_test(scores_are_merged_as_by_hand),
        cmocka_unit_test(queue_orders_by_rank_then_place),
        cmocka_unit_test(a_missing_byte_is_an_error_or_unknown),
        cmocka_unit_test(long_words_take_linear_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("token_merge", tests, NULL, NULL);
}
