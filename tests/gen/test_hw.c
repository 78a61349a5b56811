/* test_hw.c -- hw: rows against a second statement of their limits, native from feature lists, the
 * listing in both forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "at.h"
#include "hw.h"
#include "hw_rows.h"
#include "value_text.h"

static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "test", 64 << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    return 0;
}

static const lg_hw_row *row(const char *name) {
    const lg_hw_row *r = NULL;
    assert_true(lg_hw_find(name, &r, NULL));
    assert_string_equal(lg_hw_name(r), name);
    return r;
}

static void every_promised_row_is_there(void **state) {
    (void)state;
    static const char *const cpu[] = {"x86-64-v2",      "x86-64-v3",    "x86-64-v4",
                                      "x86-64-v4-vnni", "aarch64-v8.2", "aarch64-i8mm"};
    static const char *const gpu[] = {"sm_80",   "sm_86",   "sm_87",   "sm_89",   "sm_90a",
                                      "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a"};
    for (size_t i = 0; i < sizeof cpu / sizeof *cpu; i++) {
        assert_false(row(cpu[i])->gpu);
        assert_string_equal(lg_hw_language(row(cpu[i])), "c");
    }
    for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
        assert_true(row(gpu[i])->gpu);
        assert_string_equal(lg_hw_language(row(gpu[i])), "cu");
    }
    lb_err e = {0};
    const lg_hw_row *r = NULL;
    assert_false(lg_hw_find("sm_75", &r, &e));
    assert_int_equal(e.code, LB_MISSING);
    assert_non_null(strstr(e.text, "no target 'sm_75'; `lagen targets` lists"));
    static const char *const boards[][2] = {
        {"h200", "sm_90a"}, {"rtx4090", "sm_89"}, {"RTX4090", "sm_89"}, {"4090", "sm_89"},
        {"gb10", "sm_121a"}, {"rtx5060ti", "sm_120a"}, {"h100", "sm_90a"}, {"a100", "sm_80"}};
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++) {
        char want[64];
        snprintf(want, sizeof want, "which is a board: --arch %s is its row", boards[i][1]);
        assert_false(lg_hw_find(boards[i][0], &r, &e));
        assert_int_equal(e.code, LB_MISSING);
        assert_non_null(strstr(e.text, want));
    }
    static const char *const others[] = {"rtx", "rtx5", "", "a", "10", "h2000", "sm_9", "rtx4090x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(lg_hw_find(others[i], &r, &e));
        assert_non_null(strstr(e.text, "`lagen targets` lists"));
    }
    assert_false(lg_hw_find("", &r, &e));
    assert_null(r);
    const lg_hw_device *d = NULL;
    assert_false(lg_hw_find_device("gb11", &d, &e));
    assert_int_equal(e.code, LB_MISSING);
    assert_true(lg_hw_find_device("gb10", &d, &e) && d->sms == 48);
}

/* Names are unique; hosts and device rows exist; numbers that every row of a kind has are there. */
static void rows_are_whole(void **state) {
    (void)state;
    size_t n = 0;
    const lg_hw_row *rows = lg_hw_rows(&n);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(row(rows[i].name), &rows[i]);
        assert_false(row(rows[i].host)->gpu);
        assert_true(rows[i].grid_x_max > 0 && rows[i].cta_threads_max > 0);
        assert_true(rows[i].isa[0] != '\0');
        if (!rows[i].gpu) {
            assert_true(rows[i].vector_bits % 128 == 0 && rows[i].features[0] != '\0');
            continue;
        }
        uint64_t grid[3];
        lg_hw_grid_max(&rows[i], grid);
        assert_true(grid[0] == 2147483647 && grid[1] == 65535 && grid[2] == 65535);
        assert_true(rows[i].cta_threads_max == 1024 && rows[i].cta_z_max == 64);
        assert_true(rows[i].warp_threads == 32 && rows[i].regs_per_thread_max == 255);
        assert_int_equal(rows[i].smem_per_cta_bytes + rows[i].smem_reserved_bytes,
                         rows[i].smem_per_sm_bytes);
        assert_true(rows[i].threads_per_sm % rows[i].warp_threads == 0);
        assert_true(lg_hw_has(&rows[i], LG_HW_MMA) && lg_hw_has(&rows[i], LG_HW_CP_ASYNC));
        assert_true(lg_hw_has(&rows[i], LG_HW_PDL) == (rows[i].compute_major >= 9));
    }
    const lg_hw_device *devices = lg_hw_devices(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(row(devices[i].row)->gpu);
        assert_true(devices[i].sms > 0 && devices[i].l2_bytes > 0 && devices[i].memory_bytes > 0);
    }
}

