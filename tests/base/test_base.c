/* test_base.c -- err, num, arena, text, file: each promise of their headers, at its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

static void err_is_one_clean_line(void **state) {
    (void)state;
    lb_err e = {0};
    assert_false(lb_err_set(&e, LB_BAD_VALUE, "a\nb\x1b%d", 7));
    assert_string_equal(e.text, "a?b?7");
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_non_null(e.file);
    assert_false(lb_err_set(NULL, LB_IO, "nobody listens"));
}

static void err_is_cut_at_a_character(void **state) {
    (void)state;
    for (int pad = 0; pad < 4; pad++) {
        char text[LB_ERR_TEXT_BYTES * 2];
        memset(text, 'x', (size_t)pad);
        for (size_t i = (size_t)pad; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "\xE2\x82\xAC", 4);
        }
        lb_err e = {0};
        lb_err_set(&e, LB_IO, "%s", text);
        size_t n = strlen(e.text);
        assert_true(n < LB_ERR_TEXT_BYTES);
        assert_string_equal(e.text + n - 3, "...");
        assert_int_equal((n - 3 - (size_t)pad) % 3, 0);
    }
}

static void err_prefix_keeps_code(void **state) {
    (void)state;
    lb_err e = {0};
    lb_err_set(&e, LB_LIMIT, "7 > 6");
    assert_false(lb_err_prefix(&e, "tensor '%s'", "t"));
    assert_string_equal(e.text, "tensor 't': 7 > 6");
    assert_int_equal(e.code, LB_LIMIT);
}

static void exit_statuses(void **state) {
    (void)state;
    assert_int_equal(lb_err_exit_status(LB_OK), 0);
    assert_int_equal(lb_err_exit_status(LB_IO), 1);
    assert_int_equal(lb_err_exit_status(LB_USAGE), 2);
    assert_int_equal(lb_err_exit_status(LB_DAMAGED), 3);
    assert_int_equal(lb_err_exit_status(LB_WRONG_BOX), 4);
    assert_int_equal(lb_err_exit_status(LB_RESOURCES), 5);
    assert_int_equal(lb_err_exit_status(LB_DEVICE_LOST), 70);
}

static void num_refuses_overflow(void **state) {
    (void)state;
    uint64_t r = 42;
    assert_false(lb_add(UINT64_MAX, 1, &r));
    assert_false(lb_mul(UINT64_MAX, 2, &r));
    assert_false(lb_round_up(UINT64_MAX - 1, 32, &r));
    assert_int_equal(r, 42);
    assert_true(lb_add(UINT64_MAX - 1, 1, &r));
    assert_true(lb_round_up(33, 32, &r));
    assert_int_equal(r, 64);
    assert_true(lb_round_up(0, 32, &r));
    assert_int_equal(r, 0);
    assert_int_equal(lb_ceil_div(UINT64_MAX, 2), UINT64_MAX / 2 + 1);
    uint32_t n = 0;
    assert_true(lb_to_u32(UINT32_MAX, &n));
    assert_false(lb_to_u32((uint64_t)UINT32_MAX + 1, &n));
    assert_true(lb_is_pow2(1) && lb_is_pow2(1ULL << 63) && !lb_is_pow2(0) && !lb_is_pow2(24));
}

static void arena_zeroes_aligns_and_refuses(void **state) {
    (void)state;
    lb_arena a;
    lb_err e = {0};
    lb_arena_init(&a, "test", 1 << 20);
    for (uint64_t n = 0; n < 300; n++) {
        unsigned char *p = lb_alloc(&a, n, &e);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_equal(p[i], 0);
        }
        memset(p, 0xAB, n);
    }
    assert_null(lb_alloc(&a, 2 << 20, &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
    assert_null(lb_alloc(&a, UINT64_MAX, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_null(lb_alloc_n(&a, UINT64_MAX / 2, 4, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    a.fail_after = 1;
    assert_non_null(lb_alloc(&a, 8, &e));
    assert_null(lb_alloc(&a, 8, &e));
    lb_arena_reset(&a);
    a.fail_after = -1;
    assert_string_equal(lb_format(&a, &e, "%d-%s", 5, "x"), "5-x");
    assert_string_equal(lb_strndup(&a, "abcdef", 3, &e), "abc");
    lb_arena_reset(&a);
}

static void text_grows_and_keeps_its_first_failure(void **state) {
    (void)state;
    lb_arena a;
    lb_err e = {0};
    lb_arena_init(&a, "test", 1 << 20);
    lb_text t;
    lb_text_init(&t, &a);
    for (int i = 0; i < 3000; i++) {
        lb_text_printf(&t, "%d,", i % 10);
    }
    assert_true(lb_text_done(&t, &e));
    assert_int_equal(t.n_bytes, 6000);
    assert_int_equal(strlen(t.data), 6000);
    lb_arena small;
    lb_arena_init(&small, "small", 70000);
    lb_text_init(&t, &small);
    for (int i = 0; i < 20000; i++) {
        lb_text_add(&t, "0123456789");
    }
    assert_false(lb_text_done(&t, &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
    lb_arena_reset(&a);
    lb_arena_reset(&small);
}

static void files_are_whole_or_absent(void **state) {
    (void)state;
    char dir[] = "/tmp/lagen-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char path[256];
    lb_err e = {0};
    snprintf(path, sizeof path, "%s/a/b", dir);
    assert_true(lb_make_dirs(path, &e));
    assert_true(lb_make_dirs(path, &e));
    snprintf(path, sizeof path, "%s/a/b/f", dir);
    bool changed = false;
    assert_true(lb_write_file(path, "hello", 5, true, &changed, &e));
    assert_true(changed);
    assert_true(lb_write_file(path, "hello", 5, true, &changed, &e));
    assert_false(changed);
    assert_true(lb_write_file(path, "hellO", 5, true, &changed, &e));
    assert_true(changed);
    assert_false(lb_make_dirs(path, &e));
    lb_map m = {0};
    assert_true(lb_map_file(path, &m, &e));
    assert_int_equal(m.n_bytes, 5);
    lb_unmap(&m);
    assert_false(lb_map_file(dir, &m, &e));
    assert_int_equal(e.code, LB_IO);
    lb_arena a;
    lb_arena_init(&a, "test", 1 << 20);
    char *text = NULL;
    size_t n = 0;
    assert_false(lb_read_file(path, 4, &a, &text, &n, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_true(lb_read_file(path, 5, &a, &text, &n, &e));
    assert_string_equal(text, "hellO");
    lb_arena_reset(&a);
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    assert_int_equal(system(cmd), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_is_one_clean_line),
        cmocka_unit_test(err_is_cut_at_a_character),
        cmocka_unit_test(err_prefix_keeps_code),
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(num_refuses_overflow),
        cmocka_unit_test(arena_zeroes_aligns_and_refuses),
        cmocka_unit_test(text_grows_and_keeps_its_first_failure),
        cmocka_unit_test(files_are_whole_or_absent),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
