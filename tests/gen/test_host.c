/* test_host.c -- host: values in and out, rendering, the sandbox, bounds, failing allocations, and
 * equal bytes from 20 processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/folder.h"
#include "host.h"
#include "value.h"
#include "value_text.h"

static lb_arena arena;
static folder dir;
static lg_host *host;
static const char *program;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "test", 64 << 20);
    return folder_open(&dir) && lg_host_open(dir.path, NULL, &arena, &host, NULL) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    lg_host_close(host);
    host = NULL;
    lb_arena_reset(&arena);
    return folder_close(&dir) ? 0 : -1;
}

/* {n = 3, name = "q", flag = true, off = nil, half = 0.5, dims = {K = 576}, list = {5, 6},
 *  none = {}} */
static lg_value *params(void) {
    lg_builder b;
    lg_build_init(&b, &arena);
    lg_value *p = lg_build_map(&b);
    lg_value *dims = lg_build_map(&b);
    lg_value *list = lg_build_array(&b);
    lg_build_set_int(&b, p, "n", 3);
    lg_build_set_string(&b, p, "name", "q");
    lg_build_set_bool(&b, p, "flag", true);
    lg_build_set(&b, p, "off", lg_build_nil(&b));
    lg_build_set_double(&b, p, "half", 0.5);
    lg_build_set_int(&b, dims, "K", 576);
    lg_build_set(&b, p, "dims", dims);
    lg_build_push(&b, list, lg_build_int(&b, 5));
    lg_build_push(&b, list, lg_build_int(&b, 6));
    lg_build_set(&b, p, "list", list);
    lg_build_set(&b, p, "none", lg_build_map(&b));
    assert_true(lg_build_done(&b, NULL));
    return p;
}

static const char *dump(const lg_value *v) {
    lb_text t;
    lb_text_init(&t, &arena);
    lg_value_dump(v, &t);
    assert_true(lb_text_done(&t, NULL));
    return t.data;
}

static void must(bool ok, const lb_err *e) {
    if (!ok) {
        print_message("# %s\n", e->text);
    }
    assert_true(ok);
}

/* Writes a file of its own name each time, so that nothing is cached. */
static const char *fresh(const char *text) {
    static int number = 0;
    char *name = lb_format(&arena, NULL, "f%d.lua", number++);
    assert_true(folder_put(&dir, name, text));
    return name;
}

/* The text that a template with this body gives for params(). */
static const char *render(const char *text) {
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    must(lg_host_render(host, fresh(text), params(), &t, &e), &e);
    must(lb_text_done(&t, &e), &e);
    return t.data;
}

/* `message` with `name` in the place of its first "%s"; nothing else in it is special. */
static const char *with_name(const char *message, const char *name) {
    const char *at = strstr(message, "%s");
    assert_non_null(at);
    return lb_format(&arena, NULL, "%.*s%s%s", (int)(at - message), message, name, at + 2);
}

static void render_fails(const char *text, lb_code code, const char *message) {
    lb_text t;
    lb_err e = {0};
    const char *name = fresh(text);
    lb_text_init(&t, &arena);
    assert_false(lg_host_render(host, name, params(), &t, &e));
    assert_string_equal(e.text, with_name(message, name));
    assert_int_equal(e.code, code);
    assert_int_equal(t.n_bytes, 0);
}

/* The dump of what `function(p)` of this module returns for params(). */
static const char *call(const char *text) {
    lg_value *out = NULL;
    lb_err e = {0};
    must(lg_host_call(host, fresh(text), "f", params(), &arena, &out, &e), &e);
    return dump(out);
}

/* A module whose f(p) runs `body`; it must fail with this code and text behind "...:1: ". */
static void body_fails(const char *body, lb_code code, const char *message) {
    lg_value *out = NULL;
    lb_err e = {0};
    const char *name = fresh(lb_format(&arena, NULL, "return { f = function(p) %s end }", body));
    assert_false(lg_host_call(host, name, "f", params(), &arena, &out, &e));
    assert_null(out);
    const char *want = lb_format(&arena, NULL, "templates/%s:1: %s", name, message);
    if (strcmp(e.text, want) != 0) {
        print_message("# %s\n", body);
    }
    assert_string_equal(e.text, want);
    assert_int_equal(e.code, code);
}

