/* test_session.c -- steps, chunks, slots, limits, generations and stop strings over the fake
 * model. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_model.h"
#include "session.h"

static rt_engine *engine;
static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_err e = {0};
    rt_engine_opts o = {.n_threads = 2, .load = {.dir = "."}};
    lb_arena_init(&arena, "test", 64 << 20);
    return rt_engine_start(&lagen_model, &o, &engine, &e) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rt_engine_stop(engine);
    lb_arena_reset(&arena);
    return 0;
}

static rt_seq *empty(uint32_t slot) {
    rt_seq_cut(&engine->seqs[slot], 0);
    return &engine->seqs[slot];
}

static void some_tokens(uint32_t *t, uint32_t n, uint32_t salt) {
    for (uint32_t i = 0; i < n; i++) {
        t[i] = 1 + (i * 7919 + salt * 31) % 255;
    }
}

static void assert_logits(uint32_t row, const uint32_t *history, uint32_t n) {
    float want[FAKE_N_VOCAB];
    fake_logits(history, n, want);
    assert_memory_equal(rt_engine_logits(engine, row), want, sizeof want);
}

/* ---- rings ---- */

/* A model whose layers keep 48 positions, of which a row sees the last 16. */
static void rings_are_rewound_as_far_as_they_hold(void **state) {
    (void)state;
    static const struct {
        uint32_t fed, cut, stays;
    } steps[] = {
        {40, 10, 10},                /* nothing was overwritten yet */
        {50, 0, 0},                  /* all of it: always */
        {48, 1, 1},   {99, 67, 67}, /* 33 positions behind it: the window is whole */
        {1, 66, 0},                  /* 34, although only 2 tokens are cut: position 51 is gone */
        {60, 60, 60}, {0, 27, 27},   {33, 27, 27},
        {34, 27, 0},  {49, 15, 0}, /* position 0 is gone, and row 15 sees it */
    };
    rt_model ringed = lagen_model;
    const rt_model *was = engine->model;
    uint32_t t[FAKE_CTX];
    lb_err e = {0};
    ringed.ring = 48;
    ringed.ring_spare = 33;
    engine->model = &ringed;
    some_tokens(t, FAKE_CTX, 9);
    rt_seq *s = empty(0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_true(steps[i].fed == 0 || rt_seq_feed(s, t, steps[i].fed, NULL, &e));
        if (rt_seq_cut(s, steps[i].cut) != steps[i].stays || s->n_tokens != steps[i].stays) {
            fail_msg("step %zu: %u tokens stay", i, s->n_tokens);
        }
    }
    /* a prompt that shares too little begins anew, and says so */
    uint32_t kept = 7;
    assert_true(rt_seq_prompt(s, t, 100, NULL, &kept, &e) && kept == 0);
    assert_true(rt_seq_prompt(s, t, 50, NULL, &kept, &e) && kept == 0 && s->n_tokens == 50);
    assert_true(rt_seq_prompt(s, t, 40, NULL, &kept, &e) && kept == 39);
    assert_logits(0, t, 40);
    engine->model = was;
}

/* What a failed step may have stored counts as stored. */
static void failed_steps_count_as_stored(void **state) {
    (void)state;
    rt_seq *s = empty(0);
    lb_err e = {0};
    static const uint32_t bad[] = {5, 0, 0, 6};
    assert_true(rt_seq_feed(s, (const uint32_t[]){5, 6}, 2, NULL, &e) && s->n_stored == 2);
    assert_false(rt_seq_feed(s, bad, 4, NULL, &e));
    assert_true(s->n_tokens == 2 && s->n_stored == 6);
    assert_true(rt_seq_cut(s, 1) == 1 && s->n_stored == 6);
    assert_true(rt_seq_cut(s, 0) == 0 && s->n_stored == 0);
}

/* ---- steps ---- */

