/* test_expr.c -- expr: parsing, checked values, text that parses back, folding, trends; the C text
 * is compiled and compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "expr.h"
#include "gen/folder.h"

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

static const lg_expr *parse(const char *text) {
    const lg_expr *e = NULL;
    lb_err err = {0};
    if (!lg_expr_parse(text, &arena, &e, &err)) {
        print_message("# %s\n", err.text);
    }
    assert_non_null(e);
    return e;
}

static const char *text_of(const lg_expr *e) {
    lb_text t;
    lb_text_init(&t, &arena);
    lg_expr_text(e, &t);
    assert_true(lb_text_done(&t, NULL));
    return t.data;
}

/* The value with T = 100, S = 7, big = 2^64 - 1. */
static const lg_expr_var vars[] = {{"T", 100}, {"S", 7}, {"big", UINT64_MAX}};
enum { N_VARS = 3 };

static void values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        {"ceil_div(T, 16) * 4 + min(S, 3)", 31},
        {"0", 0},
        {"18446744073709551615", UINT64_MAX},
        {"T", 100},
        {" ( T ) ", 100},
        {"T - S - 3", 90},
        {"T - (S - 3)", 96},
        {"T / S / 2", 7},
        {"T / (S / 2)", 33},
        {"T / S * S", 98},
        {"2 + 3 * 4", 14},
        {"round_up(T, 16)", 112},
        {"round_up(T, 10)", 100},
        {"ceil_div(T, 100)", 1},
        {"ceil_div(0, 5)", 0},
        {"ceil_div(big, 2)", UINT64_MAX / 2 + 1},
        {"min(T, S, 3, 9)", 3},
        {"max(T, S, 300)", 300},
        {"max(min(T, 50), S)", 50},
        {"big / big", 1},
        {"S-S", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = 1234;
        assert_true(lg_expr_eval(parse(cases[i].text), vars, N_VARS, &v, NULL));
        if (v != cases[i].value) {
            print_message("# %s\n", cases[i].text);
        }
        assert_true(v == cases[i].value);
    }
}

