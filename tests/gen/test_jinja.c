/* test_jinja.c -- the chat template compiler: what it refuses and where it says so, hostile
 * templates, memory that runs out. That what it emits renders right is tested in tests/jinja/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jinja/c_text.h"
#include "jinja/jinja.h"
#include "jinja/lex.h"
#include "named.h"

static bool compile_n(const char *src, size_t n, lb_arena *arena, lb_text *out, lb_err *err) {
    lb_text_init(out, arena);
    return lg_jinja_compile(src, n, arena, out, err) && lb_text_done(out, err);
}

/* The error of a template that must be refused. */
static lb_err refused(const char *src) {
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    lb_arena_init(&arena, "test", 64 << 20);
    if (compile_n(src, strlen(src), &arena, &out, &err)) {
        fail_msg("compiled: %s", src);
    }
    lb_arena_reset(&arena);
    return err;
}

static void accepted(const char *src) {
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    lb_arena_init(&arena, "test", 64 << 20);
    if (!compile_n(src, strlen(src), &arena, &out, &err)) {
        fail_msg("%s: %s", src, err.text);
    }
    lb_arena_reset(&arena);
}

typedef struct bad_case {
    const char *src;
    lb_code code;
    const char *says; /* part of the message */
} bad_case;

static void check_cases(const bad_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        lb_err err = refused(cases[i].src);
        if (err.code != cases[i].code || strstr(err.text, cases[i].says) == NULL) {
            fail_msg("%s: code %d, %s", cases[i].src, (int)err.code, err.text);
        }
        assert_non_null(strstr(err.text, "chat template"));
    }
}

static void unsupported_constructs_are_named(void **state) {
    (void)state;
    static const bad_case cases[] = {
        {"a\n b {% include 'x' %}", LB_UNSUPPORTED, "line 2, column 7: the tag 'include'"},
        {"{% foo %}", LB_UNSUPPORTED, "line 1, column 4: the tag 'foo'"},
        {"{% extends 'x' %}", LB_UNSUPPORTED, "extends"},
        {"{% block x %}{% endblock %}", LB_UNSUPPORTED, "block"},
        {"{% import 'x' as y %}", LB_UNSUPPORTED, "import"},
        {"{% call f() %}{% endcall %}", LB_UNSUPPORTED, "call"},
        {"{% do x %}", LB_UNSUPPORTED, "do"},
        {"{% with x = 1 %}{% endwith %}", LB_UNSUPPORTED, "with"},
        {"{% autoescape true %}{% endautoescape %}", LB_UNSUPPORTED, "autoescape"},
        {"{{ x | nosuch }}", LB_UNSUPPORTED, "the filter 'nosuch'"},
        {"{{ x is nosuch }}", LB_UNSUPPORTED, "the test 'nosuch'"},
        {"\n{{ x.nosuch() }}", LB_UNSUPPORTED, "line 2, column 5: the method 'nosuch'"},
        {"{{ x | map('nosuch') }}", LB_UNSUPPORTED, "nosuch"},
        {"{{ x | map('replace') }}", LB_UNSUPPORTED, "replace"},
        {"{{ x | map(f) }}", LB_UNSUPPORTED, "constant"},
        {"{{ x | select('nosuch') }}", LB_UNSUPPORTED, "nosuch"},
        {"{{ x | selectattr('a', t) }}", LB_UNSUPPORTED, "constant"},
        {"{{ lipsum() }}", LB_UNSUPPORTED, "lipsum"},
        {"{{ joiner(',') }}", LB_UNSUPPORTED, "joiner"},
        {"{{ 2 ** 3 }}", LB_UNSUPPORTED, "**"},
        {"{{ f(*x) }}", LB_UNSUPPORTED, "starred"},
        {"{{ x[1, 2] }}", LB_UNSUPPORTED, "subscripts"},
        {"{{ x['a']() }}", LB_UNSUPPORTED, "called"},
        {"{{ x.__class__ }}", LB_UNSUPPORTED, "__"},
        {"{{ range }}", LB_UNSUPPORTED, "called"},
        {"{% macro m() %}{% endmacro %}{{ m }}", LB_UNSUPPORTED, "macro"},
        {"{% if x %}{% macro m() %}{% endmacro %}{% endif %}", LB_UNSUPPORTED, "macro"},
        {"{% for x in y %}{% macro m() %}{% endmacro %}{% endfor %}", LB_UNSUPPORTED, "macro"},
        {"{% macro m() %}{% endmacro %}{% macro m() %}{% endmacro %}", LB_UNSUPPORTED, "once"},
        {"{% macro m() %}{% endmacro %}{% set m = 1 %}", LB_UNSUPPORTED, "macro"},
        {"{% for x in y recursive %}{% endfor %}", LB_UNSUPPORTED, "recursive"},
        {"{% for x in y %}{{ loop }}{% endfor %}", LB_UNSUPPORTED, "loop"},
        {"{% for x in y %}{{ loop.nosuch }}{% endfor %}", LB_UNSUPPORTED, "loop.nosuch"},
        {"{% set loop = 1 %}", LB_UNSUPPORTED, "loop"},
        {"{% set a.b, c = 1, 2 %}", LB_UNSUPPORTED, "together"},
        {"{% set a, b %}x{% endset %}", LB_UNSUPPORTED, "several"},
        {"{% for (a, b) in c %}{% endfor %}", LB_UNSUPPORTED, "brackets"},
        {"{{ '\\N{DASH}' }}", LB_UNSUPPORTED, "\\N"},
        {"{{ 0x1F }}", LB_UNSUPPORTED, "decimal"},
        {"{{ 1_000 }}", LB_UNSUPPORTED, "decimal"},
        {"{{ x | tojson(nosuch=1) }}", LB_UNSUPPORTED, "nosuch"},
    };
    check_cases(cases, sizeof cases / sizeof cases[0]);
}