/* The contract's own words about single rows. */
static void rows_say_what_the_contract_says(void **state) {
    (void)state;
    static const char *const sm_12x[] = {"sm_120", "sm_120a", "sm_121", "sm_121a"};
    for (size_t i = 0; i < 4; i++) {
        const lg_hw_row *r = row(sm_12x[i]);
        assert_int_equal(r->smem_per_cta_bytes, 99 * 1024);
        assert_int_equal(r->threads_per_sm, 1536);
        assert_false(lg_hw_has(r, LG_HW_WGMMA) || lg_hw_has(r, LG_HW_TCGEN05));
        assert_false(lg_hw_has(r, LG_HW_MULTICAST));
        assert_true(lg_hw_has(r, LG_HW_MMA_FP8) && lg_hw_has(r, LG_HW_BULK_COPY));
        bool specific = strchr(sm_12x[i] + 3, 'a') != NULL;
        assert_true(lg_hw_has(r, LG_HW_MMA_BLOCK_SCALE) == specific);
    }
    assert_true(lg_hw_has(row("sm_90a"), LG_HW_WGMMA) && !lg_hw_has(row("sm_90"), LG_HW_WGMMA));
    assert_int_equal(row("sm_90a")->smem_per_cta_bytes, 227 * 1024);
    assert_true(lg_hw_has(row("sm_100a"), LG_HW_TCGEN05));
    assert_true(lg_hw_has(row("sm_89"), LG_HW_MMA_FP8) && !lg_hw_has(row("sm_90a"), LG_HW_MMA_FP8));
    assert_true(lg_hw_has(row("sm_121a"), LG_HW_UNIFIED) && lg_hw_has(row("sm_87"), LG_HW_UNIFIED));
    assert_false(lg_hw_has(row("sm_120a"), LG_HW_UNIFIED));
    assert_string_equal(row(row("sm_121a")->host)->machine, "aarch64");
    assert_string_equal(row(row("sm_110a")->host)->machine, "aarch64");
    assert_string_equal(row("sm_90a")->flags, "-arch=sm_90a");
}

static void check_best(const char *machine, const char *cpuinfo, const char *name) {
    const lg_hw_row *r = lg_hw_best(machine, cpuinfo);
    if (name == NULL) {
        assert_null(r);
        return;
    }
    assert_non_null(r);
    assert_string_equal(r->name, name);
}

#define V2 "fpu sse sse2 ht pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"
#define V3 V2 " fma movbe xsave avx f16c abm bmi1 avx2 bmi2"
#define V4 V3 " avx512f avx512dq avx512cd avx512bw avx512vl"

static void native_is_the_best_that_fits(void **state) {
    (void)state;
    check_best("x86_64", "flags\t\t: " V2 "\n", "x86-64-v2");
    check_best("x86_64", "flags\t\t: " V3 "\n", "x86-64-v3");
    check_best("x86_64", "flags\t\t: " V4, "x86-64-v4");
    check_best("x86_64", "flags\t\t: " V4 " avx512_vnni\nbugs\t: x\n", "x86-64-v4-vnni");
    check_best("x86_64", "flags\t\t: " V4 " avx512_vnni_x\n", "x86-64-v4");
    check_best("x86_64", "flags\t\t: " V3 " avx512f avx512_vnni\n", "x86-64-v3");
    check_best("x86_64", "flags\t\t: avx2 fma\n", NULL);
    check_best("x86_64", "model name\t: " V2 "\n", NULL);
    check_best("x86_64", "vmx flags\t: " V2 "\n", NULL);
    check_best("x86_64", "", NULL);
    check_best("riscv64", "flags\t\t: " V4 "\n", NULL);
    check_best("x86_64", "flags\t\t: " V4 "\n\nflags\t\t: " V3 "\n", "x86-64-v3");
    static const char arm[] = "Features\t: fp asimd evtstrm aes crc32 atomics asimdrdm asimddp\n";
    check_best("aarch64", arm, "aarch64-v8.2");
    check_best("aarch64", "Features\t: asimd crc32 atomics asimdrdm asimddp i8mm bf16\n",
               "aarch64-i8mm");
    check_best("aarch64", "Features\t: fp asimd evtstrm aes crc32 atomics\n", NULL);
}

