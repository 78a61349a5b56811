/* test_pretok.c -- the expression parser, sets of code points, what the splitter compiler accepts
 * and refuses, and the table of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/unicode.h"
#include "pretok.h"
#include "splitter.h"

static lb_arena arena;
static lb_err err;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "test", UINT64_C(1) << 28);
    err = (lb_err){0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    return 0;
}

static void syntax_errors_name_the_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *what;
    } rows[] = {
        {"a|*b", "character 3: this metacharacter must be escaped here"},
        {"a++", "character 3: only plain greedy quantifiers are supported"},
        {"a+?", "character 3: only plain greedy quantifiers are supported"},
        {"a{3", "character 4: {m,n} must close and ascend"},
        {"a{3,2}", "character 7: {m,n} must close and ascend"},
        {"a{0}", "character 5: {m,n} must close and ascend"},
        {"a{}", "character 3: a number was expected"},
        {"a{1001}", "character 7: more than 1000 repetitions"},
        {"(a", "character 3: ')' is missing"},
        {"a)", "character 2: ')' without '('"},
        {"(?<=a)b", "character 2: this kind of group is not supported"},
        {"[a", "character 3: ']' is missing"},
        {"[[:alpha:]]", "character 2: '[' in a class must be escaped"},
        {"[a&&b]", "character 5: && takes [^...]"},
        {"[a&&[b]]", "character 5: && takes [^...]"},
        {"[^a&&[^b]]", "character 6: && takes [^...]"},
        {"[a&&[^\\p{L}]]", "character 12: && takes [^...]"},
        {"[a&&[^b]", "character 9: ']' is missing"},
        {"[a&&[^b]c]", "character 9: ']' is missing"},
        {"\\p{Han}", "character 8: \\p{...} is no general category"}, /* in classes only */
        {"[z-a]", "character 5: a range must ascend between two characters"},
        {"[a-\\p{L}]", "character 9: a range must ascend between two characters"},
        {"\\p{Foo}", "character 8: \\p{...} is no general category"},
        {"\\p{Xx}", "character 7: \\p{...} is no general category"},
        {"\\p{L", "character 5: \\p{...} is no general category"},
        {"\\q", "character 3: unknown escape"},
        {"\\", "character 2: unknown escape"},
        {"\\x{110000}", "character 11: \\x{...} is no code point"},
        {"\\x{}", "character 5: \\x{...} is no code point"},
        {"\\x{g}", "character 4: \\x{...} takes 1 to 6 digits 0-9 A-F"},
        {"a.b", "character 2: this metacharacter must be escaped here"},
        {"^a", "character 1: this metacharacter must be escaped here"},
        {"\xFF", "character 1: a character was expected"},
        {"((((((((((((((((a))))))))))))))))", "character 17: groups are nested too deeply"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lg_regex r;
        assert_false(lg_regex_parse(rows[i].text, &arena, &r, &err));
        assert_int_equal(err.code, LB_SYNTAX);
        if (strstr(err.text, rows[i].what) == NULL) {
            print_message("# got '%s', wanted '%s'\n", err.text, rows[i].what);
            fail();
        }
    }
}

static void trees(void **state) {
    (void)state;
    lg_regex r;
    assert_true(lg_regex_parse("(?:'[sS]|b)?|[^\\s\\x{41}-\\x{43}]{2,5}$|", &arena, &r, &err));
    assert_int_equal(r.n, 3);
    const lg_regex_item *group = &r.alts[0].items[0];
    assert_int_equal(group->kind, LG_REGEX_GROUP);
    assert_int_equal(group->min, 0);
    assert_int_equal(group->max, 1);
    assert_int_equal(group->body.n, 2);
    assert_string_equal(group->body.source, "'[sS]|b");
    const lg_regex_item *cls = &r.alts[1].items[0];
    assert_int_equal(cls->min, 2);
    assert_int_equal(cls->max, 5);
    assert_string_equal(cls->cls.source, "[^\\s\\x{41}-\\x{43}]");
    assert_false(lg_charset_holds(&cls->cls.set, 'B'));
    assert_false(lg_charset_holds(&cls->cls.set, 0x3000));
    assert_true(lg_charset_holds(&cls->cls.set, 'D'));
    assert_true(lg_charset_holds(&cls->cls.set, 0x10FFFF));
    assert_int_equal(r.alts[1].items[1].kind, LG_REGEX_END);
    assert_int_equal(r.alts[2].n, 0);
}

static lg_charset set(const char *cls) {
    lg_regex r;
    assert_true(lg_regex_parse(cls, &arena, &r, &err));
    return r.alts[0].items[0].cls.set;
}

static void sets(void **state) {
    (void)state;
    lg_charset letters = set("\\p{L}"), spaces = set("\\s"), others = set("\\S");
    lg_charset upper = set("\\p{Lu}"), ascii = set("[a-cx-zb-y]"), all = set("[\\s\\S]");
    assert_false(lg_charset_meet(&letters, &spaces));
    assert_false(lg_charset_meet(&others, &spaces));
    assert_true(lg_charset_within(&upper, &letters));
    assert_false(lg_charset_within(&letters, &upper));
    assert_true(lg_charset_meet(&upper, &letters));
    assert_int_equal(ascii.n, 1);
    assert_int_equal(ascii.ranges[0].first, 'a');
    assert_int_equal(ascii.ranges[0].last, 'z');
    assert_int_equal(all.n, 1);
    assert_int_equal(all.ranges[0].last, LB_UNICODE_END - 1);
    lg_charset none = set("[^\\s\\S]");
    assert_int_equal(none.n, 0);
    assert_true(lg_charset_within(&none, &upper));
    lg_charset kana = set("[\\x{3005}a-z\\p{Lo}&&[^\\p{Han}b-y]]"), han = set("[\\p{Han}]");
    assert_true(lg_charset_holds(&kana, 'a') && lg_charset_holds(&kana, 'z'));
    assert_false(lg_charset_holds(&kana, 'b') || lg_charset_holds(&kana, 0x3005));
    assert_true(lg_charset_holds(&kana, 0x3042) && !lg_charset_holds(&kana, 0x4E00));
    assert_true(lg_charset_holds(&han, 0x3005) && lg_charset_holds(&han, 0x20000));
    assert_false(lg_charset_meet(&kana, &han));
    lg_charset both;
    assert_true(lg_charset_join(&spaces, &others, &arena, &both, &err));
    assert_int_equal(both.n, 1);
}

