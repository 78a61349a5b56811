/* test_pick.c -- tokens that a step chooses: what it is told, when it is asked, and what becomes of
 * the choice. The step is the fake model's with a device that knows greedy choices only; where it
 * decides, it hides the logits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_model.h"
#include "session.h"

enum { CHOICES = (FAKE_N_VOCAB * 4 * 16 + 63) / 64 * 64 };

static rt_model model;
static rt_engine *engine;
static lb_arena arena;
static rt_sample_scratch *scratch;
static unsigned n_asked; /* steps that were to choose */

static uint32_t largest(const float *l) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < FAKE_N_VOCAB; i++) {
        best = l[i] > l[best] ? i : best;
    }
    return best;
}

static bool step(uint8_t *const *arenas, const rt_step *s, rt_pool *pool, lb_err *err) {
    float(*logits)[FAKE_N_VOCAB] = (void *)arenas[RT_ARENA_IO];
    rt_picked *choices = (void *)(arenas[RT_ARENA_IO] + CHOICES);
    bool hide = s->picks != NULL;
    if (!lagen_model.step(arenas, s, pool, err)) {
        return false;
    }
    n_asked += hide;
    for (uint32_t i = 0; s->picks != NULL && i < s->n_logits; i++) {
        bool greedy = s->picks[i].temperature <= 0.0F;
        choices[i] = greedy ? largest(logits[i]) : (rt_picked)RT_PICKED_UNDECIDED << 32;
        hide = hide && greedy;
    }
    for (uint32_t i = 0; hide && i < s->n_logits; i++) {
        logits[i][0] = NAN;
    }
    return true;
}

