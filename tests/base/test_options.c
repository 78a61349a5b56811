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
    const char *text, *name, *file, *word;
    uint64_t n, size;
    double d;
    lb_opt_list list;
} values;

static bool parse(values *v, int argc, const char *const *argv, bool *help, lb_err *err) {
    *v = (values){.n = 7, .d = 0.5};
    const lb_opt options[] = {
        {"--flag", "-f", LB_OPT_FLAG, &v->flag, 0, 0, false, NULL, NULL, "a flag"},
        {"--text", NULL, LB_OPT_TEXT, &v->text, 0, 0, false, NULL, "TEXT", "a text"},
        {"--name", "-o", LB_OPT_NAME, &v->name, 0, 0, false, NULL, "PATH", "a name"},
        {"--n", "-n", LB_OPT_UINT, &v->n, 1, 100, false, &v->given, "N", "a number\nof two lines"},
        {"--size", NULL, LB_OPT_UINT, &v->size, 0, 1e18, true, NULL, "BYTES", "a size"},
        {"--d", NULL, LB_OPT_DOUBLE, &v->d, -1, 1, false, NULL, "D", "a real"},
        {"--pool", NULL, LB_OPT_UINT, &v->size, 1 << 20, 1e15, true, NULL, "BYTES", "a size"},
        {"--body", NULL, LB_OPT_UINT, &v->size, 1024, 1 << 30, true, NULL, "BYTES", "a size"},
        {"--word", NULL, LB_OPT_WORD, &v->word, 0, 0, false, NULL, "on|off|o", "a word"},
        {"--many", NULL, LB_OPT_REPEAT, &v->list, 0, 0, false, NULL, "X", "repeats"},
    };
    const lb_positional pos[] = {{"FILE", &v->file, true, "the file"}};
    const lb_command c = {"prog do", "Does it.", NULL, options, 10, pos, 1};
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
    const char *t[] = {"--text", "--help", "x"}; /* a value, whatever it looks like */
    assert_true(parse(&v, 3, t, &help, &e));
    assert_true(!help);
    assert_string_equal(v.text, "--help");
    const char *x[] = {"--text", "", "x"};
    assert_true(parse(&v, 3, x, &help, &e));
    assert_string_equal(v.text, "");
    const char *o[] = {"-o=-f", "-"};
    assert_true(parse(&v, 2, o, &help, &e));
    assert_string_equal(v.name, "-f");
    assert_string_equal(v.file, "-");
    static const char *const words[] = {"on", "off", "o"};
    for (size_t i = 0; i < 3; i++) {
        const char *w[] = {"x", "--word", words[i]};
        assert_true(parse(&v, 3, w, &help, &e));
        assert_string_equal(v.word, words[i]);
    }
    const char *glued[] = {"-n42", "-oa=b", "x"};
    assert_true(parse(&v, 3, glued, &help, &e));
    assert_int_equal(v.n, 42);
    assert_string_equal(v.name, "a=b");
    const char *dash[] = {"-o-f", "-n=7", "x"};
    assert_true(parse(&v, 3, dash, &help, &e));
    assert_string_equal(v.name, "-f");
    const char *gh[] = {"-n4", "-h"};
    assert_true(parse(&v, 2, gh, &help, &e) && help);
    const char *z[] = {"x", "--d", "-0.0e5"};
    assert_true(parse(&v, 3, z, &help, &e));
    assert_true(v.d == 0.0);
}