static void values_go_in_and_come_out(void **state) {
    (void)state;
    lg_value *out = NULL;
    lb_err e = {0};
    const char *same = fresh("return function(p) return p end");
    must(lg_host_call(host, same, NULL, params(), &arena, &out, &e), &e);
    assert_true(lg_value_equal(out, params()));
    assert_string_equal(out->u.map.entries[0].key->u.string.bytes, "n");
    assert_string_equal(call("return { f = function(p) return {"
                             "z = p.n // 2, a = p.half * 2, s = p.name .. '\\0x', t = p.flag,"
                             "[\"k k\"] = { p.list[2], p.dims, {} }, len = #p.list,"
                             "none = #p.none, big = math.mininteger } end }"),
                        "{\n"
                        "  \"a\": 0x1p+0 (1),\n"
                        "  \"big\": -9223372036854775808,\n"
                        "  \"k k\": [\n"
                        "    6,\n"
                        "    {\n"
                        "      \"K\": 576\n"
                        "    },\n"
                        "    []\n"
                        "  ],\n"
                        "  \"len\": 2,\n"
                        "  \"none\": 0,\n"
                        "  \"s\": \"q\\x00x\",\n"
                        "  \"t\": true,\n"
                        "  \"z\": 1\n"
                        "}\n");
    must(lg_host_call(host, fresh("return { k = { 1, 2 } }"), NULL, NULL, &arena, &out, &e), &e);
    assert_string_equal(dump(out), "{\n  \"k\": [1, 2]\n}\n");
    assert_string_equal(call("return { f = function(p) end }"), "nil\n");
    assert_string_equal(call("return { f = function(p) return p.dims == p.dims and"
                             " p.dims ~= p.list and type(p) == 'table' end }"), "true\n");
}

static void map_keys_come_sorted(void **state) {
    (void)state;
    lg_value *out = NULL;
    lb_err e = {0};
    const char *name = fresh("return function() return { pear = 1, fig = 2, apple = 3, plum = 4,"
                             " kiwi = 5, date = 6, lime = 7, lemon = 8, nut = 9, [\"\"] = 0 } end");
    must(lg_host_call(host, name, NULL, NULL, &arena, &out, &e), &e);
    for (size_t i = 1; i < out->u.map.n; i++) {
        assert_true(strcmp(out->u.map.entries[i - 1].key->u.string.bytes,
                           out->u.map.entries[i].key->u.string.bytes) < 0);
    }
}

/* Messages from conversion have the path and no line: the value has left its line behind. */
static void result_fails(const char *body, lb_code code, const char *message) {
    lg_value *out = NULL;
    lb_err e = {0};
    const char *name = fresh(lb_format(&arena, NULL, "return { f = function(p) %s end }", body));
    assert_false(lg_host_call(host, name, "f", NULL, &arena, &out, &e));
    assert_string_equal(e.text, lb_format(&arena, NULL, "templates/%s:f%s", name, message));
    assert_int_equal(e.code, code);
}

