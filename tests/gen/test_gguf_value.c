/* test_gguf_value.c -- typed accessors: each value type against each accessor, ranges, arrays,
 * architecture and layer count. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gen/gguf_bytes.h"
#include "gguf_value.h"

/* One file for a test: builder, arena, error. */
typedef struct file {
    gguf_bytes b;
    lb_arena a;
    lb_err e;
} file;

static void setup(file *f) {
    memset(f, 0, sizeof *f);
    gb_init(&f->b);
    lb_arena_init(&f->a, "load", 4 << 20);
}

static void teardown(file *f) {
    gb_free(&f->b);
    lb_arena_reset(&f->a);
}

static void refused(const lb_err *e, lb_code code, const char *says) {
    if (e->code != code || strstr(e->text, says) == NULL) {
        fail_msg("code %d '%s'; expected: code %d '%s'", (int)e->code, e->text, (int)code, says);
    }
}

static bool is_int(lg_gguf_type t) {
    return t != LG_GGUF_F32 && t != LG_GGUF_F64 && t != LG_GGUF_BOOL && t != LG_GGUF_STR &&
           t != LG_GGUF_ARRAY;
}

/* Every accessor takes exactly its types (B03: no accessor trusts the type in the file). */
static void each_type_with_each_accessor(void **state) {
    (void)state;
    for (lg_gguf_type t = LG_GGUF_U8; t < LG_GGUF_N_TYPES; t++) {
        file f;
        setup(&f);
        gb_any(&f.b, "k", t);
        lg_gguf *g = gb_open(&f.b, &f.a);
        bool real = t == LG_GGUF_F32 || t == LG_GGUF_F64;
        uint64_t u64 = 0;
        int64_t i64 = 0;
        uint32_t u32 = 0;
        float f32 = 0;
        bool b = false;
        lg_gguf_str s = {0};
        assert_int_equal(lg_gguf_u64(g, "k", NULL, &u64, &f.e), is_int(t));
        assert_int_equal(lg_gguf_i64(g, "k", NULL, &i64, &f.e), is_int(t));
        assert_int_equal(lg_gguf_u32(g, "k", NULL, &u32, &f.e), is_int(t));
        if (!is_int(t)) {
            refused(&f.e, LB_BAD_TYPE, "where an integer is needed");
        }
        assert_int_equal(lg_gguf_f32(g, "k", NULL, &f32, &f.e), real);
        if (!real) {
            refused(&f.e, LB_BAD_TYPE, "where f32 or f64 is needed");
        }
        assert_int_equal(lg_gguf_bool(g, "k", NULL, &b, &f.e), t == LG_GGUF_BOOL);
        assert_int_equal(lg_gguf_str_key(g, "k", &s, &f.e), t == LG_GGUF_STR);
        if (t == LG_GGUF_ARRAY) {
            refused(&f.e, LB_BAD_TYPE, "key 'k': array of u32 where string is needed");
        }
        assert_int_equal(u64, is_int(t));
        assert_int_equal(i64, is_int(t));
        assert_int_equal(u32, is_int(t));
        assert_true(f32 == (real ? 1.0F : 0.0F));
        assert_int_equal(b, t == LG_GGUF_BOOL);
        assert_int_equal(s.n_bytes, t == LG_GGUF_STR);
        teardown(&f);
    }
}

static void absent_keys(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_str(&f.b, "wrong", "x");
    lg_gguf *g = gb_open(&f.b, &f.a);
    uint32_t u32 = 0;
    float f32 = 0;
    bool b = false;
    assert_true(lg_gguf_u32(g, "k", &(uint32_t){7}, &u32, &f.e));
    assert_int_equal(u32, 7);
    assert_true(lg_gguf_u32_in(g, "k", &(uint32_t){9}, 1, 8, &u32, &f.e));
    assert_int_equal(u32, 9); /* the caller's own value is not held against the range */
    assert_true(lg_gguf_f32(g, "k", &(float){2.5F}, &f32, &f.e));
    assert_true(f32 == 2.5F);
    assert_true(lg_gguf_bool(g, "k", &(bool){true}, &b, &f.e));
    assert_true(b);
    assert_false(lg_gguf_u32(g, "k", NULL, &u32, &f.e));
    refused(&f.e, LB_MISSING, "key 'k' is missing");
    assert_false(lg_gguf_u32(g, "wrong", &(uint32_t){7}, &u32, &f.e));
    refused(&f.e, LB_BAD_TYPE, "key 'wrong': string where an integer");
    assert_int_equal(u32, 9);
    teardown(&f);
}

