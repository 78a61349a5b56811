/* test_unicode.c -- categories against counts of the Unicode Character Database; UTF-8 at every
 * edge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/unicode.h"

static uint32_t count(uint32_t mask) {
    uint32_t n = 0;
    for (uint32_t code = 0; code < LB_UNICODE_END; code++) {
        n += mask >> lb_unicode_category(code) & 1;
    }
    return n;
}

/* Source: DerivedGeneralCategory.txt and PropList.txt of Unicode 15.1. */
static void counts_are_those_of_15_1(void **state) {
    (void)state;
    assert_int_equal(count(LB_UC_L), 136726);
    assert_int_equal(count(LB_UC_N), 1831);
    assert_int_equal(count(LB_UC_M), 2450);
    assert_int_equal(count(LB_UC_P), 842);
    assert_int_equal(count(LB_UC_S), 7775);
    assert_int_equal(count(LB_UC_Z), 19);
    assert_int_equal(count(LB_UC_SPACE), 25);
    assert_int_equal(count(LB_UC(LB_ND)), 680);
    assert_int_equal(count(LB_UC_ALL), LB_UNICODE_END);
}

static void categories_of_known_characters(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        const char *name;
    } rows[] = {{0, "Cc"},       {'\n', "Cc"},     {' ', "Zs"},       {'A', "Lu"},
                {'z', "Ll"},     {'7', "Nd"},      {'_', "Pc"},       {'$', "Sc"},
                {0x01C5, "Lt"},  {0x02B0, "Lm"},   {0x4E00, "Lo"},    {0x0301, "Mn"},
                {0x2581, "So"},  {0xD800, "Cs"},   {0xE000, "Co"},    {0x1F999, "So"},
                {0xFFFF, "Cn"},  {0x10FFFF, "Cn"}, {0x110000, "Cn"},  {UINT32_MAX, "Cn"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(lb_category_name(lb_unicode_category(rows[i].code)), rows[i].name);
    }
    assert_int_equal(lb_unicode_category('\n'), LB_CW);
    assert_int_equal(lb_unicode_category(0x85), LB_CW);
}

static void runs_tile_the_code_space(void **state) {
    (void)state;
    for (uint32_t code = 0; code < LB_UNICODE_END;) {
        uint32_t end = lb_unicode_run_end(code);
        assert_true(end > code && end <= LB_UNICODE_END);
        assert_int_equal(lb_unicode_category(code), lb_unicode_category(end - 1));
        assert_int_equal(lb_unicode_run_end(end - 1), end);
        code = end;
    }
}

static void utf8_round_trip(void **state) {
    (void)state;
    for (uint32_t code = 0; code < LB_UNICODE_END; code++) {
        char s[4];
        uint32_t back = 0;
        size_t n = lb_utf8_encode(code, s);
        assert_int_equal(lb_utf8_decode(s, n, &back), n);
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        assert_int_equal(back, surrogate ? (uint32_t)LB_REPLACEMENT : code);
        for (size_t cut = 1; cut < n; cut++) {
            assert_int_equal(lb_utf8_decode(s, cut, &back), 0);
            assert_true(lb_utf8_is_cut(s, cut));
        }
        assert_false(lb_utf8_is_cut(s, n));
    }
    char s[4];
    assert_int_equal(lb_utf8_encode(0x110000, s), 3);
    assert_memory_equal(s, "\xEF\xBF\xBD", 3);
}

static void ill_formed_bytes(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",         "\xBF",             "\xC0\x80",
                                      "\xC1\xBF",     "\xE0\x9F\xBF",     "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                                      "\xFF",         "\xC3(",            "\xE2\x82("};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t code = 42;
        assert_int_equal(lb_utf8_decode(bad[i], strlen(bad[i]), &code), 0);
        assert_false(lb_utf8_is_cut(bad[i], strlen(bad[i])));
        assert_int_equal(code, 42);
        assert_int_equal(lb_utf8_valid_bytes(bad[i], strlen(bad[i])), 0);
    }
    assert_int_equal(lb_utf8_valid_bytes("a\xE2\x82\xAC\xFFz", 6), 4);
    assert_int_equal(lb_utf8_valid_bytes("a\xE2\x82", 3), 1);
    assert_int_equal(lb_utf8_valid_bytes("", 0), 0);
    assert_false(lb_utf8_is_cut("", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_15_1),
        cmocka_unit_test(categories_of_known_characters),
        cmocka_unit_test(runs_tile_the_code_space),
        cmocka_unit_test(utf8_round_trip),
        cmocka_unit_test(ill_formed_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("unicode", tests, NULL, NULL);
}