static void results_are_refused_with_their_path(void **state) {
    (void)state;
    static const char shape[] = ": neither an array (keys 1..n without gaps) nor a map "
                                "(string keys only)";
    char want[200];
    result_fails("return { a = { 7, ipairs } }", LB_BAD_TYPE, ".a[2]: a function cannot leave Lua");
    result_fails("local t = {}; t.x = { t }; return t", LB_BAD_TYPE, ".x[1]: a cycle");
    snprintf(want, sizeof want, "%s", shape);
    result_fails("return { 1, nil, 3 }", LB_BAD_TYPE, want);
    result_fails("return { [0] = 1 }", LB_BAD_TYPE, want);
    snprintf(want, sizeof want, ".m%s", shape);
    result_fails("return { m = { 1, x = 2 } }", LB_BAD_TYPE, want);
    lg_value *out = NULL;
    lb_err e = {0};
    const char *name = fresh("return function() return { [1.5] = 1 } end");
    assert_false(lg_host_call(host, name, NULL, NULL, &arena, &out, &e));
    assert_string_equal(e.text, "a table key is a number: only strings and integers have an order");
    name = fresh("return function() local t = {} for i = 1, 70 do t = { t } end return t end");
    assert_false(lg_host_call(host, name, NULL, NULL, &arena, &out, &e));
    assert_int_equal(e.code, LB_LIMIT);
    lb_arena small;
    lb_arena_init(&small, "small", 100000);
    name = fresh("return function() local t = { 1 }\n"
                 "for i = 1, 40 do t = { t, t } end return t end");
    assert_false(lg_host_call(host, name, NULL, NULL, &small, &out, &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
    lb_arena_reset(&small);
}

static void templates_render(void **state) {
    (void)state;
    assert_string_equal(render("local function twice(x) return 2 * x end\n"
                               "local text = 'a = 1;\\n\\n  b = 2;\\n'\n"
                               "%%template\n"
                               "/* ${c_comment(name)} */\n"
                               "% for i = 0, n - 1 do\n"
                               "    % if i ~= 1 then\n"
                               "    x[${i}] = ${twice(i)} * ${dims.K} + ${params.list[1]};\n"
                               "    % end\n"
                               "% end\n"
                               "{\n"
                               "    ${text}\n"
                               "    ${''}\n"
                               "}\n"),
                        "/* q */\n"
                        "    x[0] = 0 * 576 + 5;\n"
                        "    x[2] = 4 * 576 + 5;\n"
                        "{\n"
                        "    a = 1;\n"
                        "\n"
                        "      b = 2;\n"
                        "}\n");
    assert_string_equal(render("%%template load(d, i)\n"
                               "${d} = w[${i}];\n"
                               "${d} &= 15;\n"
                               "%%lua\n"
                               "local m = module\n"
                               "%%template\n"
                               "  % for i = 0, 1 do\n"
                               "  ${m.load('q' .. i, i)}\n"
                               "  % end\n"),
                        "  q0 = w[0];\n  q0 &= 15;\n  q1 = w[1];\n  q1 &= 15;\n");
    assert_string_equal(render("%%template\n% if has(params, 'off') then\nx\n% end\n"
                               "% if off == nil and not has(params, 'zzz') then\ny\n% end\n"
                               "${get(params, 'zzz', 4)}\n"),
                        "y\n4\n");
    assert_string_equal(render("%%template\n"), "");
}

static void files_use_each_other(void **state) {
    (void)state;
    assert_true(folder_put(&dir, "lib/name.lua", "return { sym = function(p) return 'k_' .. p end,"
                                                 " list = { 1, 2 } }\n"));
    assert_true(folder_put(&dir, "kernel/part.c.lua", "%%template\npart ${x};\npart ${y};\n"));
    assert_string_equal(render("local lib = import('lib/name.lua')\n%%template\n"
                               "void ${lib.sym(name)}(void) {\n"
                               "    ${include('kernel/part.c.lua', { x = 1, y = n })}\n"
                               "}\n"),
                        "void k_q(void) {\n    part 1;\n    part 3;\n}\n");
    size_t n = 0;
    const char *const *files = lg_host_files(host, &n);
    bool seen = false;
    for (size_t i = 0; i < n; i++) {
        seen = seen || strcmp(files[i], "kernel/part.c.lua") == 0;
        assert_true(i == 0 || strcmp(files[i - 1], files[i]) < 0);
    }
    assert_true(seen);
    render_fails("local lib = import('lib/name.lua')\n%%template\n${lib.sim(1)}\n", LB_BAD_VALUE,
                 "templates/%s:3: lib/name.lua has no 'sim'");
    render_fails("local lib = import('lib/name.lua')\nlib.x = 1\n%%template\n", LB_BAD_VALUE,
                 "templates/%s:2: assignment to 'x' of a read-only table");
    assert_true(folder_put(&dir, "a.lua", "import('b.lua')\nreturn {}\n"));
    assert_true(folder_put(&dir, "b.lua", "\nimport('a.lua')\nreturn {}\n"));
    lb_err e = {0};
    for (int again = 0; again < 2; again++) {
        assert_false(lg_host_load(host, "a.lua", &e));
        assert_string_equal(e.text, "templates/b.lua:2: import of 'a.lua' goes in a circle "
                                    "(called from templates/a.lua:1)");
    }
    assert_true(folder_put(&dir, "lib/check.lua", "return function(k)\n"
                                                  "  assert(k > 600, 'K is too small')\nend\n"));
    render_fails("local check = import('lib/check.lua')\n%%template\n\n% check(dims.K)\n",
                 LB_BAD_VALUE,
                 "templates/lib/check.lua:2: K is too small (called from templates/%s:4)");
}

static void template_errors_have_file_and_line(void **state) {
    (void)state;
    render_fails("%%template\nx\ny ${HALF}\n", LB_BAD_VALUE,
                 "templates/%s:3: undefined name 'HALF'");
    render_fails("%%template\n% local a = HALF\n", LB_BAD_VALUE,
                 "templates/%s:2: undefined name 'HALF'");
    render_fails("%%template\n${params.HALF}\n", LB_BAD_VALUE, "templates/%s:2: no 'HALF' among: "
                 "n, name, flag, off, half, dims, list, none");
    render_fails("%%template\n${dims.k}\n", LB_BAD_VALUE, "templates/%s:2: no 'k' among: K");
    render_fails("%%template\n\n${list.k}\n", LB_BAD_VALUE,
                 "templates/%s:3: no 'k' among: array items");
    render_fails("%%template\n${n} ${half}\n", LB_BAD_VALUE,
                 "templates/%s:2: ${} number 2 is the float 0.5: wrap it in hexfloat(), or use "
                 "exact_div() or // if it should be an integer");
    render_fails("%%template\n${64 / 2}\n", LB_BAD_VALUE,
                 "templates/%s:2: ${} is the float 32: wrap it in hexfloat(), or use "
                 "exact_div() or // if it should be an integer");
    render_fails("%%template\nx ${off}\n", LB_BAD_VALUE,
                 "templates/%s:2: ${} number 1 is a nil, not a string or an integer");
    render_fails("%%template\nx ${flag}\n", LB_BAD_VALUE,
                 "templates/%s:2: ${} number 1 is a boolean, not a string or an integer");
    render_fails("%%template\nx ${'a\\nb'}\n", LB_BAD_VALUE,
                 "templates/%s:2: ${} number 1 has several lines: it must stand alone on its line");
    render_fails("\n%%template\n% x = 1\n", LB_BAD_VALUE,
                 "templates/%s:3: assignment to the global name 'x': write 'local x'");
    render_fails("x = 1\n%%template\n", LB_BAD_VALUE,
                 "templates/%s:1: assignment to the global name 'x': write 'local x'");
    render_fails("function f() end\n%%template\n", LB_BAD_VALUE,
                 "templates/%s:1: assignment to the global name 'f': write 'local f'");
    render_fails("local k = n\n%%template\n", LB_BAD_VALUE, "templates/%s:1: undefined name 'n'");
    render_fails("%%template\n% params.n = 4\n", LB_BAD_VALUE,
                 "templates/%s:2: assignment to 'n' of a read-only table");
    render_fails("%%template\n% params.dims.K = 4\n", LB_BAD_VALUE,
                 "templates/%s:2: assignment to 'K' of a read-only table");
    render_fails("%%template\n% fail('no ' .. name)\n", LB_BAD_VALUE, "templates/%s:2: no q");
    render_fails("%%template\n% return 5\n", LB_SYNTAX,
                 "templates/%s:3: 'end' expected (to close 'function' at line 1) near 'return'");
    render_fails("%%template\n% do return end\n", LB_BAD_VALUE,
                 "templates/%s: a '% return' left the text");
    render_fails("return {}\n", LB_MISSING, "%s has no plain %%template section");
    render_fails("%%template f()\nx\n", LB_MISSING, "%s has no plain %%template section");
    render_fails("%%template\nx\n%%lua\nreturn 1\n", LB_BAD_VALUE,
                 "%s: a file with %%template fills 'module' and must not return a value");
    render_fails("%%template\n% if\n", LB_SYNTAX,
                 "templates/%s:3: unexpected symbol near 'return'");
    lb_err e = {0};
    assert_false(lg_host_load(host, fresh("return 5\n"), &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_false(lg_host_load(host, fresh("\27Lua"), &e));
    assert_int_equal(e.code, LB_SYNTAX);
}

static void the_sandbox_holds(void **state) {
    (void)state;
    static const char *const absent[] = {
        "pairs",        "next",   "io",      "os",     "package", "require",   "debug",
        "load",         "dofile", "pcall",   "xpcall", "error",   "loadstring", "loadfile",
        "collectgarbage", "print", "rawget",  "rawset", "rawlen",  "rawequal",  "setmetatable",
        "getmetatable", "coroutine", "_G",   "_VERSION", "warn",  "module",    "lg_line"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        body_fails(lb_format(&arena, NULL, "return %s", absent[i]), LB_BAD_VALUE,
                   lb_format(&arena, NULL, "undefined name '%s'", absent[i]));
    }
    body_fails("return string.dump", LB_BAD_VALUE, "string has no 'dump'");
    body_fails("return math.random", LB_BAD_VALUE, "math has no 'random'");
    body_fails("return math.sin", LB_BAD_VALUE, "math has no 'sin'");
    body_fails("return ('').dump(p)", LB_BAD_VALUE,
               "attempt to call a nil value (field 'dump')");
    body_fails("string.sub = 1", LB_BAD_VALUE, "assignment to 'sub' of a read-only table");
    body_fails("math.x = 1", LB_BAD_VALUE, "assignment to 'x' of a read-only table");
    body_fails("_ENV.x = 1", LB_BAD_VALUE, "assignment to the global name 'x': write 'local x'");
    body_fails("return _ENV.load", LB_BAD_VALUE, "undefined name 'load'");
    body_fails("return p.n + '1'", LB_BAD_VALUE,
               "attempt to perform arithmetic on a string value (constant '1')");
    body_fails("return tostring(p)", LB_BAD_VALUE,
               "tostring: argument is a userdata, not a string or an integer");
    body_fails("return tostring({})", LB_BAD_VALUE,
               "tostring: argument is a table, not a string or an integer");
    body_fails("return ('%s'):format({})", LB_BAD_VALUE, "format: argument 2 is a table");
    body_fails("return ('%-5p'):format('x')", LB_BAD_VALUE, "format: %p writes an address");
    body_fails("return ('%%%p'):format('x')", LB_BAD_VALUE, "format: %p writes an address");
    body_fails("for k in sorted_pairs({ [true] = 1 }) do end", LB_BAD_TYPE,
               "a table key is a boolean: only strings and integers have an order");
    body_fails("table.sort(p.list)", LB_BAD_VALUE,
               "bad argument #1 to 'sort' (table expected, got lg.view)");
    body_fails("table.insert(p.list, 1)", LB_BAD_VALUE,
               "assignment to '3' of a read-only table");
    body_fails("fail({})", LB_BAD_VALUE,
               "bad argument #1 to 'fail' (string expected, got table)");
}

static void file_names_stay_below_the_root(void **state) {
    (void)state;
    static const char *const bad[] = {"../x.lua",  "/etc/x.lua", "a/../../x.lua", "x",  "",
                                      "a//b.lua",  "./x.lua",    "x.lua/",        ".lua/..",
                                      "a\\\\b.lua", "x.lua\\0.lua", "a b.lua", "~/x.lua", ".lua"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lb_err e = {0};
        assert_false(lg_host_load(host, bad[i], &e));
        assert_int_equal(e.code, LB_BAD_VALUE);
        assert_non_null(strstr(e.text, "is not the name of a file below templates/"));
    }
    char long_name[300];
    memset(long_name, 'a', sizeof long_name);
    memcpy(long_name + sizeof long_name - 5, ".lua", 5);
    lb_err e = {0};
    assert_false(lg_host_load(host, long_name, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    body_fails("import('../x.lua')", LB_BAD_VALUE,
               "'../x.lua' is not the name of a file below templates/ that ends in .lua");
    assert_false(lg_host_load(host, "absent.lua", &e));
    assert_int_equal(e.code, LB_IO);
    assert_true(folder_put(&dir, "d.lua/x.lua", "return {}\n"));
    assert_false(lg_host_load(host, "d.lua", &e));
    assert_int_equal(e.code, LB_IO);
    char *big = lb_alloc(&arena, (2 << 20) + 1, NULL);
    memset(big, '\n', 2 << 20);
    assert_false(lg_host_load(host, fresh(big), &e));
    assert_int_equal(e.code, LB_LIMIT);
}

static void bounds_hold(void **state) {
    (void)state;
    lg_host_limits limits = {.memory_bytes = 4 << 20, .instructions = 100000};
    lg_host *h = NULL;
    lb_err e = {0};
    lg_value *out = NULL;
    must(lg_host_open(dir.path, &limits, &arena, &h, &e), &e);
    const char *spin = fresh("return function()\n  while true do end\nend\n");
    const char *fine = fresh("return function() return 7 end\n");
    static const char *const hungry[] = {
        "return function() local t = {} for i = 1, 1 << 40 do t[i] = { i } end end",
        "return function() local s = 'x' while true do s = s .. s end end",
        "return function() return ('x'):rep(1 << 40) end",
        "return function() return #('x'):rep(1 << 24) end",
        "return function() local function f() return { f() } end return f() end",
    };
    for (int i = 0; i < 3; i++) {
        assert_false(lg_host_call(h, spin, NULL, NULL, &arena, &out, &e));
        assert_int_equal(e.code, LB_LIMIT);
        assert_string_equal(e.text, with_name("templates/%s:2: more than 100000 Lua instructions "
                                              "in one call", spin));
        for (size_t k = 0; k < sizeof hungry / sizeof *hungry; k++) {
            assert_false(lg_host_call(h, fresh(hungry[k]), NULL, NULL, &arena, &out, &e));
            assert_true(e.code == LB_NO_MEMORY || e.code == LB_LIMIT || e.code == LB_BAD_VALUE);
            assert_true(lg_host_memory(h) <= limits.memory_bytes);
        }
        must(lg_host_call(h, fine, NULL, NULL, &arena, &out, &e), &e);
        assert_int_equal(out->u.integer, 7);
    }
    lg_host_close(h);
    limits.memory_bytes = 1000;
    assert_false(lg_host_open(dir.path, &limits, &arena, &h, &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
}

static void parameters_of_an_earlier_call_are_dead(void **state) {
    (void)state;
    lg_value *out = NULL;
    lb_err e = {0};
    const char *name = fresh("local kept\nreturn function(p)\n  if kept then return kept.n end\n"
                             "  kept = p\nend\n");
    must(lg_host_call(host, name, NULL, params(), &arena, &out, &e), &e);
    assert_false(lg_host_call(host, name, NULL, params(), &arena, &out, &e));
    assert_string_equal(e.text, with_name("templates/%s:3: a parameter table of an earlier call "
                                          "was kept", name));
}

static void functions_are_found_or_missed(void **state) {
    (void)state;
    lg_value *out = NULL;
    lb_err e = {0};
    bool found = true;
    const char *name = fresh("return { f = function() end, g = 1 }\n");
    assert_true(lg_host_has(host, name, "f", &found, &e) && found);
    assert_true(lg_host_has(host, name, "g", &found, &e) && !found);
    assert_true(lg_host_has(host, name, "h", &found, &e) && !found);
    assert_false(lg_host_has(host, "absent.lua", "h", &found, &e));
    assert_false(lg_host_call(host, name, "g", NULL, &arena, &out, &e));
    assert_int_equal(e.code, LB_MISSING);
    assert_string_equal(e.text, with_name("templates/%s has no function 'g'", name));
}

static const char *one(const char *expression) {
    return call(lb_format(&arena, NULL, "return { f = function(p) return %s end }", expression));
}

static void helpers_compute(void **state) {
    (void)state;
    assert_string_equal(one("ceil_div(7, 2)"), "4\n");
    assert_string_equal(one("ceil_div(math.maxinteger, 2)"), "4611686018427387904\n");
    assert_string_equal(one("exact_div(64, 2)"), "32\n");
    assert_string_equal(one("round_up(33, 32)"), "64\n");
    assert_string_equal(one("mul(3, 4, 5) + add(1, 2) + mul() + add()"), "64\n");
    body_fails("return exact_div(65, 2)", LB_BAD_VALUE, "65 is not a multiple of 2");
    body_fails("return ceil_div(65, 0)", LB_BAD_VALUE, "expected integers a >= 0 and b > 0");
    body_fails("return ceil_div(-1, 2)", LB_BAD_VALUE, "expected integers a >= 0 and b > 0");
    body_fails("return ceil_div(4.0, 2)", LB_BAD_VALUE, "expected integers a >= 0 and b > 0");
    body_fails("return round_up(math.maxinteger, 2)", LB_OVERFLOW,
               "round_up(9223372036854775807, 2) overflows");
    body_fails("return mul(math.maxinteger, 2)", LB_OVERFLOW,
               "mul: argument 2 overflows or is no integer");
    body_fails("return add(1, 0.5)", LB_BAD_VALUE,
               "bad argument #2 to 'add' (number has no integer representation)");
    assert_string_equal(one("join({1, 'b', 3}, ', ')"), "\"1, b, 3\"\n");
    assert_string_equal(one("table.concat(p.list, '+')"), "\"5+6\"\n");
    assert_string_equal(one("join({})"), "\"\"\n");
    body_fails("return join({1, {}})", LB_BAD_VALUE,
               "join: item 2 is a table, not a string or an integer");
    assert_string_equal(one("indent('a\\n\\nb', 2)"), "\"  a\\n\\n  b\"\n");
    assert_string_equal(one("get(p, 'off', 9) + get(p, 'n', 9) + get({}, 1, 2)"), "14\n");
    assert_string_equal(one("tostring(nil) .. tostring(true) .. tostring(12) .. tostring('x')"),
                        "\"niltrue12x\"\n");
    assert_string_equal(one("('%5.2f|%-4d|%s|%%'):format(0.5, 3, 'x')"), "\" 0.50|3   |x|%\"\n");
}

static void floats_are_exact(void **state) {
    (void)state;
    assert_string_equal(one("hexfloat(3)"), "\"0x1.8p+1f\"\n");
    assert_string_equal(one("hexfloat(0.1)"), "\"0x1.99999ap-4f\"\n");
    assert_string_equal(one("hexfloat(0.1, 'f64')"), "\"0x1.999999999999ap-4\"\n");
    assert_string_equal(one("hexfloat(-0.5)"), "\"(-0x1p-1f)\"\n");
    assert_string_equal(one("hexfloat(0)"), "\"0x0p+0f\"\n");
    assert_string_equal(one("hexfloat(-0.0)"), "\"(-0x0p+0f)\"\n");
    assert_string_equal(one("hexfloat_note(3)"), "\"0x1.8p+1f /* 3 */\"\n");
    assert_string_equal(one("hexfloat_note(-3, 'f64')"), "\"(-0x1.8p+1 /* -3 */)\"\n");
    body_fails("return hexfloat(1e39)", LB_BAD_VALUE, "hexfloat: not finite in this type");
    body_fails("return hexfloat(math.huge, 'f64')", LB_BAD_VALUE,
               "hexfloat: not finite in this type");
    body_fails("return hexfloat('1')", LB_BAD_VALUE,
               "bad argument #1 to 'hexfloat' (number expected, got string)");
}

static void order_is_total(void **state) {
    (void)state;
    assert_string_equal(call("return { f = function(p) local t = {}\n"
                             "for k, v in sorted_pairs({ b = 1, a = 2, [3] = 3, [-1] = 4, B = 5,"
                             " ['a\\0'] = 6 }) do t[#t + 1] = k t[#t + 1] = v end\n"
                             "for k, v in sorted_pairs(p.dims) do t[#t + 1] = k .. v end\n"
                             "for k, v in sorted_pairs(p.list) do t[#t + 1] = k .. ':' .. v end\n"
                             "return join(t, ' ') end }"),
                        "\"-1 4 3 3 B 5 a 2 a\\x00 6 b 1 K576 1:5 2:6\"\n");
    assert_string_equal(call("return { f = function(p) local t = {}\n"
                             "for i = 1, 1000 do t[i] = { key = i * 7919 % 10, at = i } end\n"
                             "table.sort(t, function(a, b) return a.key < b.key end)\n"
                             "for i = 2, #t do local a, b = t[i - 1], t[i]\n"
                             "assert(a.key < b.key or (a.key == b.key and a.at < b.at)) end\n"
                             "local s = { 'b', 'a', 'C', '' }\ntable.sort(s)\n"
                             "local n = { 3, 1, 2 } table.sort(n)\n"
                             "table.sort({}) table.sort({ 1 })\n"
                             "return join(s, ',') .. join(n, ',') .. #t end }"),
                        "\",C,a,b1,2,31000\"\n");
}

/* What the C compiler reads from c_string must be the bytes that went in; octal escapes of three
 * digits and no trigraphs are checked on the text. */
static void c_texts_cannot_break_out(void **state) {
    (void)state;
    assert_string_equal(render("%%template\n"
                               "${c_string('a\"\\\\\\n\\0' .. '7?\?/\\255\xC3\xA9')}\n"),
                        "\"a\\\"\\\\\\012\\0007?\\?/\\377\\303\\251\"\n");
    assert_string_equal(render("%%template\n"
                               "/* ${c_comment('a */ b /* c ?\?/ \\n "
                               "// \xE2\x80\xAE d\\\\')} */\n"),
                        "/* a * / b / * c ? ?/   // ? d\\. */\n");
    assert_string_equal(render("%%template\n/*${c_comment('**//**//*/')}*/\n"),
                        "/*** // ** // * /.*/\n");
}

static const char busy_template[] =
    "local words = {}\n"
    "for i = 1, 200 do words['w' .. i * 7919 % 1000] = { i, { x = i } } end\n"
    "function module.f(p) return words end\n"
    "%%template\n"
    "% local lib = import('lib/busy.lua')\n"
    "% for k, v in sorted_pairs(params) do\n"
    "${k} ${type(v)}\n"
    "% end\n"
    "% for k, v in sorted_pairs(words) do\n"
    "    ${c_string(k)}: ${v[1]}, ${hexfloat_note(v[1] / 7)},\n"
    "% end\n"
    "% local t = lib.list()\n"
    "% table.sort(t, function(a, b) return a.k < b.k end)\n"
    "% for _, e in ipairs(t) do\n"
    "${e.k} ${e.i}\n"
    "% end\n";
static const char busy_lib[] =
    "return { list = function() local t = {} for i = 1, 500 do"
    " t[i] = { k = i * 31 % 17, i = i } end return t end }\n";

/* Renders the busy template and dumps what its f gives, into `t`. */
static bool busy(const char *root, const lg_host_limits *limits, lb_arena *a, lb_text *t,
                 lb_err *e) {
    lg_host *h = NULL;
    lg_value *out = NULL;
    if (!lg_host_open(root, limits, a, &h, e)) {
        return false;
    }
    lg_builder b;
    lg_build_init(&b, a);
    lg_value *p = lg_build_map(&b);
    lg_build_set_int(&b, p, "z", 1);
    lg_build_set(&b, p, "y", lg_build_array(&b));
    bool ok = lg_build_done(&b, e) && lg_host_render(h, "busy.lua", p, t, e) &&
              lg_host_call(h, "busy.lua", "f", p, a, &out, e);
    if (ok) {
        lg_value_dump(out, t);
        ok = lb_text_done(t, e);
    }
    lg_host_close(h);
    return ok;
}

static int print_busy(const char *root) {
    lb_text t;
    lb_err e = {0};
    lb_arena_init(&arena, "test", 64 << 20);
    lb_text_init(&t, &arena);
    bool ok = busy(root, NULL, &arena, &t, &e) && fwrite(t.data, 1, t.n_bytes, stdout) == t.n_bytes;
    lb_arena_reset(&arena);
    return ok ? 0 : 1;
}

static void put_busy(void) {
    assert_true(folder_put(&dir, "busy.lua", busy_template));
    assert_true(folder_put(&dir, "lib/busy.lua", busy_lib));
}

/* Lua's hash seed mixes addresses and the clock: only new processes show what depends on it. */
static void twenty_processes_agree(void **state) {
    (void)state;
    put_busy();
    lb_text t;
    lb_err e = {0};
    lb_text_init(&t, &arena);
    must(busy(dir.path, NULL, &arena, &t, &e), &e);
    assert_true(t.n_bytes > 10000);
    const char *command = lb_format(&arena, NULL, "%s --busy %s", program, dir.path);
    char *got = lb_alloc(&arena, t.n_bytes + 1, NULL);
    for (int i = 0; i < 20; i++) {
        FILE *f = popen(command, "r");
        assert_non_null(f);
        assert_int_equal(fread(got, 1, t.n_bytes + 1, f), t.n_bytes);
        assert_int_equal(pclose(f), 0);
        assert_memory_equal(got, t.data, t.n_bytes);
    }
}

/* Lua's n-th growing allocation fails, for every n; then the arena's. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    put_busy();
    bool done = false;
    for (uint64_t n = 1; !done; n += n < 500 ? 1 : 17) { /* opening takes the first 400 */
        lg_host_limits limits = {.fail_at = n};
        lb_arena a;
        lb_text t;
        lb_err e = {0};
        lb_arena_init(&a, "failing", 64 << 20);
        lb_text_init(&t, &a);
        done = busy(dir.path, &limits, &a, &t, &e);
        assert_true(done || e.code == LB_NO_MEMORY);
        lb_arena_reset(&a);
        assert_true(n < 1000000);
    }
    done = false;
    for (int64_t n = 0; !done; n += n < 150 ? 1 : 29) { /* then one more entry of the result each */
        lb_arena a;
        lb_text t;
        lb_err e = {0};
        lb_arena_init(&a, "failing", 64 << 20);
        a.fail_after = n;
        lb_text_init(&t, &a);
        done = busy(dir.path, NULL, &a, &t, &e);
        assert_true(done || e.code == LB_NO_MEMORY);
        lb_arena_reset(&a);
        assert_true(n < 1000000);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--busy") == 0) {
        return print_busy(argv[2]);
    }
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_in_and_come_out),
        cmocka_unit_test(map_keys_come_sorted),
        cmocka_unit_test(results_are_refused_with_their_path),
        cmocka_unit_test(templates_render),
        cmocka_unit_test(files_use_each_other),
        cmocka_unit_test(template_errors_have_file_and_line),
        cmocka_unit_test(the_sandbox_holds),
        cmocka_unit_test(file_names_stay_below_the_root),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(parameters_of_an_earlier_call_are_dead),
        cmocka_unit_test(functions_are_found_or_missed),
        cmocka_unit_test(helpers_compute),
        cmocka_unit_test(floats_are_exact),
        cmocka_unit_test(order_is_total),
        cmocka_unit_test(c_texts_cannot_break_out),
        cmocka_unit_test(twenty_processes_agree),
        cmocka_unit_test(every_allocation_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host", tests, setup, teardown);
}