static bool count_visits(void *arg, uint32_t pos, const float *logits, lb_err *err) {
    uint32_t *next = arg;
    float want[FAKE_N_VOCAB];
    (void)err;
    assert_int_equal(pos, *next);
    fake_logits(engine->seqs[0].tokens, pos + 1, want);
    assert_memory_equal(logits, want, sizeof want);
    (*next)++;
    return true;
}

static void chunks_do_not_matter(void **state) {
    (void)state;
    uint32_t t[FAKE_CTX];
    lb_err e = {0};
    some_tokens(t, FAKE_CTX, 1);
    static const uint32_t lengths[] = {1, 2, 15, 16, 17, 33, FAKE_CTX - 1, FAKE_CTX};
    for (uint32_t chunk = 1; chunk <= FAKE_CHUNK; chunk++) {
        engine->chunk = chunk;
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            rt_seq *s = empty(0);
            assert_true(rt_seq_feed(s, t, lengths[k], NULL, &e));
            assert_int_equal(s->n_tokens, lengths[k]);
            assert_memory_equal(s->tokens, t, lengths[k] * sizeof t[0]);
            assert_logits(0, t, lengths[k]);
        }
        uint32_t next = 0;
        rt_feed_opts o = {.visit = count_visits, .visit_arg = &next};
        assert_true(rt_seq_feed(empty(0), t, 100, &o, &e));
        assert_int_equal(next, 100);
    }
    engine->chunk = FAKE_CHUNK;
}

static void slots_share_a_step(void **state) {
    (void)state;
    uint32_t t[3][FAKE_CTX];
    lb_err e = {0};
    for (uint32_t i = 0; i < 3; i++) {
        empty(i);
        some_tokens(t[i], FAKE_CTX, i);
    }
    assert_true(rt_seq_feed(&engine->seqs[1], t[1], 20, NULL, &e));
    rt_feed f[] = {{.seq = &engine->seqs[2], .tokens = t[2], .n_tokens = 5, .n_logits = 3},
                   {.seq = &engine->seqs[0], .tokens = t[0], .n_tokens = 1, .n_logits = 0},
                   {.seq = &engine->seqs[1], .tokens = t[1] + 20, .n_tokens = 10, .n_logits = 1}};
    assert_true(rt_engine_step(engine, f, 3, &e));
    assert_int_equal(f[0].first_logit, 0);
    assert_int_equal(f[2].first_logit, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_logits(i, t[2], 3 + i);
    }
    assert_logits(3, t[1], 30);
    rt_feed g[] = {{.seq = &engine->seqs[2], .tokens = t[2] + 5, .n_tokens = 5, .n_logits = 2, .prompt = true},
                   {.seq = &engine->seqs[1], .tokens = t[1] + 30, .n_tokens = 1, .n_logits = 1}};
    assert_true(rt_engine_step(engine, g, 2, &e)); /* rows of prompts stand last */
    assert_int_equal(g[1].first_logit, 0);
    assert_int_equal(g[0].first_logit, 1);
    assert_int_equal(engine->seq_of_row[0], 1);
    assert_logits(0, t[1], 31);
    assert_logits(1, t[2], 9);
    assert_logits(2, t[2], 10);
    assert_int_equal(fake_prompt_rows, 5);
    assert_true(rt_engine_step(engine, NULL, 0, &e)); /* T = 0 runs nothing */
    assert_int_equal(engine->seqs[0].n_tokens, 1);
}

static void step_refused(rt_feed *f, uint32_t n, lb_code code, const char *what) {
    lb_err e = {0};
    uint32_t before[FAKE_SLOTS];
    for (int i = 0; i < FAKE_SLOTS; i++) {
        before[i] = engine->seqs[i].n_tokens;
    }
    assert_false(rt_engine_step(engine, f, n, &e));
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.text, what));
    for (int i = 0; i < FAKE_SLOTS; i++) {
        assert_int_equal(engine->seqs[i].n_tokens, before[i]);
    }
}

