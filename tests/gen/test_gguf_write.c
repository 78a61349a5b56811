/* test_gguf_write.c -- what the writer makes, the reader reads; what the reader refuses, so does the
 * writer; every failing allocation is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf.h"
#include "gguf_value.h"
#include "gguf_write.h"
#include "value_text.h"

static char folder[] = "/tmp/test_gguf_write.XXXXXX";
static char path[128];
static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "gguf_write", 1 << 24);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    unlink(path);
    return rmdir(folder) == 0 && mkdir(folder, 0700) == 0 ? 0 : -1;
}

/* The value that the JSON text `json` stands for. */
static const lg_value *value(const char *json) {
    lg_value *v = NULL;
    lb_err e = {0};
    assert_true(lg_value_from_json("test", json, strlen(json), &arena, &v, &e));
    return v;
}

typedef struct pair {
    const char *key, *type, *json;
} pair;

static const pair pairs[] = {
    {"general.architecture", "string", "\"llama\""},
    {"a.u8", "u8", "255"},
    {"a.i8", "i8", "-128"},
    {"a.u16", "u16", "65535"},
    {"a.i16", "i16", "-32768"},
    {"a.u32", "u32", "4294967295"},
    {"a.i32", "i32", "-2147483648"},
    {"a.u64", "u64", "9223372036854775807"},
    {"a.i64", "i64", "-9223372036854775808"},
    {"a.f32", "f32", "0.1"},
    {"a.f32.whole", "f32", "3"},
    {"a.f64", "f64", "0.1"},
    {"a.bool", "bool", "true"},
    {"a.none", "i32[]", "[]"},
    {"a.ints", "i32[]", "[1,-2,3]"},
    {"a.strings", "string[]", "[\"\",\"\\u0000x\",\"\\u0120the\"]"},
    {"a.bools", "bool[]", "[true,false]"},
};

enum { N_PAIRS = sizeof pairs / sizeof pairs[0] };

static const uint64_t shape_a[] = {33, 3};
static const uint64_t shape_b[] = {64, 2, 1, 5};

static bool write_all(lb_err *err) {
    lg_gguf_writer *w = NULL;
    lb_out out;
    static const uint8_t data[1024] = {7};
    if (!lg_gguf_write_new(&arena, &w, err)) {
        return false;
    }
    for (size_t i = 0; i < N_PAIRS; i++) {
        lg_value *v = NULL;
        if (!lg_value_from_json("t", pairs[i].json, strlen(pairs[i].json), &arena, &v, err) ||
            !lg_gguf_write_key(w, pairs[i].key, pairs[i].type, v, err)) {
            return false;
        }
    }
    if (!lg_gguf_write_tensor(w, "a", LG_QTYPE_F16, 2, shape_a, err) ||
        !lg_gguf_write_tensor(w, "b", LG_QTYPE_Q4_0, 4, shape_b, err) ||
        !lb_out_open(path, &arena, &out, err)) {
        return false;
    }
    bool ok = lg_gguf_write_header(w, &out, err) && lb_out_write(&out, data, 198, err) &&
              lg_gguf_write_pad(&out, err) && lb_out_write(&out, data, 360, err) &&
              lg_gguf_write_pad(&out, err) && lb_out_finish(&out, err);
    lb_out_abort(&out);
    return ok;
}