static void integer_ranges(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_i32(&f.b, "minus", -5);
    gb_u64(&f.b, "big", UINT64_MAX);
    gb_u64(&f.b, "edge", UINT32_MAX);
    gb_u64(&f.b, "over", (uint64_t)UINT32_MAX + 1);
    gb_i64(&f.b, "least", INT64_MIN);
    lg_gguf *g = gb_open(&f.b, &f.a);
    uint32_t u32 = 1;
    uint64_t u64 = 1;
    int64_t i64 = 1;
    assert_false(lg_gguf_u32(g, "minus", NULL, &u32, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'minus': -5 is negative");
    assert_false(lg_gguf_u64(g, "least", NULL, &u64, &f.e));
    assert_true(lg_gguf_i64(g, "least", NULL, &i64, &f.e));
    assert_true(i64 == INT64_MIN);
    assert_false(lg_gguf_i64(g, "big", NULL, &i64, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'big': 18446744073709551615; the largest is 2^63-1");
    assert_true(lg_gguf_u64(g, "big", NULL, &u64, &f.e));
    assert_true(u64 == UINT64_MAX);
    assert_true(lg_gguf_u32(g, "edge", NULL, &u32, &f.e));
    assert_int_equal(u32, UINT32_MAX);
    assert_false(lg_gguf_u32(g, "over", NULL, &u32, &f.e));
    refused(&f.e, LB_LIMIT, "key 'over': 4294967296 is not from 0 to 4294967295");
    assert_false(lg_gguf_u32_in(g, "edge", NULL, 1, 512, &u32, &f.e));
    refused(&f.e, LB_LIMIT, "key 'edge': 4294967295 is not from 1 to 512");
    assert_false(lg_gguf_u32_in(g, "edge", NULL, UINT32_MAX, UINT32_MAX - 1, &u32, &f.e));
    teardown(&f);
}

static void reals_and_bools(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_f32(&f.b, "nan", NAN);
    gb_f32(&f.b, "inf", -INFINITY);
    gb_f64(&f.b, "wide", 1e300);
    gb_f64(&f.b, "fits", 0.1);
    gb_bool(&f.b, "two", 2);
    gb_bool(&f.b, "no", 0);
    lg_gguf *g = gb_open(&f.b, &f.a);
    float f32 = 3;
    bool b = true;
    static const char *const bad[] = {"nan", "inf", "wide"};
    for (size_t i = 0; i < 3; i++) {
        assert_false(lg_gguf_f32(g, bad[i], NULL, &f32, &f.e));
        refused(&f.e, LB_BAD_VALUE, "is not a finite f32");
    }
    assert_true(f32 == 3);
    assert_true(lg_gguf_f32(g, "fits", NULL, &f32, &f.e));
    assert_true(f32 == 0.1F);
    assert_false(lg_gguf_bool(g, "two", NULL, &b, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'two': a bool of 2");
    assert_true(lg_gguf_bool(g, "no", NULL, &b, &f.e));
    assert_false(b);
    teardown(&f);
}

static void integer_arrays(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_i32s(&f.b, "i", 3, (int32_t[]){-1, 0, INT32_MAX});
    gb_array(&f.b, "b", LG_GGUF_BOOL, 2);
    gb_put_u16(&f.b.keys, 0x0001);
    gb_array(&f.b, "big", LG_GGUF_U64, 2);
    gb_put_u64(&f.b.keys, 5);
    gb_put_u64(&f.b.keys, 1ULL << 63);
    gb_array(&f.b, "none", LG_GGUF_U16, 0);
    gb_u32(&f.b, "one", 1);
    gb_f32s(&f.b, "f", 1, (float[]){1});
    lg_gguf *g = gb_open(&f.b, &f.a);
    const int64_t *v = NULL;
    uint64_t n = 9;
    assert_true(lg_gguf_i64s(g, "i", &f.a, &v, &n, &f.e));
    assert_int_equal(n, 3);
    assert_true(v[0] == -1 && v[1] == 0 && v[2] == INT32_MAX);
    assert_true(lg_gguf_i64s(g, "b", &f.a, &v, &n, &f.e));
    assert_true(n == 2 && v[0] == 1 && v[1] == 0);
    assert_true(lg_gguf_i64s(g, "none", &f.a, &v, &n, &f.e));
    assert_int_equal(n, 0);
    assert_false(lg_gguf_i64s(g, "big", &f.a, &v, &n, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'big': element 1 is above 2^63-1");
    assert_false(lg_gguf_i64s(g, "one", &f.a, &v, &n, &f.e));
    refused(&f.e, LB_BAD_TYPE, "key 'one': u32 where an array of integers is needed");
    assert_false(lg_gguf_i64s(g, "f", &f.a, &v, &n, &f.e));
    refused(&f.e, LB_BAD_TYPE, "key 'f': array of f32 where one of integers is needed");
    assert_false(lg_gguf_i64s(g, "x", &f.a, &v, &n, &f.e));
    refused(&f.e, LB_MISSING, "key 'x' is missing");
    f.a.fail_after = 0;
    assert_false(lg_gguf_i64s(g, "i", &f.a, &v, &n, &f.e));
    refused(&f.e, LB_NO_MEMORY, "");
    teardown(&f);
}

static void other_arrays(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_f32s(&f.b, "f", 2, (float[]){0.5F, -FLT_MAX});
    gb_f32s(&f.b, "nan", 2, (float[]){0.5F, NAN});
    gb_array(&f.b, "b", LG_GGUF_BOOL, 2);
    gb_put_u16(&f.b.keys, 0x0100);
    gb_array(&f.b, "b2", LG_GGUF_BOOL, 2);
    gb_put_u16(&f.b.keys, 0x0200);
    gb_strs(&f.b, "s", 3, (const char *[]){"a", "", "\xC4\xA0" "b"});
    lg_gguf *g = gb_open(&f.b, &f.a);
    uint64_t n = 0;
    const float *fs = NULL;
    const bool *bs = NULL;
    const lg_gguf_str *ss = NULL;
    assert_true(lg_gguf_f32s(g, "f", &f.a, &fs, &n, &f.e));
    assert_true(n == 2 && fs[0] == 0.5F && fs[1] == -FLT_MAX);
    assert_false(lg_gguf_f32s(g, "nan", &f.a, &fs, &n, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'nan': element 1 is not a finite f32");
    assert_true(lg_gguf_bools(g, "b", &f.a, &bs, &n, &f.e));
    assert_true(n == 2 && !bs[0] && bs[1]);
    assert_false(lg_gguf_bools(g, "b2", &f.a, &bs, &n, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'b2': element 1 is neither 0 nor 1");
    assert_true(lg_gguf_strs(g, "s", &f.a, &ss, &n, &f.e));
    assert_int_equal(n, 3);
    assert_true(ss[0].n_bytes == 1 && ss[0].data[0] == 'a');
    assert_int_equal(ss[1].n_bytes, 0);
    assert_int_equal(ss[2].n_bytes, 3);
    assert_memory_equal(ss[2].data, "\xC4\xA0" "b", 3);
    assert_false(lg_gguf_strs(g, "f", &f.a, &ss, &n, &f.e));
    assert_false(lg_gguf_bools(g, "f", &f.a, &bs, &n, &f.e));
    assert_false(lg_gguf_f32s(g, "s", &f.a, &fs, &n, &f.e));
    refused(&f.e, LB_BAD_TYPE, "key 's': array of string where one of f32 or f64 is needed");
    teardown(&f);
}

static void per_layer_numbers(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_u32(&f.b, "one", 8);
    gb_u32s(&f.b, "three", 3, (uint32_t[]){1, 2, 3});
    gb_i32s(&f.b, "minus", 3, (int32_t[]){1, -2, 3});
    lg_gguf *g = gb_open(&f.b, &f.a);
    const uint32_t *v = NULL;
    assert_true(lg_gguf_u32_each(g, "one", NULL, 3, &f.a, &v, &f.e));
    assert_true(v[0] == 8 && v[1] == 8 && v[2] == 8);
    assert_true(lg_gguf_u32_each(g, "three", NULL, 3, &f.a, &v, &f.e));
    assert_true(v[0] == 1 && v[1] == 2 && v[2] == 3);
    assert_true(lg_gguf_u32_each(g, "x", &(uint32_t){5}, 2, &f.a, &v, &f.e));
    assert_true(v[0] == 5 && v[1] == 5);
    const uint32_t *kept = v;
    assert_false(lg_gguf_u32_each(g, "three", NULL, 4, &f.a, &v, &f.e));
    refused(&f.e, LB_BAD_SHAPE, "key 'three': 3 elements where one or 4 are needed");
    assert_false(lg_gguf_u32_each(g, "minus", NULL, 3, &f.a, &v, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 'minus': element 1");
    assert_false(lg_gguf_u32_each(g, "x", NULL, 3, &f.a, &v, &f.e));
    refused(&f.e, LB_MISSING, "key 'x'");
    assert_ptr_equal(v, kept);
    teardown(&f);
}

static void single_elements(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_strs(&f.b, "s", 3, (const char *[]){"a", "bc", ""});
    gb_i32s(&f.b, "i", 2, (int32_t[]){-7, 7});
    gb_f32(&f.b, "f", NAN);
    gb_u64(&f.b, "u", UINT64_MAX);
    gb_bool(&f.b, "b", 1);
    lg_gguf *g = gb_open(&f.b, &f.a);
    lg_gguf_str s = {0};
    int64_t i = 0;
    double d = 0;
    assert_true(lg_gguf_elem_str(lg_gguf_find(g, "s"), 1, &s, &f.e));
    assert_true(s.n_bytes == 2 && memcmp(s.data, "bc", 2) == 0);
    assert_true(lg_gguf_elem_str(lg_gguf_find(g, "s"), 2, &s, &f.e));
    assert_int_equal(s.n_bytes, 0);
    assert_false(lg_gguf_elem_str(lg_gguf_find(g, "s"), 3, &s, &f.e));
    refused(&f.e, LB_BAD_VALUE, "key 's': no element 3 of 3");
    assert_true(lg_gguf_elem_i64(lg_gguf_find(g, "i"), 1, &i, &f.e));
    assert_int_equal(i, 7);
    assert_false(lg_gguf_elem_i64(lg_gguf_find(g, "u"), 0, &i, &f.e));
    refused(&f.e, LB_BAD_VALUE, "the largest is 2^63-1");
    assert_false(lg_gguf_elem_i64(lg_gguf_find(g, "b"), 0, &i, &f.e));
    refused(&f.e, LB_BAD_TYPE, "key 'b': bool where an integer is needed");
    assert_true(lg_gguf_elem_f64(lg_gguf_find(g, "f"), 0, &d, &f.e));
    assert_true(isnan(d));
    assert_false(lg_gguf_elem_f64(lg_gguf_find(g, "i"), 0, &d, &f.e));
    assert_string_equal(lg_gguf_type_name(LG_GGUF_STR), "string");
    teardown(&f);
}

static void iteration(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_u64(&f.b, "u", UINT64_MAX);
    gb_array(&f.b, "b", LG_GGUF_BOOL, 2);
    gb_put_u16(&f.b.keys, 0x0701);
    lg_gguf *g = gb_open(&f.b, &f.a);
    lg_gguf_value v;
    lg_gguf_iter it = lg_gguf_begin(lg_gguf_find(g, "u"));
    assert_true(lg_gguf_next(&it, &v));
    assert_int_equal(v.kind, LG_GGUF_KIND_UINT);
    assert_true(v.u == UINT64_MAX);
    assert_false(lg_gguf_next(&it, &v));
    it = lg_gguf_begin(lg_gguf_find(g, "b"));
    assert_true(lg_gguf_next(&it, &v) && v.kind == LG_GGUF_KIND_BOOL && v.i == 1);
    assert_true(lg_gguf_next(&it, &v) && v.kind == LG_GGUF_KIND_INT && v.i == 7);
    assert_false(lg_gguf_next(&it, &v));
    teardown(&f);
}

static void architecture_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool good;
    } want[] = {
        {"llama", true},   {"gpt-oss", true},       {"x_1", true},     {"", false},
        {"../etc", false}, {"Llama", false},        {"a b", false},    {"a\n", false},
        {"caf\xC3\xA9", false},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false}, /* 64 */
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        file f;
        setup(&f);
        gb_str(&f.b, "general.architecture", want[i].name);
        lg_gguf *g = gb_open(&f.b, &f.a);
        const char *arch = NULL;
        assert_int_equal(lg_gguf_arch(g, &f.a, &arch, &f.e), want[i].good);
        if (want[i].good) {
            assert_string_equal(arch, want[i].name);
        } else {
            refused(&f.e, LB_BAD_VALUE, "key 'general.architecture': ");
        }
        teardown(&f);
    }
}

/* B12: the number of layers against its limit and against the tensors. */
static void layer_counts(void **state) {
    (void)state;
    static const struct {
        uint32_t claimed;
        lb_code code;
        const char *says;
    } want[] = {
        {2, LB_OK, ""},
        {0, LB_BAD_VALUE, "key 'llama.block_count': 0 is not from 1 to 512"},
        {1, LB_BAD_VALUE, "1 layers, but there is a tensor 'blk.1.attn_norm.weight'"},
        {3, LB_MISSING, "3 layers, but no tensor 'blk.2.*'"},
        {512, LB_MISSING, "512 layers, but no tensor 'blk.2.*'"},
        {513, LB_LIMIT, "key 'llama.block_count': 513 is not from 1 to 512"},
        {UINT32_MAX, LB_LIMIT, "4294967295 is not from 1 to 512"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        file f;
        setup(&f);
        gb_tiny_llama(&f.b, 2, LG_QTYPE_F16);
        gguf_bytes keys;
        gb_init(&keys);
        gb_str(&keys, "general.architecture", "llama");
        gb_u32(&keys, "llama.block_count", want[i].claimed);
        gb_bytes old = f.b.keys;
        f.b.keys = keys.keys;
        f.b.n_keys = 2;
        keys.keys = old;
        lg_gguf *g = gb_open(&f.b, &f.a);
        uint32_t n = 77;
        assert_int_equal(lg_gguf_n_layers(g, &n, &f.e), want[i].code == LB_OK);
        assert_int_equal(n, want[i].code == LB_OK ? 2 : 77);
        if (want[i].code != LB_OK) {
            refused(&f.e, want[i].code, want[i].says);
        }
        gb_free(&keys);
        teardown(&f);
    }
}

static void layers_need_real_names(void **state) {
    (void)state;
    file f;
    setup(&f);
    gb_str(&f.b, "general.architecture", "llama");
    gb_u32(&f.b, "llama.block_count", 1);
    static const char *const odd[] = {"blk.", "blk.x.a", "blk.7", "blk..a", "xblk.9.a", "blk.1x.a"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        gb_tensor(&f.b, odd[i], LG_QTYPE_F32, 1, (uint64_t[]){1});
    }
    lg_gguf *g = gb_open(&f.b, &f.a);
    uint32_t n = 0;
    assert_false(lg_gguf_n_layers(g, &n, &f.e));
    refused(&f.e, LB_MISSING, "no tensor 'blk.0.*'");
    gb_tensor(&f.b, "blk.0.a", LG_QTYPE_F32, 1, (uint64_t[]){1});
    gb_tensor(&f.b, "blk.99999999999999999999.a", LG_QTYPE_F32, 1, (uint64_t[]){1});
    g = gb_open(&f.b, &f.a);
    assert_false(lg_gguf_n_layers(g, &n, &f.e));
    refused(&f.e, LB_BAD_VALUE, "tensor 'blk.99999999999999999999.a'");
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_with_each_accessor),
        cmocka_unit_test(absent_keys),
        cmocka_unit_test(integer_ranges),
        cmocka_unit_test(reals_and_bools),
        cmocka_unit_test(integer_arrays),
        cmocka_unit_test(other_arrays),
        cmocka_unit_test(per_layer_numbers),
        cmocka_unit_test(single_elements),
        cmocka_unit_test(iteration),
        cmocka_unit_test(architecture_names),
        cmocka_unit_test(layer_counts),
        cmocka_unit_test(layers_need_real_names),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("gguf_value", tests, NULL, NULL);
}