static int setup(void **state) {
    (void)state;
    lb_err e = {0};
    rt_engine_opts o = {.n_threads = 2, .load = {.dir = "."}};
    model = lagen_model;
    model.samples = true;
    model.choices_offset_bytes = CHOICES;
    assert_true(model.arena_bytes[RT_ARENA_IO] <= CHOICES);
    model.arena_bytes[RT_ARENA_IO] = CHOICES + 16 * sizeof(rt_picked);
    model.step = step;
    lb_arena_init(&arena, "test", 64 << 20);
    return rt_engine_start(&model, &o, &engine, &e) &&
                   rt_sample_scratch_new(FAKE_N_VOCAB, FAKE_CTX, &arena, &scratch, &e)
               ? 0
               : -1;
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

static rt_sampler sampler_of(float temperature) {
    rt_sampler s;
    rt_sample_params p;
    lb_err e = {0};
    rt_sample_defaults(NULL, &p);
    p.temperature = temperature;
    p.seed = 7;
    assert_true(rt_sampler_start(&s, &p, FAKE_N_VOCAB, &e));
    return s;
}

static uint32_t greedy_token(const uint32_t *history, uint32_t n) {
    float l[FAKE_N_VOCAB];
    fake_logits(history, n, l);
    return largest(l);
}

static void steps_choose_for_the_sampler_that_is_named(void **state) {
    (void)state;
    static const uint32_t tokens[] = {40, 41, 42, 43, 44};
    rt_sampler greedy = sampler_of(0.0F);
    rt_sampler other = sampler_of(0.0F);
    const rt_feed_opts o = {.sampler = &greedy};
    lb_err e = {0};
    uint32_t token = 0;
    rt_seq *s = empty(0);
    unsigned before = n_asked;
    engine->chunk = 2; /* the last of three steps chooses */
    assert_true(rt_seq_feed(s, tokens, 5, &o, &e));
    assert_int_equal(n_asked - before, 1);
    assert_true(isnan(rt_engine_logits(engine, 0)[0]));
    assert_false(rt_seq_choose(s, &other, scratch, rt_engine_logits(engine, 0), &token, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_true(rt_seq_choose(s, &greedy, scratch, rt_engine_logits(engine, 0), &token, &e));
    assert_int_equal(token, greedy_token(tokens, 5));
    rt_rng_u32(&greedy.rng); /* another state of it */
    assert_false(rt_seq_choose(s, &greedy, scratch, rt_engine_logits(engine, 0), &token, &e));
    rt_seq_cut(s, 4);
    assert_null(s->chosen_by);
}

static void the_host_chooses_what_a_step_leaves(void **state) {
    (void)state;
    static const uint32_t tokens[] = {50, 51, 52};
    rt_sampler warm = sampler_of(1.0F);
    rt_sampler same = warm;
    const rt_feed_opts o = {.sampler = &warm};
    lb_err e = {0};
    float l[FAKE_N_VOCAB];
    uint32_t want = 0;
    uint32_t got = 0;
    rt_seq *s = empty(0);
    engine->chunk = 8;
    assert_true(rt_seq_feed(s, tokens, 3, &o, &e));
    fake_logits(tokens, 3, l);
    assert_true(rt_sampler_pick(&same, scratch, l, tokens, 3, &want, &e));
    assert_true(rt_seq_choose(s, &warm, scratch, rt_engine_logits(engine, 0), &got, &e));
    assert_int_equal(got, want);
    assert_memory_equal(&warm.rng, &same.rng, sizeof same.rng);
}

/* Two slots in one step: both named, one not, one with more rows of logits. */
static void all_of_a_step_or_none(void **state) {
    (void)state;
    static const uint32_t a[] = {60, 61};
    static const uint32_t b[] = {70, 71, 72};
    rt_sampler samplers[2] = {sampler_of(0.0F), sampler_of(0.0F)};
    lb_err e = {0};
    uint32_t token = 0;
    for (int kind = 0; kind < 3; kind++) {
        rt_feed feeds[2] = {
            {.seq = empty(0), .tokens = a, .n_tokens = 2, .n_logits = 1, .sampler = &samplers[0]},
            {.seq = empty(1),
             .tokens = b,
             .n_tokens = 3,
             .n_logits = kind == 2 ? 2 : 1,
             .sampler = kind == 1 ? NULL : &samplers[1]}};
        unsigned before = n_asked;
        assert_true(rt_engine_step(engine, feeds, 2, &e));
        assert_int_equal(n_asked - before, kind == 0);
        for (uint32_t i = 0; i < 2; i++) {
            const float *l = rt_engine_logits(engine, feeds[i].first_logit + feeds[i].n_logits - 1);
            assert_true(rt_seq_choose(feeds[i].seq, &samplers[i], scratch, l, &token, &e));
            assert_int_equal(token, greedy_token(i == 0 ? a : b, i == 0 ? 2 : 3));
        }
    }
    /* a sequence without logits needs no sampler */
    rt_feed feeds[2] = {
        {.seq = empty(0), .tokens = a, .n_tokens = 2},
        {.seq = empty(1), .tokens = b, .n_tokens = 3, .n_logits = 1, .sampler = &samplers[1]}};
    unsigned before = n_asked;
    assert_true(rt_engine_step(engine, feeds, 2, &e));
    assert_int_equal(n_asked - before, 1);
    assert_null(feeds[0].seq->chosen_by);
    assert_ptr_equal(feeds[1].seq->chosen_by, &samplers[1]);
}

/* ---- what a step is told */

static bool make(const rt_sample_params *p, const rt_pick_history *h, rt_pick *out) {
    rt_sampler s;
    lb_err e = {0};
    assert_true(rt_sampler_start(&s, p, FAKE_N_VOCAB, &e));
    return rt_pick_make(&s, h, out);
}

static void host_only_steps_are_not_for_a_device(void **state) {
    (void)state;
    static const rt_pick_history NONE = {0};
    rt_sample_params base;
    rt_pick pick;
    rt_sample_defaults(NULL, &base);
    assert_true(make(&base, &NONE, &pick));
    for (int i = 0; i < 5; i++) {
        rt_sample_params p = base;
        p.dry_multiplier = i == 0 ? 0.8F : 0.0F;
        p.xtc_probability = i == 1 ? 0.5F : 0.0F;
        p.top_n_sigma = i == 2 ? 1.0F : 0.0F;
        p.typical_p = i == 3 ? 0.9F : 1.0F;
        p.dynatemp_range = i == 4 ? 0.5F : 0.0F;
        assert_false(make(&p, &NONE, &pick));
        /* switched off by another number */
        p.dry_last_n = 0;
        p.xtc_threshold = 0.6F;
        p.temperature = 0.0F;
        assert_int_equal(make(&p, &NONE, &pick), i != 2 && i != 3);
    }
}

static void changes_are_counted_in_the_window(void **state) {
    (void)state;
    static const uint32_t first[] = {5, 6, 5, 7};
    static const uint32_t more[] = {7, 7, 8};
    const rt_pick_history h = {first, more, 4, 3};
    const rt_logit_bias bias[] = {{9, 1.5F}, {7, -INFINITY}};
    rt_sample_params p;
    rt_pick pick;
    rt_sample_defaults(NULL, &p);
    p.bias = bias;
    p.n_bias = 2;
    assert_true(make(&p, &h, &pick)); /* penalties are off: biases only */
    assert_int_equal(pick.n_changes, 2);
    p.repeat_penalty = 1.1F;
    p.repeat_last_n = 5; /* 5 7 7 7 8 */
    assert_true(make(&p, &h, &pick));
    assert_int_equal(pick.n_changes, 4);
    assert_int_equal(pick.changes[1].token, 7);
    assert_int_equal(pick.changes[1].count, 3);
    assert_true(isinf(pick.changes[1].bias));
    assert_int_equal(pick.changes[2].token, 5);
    assert_int_equal(pick.changes[2].count, 1);
    p.repeat_last_n = -1;
    assert_true(make(&p, &h, &pick));
    assert_int_equal(pick.changes[2].count, 2);
    p.repeat_last_n = 0;
    assert_true(make(&p, &h, &pick));
    assert_int_equal(pick.n_changes, 2);
    const rt_logit_bias twice[] = {{9, 1.5F}, {9, 0.5F}};
    p.bias = twice;
    assert_false(make(&p, &h, &pick));
}

static void a_device_takes_so_many_changes(void **state) {
    (void)state;
    uint32_t tokens[RT_PICK_CHANGES + 1];
    rt_sample_params p;
    rt_pick pick;
    rt_sample_defaults(NULL, &p);
    p.presence_penalty = 1.0F;
    p.repeat_last_n = -1;
    for (uint32_t i = 0; i <= RT_PICK_CHANGES; i++) {
        tokens[i] = i;
    }
    rt_pick_history h = {tokens, NULL, RT_PICK_CHANGES, 0};
    assert_true(make(&p, &h, &pick));
    assert_int_equal(pick.n_changes, RT_PICK_CHANGES);
    h.n_tokens++;
    assert_false(make(&p, &h, &pick));
}

static void choices_move_the_generator_or_fail(void **state) {
    (void)state;
    rt_sampler s = sampler_of(1.0F);
    rt_sampler before = s;
    lb_err e = {0};
    uint32_t token = 0;
    assert_true(rt_pick_take(&s, 17, &token, &e));
    assert_int_equal(token, 17);
    assert_memory_equal(&s.rng, &before.rng, sizeof s.rng);
    assert_true(rt_pick_take(&s, 18 | UINT64_C(1) << 40, &token, &e));
    rt_rng_u64(&before.rng);
    assert_memory_equal(&s.rng, &before.rng, sizeof s.rng);
    static const char *const texts[] = {
        "", "of kind", "token 3 is not a number", "token 3 is infinite", "none of", "of kind"};
    for (uint64_t kind = 1; kind < 6; kind++) {
        assert_false(rt_pick_take(&s, 3 | kind << 32, &token, &e));
        assert_int_equal(e.code, LB_BAD_VALUE);
        assert_non_null(strstr(e.text, texts[kind]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_choose_for_the_sampler_that_is_named),
        cmocka_unit_test(the_host_chooses_what_a_step_leaves),
        cmocka_unit_test(all_of_a_step_or_none),
        cmocka_unit_test(host_only_steps_are_not_for_a_device),
        cmocka_unit_test(changes_are_counted_in_the_window),
        cmocka_unit_test(a_device_takes_so_many_changes),
        cmocka_unit_test(choices_move_the_generator_or_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
