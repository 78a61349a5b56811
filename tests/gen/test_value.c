/* test_value.c -- value, at, value_text: trees, paths in errors, dump, JSON both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "at.h"
#include "value.h"
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

/* {ops = [{name="mul", dims={K=576, N=-1}, scale=1.5, big=2^40}, {name="add"}], none=nil} */
static lg_value *sample(lg_builder *b) {
    lg_value *root = lg_build_map(b);
    lg_value *ops = lg_build_array(b);
    lg_value *mul = lg_build_map(b);
    lg_value *dims = lg_build_map(b);
    lg_build_set_int(b, dims, "K", 576);
    lg_build_set_int(b, dims, "N", -1);
    lg_build_set_string(b, mul, "name", "mul");
    lg_build_set(b, mul, "dims", dims);
    lg_build_set_double(b, mul, "scale", 1.5);
    lg_build_set_uint(b, mul, "big", 1ULL << 40);
    lg_build_set_bool(b, mul, "flag", true);
    lg_build_push(b, ops, mul);
    lg_value *add = lg_build_map(b);
    lg_build_set(b, add, "name", lg_build_bytes(b, "a\0b", 3));
    lg_build_push(b, ops, add);
    lg_build_set(b, root, "ops", ops);
    lg_build_set(b, root, "none", lg_build_nil(b));
    return root;
}

static void maps_keep_order_and_find(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_value *m = lg_build_map(&b);
    char key[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "k%d", i * 7919 % 1000);
        lg_build_set_int(&b, m, key, i);
    }
    assert_true(lg_build_done(&b, NULL));
    assert_int_equal(lg_value_count(m), 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "k%d", i * 7919 % 1000);
        assert_int_equal(lg_value_find(m, key)->u.integer, i);
        assert_string_equal(m->u.map.entries[i].key->u.string.bytes, key);
    }
    assert_null(lg_value_find(m, "k1000"));
    assert_null(lg_value_find(m, ""));
    lg_build_set_int(&b, m, "k5", 0);
    lb_err e = {0};
    assert_false(lg_build_done(&b, &e));
    assert_int_equal(e.code, LB_DUPLICATE);
    assert_null(lg_build_map(&b));
    lg_build_set(&b, NULL, "x", NULL);
    assert_int_equal(lg_value_count(m), 1000);
}