static const lg_split_fn *stage_fn(const lg_splitter *s) {
    return &s->fns[s->stages[0]];
}

static void compile(const char *text, lg_splitter *s) {
    if (!lg_splitter_compile(&text, 1, &arena, s, &err)) {
        print_message("# %s\n", err.text);
        fail();
    }
}

/* The forms of loops that splitter.h names. */
static void loops_take_the_form_they_need(void **state) {
    (void)state;
    lg_splitter s;
    compile(" ?\\p{L}+", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_RUN);
    assert_int_equal(stage_fn(&s)->n_ops, 2);
    compile("\\s+(?!\\S)", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_GIVE_BACK);
    assert_int_equal(stage_fn(&s)->ops[0].run, LG_SPLIT_NO_RUN);
    compile("\\s+$", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_GIVE_BACK);
    assert_int_equal(stage_fn(&s)->ops[0].run, 0);
    assert_true(stage_fn(&s)->uses_runs);
    compile("(?=(\\d{3})+(?!\\d))", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_LOOK);
    assert_int_equal(s.fns[stage_fn(&s)->ops[0].fn].ops[0].kind, LG_SPLIT_STEPS);
    compile("[\\p{L}.]?\\p{L}+", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_GIVE_BACK);
    compile("\\d{1,3}(?=(?:\\d{3})*(?![\\p{L}\\d]))", &s);
    const lg_split_fn *rest = &s.fns[stage_fn(&s)->ops[0].fn];
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_GIVE_BACK);
    assert_int_equal(s.fns[rest->ops[0].fn].ops[0].kind, LG_SPLIT_STEPS);
    assert_true(s.fns[rest->ops[0].fn].ops[0].may_be_none);
    compile("(?:ab)+", &s);
    assert_int_equal(stage_fn(&s)->ops[0].kind, LG_SPLIT_REPEAT);
}

static void what_is_not_linear_is_refused(void **state) {
    (void)state;
    static const char *const rows[] = {
        "(?:a|b)+c",          /* a group before something that can fail */
        "(?:\\p{L}+1)*",      /* a group that may fail late */
        "\\s+\\p{L}+\\p{N}",  /* followed by what may fail late */
        "(?=\\p{L}+)a",       /* reads ahead at every character */
        "(?:\\d{3})+(?!x)",   /* steps that giving back could help */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lg_splitter s;
        if (lg_splitter_compile(&rows[i], 1, &arena, &s, &err)) {
            print_message("# accepted: %s\n", rows[i]);
            fail();
        }
        assert_int_equal(err.code, LB_UNSUPPORTED);
        assert_non_null(strstr(err.text, rows[i]));
    }
    const char *many[9] = {"a", "a", "a", "a", "a", "a", "a", "a", "a"};
    lg_splitter s;
    assert_false(lg_splitter_compile(many, 9, &arena, &s, &err));
    assert_int_equal(err.code, LB_LIMIT);
    assert_false(lg_splitter_compile(many, 0, &arena, &s, &err));
}

static void names(void **state) {
    (void)state;
    size_t n;
    const lg_pretok *rows = lg_pretok_rows(&n);
    assert_true(n > 80);
    for (size_t i = 0; i < n; i++) {
        const lg_pretok *found = lg_pretok_find(rows[i].name, strlen(rows[i].name));
        assert_ptr_equal(found, &rows[i]); /* no name twice */
    }
    assert_string_equal(lg_pretok_find("smollm", 6)->split->id, "starcoder");
    assert_string_equal(lg_pretok_find("laguna", 6)->split->id, "laguna");
    assert_null(lg_pretok_find("nosuch", 6));
    assert_null(lg_pretok_find("smollm", 5));
    assert_null(lg_pretok_find("", 0));
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    const lg_split *split = lg_pretok_find("gpt-4o", 6)->split;
    bool done = false;
    for (int64_t n = 0; !done; n += 1 + n / 8) {
        lb_arena small;
        lb_arena_init(&small, "small", UINT64_C(1) << 28);
        small.fail_after = n;
        lg_splitter s;
        lg_builder b;
        lg_value *v;
        err = (lb_err){0};
        lg_build_init(&b, &small);
        done = lg_splitter_compile(split->stages, split->n_stages, &small, &s, &err) &&
               lg_splitter_value(&s, "x", &b, &v);
        done = done && lg_build_done(&b, &err);
        assert_true(done || err.code == LB_NO_MEMORY || b.err.code == LB_NO_MEMORY);
        lb_arena_reset(&small);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(syntax_errors_name_the_place, setup, teardown),
        cmocka_unit_test_setup_teardown(trees, setup, teardown),
        cmocka_unit_test_setup_teardown(sets, setup, teardown),
        cmocka_unit_test_setup_teardown(loops_take_the_form_they_need, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_linear_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_may_run_out_anywhere, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pretok", tests, NULL, NULL);
}