static void value_errors_name_the_expression(void **state) {
    (void)state;
    static const struct {
        const char *text;
        lb_code code;
        const char *message;
    } cases[] = {
        {"1 + big", LB_OVERFLOW, "1 + big: overflow at 1 and 18446744073709551615"},
        {"T * (big / 2)", LB_OVERFLOW, "T * (big / 2): overflow at 100 and 9223372036854775807"},
        {"round_up(big, 2)", LB_OVERFLOW,
         "round_up(big, 2): overflow at 18446744073709551615 and 2"},
        {"2 * (S - T)", LB_BAD_VALUE, "S - T: negative at 7 and 100"},
        {"T / (S - 7)", LB_BAD_VALUE, "T / (S - 7): division by zero at 100 and 0"},
        {"ceil_div(T, 0)", LB_BAD_VALUE, "ceil_div(T, 0): division by zero at 100 and 0"},
        {"round_up(T, 0)", LB_BAD_VALUE, "round_up(T, 0): division by zero at 100 and 0"},
        {"T + U", LB_MISSING, "'U' has no value in this expression"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = 1234;
        lb_err e = {0};
        assert_false(lg_expr_eval(parse(cases[i].text), vars, N_VARS, &v, &e));
        assert_string_equal(e.text, cases[i].message);
        assert_int_equal(e.code, cases[i].code);
        assert_int_equal(v, 1234);
    }
}

static void bad_text_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        lb_code code;
        const char *message;
    } cases[] = {
        {"", LB_SYNTAX, "expression '', column 1: expected a number, a name or '('"},
        {"T +", LB_SYNTAX, "expression 'T +', column 4: expected a number, a name or '('"},
        {"T T", LB_SYNTAX, "expression 'T T', column 3: expected an operator"},
        {"(T", LB_SYNTAX, "expression '(T', column 3: expected ')'"},
        {"T)", LB_SYNTAX, "expression 'T)', column 2: expected an operator"},
        {"-1", LB_SYNTAX, "expression '-1', column 1: expected a number, a name or '('"},
        {"4k", LB_SYNTAX, "expression '4k', column 2: a letter inside a number"},
        {"1.5", LB_SYNTAX, "expression '1.5', column 2: expected an operator"},
        {"T % 2", LB_SYNTAX, "expression 'T % 2', column 3: expected an operator"},
        {"log(T)", LB_SYNTAX, "expression 'log(T)', column 5: unknown function; there are "
                              "ceil_div, round_up, min, max"},
        {"min(T)", LB_SYNTAX, "expression 'min(T)', column 7: wrong number of arguments"},
        {"ceil_div(1, 2, 3)", LB_SYNTAX,
         "expression 'ceil_div(1, 2, 3)', column 18: wrong number of arguments"},
        {"min(T, 2", LB_SYNTAX, "expression 'min(T, 2', column 9: expected ',' or ')'"},
        {"18446744073709551616", LB_OVERFLOW,
         "expression '18446744073709551616', column 20: an integer above 2^64 - 1"},
        {"T\n", LB_SYNTAX, "expression 'T?', column 2: expected an operator"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const lg_expr *e = NULL;
        lb_err err = {0};
        assert_false(lg_expr_parse(cases[i].text, &arena, &e, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(err.code, cases[i].code);
        assert_null(e);
    }
}

static void hostile_text_is_bounded(void **state) {
    (void)state;
    static char text[5000];
    const lg_expr *e = NULL;
    lb_err err = {0};
    memset(text, '(', 4000);
    assert_false(lg_expr_parse(text, &arena, &e, &err));
    assert_int_equal(err.code, LB_LIMIT);
    memset(text, 'n', 4000);
    assert_false(lg_expr_parse(text, &arena, &e, &err));
    assert_int_equal(err.code, LB_LIMIT);
    memset(text, '1', sizeof text - 1);
    assert_false(lg_expr_parse(text, &arena, &e, &err));
    assert_int_equal(err.code, LB_LIMIT);
    for (size_t i = 0; i < 4095; i++) {
        text[i] = i % 2 == 0 ? '1' : '+';
    }
    text[4095] = '\0';
    uint64_t v = 0;
    assert_true(lg_expr_eval(parse(text), NULL, 0, &v, NULL));
    assert_int_equal(v, 2048);
}

static void text_parses_back(void **state) {
    (void)state;
    static const char *const canonical[] = {
        "ceil_div(T, 16) * 4 + min(S, 3)", "a - b - c", "a - (b - c)", "a + (b + c)",
        "a / (b * c) / d",  "(a + b) * (c - d)",  "min(min(a, b), c)", "round_up(a + 1, 4)", "7"};
    for (size_t i = 0; i < sizeof canonical / sizeof *canonical; i++) {
        const lg_expr *e = parse(canonical[i]);
        assert_string_equal(text_of(e), canonical[i]);
        assert_true(lg_expr_equal(e, parse(text_of(e))));
    }
    assert_string_equal(text_of(parse("(((a))*((b)))")), "a * b");
    assert_string_equal(text_of(parse("min(a,b,c)")), "min(min(a, b), c)");
    assert_false(lg_expr_equal(parse("a + b"), parse("b + a")));
    assert_false(lg_expr_equal(parse("a"), parse("b")));
    assert_false(lg_expr_equal(parse("1"), parse("2")));
    assert_true(lg_expr_uses(parse("1 + min(2, T)"), "T"));
    assert_false(lg_expr_uses(parse("1 + min(2, TT)"), "T"));
}

static const char *fold(const char *text) {
    const lg_expr *e = NULL;
    assert_true(lg_expr_fold(parse(text), vars, N_VARS, &arena, &e, NULL));
    return text_of(e);
}

static void folding(void **state) {
    (void)state;
    assert_string_equal(fold("ceil_div(T, 16) * x + min(S, 3)"), "7 * x + 3");
    assert_string_equal(fold("x * (S - 6) + (T - 100)"), "x");
    assert_string_equal(fold("1 * x / 1 - 0 + 0"), "x");
    assert_string_equal(fold("0 + round_up(ceil_div(x, 1), 1)"), "x");
    assert_string_equal(fold("max(x + 1, x + 1)"), "x + 1");
    assert_string_equal(fold("x * 0"), "x * 0");
    assert_string_equal(fold("x + y"), "x + y");
    const lg_expr *e = NULL;
    lb_err err = {0};
    assert_false(lg_expr_fold(parse("x + (S - T)"), vars, N_VARS, &arena, &e, &err));
    assert_string_equal(err.text, "S - T: negative at 7 and 100");
    assert_null(e);
}

static void trends(void **state) {
    (void)state;
    static const struct {
        const char *text;
        lg_expr_trend trend;
    } cases[] = {
        {"7", LG_EXPR_CONSTANT},
        {"S * 4", LG_EXPR_CONSTANT},
        {"T", LG_EXPR_RISING},
        {"ceil_div(T, 16) * 4 + min(T, S)", LG_EXPR_RISING},
        {"T * T", LG_EXPR_RISING},
        {"T - 1", LG_EXPR_RISING},
        {"S - T", LG_EXPR_FALLING},
        {"S / T", LG_EXPR_FALLING},
        {"ceil_div(S, T) + 3", LG_EXPR_FALLING},
        {"10 - S / T", LG_EXPR_RISING},
        {"T + S / T", LG_EXPR_UNKNOWN},
        {"T - T", LG_EXPR_UNKNOWN},
        {"T / T", LG_EXPR_UNKNOWN},
        {"round_up(T, 8)", LG_EXPR_RISING},
        {"round_up(S, T)", LG_EXPR_UNKNOWN},
        {"max(T, S - T)", LG_EXPR_UNKNOWN},
        {"(T + S / T) * 0", LG_EXPR_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(lg_expr_trend_in(parse(cases[i].text), "T"), cases[i].trend);
    }
}

/* A random expression over T and S of at most `depth` levels. */
static const lg_expr *random_expr(uint64_t *seed, int depth) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    uint64_t r = *seed >> 33;
    if (depth == 0 || r % 5 == 0) {
        return r % 2 == 0 ? lg_expr_int(r / 2 % 20, &arena, NULL)
                          : lg_expr_name(r % 3 == 0 ? "S" : "T", &arena, NULL);
    }
    lg_expr_kind kind = (lg_expr_kind)(LG_EXPR_ADD + r / 5 % 8);
    const lg_expr *a = random_expr(seed, depth - 1);
    return lg_expr_binary(kind, a, random_expr(seed, depth - 1), &arena, NULL);
}

/* Trend claims, folding and text against evaluation, on random trees. */
static void random_trees_agree(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 3000; i++) {
        const lg_expr *e = random_expr(&seed, 4);
        assert_true(lg_expr_equal(e, parse(text_of(e))));
        lg_expr_trend trend = lg_expr_trend_in(e, "T");
        uint64_t last = 0;
        bool have_last = false;
        for (uint64_t t = 1; t <= 40; t++) {
            lg_expr_var at[] = {{"T", t}, {"S", 7}};
            uint64_t v = 0;
            const lg_expr *half = NULL;
            const lg_expr *whole = NULL;
            bool ok = lg_expr_eval(e, at, 2, &v, NULL);
            bool folded = lg_expr_fold(e, at + 1, 1, &arena, &half, NULL) &&
                          lg_expr_fold(half, at, 1, &arena, &whole, NULL);
            assert_true(!ok || folded);
            if (ok) {
                assert_true(whole->kind == LG_EXPR_INT && whole->value == v);
                assert_true(!have_last || trend != LG_EXPR_RISING || v >= last);
                assert_true(!have_last || trend != LG_EXPR_FALLING || v <= last);
                assert_true(!have_last || trend != LG_EXPR_CONSTANT || v == last);
            }
            have_last = ok;
            last = v;
        }
        lb_arena_reset(&arena);
    }
}

static void c_text_reads_well(void **state) {
    (void)state;
    static const char *const names[] = {"T"};
    static const char *const c_names[] = {"(uint64_t)n_rows"};
    lb_text t;
    lb_text_init(&t, &arena);
    lg_expr_c(parse("ceil_div(T, 16) + S"), names, c_names, 1, &t);
    assert_true(lb_text_done(&t, NULL));
    assert_string_equal(t.data, "(((uint64_t)n_rows / 16ull + "
                                "((uint64_t)n_rows % 16ull != 0)) + S)");
}

/* A C program of random expressions must print the values that lg_expr_eval gives. */
static void c_text_computes_the_same(void **state) {
    (void)state;
    folder dir;
    assert_true(folder_open(&dir));
    lb_text t;
    lb_text want;
    lb_text_init(&t, &arena);
    lb_text_init(&want, &arena);
    lb_text_add(&t, "#include <stdio.h>\nint main(void) {\n"
                    "    unsigned long long T = 100, S = 7;\n    (void)T;\n    (void)S;\n");
    uint64_t seed = 99;
    for (int i = 0; i < 200; i++) {
        const lg_expr *e = random_expr(&seed, 3);
        uint64_t v = 0;
        if (lg_expr_eval(e, vars, N_VARS, &v, NULL)) {
            lb_text_add(&t, "    printf(\"%llu\\n\", ");
            lg_expr_c(e, NULL, NULL, 0, &t);
            lb_text_add(&t, ");\n");
            lb_text_printf(&want, "%llu\n", (unsigned long long)v);
        }
    }
    lb_text_add(&t, "    return 0;\n}\n");
    assert_true(lb_text_done(&t, NULL) && lb_text_done(&want, NULL) && want.n_bytes > 100);
    assert_true(folder_put(&dir, "e.c", t.data));
    const char *command = lb_format(&arena, NULL, "cd %s && cc -std=c11 -o e e.c 2>log && ./e",
                                    dir.path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *got = lb_alloc(&arena, want.n_bytes + 1, NULL);
    assert_int_equal(fread(got, 1, want.n_bytes + 1, f), want.n_bytes);
    assert_int_equal(pclose(f), 0);
    assert_string_equal(got, want.data);
    assert_true(folder_close(&dir));
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        lb_arena a;
        lb_err e = {0};
        const lg_expr *x = NULL;
        const lg_expr *y = NULL;
        lb_arena_init(&a, "failing", 1 << 20);
        a.fail_after = n;
        done = lg_expr_parse("ceil_div(T, 16) * (x + S)", &a, &x, &e) &&
               lg_expr_fold(x, vars, N_VARS, &a, &y, &e);
        assert_true(done || e.code == LB_NO_MEMORY);
        lb_arena_reset(&a);
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(value_errors_name_the_expression),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(hostile_text_is_bounded),
        cmocka_unit_test(text_parses_back),
        cmocka_unit_test(folding),
        cmocka_unit_test(trends),
        cmocka_unit_test(random_trees_agree),
        cmocka_unit_test(c_text_reads_well),
        cmocka_unit_test(c_text_computes_the_same),
        cmocka_unit_test(every_allocation_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("expr", tests, setup, teardown);
}
