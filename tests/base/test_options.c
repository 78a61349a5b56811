/* test_options.c -- every way a command line can be wrong is one LB_USAGE line; nothing is clamped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

typedef struct values {
    bool flag, given;
    const char *text, *file;
    uint64_t n, size;
    double d;
    lb_opt_list list;
} values;

static bool parse(values *v, int argc, const char *const *argv, bool *help, lb_err *err) {
    *v = (values){.n = 7, .d = 0.5};
    const lb_opt options[] = {
        {"--flag", "-f", LB_OPT_FLAG, &v->flag, 0, 0, false, NULL, NULL, "a flag"},
        {"--text", NULL, LB_OPT_TEXT, &v->text, 0, 0, false, NULL, "TEXT", "a text"},
        {"--n", "-n", LB_OPT_UINT, &v->n, 1, 100, false, &v->given, "N", "a number\nof two lines"},
        {"--size", NULL, LB_OPT_UINT, &v->size, 0, 1e18, true, NULL, "BYTES", "a size"},
        {"--d", NULL, LB_OPT_DOUBLE, &v->d, -1, 1, false, NULL, "D", "a real"},
        {"--many", NULL, LB_OPT_REPEAT, &v->list, 0, 0, false, NULL, "X", "repeats"},
    };
    const lb_positional pos[] = {{"FILE", &v->file, true, "the file"}};
    const lb_command c = {"prog do", "Does it.", NULL, options, 6, pos, 1};
    return lb_options_parse(&c, argc, (char *const *)(uintptr_t)argv, help, err);
}

static void good_lines(void **state) {
    (void)state;
    values v;
    bool help = true;
    lb_err e = {0};
    const char *a[] = {"-f",   "--text=a=b", "f.gguf", "-n",     "100", "--size",
                       "3GiB", "--d",        "-1",     "--many", "x",   "--many=y"};
    assert_true(parse(&v, 12, a, &help, &e));
    assert_true(v.flag && v.given && !help);
    assert_string_equal(v.text, "a=b");
    assert_string_equal(v.file, "f.gguf");
    assert_int_equal(v.n, 100);
    assert_int_equal(v.size, 3ULL << 30);
    assert_true(v.d == -1.0 && v.list.n == 2);
    const char *b[] = {"--", "-f"};
    assert_true(parse(&v, 2, b, &help, &e));
    assert_string_equal(v.file, "-f");
    const char *h[] = {"--bogus", "--help"};
    assert_true(parse(&v, 2, h, &help, &e));
    assert_true(help);
}

static void bad_lines(void **state) {
    (void)state;
    static const char *const lines[][3] = {
        {"f", "--bogus", NULL},
        {"f", "--n", NULL},
        {"f", "--n=0", NULL},
        {"f", "--n=101", NULL},
        {"f", "--n=x", NULL},
        {"f", "--n=1x", NULL},
        {"f", "--n=-1", NULL},
        {"f", "--n=", NULL},
        {"f", "--flag=1", NULL},
        {"f", "--d=nan", NULL},
        {"f", "--d=1.01", NULL},
        {"f", "--size=5QiB", NULL},
        {"f", "g", NULL},
        {"--flag", NULL, NULL},
        {"f", "--n=99999999999999999999", NULL},
        {"f", "--size=99999999999GiB", NULL},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        values v;
        bool help = false;
        lb_err e = {0};
        int n = 0;
        while (n < 3 && lines[i][n] != NULL) {
            n++;
        }
        assert_false(parse(&v, n, lines[i], &help, &e));
        assert_int_equal(e.code, LB_USAGE);
        assert_int_equal(v.n, 7);
    }
}

static void help_names_everything(void **state) {
    (void)state;
    uint64_t n = 0;
    const lb_opt options[] = {{"--n", "-n", LB_OPT_UINT, &n, 1, 9, false, NULL, "N", "one\ntwo"}};
    const lb_command c = {"prog", "Does it.", "More.", options, 1, NULL, 0};
    lb_arena a;
    lb_err e = {0};
    lb_text t;
    lb_arena_init(&a, "test", 1 << 20);
    lb_text_init(&t, &a);
    lb_options_help(&c, &t);
    assert_true(lb_text_done(&t, &e));
    assert_non_null(strstr(t.data, "-n, --n N"));
    assert_non_null(strstr(t.data, "two"));
    assert_non_null(strstr(t.data, "--help"));
    lb_arena_reset(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(help_names_everything),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