static void uint_above_int64_is_refused(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    assert_int_equal(lg_build_uint(&b, INT64_MAX)->u.integer, INT64_MAX);
    assert_null(lg_build_uint(&b, (uint64_t)INT64_MAX + 1));
    lb_err e = {0};
    assert_false(lg_build_done(&b, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
}

static void readers_read(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_at root = lg_at_root("x.lua", sample(&b));
    lg_at ops, op, dims;
    size_t n = 0;
    lb_err e = {0};
    assert_true(lg_at_array(&root, "ops", &ops, &n, &e));
    assert_int_equal(n, 2);
    op = lg_at_item(&ops, 0);
    assert_true(lg_at_map(&op, "dims", &dims, &n, &e));
    uint64_t k = 0;
    uint32_t k32 = 0;
    int64_t i = 0;
    double d = 0;
    bool flag = false;
    const char *s = NULL;
    assert_true(lg_at_uint(&dims, "K", &k, &e) && k == 576);
    assert_true(lg_at_u32(&dims, "K", &k32, &e) && k32 == 576);
    assert_true(lg_at_int(&dims, "N", &i, &e) && i == -1);
    assert_true(lg_at_double(&op, "scale", &d, &e) && d == 1.5);
    assert_true(lg_at_double(&dims, "K", &d, &e) && d == 576.0);
    assert_true(lg_at_bool(&op, "flag", &flag, &e) && flag);
    assert_true(lg_at_string(&op, "name", &s, &e));
    assert_string_equal(s, "mul");
    assert_true(lg_at_int_or(&op, "absent", 9, &i, &e) && i == 9);
    assert_true(lg_at_uint_or(&root, "none", 8, &k, &e) && k == 8);
    assert_true(lg_at_bool_or(&op, "absent", true, &flag, &e) && flag);
    assert_true(lg_at_double_or(&op, "absent", 2.5, &d, &e) && d == 2.5);
    assert_true(lg_at_string_or(&op, "absent", "z", &s, &e));
    assert_string_equal(s, "z");
    uint32_t which = 9;
    const char *const names[] = {"add", "mul", NULL};
    assert_true(lg_at_choice(&op, "name", names, &which, &e) && which == 1);
    lg_at first = lg_at_entry(&dims, 0);
    assert_string_equal(first.key, "K");
    assert_true(lg_at_int(&first, NULL, &i, &e) && i == 576);
}

static void readers_name_the_path(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_at root = lg_at_root("x.lua", sample(&b));
    lg_at ops, op, dims;
    size_t n = 0;
    lb_err e = {0};
    assert_true(lg_at_array(&root, "ops", &ops, &n, &e));
    op = lg_at_item(&ops, 0);
    assert_true(lg_at_map(&op, "dims", &dims, &n, &e));
    uint64_t k = 77;
    uint32_t k32 = 77;
    const char *s = NULL;
    bool flag = false;
    lg_at out;
    assert_false(lg_at_uint(&dims, "N", &k, &e));
    assert_string_equal(e.text, "x.lua.ops[0].dims.N: -1 is negative");
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_false(lg_at_uint(&op, "name", &k, &e));
    assert_string_equal(e.text, "x.lua.ops[0].name: expected integer, got string 'mul'");
    assert_int_equal(e.code, LB_BAD_TYPE);
    assert_false(lg_at_uint(&dims, "M", &k, &e));
    assert_string_equal(e.text, "x.lua.ops[0].dims.M: missing");
    assert_int_equal(e.code, LB_MISSING);
    assert_false(lg_at_u32(&op, "big", &k32, &e));
    assert_string_equal(e.text, "x.lua.ops[0].big: 1099511627776 is above 4294967295");
    assert_false(lg_at_uint(&op, "scale", &k, &e));
    assert_string_equal(e.text, "x.lua.ops[0].scale: expected integer, got double 1.5");
    assert_false(lg_at_uint(&ops, "scale", &k, &e));
    assert_string_equal(e.text, "x.lua.ops: expected map, got array of 2");
    assert_false(lg_at_bool(&root, "none", &flag, &e));
    assert_string_equal(e.text, "x.lua.none: expected bool, got nil");
    assert_false(lg_at_array(&op, "dims", &out, &n, &e));
    assert_string_equal(e.text, "x.lua.ops[0].dims: expected array, got map of 2");
    assert_false(lg_at_double(&op, "flag", &(double){0}, &e));
    assert_string_equal(e.text, "x.lua.ops[0].flag: expected double, got true");
    const char *const some[] = {"add", "sub", NULL};
    assert_false(lg_at_choice(&op, "name", some, &k32, &e));
    assert_string_equal(e.text, "x.lua.ops[0].name: 'mul' is not one of: add, sub");
    const char *const known[] = {"K", NULL};
    assert_false(lg_at_only(&dims, known, &e));
    assert_string_equal(e.text, "x.lua.ops[0].dims.N: unknown key; known: K");
    lg_at second = lg_at_item(&ops, 1);
    assert_false(lg_at_string(&second, "name", &s, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_int_equal(k, 77);
    assert_int_equal(k32, 77);
    lg_at scalar = lg_at_root("v", lg_build_int(&b, 3));
    assert_false(lg_at_uint_or(&scalar, "k", 1, &k, &e));
    assert_string_equal(e.text, "v: expected map, got integer 3");
}

static void empty_containers_are_both(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_at array = lg_at_root("a", lg_build_array(&b));
    lg_at map = lg_at_root("m", lg_build_map(&b));
    lg_at out;
    size_t n = 5;
    assert_true(lg_at_map(&array, NULL, &out, &n, NULL) && n == 0);
    assert_true(lg_at_array(&map, NULL, &out, &n, NULL) && n == 0);
}

static void dump_is_sorted_and_exact(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lb_text t;
    lb_text_init(&t, &arena);
    lg_value_dump(sample(&b), &t);
    assert_true(lb_text_done(&t, NULL));
    assert_string_equal(t.data, "{\n"
                                "  \"none\": nil,\n"
                                "  \"ops\": [\n"
                                "    {\n"
                                "      \"big\": 1099511627776,\n"
                                "      \"dims\": {\n"
                                "        \"K\": 576,\n"
                                "        \"N\": -1\n"
                                "      },\n"
                                "      \"flag\": true,\n"
                                "      \"name\": \"mul\",\n"
                                "      \"scale\": 0x1.8p+0 (1.5)\n"
                                "    },\n"
                                "    {\n"
                                "      \"name\": \"a\\x00b\"\n"
                                "    }\n"
                                "  ]\n"
                                "}\n");
}

static const char *json_of(const lg_value *v) {
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    assert_true(lg_value_to_json(v, &t, &e));
    return t.data;
}

static void json_keeps_order_and_reads_back(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_value *m = lg_build_map(&b);
    lg_value *nums = lg_build_array(&b);
    lg_build_push(&b, nums, lg_build_int(&b, INT64_MIN));
    lg_build_push(&b, nums, lg_build_double(&b, 0.1));
    lg_build_push(&b, nums, lg_build_double(&b, -0.0));
    lg_build_push(&b, nums, lg_build_double(&b, 5e-324));
    lg_build_set(&b, m, "z", nums);
    lg_build_set_string(&b, m, "a", "tab\t quote\" \xE2\x82\xAC \x7f");
    lg_build_set(&b, m, "e", lg_build_array(&b));
    lg_build_set(&b, m, "o", lg_build_map(&b));
    lg_build_set(&b, m, "n", lg_build_nil(&b));
    const char *text = json_of(m);
    assert_string_equal(text, "{\n"
                              "  \"z\": [-9223372036854775808, 0.1, -0.0, 4.94065645841247e-324],\n"
                              "  \"a\": \"tab\\t quote\\\" \xE2\x82\xAC \\u007f\",\n"
                              "  \"e\": [],\n"
                              "  \"o\": {},\n"
                              "  \"n\": null\n"
                              "}\n");
    lg_value *back = NULL;
    lb_err e = {0};
    assert_true(lg_value_from_json("t", text, strlen(text), &arena, &back, &e));
    assert_true(lg_value_equal(m, back));
    assert_string_equal(json_of(back), text);
}

static void json_refuses_what_it_cannot_hold(void **state) {
    (void)state;
    static const char *const not_utf8[] = {"\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                           "\xE2\x82", "\xFF"};
    for (size_t i = 0; i < sizeof not_utf8 / sizeof *not_utf8; i++) {
        lg_builder b;
        lg_build_init(&b, &arena);
        lb_text t;
        lb_err e = {0};
        lb_text_init(&t, &arena);
        assert_false(lg_value_to_json(lg_build_string(&b, not_utf8[i]), &t, &e));
        assert_int_equal(e.code, LB_BAD_FORMAT);
    }
    lg_builder b;
    lg_build_init(&b, &arena);
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    volatile double zero = 0;
    assert_false(lg_value_to_json(lg_build_double(&b, 1 / zero), &t, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    lg_value *deep = lg_build_array(&b);
    for (int i = 0; i < LG_VALUE_DEPTH_MAX + 1; i++) {
        lg_value *outer = lg_build_array(&b);
        lg_build_push(&b, outer, deep);
        deep = outer;
    }
    lb_text_init(&t, &arena);
    assert_false(lg_value_to_json(deep, &t, &e));
    assert_int_equal(e.code, LB_LIMIT);
    lb_text_init(&t, &arena);
    lg_value_dump(deep, &t);
    assert_false(lb_text_done(&t, &e));
    assert_int_equal(e.code, LB_LIMIT);
}

static void json_refuses_bad_text(void **state) {
    (void)state;
    static const char *const bad[] = {"",      "{",        "[1,]",         "{\"a\":1,\"a\":2}",
                                      "1 2",   "nul",      "\"\\x41\"",    "99999999999999999999",
                                      "\"\xFF\"", "01"};
    lb_err e = {0};
    lg_value *v = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(lg_value_from_json("f.json", bad[i], strlen(bad[i]), &arena, &v, &e));
        assert_int_equal(e.code, LB_SYNTAX);
        assert_memory_equal(e.text, "f.json:1:", 9);
    }
    assert_null(v);
    char deep[200];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_false(lg_value_from_json("f.json", deep, 200, &arena, &v, &e));
    assert_int_equal(e.code, LB_LIMIT);
}

static void equality_is_by_content(void **state) {
    (void)state;
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_value *x = lg_build_map(&b);
    lg_value *y = lg_build_map(&b);
    lg_build_set_int(&b, x, "p", 1);
    lg_build_set_int(&b, x, "q", 2);
    lg_build_set_int(&b, y, "q", 2);
    lg_build_set_int(&b, y, "p", 1);
    assert_true(lg_value_equal(x, y));
    lg_build_set_int(&b, y, "r", 1);
    assert_false(lg_value_equal(x, y));
    assert_false(lg_value_equal(lg_build_int(&b, 1), lg_build_double(&b, 1)));
    assert_false(lg_value_equal(lg_build_double(&b, 0.0), lg_build_double(&b, -0.0)));
    assert_true(lg_value_equal(lg_build_bytes(&b, "a\0", 2), lg_build_bytes(&b, "a\0", 2)));
    assert_false(lg_value_equal(lg_build_bytes(&b, "a\0", 2), lg_build_string(&b, "a")));
}

/* Builds, dumps, writes and parses with the n-th allocation failing, for every n. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        assert_true(n < 1000);
        lb_arena a;
        lb_arena_init(&a, "failing", 1 << 20);
        a.fail_after = n;
        lg_builder b;
        lg_build_init(&b, &a);
        const lg_value *v = sample(&b);
        lb_err e = {0};
        lb_text dump, json;
        lb_text_init(&dump, &a);
        lb_text_init(&json, &a);
        bool ok = lg_build_done(&b, &e);
        if (ok) {
            lg_value_dump(v, &dump);
            ok = lb_text_done(&dump, &e) && lg_value_to_json(v, &json, &e);
        }
        lg_value *back = NULL;
        ok = ok && lg_value_from_json("t", json.data, json.n_bytes, &a, &back, &e);
        if (ok) {
            done = true;
        } else {
            assert_int_equal(e.code, LB_NO_MEMORY);
            assert_null(back);
        }
        lb_arena_reset(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_keep_order_and_find),
        cmocka_unit_test(uint_above_int64_is_refused),
        cmocka_unit_test(readers_read),
        cmocka_unit_test(readers_name_the_path),
        cmocka_unit_test(empty_containers_are_both),
        cmocka_unit_test(dump_is_sorted_and_exact),
        cmocka_unit_test(json_keeps_order_and_reads_back),
        cmocka_unit_test(json_refuses_what_it_cannot_hold),
        cmocka_unit_test(json_refuses_bad_text),
        cmocka_unit_test(equality_is_by_content),
        cmocka_unit_test(every_allocation_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("value", tests, setup, teardown);
}