static void bad_lines(void **state) {
    (void)state;
    static const char *const lines[][4] = {
        {"unknown option '--bogus'", "f", "--bogus", NULL},
        {"unknown option '--=x'", "f", "--=x", NULL},
        {"--n needs a value (N)", "f", "--n", NULL},
        {"--n: 'x' is not a whole number", "f", "-nx", NULL},
        {"--n: 101 is out of range; it may be 1 to 100", "f", "-n101", NULL},
        {"--n: '-1' is not a whole number", "f", "-n-1", NULL},
        {"--n is given twice", "f", "-n1", "-n2"},
        {"unknown option '-fx'; prog do --help", "f", "-fx", NULL},
        {"unknown option '-x4'; prog do --help", "f", "-x4", NULL},
        {"unknown option '-name=p'; --name has two dashes", "f", "-name=p", NULL},
        {"unknown option '-na'; --name has two dashes", "f", "-na", NULL},
        {"unknown option '-size'; --size has two dashes", "f", "-size", NULL},
        {"--name needs a value (PATH), and '-n4' is an option; --name=-n4", "f", "-o", "-n4"},
        {"--n: 0 is out of range; it may be 1 to 100", "f", "--n=0", NULL},
        {"--n: 101 is out of range; it may be 1 to 100", "f", "--n=101", NULL},
        {"--n: 'x' is not a whole number", "f", "--n=x", NULL},
        {"--n: '1x' is not a whole number", "f", "--n=1x", NULL},
        {"--n: '-1' is not a whole number", "f", "--n=-1", NULL},
        {"--n: '+1' is not a whole number", "f", "--n=+1", NULL},
        {"--n: ' 1' is not a whole number", "f", "--n= 1", NULL},
        {"--n: '0x1' is not a whole number", "f", "--n=0x1", NULL},
        {"--n: '' is not a whole number", "f", "--n=", NULL},
        {"--n: 99999999999999999999 is out of range", "f", "--n=99999999999999999999", NULL},
        {"--n is given twice", "--n=1", "--n=1", NULL},
        {"--n is given twice", "-n", "1", "--n=1"},
        {"--flag takes no value", "f", "--flag=1", NULL},
        {"--flag is given twice", "-f", "--flag", NULL},
        {"--d: 'nan' is not a number", "f", "--d=nan", NULL},
        {"--d: 'inf' is not a number", "f", "--d=inf", NULL},
        {"--d: '0x1' is not a number", "f", "--d=0x1", NULL},
        {"--d: ' 1' is not a number", "f", "--d= 1", NULL},
        {"--d: '' is not a number", "f", "--d=", NULL},
        {"--d: '1e' is not a number", "f", "--d=1e", NULL},
        {"--d: 1.01 is out of range; it may be -1 to 1", "f", "--d=1.01", NULL},
        {"--d: 1e999 is out of range; it may be -1 to 1", "f", "--d=1e999", NULL},
        {"--d: 1e-40 is out of range", "f", "--d=1e-40", NULL},
        {"--d: 1e-999 is out of range", "f", "--d=1e-999", NULL},
        {"--size: '5QiB' is not a size", "f", "--size=5QiB", NULL},
        {"--size: '5 KiB' is not a size", "f", "--size=5 KiB", NULL},
        {"--pool: 16 bytes is out of range; it may be 1048576 to 1000000000000000; did you mean "
         "16GiB?", "f", "--pool=16", NULL},
        {"to 1000000000000000; did you mean 1023GiB?", "f", "--pool=1023", NULL},
        {"to 1000000000000000; did you mean 1024MiB?", "f", "--pool=1024", NULL},
        {"to 1000000000000000; did you mean 1048575MiB?", "f", "--pool=1048575", NULL},
        {"--pool: 0 is out of range; it may be 1048576 to 1000000000000000", "f", "--pool=0", NULL},
        {"--pool: 1KiB is out of range", "f", "--pool=1KiB", NULL},
        {"it may be 1024 to 1073741824; did you mean 2MiB?", "f", "--body=2", NULL},
        {"it may be 1024 to 1073741824; did you mean 1GiB?", "f", "--body=1", NULL},
        {"it may be 1024 to 1073741824; did you mean 1023MiB?", "f", "--body=1023", NULL},
        {"--size: 99999999999GiB is out of range", "f", "--size=99999999999GiB", NULL},
        {"--name needs a value (PATH), not an empty one", "f", "--name=", NULL},
        {"--name needs a value (PATH), not an empty one", "f", "-o", ""},
        {"--name needs a value (PATH), and '--n' is an option; --name=--n", "f", "-o", "--n"},
        {"--word: 'of' is none of on, off, o", "f", "--word=of", NULL},
        {"--word: 'offf' is none of on, off, o", "f", "--word=offf", NULL},
        {"--word: 'On' is none of on, off, o", "f", "--word=On", NULL},
        {"--word: 'on|off' is none of on, off, o", "f", "--word=on|off", NULL},
        {"--word: '|' is none of on, off, o", "f", "--word=|", NULL},
        {"--word needs a value (on|off|o), not an empty one", "f", "--word=", NULL},
        {"--word needs a value (on|off|o), and '--n' is an option", "f", "--word", "--n"},
        {"unexpected argument 'g'", "f", "g", NULL},
        {"unexpected argument '--n'", "f", "--", "--n"},
        {"FILE is empty", "", NULL, NULL},
        {"prog do needs FILE", "--flag", NULL, NULL},
        {"prog do needs FILE", "--", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        values v;
        bool help = false;
        lb_err e = {0};
        int n = 0;
        while (n < 3 && lines[i][n + 1] != NULL) {
            n++;
        }
        assert_false(parse(&v, n, lines[i] + 1, &help, &e));
        assert_int_equal(e.code, LB_USAGE);
        assert_true(v.n == 7 || v.n == 1);
        if (strstr(e.text, lines[i][0]) == NULL) {
            fail_msg("'%s' does not say '%s'", e.text, lines[i][0]);
        }
    }
}

/* However long a value is, its limits are told. */
static void long_values(void **state) {
    (void)state;
    char arg[600] = "--n=";
    const char *argv[] = {"f", arg};
    values v;
    bool help = false;
    lb_err e = {0};
    memset(arg + 4, '9', sizeof arg - 5);
    assert_false(parse(&v, 2, argv, &help, &e));
    assert_int_equal(e.code, LB_USAGE);
    assert_non_null(strstr(e.text, "it may be 1 to 100"));
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
        cmocka_unit_test(long_values),
        cmocka_unit_test(help_names_everything),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
