/* Cubins: the numbers come out, and damaged bytes never lead outside. */
#include "base/cubin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/fake_cubin.h"

static const fake_kernel KERNEL = {"k_embed", 40, 0, 0, 24, 128};

static void numbers_come_out(void **state) {
    (void)state;
    uint8_t data[4096];
    const fake_kernel k = {"k_matmul_q4_k", 128, 16, 400, 4096, 256};
    size_t n = fake_cubin(90, &k, data, sizeof data);
    lb_cubin c;
    lb_cubin_kernel out;
    lb_err err = {0};
    assert_int_equal(lb_cubin_size(data), n);
    assert_true(lb_cubin_open(data, n, &c, &err));
    assert_int_equal(c.arch, 90);
    assert_true(lb_cubin_find(&c, "k_matmul_q4_k", &out, &err));
    assert_int_equal(out.regs, 128);
    assert_int_equal(out.local_bytes, 16);
    assert_int_equal(out.static_smem_bytes, 400);
    assert_int_equal(out.param_bytes, 4096);
    assert_int_equal(out.max_threads, 256);
    assert_false(lb_cubin_kernel_at(&c, 1, &out, &err));
    assert_int_equal(err.code, LB_OK);
    assert_false(lb_cubin_find(&c, "k_other", &out, &err));
    assert_int_equal(err.code, LB_MISSING);
}

static void other_files_are_refused(void **state) {
    (void)state;
    uint8_t data[4096];
    lb_cubin c;
    lb_err err = {0};
    size_t n = fake_cubin(90, &KERNEL, data, sizeof data);
    data[18] = 62; /* x86-64 */
    assert_false(lb_cubin_open(data, n, &c, &err));
    assert_int_equal(err.code, LB_BAD_FORMAT);
    assert_false(lb_cubin_open("", 0, &c, &err));
}

/* Opened or not, found or not: only no step outside (the sanitized run would see one). */
static void try(const uint8_t *data, size_t n) {
    lb_cubin c;
    lb_cubin_kernel k;
    lb_err err = {0};
    uint8_t *exact = malloc(n == 0 ? 1 : n);
    assert_non_null(exact);
    memcpy(exact, data, n);
    if (lb_cubin_open(exact, n, &c, &err)) {
        lb_cubin_find(&c, "k_embed", &k, &err);
    }
    free(exact);
}

static void every_truncation_is_survived(void **state) {
    (void)state;
    uint8_t data[4096];
    size_t n = fake_cubin(90, &KERNEL, data, sizeof data);
    for (size_t cut = 0; cut < n; cut++) {
        try(data, cut);
    }
}

static void every_byte_may_be_wrong(void **state) {
    (void)state;
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    uint8_t data[4096];
    size_t n = fake_cubin(90, &KERNEL, data, sizeof data);
    for (size_t i = 0; i < n; i++) {
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t kept = data[i];
            data[i] = values[v];
            try(data, n);
            data[i] = kept;
        }
    }
}

static void missing_records_are_named(void **state) {
    (void)state;
    uint8_t data[4096];
    lb_cubin c;
    lb_cubin_kernel k;
    lb_err err = {0};
    size_t n = fake_cubin(90, &KERNEL, data, sizeof data);
    for (size_t i = 0; i + 4 <= n; i++) {
        if (memcmp(data + i, "\4\x2f\10", 4) == 0) {
            data[i + 1] = 0x77; /* no register count */
        }
    }
    assert_true(lb_cubin_open(data, n, &c, &err));
    assert_false(lb_cubin_find(&c, "k_embed", &k, &err));
    assert_int_equal(err.code, LB_BAD_FORMAT);
    assert_non_null(strstr(err.text, "k_embed"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_out),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(every_truncation_is_survived),
        cmocka_unit_test(every_byte_may_be_wrong),
        cmocka_unit_test(missing_records_are_named),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
