/* test_outfile.c -- large files: whole or absent, holes, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/outfile.h"

static char folder[] = "/tmp/test_outfile.XXXXXX";
static char path[128];
static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "outfile", 1 << 20);
    snprintf(path, sizeof path, "%s/f", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    unlink(path);
    return rmdir(folder) == 0 && mkdir(folder, 0700) == 0 ? 0 : -1; /* nothing is left behind */
}

static void pieces_of_all_sizes(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 0, 65535, 1, 65536, 65537, 3, 200000, 64};
    static uint8_t data[200000];
    lb_out o;
    lb_err e = {0};
    uint64_t total = 0;
    assert_true(lb_out_open(path, &arena, &o, &e));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(data, (int)(i + 1), sizes[i]);
        assert_true(lb_out_write(&o, data, sizes[i], &e));
        total += sizes[i];
        assert_int_equal(o.n_bytes, total);
    }
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(lb_out_finish(&o, &e));
    lb_map m;
    assert_true(lb_map_file(path, &m, &e));
    assert_int_equal(m.n_bytes, total);
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizes[i]; k++, at++) {
            assert_int_equal(m.data[at], i + 1);
        }
    }
    lb_unmap(&m);
}

static void abort_leaves_the_old_file(void **state) {
    (void)state;
    lb_out o;
    lb_err e = {0};
    assert_true(lb_write_file(path, "old", 3, false, NULL, &e));
    assert_true(lb_out_open(path, &arena, &o, &e));
    assert_true(lb_out_write(&o, "newer", 5, &e));
    lb_out_abort(&o);
    lb_out_abort(&o);
    char *text = NULL;
    size_t n = 0;
    assert_true(lb_read_file(path, 100, &arena, &text, &n, &e));
    assert_string_equal(text, "old");
}

static void holes_read_as_zeros_and_take_no_room(void **state) {
    (void)state;
    lb_out o;
    lb_err e = {0};
    assert_true(lb_out_open(path, &arena, &o, &e));
    assert_true(lb_out_write(&o, "ab", 2, &e));
    assert_true(lb_out_skip(&o, 3, &e));
    assert_true(lb_out_write(&o, "c", 1, &e));
    assert_true(lb_out_skip(&o, 1ULL << 33, &e));
    assert_true(lb_out_finish(&o, &e));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 6 + (1LL << 33));
    assert_true(st.st_blocks < 1 << 12);
    FILE *f = fopen(path, "rb");
    char head[8] = "";
    assert_non_null(f);
    assert_int_equal(fread(head, 1, 8, f), 8);
    fclose(f);
    assert_memory_equal(head, "ab\0\0\0c\0\0", 8);
}

static void refusals(void **state) {
    (void)state;
    lb_out o;
    lb_err e = {0};
    assert_false(lb_out_open(folder, &arena, &o, &e));
    assert_int_equal(e.code, LB_IO);
    assert_false(lb_out_open("/dev/null", &arena, &o, &e));
    assert_int_equal(e.code, LB_IO);
    assert_false(lb_out_open("/nowhere/at/all", &arena, &o, &e));
    assert_int_equal(e.code, LB_IO);
    char longer[5000];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_false(lb_out_open(longer, &arena, &o, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_true(lb_out_open(path, &arena, &o, &e));
    assert_false(lb_out_skip(&o, UINT64_MAX, &e));
    assert_int_equal(e.code, LB_IO);
    arena.fail_after = 2;
    assert_false(lb_out_open(path, &arena, &o, &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
}

static void a_full_disk_leaves_nothing(void **state) {
    (void)state;
    struct rlimit old, small = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
    static uint8_t data[300000];
    lb_out o;
    lb_err e = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_true(lb_out_open(path, &arena, &o, &e));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool ok = lb_out_write(&o, data, sizeof data, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_false(ok);
    assert_int_equal(e.code, LB_IO);
    assert_non_null(strstr(e.text, path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_of_all_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(abort_leaves_the_old_file, setup, teardown),
        cmocka_unit_test_setup_teardown(holes_read_as_zeros_and_take_no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_nothing, setup, teardown),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
