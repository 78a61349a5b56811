/* test_qtype.c -- tensor types: rows are consistent, sizes are exact, nothing overflows unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qtype.h"

static void rows_are_consistent(void **state) {
    (void)state;
    size_t n = 0;
    size_t n_computes = 0;
    for (const lg_qtype_row *r; (r = lg_qtype_at(n)) != NULL; n++) {
        lg_qtype t = LG_QTYPE_I64;
        assert_true(lg_qtype_from_id((uint32_t)r->id, &t, NULL));
        assert_int_equal(t, r->id);
        assert_true(lg_qtype_from_name(r->name, strlen(r->name), &t, NULL));
        assert_int_equal(t, r->id);
        assert_ptr_equal(lg_qtype_get(r->id), r);
        assert_true(r->qblock_elems > 0 && r->qblock_bytes > 0);
        n_computes += r->computes;
    }
    assert_int_equal(n, 35); /* 43 numbers less the 8 removed ones */
    assert_int_equal(n_computes, 24);
}

/* Sizes that a slip in one row would change: bits per weight times 10000, from the ggml table. */
static void bits_per_weight(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t bits;
    } want[] = {
        {"f32", 320000},    {"f16", 160000},    {"q4_0", 45000},   {"q4_1", 50000},
        {"q5_0", 55000},    {"q5_1", 60000},    {"q8_0", 85000},   {"q8_1", 90000},
        {"q2_k", 26250},    {"q3_k", 34375},    {"q4_k", 45000},   {"q5_k", 55000},
        {"q6_k", 65625},    {"q8_k", 91250},    {"iq2_xxs", 20625}, {"iq2_xs", 23125},
        {"iq3_xxs", 30625}, {"iq1_s", 15625},   {"iq4_nl", 45000}, {"iq3_s", 34375},
        {"iq2_s", 25625},   {"iq4_xs", 42500},  {"iq1_m", 17500},  {"bf16", 160000},
        {"tq1_0", 16875},   {"tq2_0", 20625},   {"mxfp4", 42500},  {"nvfp4", 45000},
        {"q1_0", 11250},    {"q2_0", 22500},    {"i8", 80000},     {"i16", 160000},
        {"i32", 320000},    {"i64", 640000},    {"f64", 640000},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        lg_qtype t = LG_QTYPE_F32;
        assert_true(lg_qtype_from_name(want[i].name, strlen(want[i].name), &t, NULL));
        uint64_t bytes = 0;
        assert_true(lg_qtype_row_bytes(t, 256, &bytes, NULL));
        assert_int_equal(bytes * 8 * 10000 / 256, want[i].bits);
    }
}

static void other_numbers_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        const char *says;
    } want[] = {
        {4, "type 4 (q4_2: removed"},   {5, "q4_3"},      {31, "q4_0_4_4"},
        {32, "q4_0_4_8"},               {33, "q4_0_8_8"}, {36, "i2_s"},
        {37, "removed"},                {38, "removed"},  {43, "type 43 is unknown"},
        {97, "activations"},            {133, "q6_0"},    {137, "iq2_k"},
        {158, "iq1_kt"},                {202, "_r4"},     {1000, "type 1000 ("},
        {UINT32_MAX, "type 4294967295"}, {159, "unknown"}, {201, "unknown"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        lb_err e = {0};
        lg_qtype t = LG_QTYPE_I64;
        assert_false(lg_qtype_from_id(want[i].id, &t, &e));
        assert_int_equal(e.code, LB_UNSUPPORTED);
        assert_int_equal(t, LG_QTYPE_I64);
        assert_non_null(strstr(e.text, want[i].says));
        assert_non_null(strstr(e.text, "not supported by this lagen"));
    }
}

