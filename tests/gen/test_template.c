/* test_template.c -- template: the Lua that comes out, line for line, and every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "template.h"

static const char head[] = "local module <const>, lg_line <const>, lg_insert <const>, "
                           "lg_join <const>, lg_env <const> = ... ";
static const char open_render[] =
    "function module.render(params) local params <const>, _ENV <const> = lg_env(params) "
    " local lg_o <const> = {}";

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

static const char *lua_of(const char *text, bool *is_template) {
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    bool ok = lg_template_to_lua("t.lua", text, strlen(text), &t, is_template, &e);
    if (!ok) {
        print_message("# %s\n", e.text);
    }
    assert_true(ok);
    return t.data;
}

/* The translation of one text line in a plain section. */
static void check_line(const char *line, const char *lua) {
    char text[300];
    char want[600];
    bool is_template = false;
    snprintf(text, sizeof text, "%%%%template\n%s\n", line);
    snprintf(want, sizeof want, "%s%s\n%s\nreturn lg_join(lg_o) end ", head, open_render, lua);
    assert_string_equal(lua_of(text, &is_template), want);
    assert_true(is_template);
}

static void plain_lua_stays(void **state) {
    (void)state;
    bool is_template = true;
    static const char lua[] = "-- x\nlocal a = \"${b}\" % 3\n  % not a directive here\nreturn {}\n";
    assert_string_equal(lua_of(lua, &is_template), lua);
    assert_false(is_template);
    assert_string_equal(lua_of("", &is_template), "");
    assert_false(is_template);
    assert_string_equal(lua_of("%%template_not\n" + 2, &is_template), "template_not\n");
}

static void text_lines_become_calls(void **state) {
    (void)state;
    check_line("", "lg_line(lg_o, \"\")");
    check_line("  int x = 1; // 100 %", "lg_line(lg_o, \"  int x = 1; // 100 %\")");
    check_line("\"q\\n\" $ {a} $", "lg_line(lg_o, \"\\\"q\\\\n\\\" $ {a} $\")");
    check_line("x[${i}] = ${ a + 1 };",
               "lg_line(lg_o, \"x[\", (i), \"] = \", (a + 1), \";\")");
    check_line("${a}${b}", "lg_line(lg_o, \"\", (a), \"\", (b), \"\")");
    check_line("\t%d", "d");
    check_line("  % for i = 1, n do", " for i = 1, n do");
    check_line("%", "");
    check_line("  ${body}", "lg_insert(lg_o, \"  \", (body))");
    check_line("${body}  ", "lg_insert(lg_o, \"\", (body))");
    check_line("  ${f({1, {2}})}", "lg_insert(lg_o, \"  \", (f({1, {2}})))");
    check_line("${f(\"}\")} // ${g('\\'}')}",
               "lg_line(lg_o, \"\", (f(\"}\")), \" // \", (g('\\'}')), \"\")");
    check_line("\xE2\x82\xAC", "lg_line(lg_o, \"\xE2\x82\xAC\")");
}

static void sections_keep_lines(void **state) {
    (void)state;
    bool is_template = false;
    char want[1000];
    snprintf(want, sizeof want,
             "%slocal k = 1\n"
             "function module.load(a, b) local lg_o <const> = {}\n"
             "lg_line(lg_o, \"x\")\n"
             "return lg_join(lg_o) end \n"
             "local m = 2\n"
             "%s\n"
             "lg_line(lg_o, \"y\")\n"
             "return lg_join(lg_o) end ",
             head, open_render);
    assert_string_equal(lua_of("local k = 1\n%%template load(a, b)\nx\n%%lua\nlocal m = 2\n"
                               "%%template\ny", &is_template), want);
}

static void check_refused(const char *text, size_t n, const char *message) {
    lb_text t;
    lb_err e = {0};
    bool is_template = true;
    lb_text_init(&t, &arena);
    assert_false(lg_template_to_lua("t.lua", text, n, &t, &is_template, &e));
    assert_string_equal(e.text, message);
    assert_int_equal(e.code, LB_SYNTAX);
    assert_true(is_template);
}

static void faults_name_their_line(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        {"%%template\na\n${b\n", "t.lua:3: '${' without its '}' on the same line"},
        {"%%template\n${{}\n", "t.lua:2: '${' without its '}' on the same line"},
        {"%%template\n${\"}\n", "t.lua:2: '${' without its '}' on the same line"},
        {"%%template\n${\"\\", "t.lua:2: '${' without its '}' on the same line"},
        {"%%template\n${}\n", "t.lua:2: empty '${}'"},
        {"%%template\n x ${ \t}\n", "t.lua:2: empty '${}'"},
        {"%%luax\n", "t.lua:1: a line that starts with '%%' must be '%%template' or '%%lua'"},
        {"%%template\n\n%%end", "t.lua:3: a line that starts with '%%' must be '%%template' or "
                                "'%%lua'"},
        {"%%template 1x()\n", "t.lua:1: expected '%%template' or '%%template name(argument, ...)'"},
        {"%%template x\n", "t.lua:1: expected '%%template' or '%%template name(argument, ...)'"},
        {"%%template x(\n", "t.lua:1: expected '%%template' or '%%template name(argument, ...)'"},
        {"%%template x() f()\n",
         "t.lua:1: expected '%%template' or '%%template name(argument, ...)'"},
        {"%%template render(a)\n", "t.lua:1: 'render' is the name of the plain %%template"},
        {"a\r\nb\n", "t.lua:1: carriage return: lines end in a newline only"},
        {"\n\x01\n", "t.lua:2: control character"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_refused(bad[i].text, strlen(bad[i].text), bad[i].message);
    }
    check_refused("%%template\na\0b\n", 15, "t.lua:2: control character");
}

/* No prefix of a template may read past its end (the sanitizers watch) or lose a line. */
static void truncated_anywhere(void **state) {
    (void)state;
    static const char text[] = "local a = {}\n%%template f(x, y)\n  ${g({'}'}, \"\\\"\")} $ ${\n"
                               "%%lua\n%%template\n% if a then\n\t${a}\n% end\n";
    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = test_malloc(n == 0 ? 1 : n);
        memcpy(copy, text, n);
        lb_text t;
        lb_text_init(&t, &arena);
        bool is_template = false;
        lb_err e = {0};
        bool ok = lg_template_to_lua("t.lua", copy, n, &t, &is_template, &e);
        assert_true(ok || e.code == LB_SYNTAX);
        test_free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lua_stays),       cmocka_unit_test(text_lines_become_calls),
        cmocka_unit_test(sections_keep_lines),   cmocka_unit_test(faults_name_their_line),
        cmocka_unit_test(truncated_anywhere),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("template", tests, setup, teardown);
}