static void native_is_found_here(void **state) {
    (void)state;
    const lg_hw_row *r = NULL;
    lb_err e = {0};
    bool ok = lg_hw_find("native", &r, &e);
    if (!ok) {
        print_message("# SKIP native_is_found_here: %s\n", e.text);
        skip();
    }
    struct utsname name;
    assert_true(uname(&name) >= 0);
    assert_string_equal(r->machine, name.machine);
    assert_true(lg_hw_runs_here(r));
    assert_false(lg_hw_runs_here(row("sm_90a")));
    assert_false(lg_hw_runs_here(row(strcmp(name.machine, "x86_64") == 0 ? "aarch64-v8.2"
                                                                        : "x86-64-v2")));
}

static void kernels_see_capabilities_and_no_name(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lb_err e = {0};
    uint64_t n = 0;
    const char *s = NULL;
    bool yes = false;
    lg_at cpu = lg_at_root("hw", lg_hw_value(row("x86-64-v4"), &b));
    assert_true(lg_at_uint(&cpu, "vec_f32", &n, &e) && n == 16);
    assert_true(lg_at_string(&cpu, "isa", &s, &e));
    assert_string_equal(s, "isa_avx512.h");
    assert_false(lg_at_has(&cpu, "name") || lg_at_has(&cpu, "warp_threads"));
    lg_at gpu = lg_at_root("hw", lg_hw_value(row("sm_90a"), &b));
    assert_true(lg_at_bool(&gpu, "wgmma", &yes, &e) && yes);
    assert_true(lg_at_bool(&gpu, "tcgen05", &yes, &e) && !yes);
    assert_true(lg_at_uint(&gpu, "smem_per_cta_bytes", &n, &e) && n == 232448);
    assert_false(lg_at_has(&gpu, "name") || lg_at_has(&gpu, "vec_f32"));
    arena.fail_after = 0;
    lg_build_init(&b, &arena);
    assert_null(lg_hw_value(row("sm_90a"), &b));
    arena.fail_after = -1;
}

static void json_lists_every_row_and_number(void **state) {
    (void)state;
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    assert_true(lg_targets(true, &t, &e));
    lg_value *list = NULL;
    assert_true(lg_value_from_json("targets", t.data, t.n_bytes, &arena, &list, &e));
    size_t n_rows = 0;
    size_t n_devices = 0;
    lg_hw_rows(&n_rows);
    lg_hw_devices(&n_devices);
    assert_int_equal(lg_value_count(list), n_rows + n_devices);
    lg_at root = lg_at_root("targets", list);
    for (size_t i = 0; i < n_rows + n_devices; i++) {
        lg_at item = lg_at_item(&root, i);
        const char *name = NULL;
        const char *kind = NULL;
        assert_true(lg_at_string(&item, "name", &name, &e));
        assert_true(lg_at_string(&item, "kind", &kind, &e));
        uint64_t v = 0;
        if (strcmp(name, "sm_121a") == 0) {
            assert_string_equal(kind, "gpu");
            assert_true(lg_at_uint(&item, "grid_y_max", &v, &e) && v == 65535);
            assert_true(lg_at_uint(&item, "smem_per_cta_bytes", &v, &e) && v == 101376);
        }
        if (strcmp(name, "gb10") == 0) {
            assert_string_equal(kind, "device");
        }
        bool gpu = strcmp(kind, "gpu") == 0;
        for (const lg_hw_number *x = lg_hw_numbers; gpu && x->name != NULL; x++) {
            if (strcmp(x->name, "vector_bits") != 0) { /* of CPUs */
                assert_true(lg_at_uint(&item, x->name, &v, &e));
            }
        }
    }
    lb_text_init(&t, &arena);
    assert_true(lg_targets(false, &t, &e));
    assert_non_null(strstr(t.data, "\nsm_121a  12.1     1536      24    101376    102400  "
                                   "aarch64-i8mm  unified"));
    for (const char *line = t.data; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        assert_true(len <= 120);
        line += len + 1;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_promised_row_is_there),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(rows_say_what_the_contract_says),
        cmocka_unit_test(native_is_the_best_that_fits),
        cmocka_unit_test(native_is_found_here),
        cmocka_unit_test(kernels_see_capabilities_and_no_name),
        cmocka_unit_test(json_lists_every_row_and_number),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("hw", tests, setup, teardown);
}