static void names(void **state) {
    (void)state;
    lb_err e = {0};
    lg_qtype t = LG_QTYPE_I64;
    assert_true(lg_qtype_from_name("Q4_K_M", 4, &t, &e));
    assert_int_equal(t, LG_QTYPE_Q4_K);
    assert_false(lg_qtype_from_name("q4_k_m", 6, &t, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_non_null(strstr(e.text, "'q4_k_m'"));
    assert_false(lg_qtype_from_name("", 0, &t, &e));
    assert_int_equal(t, LG_QTYPE_Q4_K);
}

static void computing_types(void **state) {
    (void)state;
    lb_err e = {0};
    assert_true(lg_qtype_check_computes(LG_QTYPE_Q6_K, &e));
    assert_false(lg_qtype_check_computes(LG_QTYPE_TQ1_0, &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    assert_non_null(strstr(e.text, "tq1_0 (34)"));
    assert_non_null(strstr(e.text, " q6_k iq2_xxs iq2_xs iq3_xxs"));
}

static void row_bytes(void **state) {
    (void)state;
    lb_err e = {0};
    uint64_t n = 7;
    assert_true(lg_qtype_row_bytes(LG_QTYPE_Q4_K, 14336, &n, &e));
    assert_int_equal(n, 56 * 144);
    assert_false(lg_qtype_row_bytes(LG_QTYPE_Q4_K, 14335, &n, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_non_null(strstr(e.text, "14335"));
    assert_non_null(strstr(e.text, "256 (q4_k qblock)"));
    assert_false(lg_qtype_row_bytes(LG_QTYPE_F32, 0, &n, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lg_qtype_row_bytes(LG_QTYPE_F32, UINT64_MAX, &n, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_int_equal(n, 56 * 144);
}

static void tensor_bytes(void **state) {
    (void)state;
    lb_err e = {0};
    uint64_t elems = 0;
    uint64_t n = 0;
    assert_true(lg_qtype_tensor_bytes(LG_QTYPE_Q8_0, 3, (uint64_t[]){64, 3, 5}, &elems, &n, &e));
    assert_int_equal(elems, 960);
    assert_int_equal(n, 2 * 34 * 15);
    assert_true(lg_qtype_tensor_bytes(LG_QTYPE_F16, 0, NULL, &elems, &n, &e));
    assert_int_equal(elems, 1);
    assert_int_equal(n, 2);
    assert_true(lg_qtype_tensor_bytes(LG_QTYPE_I8, 2, (uint64_t[]){INT64_MAX, 1}, NULL, &n, &e));
    assert_int_equal(n, INT64_MAX);
}

static void tensor_bytes_refuses(void **state) {
    (void)state;
    static const struct {
        lg_qtype t;
        uint32_t n_dims;
        uint64_t ne[4];
        lb_code code;
        const char *says;
    } want[] = {
        {LG_QTYPE_F32, 2, {1, 0}, LB_BAD_SHAPE, "dimension 1 is 0"},
        {LG_QTYPE_F32, 1, {0}, LB_BAD_SHAPE, "dimension 0 is 0"},
        {LG_QTYPE_F32, 2, {4, 0}, LB_BAD_SHAPE, "dimension 1 is 0"},
        {LG_QTYPE_F32, 4, {0, 0, 0, 0}, LB_BAD_SHAPE, "dimension 0 is 0"},
        {LG_QTYPE_F32, 5, {1, 1, 1, 1}, LB_BAD_SHAPE, "5 dimensions"},
        {LG_QTYPE_I8, 2, {INT64_MAX, 2}, LB_OVERFLOW, "dimension 1 (2)"},
        {LG_QTYPE_I8, 2, {1ULL << 32, 1ULL << 32}, LB_OVERFLOW, "2^63-1"},
        {LG_QTYPE_F32, 2, {1ULL << 62, 4}, LB_OVERFLOW, "2^63-1"},
        {LG_QTYPE_F64, 1, {1ULL << 62}, LB_OVERFLOW, "2^64 bytes"},
        {LG_QTYPE_F64, 2, {1ULL << 60, 4}, LB_OVERFLOW, "2^64 bytes"},
        {LG_QTYPE_Q4_0, 2, {33, 2}, LB_BAD_SHAPE, "33 columns"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        lb_err e = {0};
        uint64_t elems = 5;
        uint64_t n = 6;
        assert_false(
            lg_qtype_tensor_bytes(want[i].t, want[i].n_dims, want[i].ne, &elems, &n, &e));
        assert_int_equal(e.code, want[i].code);
        assert_non_null(strstr(e.text, want[i].says));
        assert_int_equal(elems, 5);
        assert_int_equal(n, 6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_consistent),
        cmocka_unit_test(bits_per_weight),
        cmocka_unit_test(other_numbers_are_refused_by_name),
        cmocka_unit_test(names),
        cmocka_unit_test(computing_types),
        cmocka_unit_test(row_bytes),
        cmocka_unit_test(tensor_bytes),
        cmocka_unit_test(tensor_bytes_refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("qtype", tests, NULL, NULL);
}