static void bad_steps_change_nothing(void **state) {
    (void)state;
    uint32_t t[FAKE_CTX];
    some_tokens(t, FAKE_CTX, 2);
    rt_seq *a = empty(0);
    rt_seq *b = empty(1);
    rt_feed f[] = {{.seq = a, .tokens = t, .n_tokens = 9}, {.seq = b, .tokens = t, .n_tokens = 8}};
    step_refused(f, 2, LB_LIMIT, "17 rows");
    f[1].seq = a;
    f[1].n_tokens = 1;
    step_refused(f, 2, LB_BAD_VALUE, "slot 0 twice");
    f[0].n_tokens = 0;
    step_refused(f, 1, LB_BAD_VALUE, "0 tokens");
    f[0].n_tokens = 2;
    f[0].n_logits = 3;
    step_refused(f, 1, LB_BAD_VALUE, "3 logits");
    f[0].n_logits = 0;
    t[1] = FAKE_N_VOCAB;
    step_refused(f, 1, LB_BAD_VALUE, "token 259 of a vocabulary of 259");
    t[0] = 0;
    t[1] = 0;
    step_refused(f, 1, LB_DEVICE_LOST, "token 0");
}

static void the_context_has_an_end(void **state) {
    (void)state;
    uint32_t t[FAKE_CTX + 1];
    lb_err e = {0};
    some_tokens(t, FAKE_CTX + 1, 3);
    rt_seq *s = empty(0);
    assert_false(rt_seq_feed(s, t, FAKE_CTX + 1, NULL, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_non_null(strstr(e.text, "257"));
    assert_non_null(strstr(e.text, "256"));
    assert_int_equal(s->n_tokens, 0);
    assert_false(rt_seq_prompt(s, t, FAKE_CTX + 1, NULL, NULL, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_true(rt_seq_feed(s, t, FAKE_CTX - 1, NULL, &e));
    assert_false(rt_seq_feed(s, t, 2, NULL, &e));
    assert_true(rt_seq_feed(s, t, 1, NULL, &e));
    rt_feed f = {.seq = s, .tokens = t, .n_tokens = 1};
    step_refused(&f, 1, LB_LIMIT, "0 more fit");
    assert_false(rt_seq_feed(s, t, 0, NULL, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
}

static void prompts_reuse_what_is_there(void **state) {
    (void)state;
    uint32_t t[100];
    uint32_t kept = 9;
    lb_err e = {0};
    some_tokens(t, 100, 4);
    rt_seq *s = empty(0);
    assert_true(rt_seq_prompt(s, t, 40, NULL, &kept, &e));
    assert_int_equal(kept, 0);
    assert_true(rt_seq_prompt(s, t, 60, NULL, &kept, &e));
    assert_int_equal(kept, 40);
    assert_true(rt_seq_prompt(s, t, 60, NULL, &kept, &e)); /* the last one is fed again */
    assert_int_equal(kept, 59);
    assert_logits(0, t, 60);
    t[20]++;
    assert_true(rt_seq_prompt(s, t, 30, NULL, &kept, &e));
    assert_int_equal(kept, 20);
    assert_int_equal(s->n_tokens, 30);
    assert_logits(0, t, 30);
}

static void prompts_can_be_interrupted(void **state) {
    (void)state;
    uint32_t t[100];
    lb_err e = {0};
    volatile sig_atomic_t stop = 1;
    rt_feed_opts o = {.interrupt = &stop};
    some_tokens(t, 100, 5);
    rt_seq *s = empty(0);
    assert_false(rt_seq_feed(s, t, 100, &o, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_int_equal(s->n_tokens, 0);
}

/* ---- generations ---- */

typedef struct text {
    char s[1024];
    size_t n;
} text;

static bool keep(void *arg, const char *s, size_t n, lb_err *err) {
    text *t = arg;
    (void)err;
    assert_true(n > 0 && t->n + n < sizeof t->s);
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
    return true;
}

/* Greedy answer to `prompt` with these stop strings; what g points to is the same for all. */
static void begin_answer(const char *prompt, const char *const *stops, size_t n_stops,
                         uint32_t n_predict, const volatile sig_atomic_t *interrupt,
                         rt_emit_fn emit, void *emit_arg, rt_gen *g) {
    static rt_sampler sampler;
    static rt_stream stream;
    static rt_stop_string list[4];
    rt_sample_scratch *scratch = NULL;
    rt_sample_params p;
    lb_err e = {0};
    uint32_t t[FAKE_CTX];
    uint32_t n = (uint32_t)strlen(prompt);
    for (uint32_t i = 0; i < n; i++) {
        t[i] = (uint8_t)prompt[i];
    }
    for (size_t i = 0; i < n_stops; i++) {
        list[i] = (rt_stop_string){stops[i], strlen(stops[i])};
    }
    rt_sample_defaults(NULL, &p);
    p.temperature = 0;
    assert_true(rt_sampler_start(&sampler, &p, FAKE_N_VOCAB, &e));
    assert_true(rt_sample_scratch_new(FAKE_N_VOCAB, FAKE_CTX, &arena, &scratch, &e));
    assert_true(rt_stream_new(&stream, rt_detok_max_bytes(lagen_model.tokenizer), 32, &arena, &e));
    assert_true(rt_stream_start(&stream, list, n_stops, &e));
    assert_true(rt_seq_prompt(empty(0), t, n, NULL, NULL, &e));
    rt_gen_opts o = {.sampler = &sampler, .scratch = scratch, .stream = &stream,
                     .n_predict = n_predict, .emit = emit, .emit_arg = emit_arg,
                     .interrupt = interrupt};
    rt_gen_start(g, &engine->seqs[0], &o);
}

static rt_stop_reason answer(const char *prompt, const char *const *stops, size_t n_stops,
                             uint32_t n_predict, const volatile sig_atomic_t *interrupt, text *out,
                             uint32_t *n_generated) {
    lb_err e = {0};
    rt_gen g;
    *out = (text){.n = 0};
    begin_answer(prompt, stops, n_stops, n_predict, interrupt, keep, out, &g);
    assert_true(rt_generate(&g, &e));
    if (n_generated != NULL) {
        *n_generated = g.n_generated;
    }
    return g.stop;
}

static void answers_end_where_they_should(void **state) {
    (void)state;
    text t;
    uint32_t n = 0;
    assert_int_equal(answer("hi", NULL, 0, 1000, NULL, &t, &n), RT_STOP_EOG);
    assert_string_equal(t.s, FAKE_ANSWER);
    assert_int_equal(n, strlen(FAKE_ANSWER) + 1);
    const char *const stop[] = {"STOP"};
    assert_int_equal(answer("hi", stop, 1, 1000, NULL, &t, &n), RT_STOP_STRING);
    assert_string_equal(t.s, "Hello, w\xC3\xB6rld! ");
    const char *const two[] = {"TOP n", "d! STOX", "O, W"};
    assert_int_equal(answer("hi", two, 3, 1000, NULL, &t, NULL), RT_STOP_STRING);
    assert_string_equal(t.s, "Hello, w\xC3\xB6rld! S");
    const char *const never[] = {"now.\n\n", "zzz"};
    assert_int_equal(answer("hi", never, 2, 1000, NULL, &t, NULL), RT_STOP_EOG);
    assert_string_equal(t.s, FAKE_ANSWER); /* what was held back at the end came out */
    assert_int_equal(answer("hi", NULL, 0, 0, NULL, &t, &n), RT_STOP_LENGTH);
    assert_int_equal(t.n + n, 0);
    assert_int_equal(answer("hi", NULL, 0, 5, NULL, &t, &n), RT_STOP_LENGTH);
    assert_string_equal(t.s, "Hello");
    assert_int_equal(answer("hi", NULL, 0, 9, NULL, &t, NULL), RT_STOP_LENGTH);
    assert_string_equal(t.s, "Hello, w\xEF\xBF\xBD"); /* cut inside a character */
    const char *const prefix[] = {"Hellx"};
    assert_int_equal(answer("hi", prefix, 1, 3, NULL, &t, NULL), RT_STOP_LENGTH);
    assert_string_equal(t.s, "Hel");
}

static void answers_end_with_the_context(void **state) {
    (void)state;
    char prompt[FAKE_CTX + 1];
    text t;
    uint32_t n = 0;
    memset(prompt, 'x', sizeof prompt);
    for (uint32_t left = 0; left < 4; left++) {
        prompt[FAKE_CTX - left] = '\0';
        assert_int_equal(answer(prompt, NULL, 0, 1000, NULL, &t, &n), RT_STOP_CONTEXT);
        assert_int_equal(n, left + 1); /* the last token is printed though it has no place */
        assert_memory_equal(t.s, "Hello", t.n);
        assert_int_equal(engine->seqs[0].n_tokens, FAKE_CTX);
    }
}

static void answers_can_be_interrupted(void **state) {
    (void)state;
    text t;
    volatile sig_atomic_t stop = 1;
    assert_int_equal(answer("hi", NULL, 0, 1000, &stop, &t, NULL), RT_STOP_INTERRUPT);
    assert_int_equal(t.n, 0);
    for (int r = RT_STOP_NOT; r <= RT_STOP_INTERRUPT; r++) {
        assert_true(strlen(rt_stop_name((rt_stop_reason)r)) > 3);
    }
}

/* Takes so many pieces of text. */
typedef struct reader {
    int left, refused;
} reader;

static bool take_some(void *arg, const char *s, size_t n, lb_err *err) {
    reader *r = arg;
    assert_true(n > 0 && s[0] != '\0');
    if (r->left == 0) {
        r->refused++;
        return lb_err_set(err, LB_CLOSED, "gone");
    }
    r->left--;
    return true;
}

/* What nobody takes ends the generation there and then, wherever text comes out: at a token, a stop
 * string, the end of the answer, the length, an interrupt. */
static void nobody_takes_the_answer(void **state) {
    (void)state;
    const char *const stop[] = {"STOP", "now.\n\n"};
    for (size_t n_stops = 0; n_stops < 3; n_stops++) {
        for (uint32_t length = 3; length < 40; length += 18) {
            bool ended = false;
            for (int taken = 0; !ended; taken++) {
                reader r = {.left = taken};
                lb_err e = {0};
                rt_gen g;
                begin_answer("hi", stop, n_stops, length, NULL, take_some, &r, &g);
                ended = rt_generate(&g, &e);
                assert_true(taken < 40 && (ended || taken > 0 || g.n_generated <= 8));
                assert_int_equal(r.refused, ended ? 0 : 1);
                assert_int_equal(e.code, ended ? LB_OK : LB_CLOSED);
            }
        }
    }
}

/* ---- stop strings ---- */

/* The text up to the stop string that ends first (the longest of those), or all of it. */
static size_t reference_end(const char *s, size_t n, const rt_stop_string *stops, size_t n_stops) {
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (size_t k = 0; k < n_stops; k++) {
            size_t len = stops[k].n_bytes;
            if (len <= end && len > longest && memcmp(s + end - len, stops[k].text, len) == 0) {
                longest = len;
            }
        }
        if (longest > 0) {
            return end - longest;
        }
    }
    return n;
}

static void streams_cut_like_the_whole_text(void **state) {
    (void)state;
    static const char *const words[] = {"a", "ab", "abc", "bca", "aab", "cc", "cab", "abcabc"};
    uint32_t x = 1;
    rt_stream st;
    lb_err e = {0};
    assert_true(rt_stream_new(&st, 7, 6, &arena, &e));
    for (int k = 0; k < 20000; k++) {
        char s[40];
        text got = {.n = 0};
        rt_stop_string stops[3];
        size_t n = (x = x * 1664525U + 1013904223U) >> 27;
        size_t n_stops = (x >> 20) % 4;
        for (size_t i = 0; i < n; i++) {
            s[i] = (char)('a' + ((x = x * 1664525U + 1013904223U) >> 24) % 3);
        }
        for (size_t i = 0; i < n_stops; i++) {
            const char *w = words[((x = x * 1664525U + 1013904223U) >> 24) % 8];
            stops[i] = (rt_stop_string){w, strlen(w)};
        }
        size_t want = reference_end(s, n, stops, n_stops);
        bool stopped = false;
        const char *out = NULL;
        size_t n_out = 0;
        assert_true(rt_stream_start(&st, stops, n_stops, &e));
        for (size_t at = 0; at < n && !stopped;) {
            size_t len = ((x = x * 1664525U + 1013904223U) >> 24) % 8;
            len = len < n - at ? len : n - at;
            memcpy(rt_stream_room(&st), s + at, len);
            stopped = rt_stream_push(&st, len, &out, &n_out);
            if (n_out > 0) {
                keep(&got, out, n_out, NULL);
            }
            at += len;
        }
        if (!stopped) {
            rt_stream_end(&st, &out, &n_out);
            if (n_out > 0) {
                keep(&got, out, n_out, NULL);
            }
        }
        assert_int_equal(stopped, want < n);
        assert_int_equal(got.n, want);
        assert_memory_equal(got.s, s, want);
    }
}

static void streams_refuse_bad_stop_strings(void **state) {
    (void)state;
    rt_stream st;
    lb_err e = {0};
    assert_true(rt_stream_new(&st, 7, 6, &arena, &e));
    rt_stop_string s = {"", 0};
    assert_false(rt_stream_start(&st, &s, 1, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    s = (rt_stop_string){"1234567", 7};
    assert_false(rt_stream_start(&st, &s, 1, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_false(rt_stream_new(&st, SIZE_MAX, 6, &arena, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
}

static void engines_refuse_to_start(void **state) {
    (void)state;
    static const char *const odd[] = {"no_such_feature", NULL};
    rt_engine_opts o = {.n_threads = 1, .load = {.dir = "."}};
    rt_engine *none = NULL;
    lb_err e = {0};
    rt_model m = lagen_model;
    m.cpu_features = odd;
    assert_false(rt_engine_start(&m, &o, &none, &e));
    assert_int_equal(e.code, LB_WRONG_BOX);
    m = lagen_model;
    m.arena_bytes[RT_ARENA_KV] = UINT64_MAX / 2;
    assert_false(rt_engine_start(&m, &o, &none, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    m = lagen_model;
    m.ctx = UINT32_MAX;
    m.slots = UINT32_MAX;
    assert_false(rt_engine_start(&m, &o, &none, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    m = lagen_model;
    const rt_file f = {.name = "absent.img", .n_bytes = 5, .sha256 = ""};
    m.weights_linked = false;
    m.files = &f;
    m.n_files = 1;
    m.arena_bytes[RT_ARENA_WEIGHTS] = 5;
    assert_false(rt_engine_start(&m, &o, &none, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    o.n_threads = RT_POOL_MAX_THREADS + 1;
    assert_false(rt_engine_start(&lagen_model, &o, &none, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_null(none);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_do_not_matter),
        cmocka_unit_test(rings_are_rewound_as_far_as_they_hold),
        cmocka_unit_test(failed_steps_count_as_stored),
        cmocka_unit_test(slots_share_a_step),
        cmocka_unit_test(bad_steps_change_nothing),
        cmocka_unit_test(the_context_has_an_end),
        cmocka_unit_test(prompts_reuse_what_is_there),
        cmocka_unit_test(prompts_can_be_interrupted),
        cmocka_unit_test(answers_end_where_they_should),
        cmocka_unit_test(answers_end_with_the_context),
        cmocka_unit_test(answers_can_be_interrupted),
        cmocka_unit_test(nobody_takes_the_answer),
        cmocka_unit_test(streams_cut_like_the_whole_text),
        cmocka_unit_test(streams_refuse_bad_stop_strings),
        cmocka_unit_test(engines_refuse_to_start),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