static void syntax_errors_name_their_place(void **state) {
    (void)state;
    static const bad_case cases[] = {
        {"{{", LB_SYNTAX, "line 1"},
        {"{{ x", LB_SYNTAX, "inside a tag"},
        {"{% if x %}", LB_SYNTAX, "inside a block"},
        {"\n\n{% if x %}a", LB_SYNTAX, "line 3"},
        {"{% endif %}", LB_UNSUPPORTED, "endif"},
        {"{# x", LB_SYNTAX, "comment"},
        {"{% raw %} x", LB_SYNTAX, "raw"},
        {"{{ 'x }}", LB_SYNTAX, "string"},
        {"{{ }}", LB_SYNTAX, "expression"},
        {"{{ x y }}", LB_SYNTAX, "}}"},
        {"{{ (x }}", LB_SYNTAX, ""},
        {"{{ x) }}", LB_SYNTAX, "bracket"},
        {"{{ [x) }}", LB_SYNTAX, "bracket"},
        {"{{ x[ }}", LB_SYNTAX, ""},
        {"{{ x. }}", LB_SYNTAX, "name"},
        {"{{ x | }}", LB_SYNTAX, "filter"},
        {"{{ x is }}", LB_SYNTAX, "test"},
        {"{{ a is b is c }}", LB_SYNTAX, "chained"},
        {"{{ {'a' 1} }}", LB_SYNTAX, ":"},
        {"{{ f(a=1, 2) }}", LB_SYNTAX, "positional"},
        {"{{ x ! y }}", LB_SYNTAX, "character"},
        {"{{ \xC3\xA9 }}", LB_SYNTAX, "character"},
        {"{{ 007 }}", LB_SYNTAX, "zero"},
        {"{{ '\\xZ' }}", LB_SYNTAX, "escape"},
        {"{% set 1 = x %}", LB_SYNTAX, "assigned"},
        {"{% set none = x %}", LB_SYNTAX, "assigned"},
        {"{% for x y %}{% endfor %}", LB_SYNTAX, "in"},
        {"{% break %}", LB_SYNTAX, "loop"},
        {"{% for x in y %}{% set z %}{% continue %}{% endset %}{% endfor %}", LB_SYNTAX, "loop"},
        {"{% macro m(a=1, b) %}{% endmacro %}", LB_SYNTAX, "default"},
        {"{% macro m(a, a) %}{% endmacro %}", LB_SYNTAX, "same name"},
        {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", LB_SYNTAX, "many"},
        {"{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", LB_SYNTAX, "twice"},
        {"{{ x | replace('a') }}", LB_SYNTAX, "'new' is missing"},
        {"{{ x | upper(1) }}", LB_SYNTAX, "many"},
        {"{{ x | map }}", LB_SYNTAX, "map"},
        {"{{ x | select('equalto') }}", LB_SYNTAX, "arguments"},
        {"{{ raise_exception() }}", LB_SYNTAX, "arguments"},
        {"{{ range(1, 2, 3, 4) }}", LB_SYNTAX, "arguments"},
        {"{{ x[::::] }}", LB_SYNTAX, "slice"},
        {"{{ '\\ud83d' }}", LB_BAD_VALUE, "U+D83D"},
        {"{{ '\\U00110000' }}", LB_BAD_VALUE, "U+110000"},
        {"a\xFFz", LB_BAD_FORMAT, "byte 1"},
        {"{{ '\xED\xA0\x80' }}", LB_BAD_FORMAT, "byte 4"},
    };
    check_cases(cases, sizeof cases / sizeof cases[0]);
}

/* Work that no budget allows is found where it is constant. */
static void constant_bombs_are_refused(void **state) {
    (void)state;
    static const bad_case cases[] = {
        {"{% for i in range(1000000000) %}x{% endfor %}", LB_LIMIT, "range of 1000000000 items"},
        {"{{ range(100001) }}", LB_LIMIT, "100001"},
        {"{{ range(0, -9223372036854775807, -1) | list }}", LB_LIMIT, "range"},
        {"{{ '-' * 10000000000 }}", LB_LIMIT, "10000000000"},
        {"{{ 10000000000 * '-' }}", LB_LIMIT, "repeated"},
        {"{% for i in range(99999) %}{% for k in range(99999) %}x{% endfor %}{% endfor %}",
         LB_LIMIT, "passes"},
        {"{{ 99999999999999999999 }}", LB_LIMIT, "range"},
        {"{{ 1e999 }}", LB_LIMIT, "1e999"},
    };
    check_cases(cases, sizeof cases / sizeof cases[0]);
    accepted("{% for i in range(100000) %}x{% endfor %}{{ '-' * 80 }}{{ range(5, 0) }}{{ range(0, 9, 0) }}");
}

/* A text of n times `part` between `head` and `tail`. */
static char *repeated(const char *head, const char *part, size_t n, const char *tail) {
    size_t len = strlen(part);
    char *s = malloc(strlen(head) + n * len + strlen(tail) + 1);
    assert_non_null(s);
    char *p = s + sprintf(s, "%s", head);
    for (size_t i = 0; i < n; i++) {
        memcpy(p, part, len);
        p += len;
    }
    strcpy(p, tail);
    return s;
}

static void limits_are_errors(void **state) {
    (void)state;
    static const struct { const char *head, *part; size_t n; const char *tail; } cases[] = {
        {"{{ ", "(", 200, "1 }}"},         {"{{ ", "[", 200, " }}"},     {"{{ ", "{", 300, " }}"},
        {"{{ ", "not ", 5000, "x }}"},     {"{{ ", "-", 5000, "1 }}"},   {"{{ x", ".a", 5000,
                                                                          " }}"},
        {"{{ 1", " + 1", 5000, " }}"},     {"{{ x", "|trim", 500, " }}"}, {"{{ 1", " if 1 else 1",
                                                                           500, " }}"},
        {"", "{% if x %}", 200, ""},       {"", "{% for x in y %}", 200, ""},
        {"{{ x", "[0]", 1000, " }}"},      {"{{ x", " and x", 1000, " }}"},
        {"{{ a", "a", 100, " }}"},         {"", "{% macro m() %}", 300, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *src = repeated(cases[i].head, cases[i].part, cases[i].n, cases[i].tail);
        lb_err err = refused(src);
        if (err.code != LB_LIMIT && err.code != LB_SYNTAX) {
            fail_msg("%zu: %s", i, err.text);
        }
        free(src);
    }
    char *many = malloc(9000 * 32);
    assert_non_null(many);
    size_t n = 0;
    for (int i = 0; i < 9000; i++) {
        n += (size_t)sprintf(many + n, "{%% set a%d = 1 %%}", i);
    }
    assert_int_equal(refused(many).code, LB_LIMIT);
    free(many);
}

/* A large template is fine, a larger one an error. */
static void large_templates(void **state) {
    (void)state;
    char *big = repeated("{{ x }}", "0123456789abcde\n", 65536, "{{ y }}");
    accepted(big);
    free(big);
    accepted("");
    big = repeated("", "0123456789abcde\n", 131073, "");
    assert_int_equal(refused(big).code, LB_LIMIT);
    free(big);
}

static const char sample[] =
    "{%- macro m(a, b=[1]) -%}{{ a ~ b }}{%- endmacro -%}\n"
    "{% set ns = namespace(n=0) %}{# c #}{% raw %}{{{% endraw %}\n"
    "{% for k, v in x.items() if v is not none %}{% set ns.n = ns.n + 1 %}\n"
    "  {{ m(k, b=v | default('\\u00e9', true)) if loop.last else v[1:-1:2] }}{% else %}none{% endfor %}\n"
    "{% set t | upper %}{{ 'a' + y + \"b\" }}{% endset %}{% filter trim %} {{ t }} {% endfilter %}\n"
    "{% generation %}{{ x is divisibleby 3 and 1 < y <= 3 or not (z.q.w) }}{% endgeneration %}\n"
    "{{ {'a': (1, 2), 'b': [1.5, none, -1]} | tojson(indent=2) }}{{ '{}'.format(m(1)) }}";

static void cut_anywhere(void **state) {
    (void)state;
    for (size_t n = 0; n <= sizeof sample - 1; n++) {
        lb_arena arena;
        lb_text out;
        lb_err err = {0};
        char *exact = malloc(n == 0 ? 1 : n); /* the sanitizer sees a read behind the end */
        assert_non_null(exact);
        memcpy(exact, sample, n);
        lb_arena_init(&arena, "test", 16 << 20);
        bool ok = compile_n(exact, n, &arena, &out, &err);
        assert_true(ok || err.code != LB_OK);
        lb_arena_reset(&arena);
        free(exact);
    }
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    bool ok = false;
    int64_t n = 0;
    for (; !ok; n++) {
        lb_arena arena;
        lb_text out;
        lb_err err = {0};
        lb_arena_init(&arena, "test", 16 << 20);
        arena.fail_after = n;
        ok = compile_n(sample, sizeof sample - 1, &arena, &out, &err);
        if (!ok && err.code != LB_NO_MEMORY) {
            fail_msg("allocation %lld: code %d, %s", (long long)n, (int)err.code, err.text);
        }
        lb_arena_reset(&arena);
        assert_true(n < 100000);
    }
    assert_true(n > 50);
}

static void the_same_template_gives_the_same_bytes(void **state) {
    (void)state;
    lb_arena arena;
    lb_text a, b;
    lb_err err = {0};
    lb_arena_init(&arena, "test", 16 << 20);
    assert_true(compile_n(sample, sizeof sample - 1, &arena, &a, &err));
    assert_true(compile_n(sample, sizeof sample - 1, &arena, &b, &err));
    assert_int_equal(a.n_bytes, b.n_bytes);
    assert_memory_equal(a.data, b.data, a.n_bytes);
    lb_arena_reset(&arena);
}

/* Whatever bytes a text has, its literal is printable ASCII without trigraphs, and ends where it
 * should. */
static void literals_hold_anything(void **state) {
    (void)state;
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    char text[512];
    lb_arena_init(&arena, "test", 1 << 20);
    lb_text_init(&out, &arena);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i < 256 ? (char)i : "?/\"\\*\n9a"[i % 8];
    }
    lg_c_literal(&out, text, sizeof text);
    assert_true(lb_text_done(&out, &err));
    bool inside = false;
    for (size_t i = 0; i < out.n_bytes; i++) {
        unsigned char ch = (unsigned char)out.data[i];
        assert_true(ch >= 0x20 && ch < 0x7F);
        if (inside && ch == '\\') {
            i++;
        } else if (ch == '"') {
            inside = !inside;
        } else {
            assert_true(inside || ch == ' ');
        }
        assert_false(i > 0 && ch == '?' && out.data[i - 1] == '?');
    }
    assert_false(inside);
    lb_arena_reset(&arena);
}

/* Nothing of a hostile template stands in the C file outside of literals. */
static void hostile_text_stays_in_literals(void **state) {
    (void)state;
    static const char src[] =
        "{# */ evil(); /* #}*/ evil(); /* \"); evil(); (\" \\\n?\?/\" evil();\0evil()"
                              "{{ '*/ evil(); \"); evil(' }}{{ x['\"); evil(\"'] }}{{ {'*/evil()': 1} }}";
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    lb_arena_init(&arena, "test", 16 << 20);
    assert_true(compile_n(src, sizeof src - 1, &arena, &out, &err));
    bool inside = false;
    for (size_t i = 0; i < out.n_bytes; i++) {
        if (inside && out.data[i] == '\\') {
            i++;
        } else if (out.data[i] == '"') {
            inside = !inside;
        } else if (!inside) {
            assert_false(strncmp(out.data + i, "evil", 4) == 0);
        }
    }
    lb_arena_reset(&arena);
}

static void emitted_c_reads_like_the_template(void **state) {
    (void)state;
    static const char src[] = "{% for m in messages %}\n{{ '<' + m.role + '>' }}\n{% endfor %}";
    static const char want[] =
        "bool lagen_chat_render(rt_chat_ctx *c) {\n"
        "    struct globals globals = {0};\n"
        "    struct globals *g = &globals;\n"
        "    g->v_messages = rt_var(c, \"messages\");\n"
        "    c->line = 1; /* for */\n"
        "    for (rt_loop loop = rt_loop_over(c, g->v_messages); rt_loop_next(c, &loop);) {\n"
        "        rt_val v_m = loop.item;\n"
        "        c->line = 2;\n"
        "        rt_out(c, rt_cat(c, 3, (rt_val[]){RT_LIT(\"<\"), rt_attr(c, v_m, \"role\"), RT_LIT(\">\")}));\n"
        "        rt_out(c, RT_LIT(\"\\n\")); /* 2 */\n"
        "    }\n"
        "    return rt_finished(c);\n"
        "}\n";
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    lb_arena_init(&arena, "test", 16 << 20);
    assert_true(compile_n(src, sizeof src - 1, &arena, &out, &err));
    const char *body = strstr(out.data, "bool lagen_chat_render");
    assert_non_null(body);
    assert_string_equal(body, want);
    lb_arena_reset(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsupported_constructs_are_named),
        cmocka_unit_test(syntax_errors_name_their_place),
        named_test("D16 constant bombs are refused", constant_bombs_are_refused),
        cmocka_unit_test(limits_are_errors),
        named_test("D02 large and empty templates", large_templates),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(the_same_template_gives_the_same_bytes),
        cmocka_unit_test(literals_hold_anything),
        cmocka_unit_test(hostile_text_stays_in_literals),
        cmocka_unit_test(emitted_c_reads_like_the_template),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
