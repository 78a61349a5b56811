/* test_fit.c -- what pools are of which rows, sums that pass 64 bits, and the numbers that drawings are
 * made of at their ends. Answers of whole models are in tests/cli/test_plan.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "fit_text.h"
#include "need.h"
#include "plans.h"
#include "report.h"
#include "size_text.h"

static lg_need sum_for(const char *target) {
    plans p;
    lg_need n;
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .target = target, .ctx = 64,
                                    .chunk = 8});
    assert_true(lg_need_sum(p.r.plan, &n, &e));
    plans_close(&p);
    return n;
}

static uint64_t arenas_of(const lg_need *n) {
    uint64_t sum = 0;
    for (int i = 0; i < LG_N_ARENAS; i++) {
        sum += n->arenas[i];
    }
    return sum;
}

static void pools_of_rows(void **state) {
    (void)state;
    lg_need cpu = sum_for("x86-64-v3");
    assert_int_equal(cpu.vram, 0);
    assert_int_equal(cpu.ram, arenas_of(&cpu) + LB_HEAP_BYTES);
    lg_need gpu = sum_for("sm_89");
    assert_int_equal(gpu.vram, arenas_of(&gpu) + LB_DRIVER_BYTES);
    assert_int_equal(gpu.ram, gpu.mirror + gpu.stages + LB_HEAP_BYTES);
    lg_need one = sum_for("sm_121a");
    assert_int_equal(one.vram, 0);
    assert_int_equal(one.ram, arenas_of(&one) + LB_DRIVER_BYTES + one.mirror + one.stages +
                                  LB_HEAP_BYTES);
    assert_int_equal(gpu.kv_full + gpu.kv_window, gpu.arenas[LG_ARENA_KV]);
    assert_int_equal(gpu.kv_window, 0);
}

static void pools_that_fit(void **state) {
    (void)state;
    const lg_need n = {.vram = 100, .ram = 50};
    const struct {
        lg_pools pools;
        bool fits;
    } rows[] = {{{0, 0}, true},    {{100, 0}, true},  {{99, 0}, false},   {{0, 50}, true},
                {{0, 49}, false},  {{100, 50}, true}, {{1000, 49}, false}, {{99, 1000}, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(lg_need_fits(&n, &rows[i].pools), rows[i].fits);
    }
}

static void sums_may_not_wrap(void **state) {
    (void)state;
    plans p;
    lg_need n;
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .target = "sm_89", .ctx = 64});
    for (int i = 0; i < LG_N_ARENAS; i++) {
        uint64_t good = p.r.plan->arena_bytes[i];
        p.r.plan->arena_bytes[i] = UINT64_MAX - 1000;
        assert_false(lg_need_sum(p.r.plan, &n, &e));
        assert_int_equal(e.code, LB_OVERFLOW);
        p.r.plan->arena_bytes[i] = good;
    }
    assert_true(lg_need_sum(p.r.plan, &n, &e));
    plans_close(&p);
}

static void ends_of_drawings(void **state) {
    (void)state;
    const uint64_t totals[] = {1, 3, LG_DRAWN, UINT64_C(1) << 40, UINT64_MAX / LG_DRAWN,
                               UINT64_MAX / LG_DRAWN + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        uint64_t t = totals[i];
        assert_int_equal(lg_drawn(0, t), 0);
        assert_int_equal(lg_drawn(t, t), LG_DRAWN);
        assert_in_range(lg_drawn(t / 2, t), t == 1 ? 0 : LG_DRAWN / 3, LG_DRAWN / 2);
    }
    assert_int_equal(lg_drawn(0, 0), 0);
    assert_int_equal(lg_permille(0, 0), 0);
    assert_int_equal(lg_permille(5, 0), 0);
    assert_int_equal(lg_permille(999, 1000), 999);
    assert_int_equal(lg_permille(UINT64_MAX, UINT64_MAX), 1000);
    assert_int_equal(lg_permille(1, UINT64_MAX), 0);
}

/* To the nearest hundredth, in a unit that leaves less than 1024.00. */
static void sizes_are_honest(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"}, {1023, "1023 B"}, {1024, "1.00 KiB"}, {1029, "1.00 KiB"}, {1030, "1.01 KiB"},
                 {12361824, "11.79 MiB"}, {1048570, "1023.99 KiB"}, {1048571, "1.00 MiB"},
                 {UINT64_C(1) << 30, "1.00 GiB"}, {(UINT64_C(1) << 30) - 1, "1.00 GiB"},
                 {UINT64_C(71159321600), "66.27 GiB"}, {UINT64_C(1) << 50, "1.00 PiB"}, {UINT64_MAX, "16.00 EiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char size[32];
        assert_string_equal(lg_size_text(cases[i].bytes, size), cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_rows),
        cmocka_unit_test(pools_that_fit),
        cmocka_unit_test(sums_may_not_wrap),
        cmocka_unit_test(ends_of_drawings), cmocka_unit_test(sizes_are_honest),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