static void the_reader_reads_it(void **state) {
    (void)state;
    lb_err e = {0};
    lg_gguf *g = NULL;
    assert_true(write_all(&e));
    assert_true(lg_gguf_open(path, &arena, &g, &e));
    assert_int_equal(lg_gguf_n_keys(g), N_PAIRS);
    for (size_t i = 1; i <= 8; i++) {
        int64_t got = 0;
        assert_true(lg_gguf_i64(g, pairs[i].key, NULL, &got, &e));
        assert_int_equal(got, value(pairs[i].json)->u.integer);
    }
    float f = 0;
    double d = 0;
    bool b = false;
    const int64_t *ints = NULL;
    const lg_gguf_str *strs = NULL;
    uint64_t n = 1;
    assert_true(lg_gguf_f32(g, "a.f32", NULL, &f, &e));
    assert_true(f == 0.1F);
    assert_true(lg_gguf_f32(g, "a.f32.whole", NULL, &f, &e));
    assert_true(f == 3.0F);
    assert_true(lg_gguf_elem_f64(lg_gguf_find(g, "a.f64"), 0, &d, &e));
    assert_true(d == 0.1);
    assert_true(lg_gguf_bool(g, "a.bool", NULL, &b, &e));
    assert_true(b);
    assert_true(lg_gguf_i64s(g, "a.none", &arena, &ints, &n, &e));
    assert_int_equal(n, 0);
    assert_true(lg_gguf_i64s(g, "a.ints", &arena, &ints, &n, &e));
    assert_int_equal(n, 3);
    assert_int_equal(ints[1], -2);
    assert_true(lg_gguf_strs(g, "a.strings", &arena, &strs, &n, &e));
    assert_int_equal(n, 3);
    assert_int_equal(strs[1].n_bytes, 2);
    assert_memory_equal(strs[1].data, "\0x", 2);
    const lg_gguf_tensor *t = lg_gguf_tensor_find(g, "b");
    assert_non_null(t);
    assert_int_equal(t->n_bytes, 64 / 32 * 18 * 10);
    assert_int_equal(t->data[0], 7);
    assert_int_equal(t->offset - lg_gguf_file_at(g, 0)->data_start, 224);
    assert_int_equal(lg_gguf_file_at(g, 0)->n_bytes % 32, 0);
    lg_gguf_close(g);
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *type, *json;
        lb_code code;
    } bad[] = {
        {"u8", "256", LB_BAD_VALUE},       {"u8", "-1", LB_BAD_VALUE},
        {"i8", "128", LB_BAD_VALUE},       {"u32", "4294967296", LB_BAD_VALUE},
        {"i32", "-2147483649", LB_BAD_VALUE}, {"u64", "-1", LB_BAD_VALUE},
        {"f32", "1e39", LB_BAD_VALUE},     {"f32", "true", LB_BAD_TYPE},
        {"f32", "9223372036854775807", LB_BAD_TYPE}, {"u32", "1.0", LB_BAD_TYPE},
        {"bool", "1", LB_BAD_TYPE},        {"string", "1", LB_BAD_TYPE},
        {"u32[]", "1", LB_BAD_TYPE},       {"u32", "[1]", LB_BAD_TYPE},
        {"u32[]", "[1,\"2\"]", LB_BAD_TYPE}, {"u32[]", "{\"a\":1}", LB_BAD_TYPE},
        {"q32", "1", LB_BAD_TYPE},         {"[]", "[]", LB_BAD_TYPE},
        {"u32[][]", "[]", LB_BAD_TYPE},    {"", "1", LB_BAD_TYPE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lg_gguf_writer *w = NULL;
        lb_err e = {0};
        assert_true(lg_gguf_write_new(&arena, &w, &e));
        assert_false(lg_gguf_write_key(w, "some.key", bad[i].type, value(bad[i].json), &e));
        assert_int_equal(e.code, bad[i].code);
        assert_non_null(strstr(e.text, "some.key"));
    }
}

static void wrong_names_and_shapes_are_refused(void **state) {
    (void)state;
    lg_gguf_writer *w = NULL;
    lb_err e = {0};
    const uint64_t odd[] = {33, 3};
    const uint64_t huge[] = {1ULL << 62, 1};
    const uint64_t vast[] = {1ULL << 60, 1};
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    assert_true(lg_gguf_write_new(&arena, &w, &e));
    assert_true(lg_gguf_write_key(w, "k", "u8", value("1"), &e));
    assert_false(lg_gguf_write_key(w, "k", "u8", value("1"), &e));
    assert_int_equal(e.code, LB_DUPLICATE);
    assert_false(lg_gguf_write_key(w, "", "u8", value("1"), &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_false(lg_gguf_write_tensor(w, name, LG_QTYPE_F32, 1, odd, &e));
    assert_int_equal(e.code, LB_LIMIT);
    assert_true(lg_gguf_write_tensor(w, name + 1, LG_QTYPE_F32, 1, odd, &e));
    assert_false(lg_gguf_write_tensor(w, name + 1, LG_QTYPE_F32, 1, odd, &e));
    assert_int_equal(e.code, LB_DUPLICATE);
    assert_false(lg_gguf_write_tensor(w, "t", LG_QTYPE_Q4_0, 1, odd, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lg_gguf_write_tensor(w, "t", LG_QTYPE_F32, 0, odd, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lg_gguf_write_tensor(w, "t", LG_QTYPE_F32, 2, huge, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_true(lg_gguf_write_tensor(w, "t1", LG_QTYPE_F64, 2, vast, &e));
    assert_false(lg_gguf_write_tensor(w, "t2", LG_QTYPE_F64, 2, vast, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_int_equal(lg_gguf_write_data_bytes(w), 160 + (1ULL << 63));
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    bool ok = false;
    for (int64_t n = 0; !ok; n++) {
        lb_err e = {0};
        lb_arena_reset(&arena);
        arena.fail_after = n;
        ok = write_all(&e);
        assert_true(ok || e.code == LB_NO_MEMORY);
        assert_true(ok || access(path, F_OK) != 0);
        assert_true(n < 2000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_reader_reads_it, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_values_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_names_and_shapes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failing_allocation_is_reported, setup, teardown),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests_name("gguf_write", tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
