/* test_json_read.c -- JSON that strangers write: depth, size, broken Unicode, integers beyond 64
 * bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chat/json_read.h"
#include "named.h"
#include "small_stack.h"

static lb_arena arena;
static lb_err err;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "json", 64 << 20);
    err = (lb_err){0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    return 0;
}

static json_t *read_text(const char *text) {
    json_t *v = NULL;
    if (!rt_json_read(text, strlen(text), &arena, &v, &err)) {
        fail_msg("%.100s: %s", text, err.text);
    }
    return v;
}

static void refused(const char *text, size_t n, lb_code code, const char *says) {
    json_t *v = NULL;
    err = (lb_err){0};
    char *exact = malloc(n + 1); /* the sanitizer sees a read behind the end */
    assert_non_null(exact);
    memcpy(exact, text, n);
    bool ok = rt_json_read(exact, n, &arena, &v, &err);
    free(exact);
    if (ok || err.code != code || strstr(err.text, says) == NULL) {
        fail_msg("%.100s: code %d, %s", text, (int)err.code, err.text);
    }
}

/* Clients cut texts in the middle of an emoji: a clear refusal, and the whole pair is one
 * character. */
static void half_surrogates(void **state) {
    (void)state;
    static const char *const halves[] = {"\\ud83d", "x \\ude00 y", "\\udcf0", "\\ud83d\\ud83d",
                                         "\\ud83dx", "\\ude00\\ud83d"};
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}",
                 halves[i]);
        refused(body, strlen(body), LB_SYNTAX, "JSON, line 1, column");
    }
    static const char raw[] = "\"\xED\xA0\xBD\xED\xB8\x80\"";
    refused(raw, sizeof raw - 1, LB_SYNTAX, "JSON, line 1");
    json_t *v = read_text("\"\\ud83d\\ude00\"");
    assert_string_equal(json_string_value(v), "\xF0\x9F\x98\x80");
    json_decref(v);
}

/* n times `open`, a 0, n times `close`. */
static char *nested(const char *open, const char *close, size_t n) {
    size_t n_open = strlen(open);
    size_t n_close = strlen(close);
    char *s = malloc(n * (n_open + n_close) + 2);
    assert_non_null(s);
    for (size_t i = 0; i < n; i++) {
        memcpy(s + i * n_open, open, n_open);
        memcpy(s + n * n_open + 1 + i * n_close, close, n_close);
    }
    s[n * n_open] = '0';
    s[n * (n_open + n_close) + 1] = '\0';
    return s;
}

static void *read_deep(void *to) {
    lb_err why = {0};
    json_t *v = NULL;
    lb_arena own;
    const char *text = *(const char **)to;
    lb_arena_init(&own, "json", 1 << 20);
    bool ok = rt_json_read(text, strlen(text), &own, &v, &why);
    json_decref(v);
    lb_arena_reset(&own);
    *(const char **)to = ok ? "read" : why.code == LB_LIMIT ? "limit" : "other";
    return NULL;
}

static void depth_has_a_limit(void **state) {
    (void)state;
    static const struct { size_t depth; const char *want; } rows[] = {
        {0, "read"},    {1, "read"},     {64, "read"},     {127, "read"},     {128, "read"},
        {129, "limit"}, {5000, "limit"}, {10000, "limit"}, {1000000, "limit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *lists = nested("[", "]", rows[i].depth);
        char *objects = nested("{\"a\":", "}", rows[i].depth);
        const char *said[2] = {lists, objects};
        for (size_t k = 0; k < 2; k++) {
            assert_true(on_small_stack(read_deep, &said[k]));
            assert_string_equal(said[k], rows[i].want);
        }
        free(lists);
        free(objects);
    }
    json_decref(read_text("\"[[[[\\\"[[[[\"")); /* brackets in strings are none */
    refused("[[[[", 4, LB_SYNTAX, "JSON");
    refused("]]]]", 4, LB_SYNTAX, "JSON");
}

static void values_have_a_limit(void **state) {
    (void)state;
    size_t n = 2 * RT_JSON_TEXT_VALUES_MAX + 4;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, ' ', n);
    text[0] = '[';
    for (size_t i = 0; i < RT_JSON_TEXT_VALUES_MAX - 1; i++) {
        text[1 + 2 * i] = '1';
        text[2 + 2 * i] = ',';
    }
    text[2 * RT_JSON_TEXT_VALUES_MAX - 1] = '1';
    text[n - 1] = ']';
    refused(text, n, LB_LIMIT, "1000001 values; the most is 1000000");
    text[2] = ' '; /* "1 1" parses no better, and is not too much */
    refused(text, n, LB_SYNTAX, "JSON");
    free(text);
}

static void big(const char *text, const char *want) {
    json_t *v = read_text(text);
    const char *digits = NULL;
    size_t n = 0;
    bool is_big = rt_json_big(v, &digits, &n);
    assert_true(is_big == (want != NULL));
    if (is_big) {
        assert_int_equal(n, strlen(want));
        assert_memory_equal(digits, want, n);
    }
    json_decref(v);
}

static void big_integers_keep_their_digits(void **state) {
    (void)state;
    big("18446744073709551615", "18446744073709551615");
    big(" -9223372036854775809 ", "-9223372036854775809");
    big("9223372036854775808", "9223372036854775808");
    big("9223372036854775807", NULL);
    big("-9223372036854775808", NULL);
    big("-0", NULL);
    big("12345678901234567890.5", NULL);
    big("12345678901234567890e2", NULL);
    big("\"18446744073709551615\"", NULL);
    json_t *v = read_text("{\"18446744073709551615\": [18446744073709551615, \"a\\\"9\", 1], "
                          "\"b\": -18446744073709551615}");
    const char *digits;
    size_t n;
    assert_true(rt_json_big(json_array_get(json_object_get(v, "18446744073709551615"), 0), &digits,
                            &n));
    assert_true(rt_json_big(json_object_get(v, "b"), &digits, &n));
    json_decref(v);
    char many[4400];
    memset(many, '7', sizeof many);
    many[4300] = '\0';
    big(many, many);
    many[4300] = '7';
    refused(many, 4301, LB_LIMIT, "an integer of 4301 digits; the most is 4300");
    static const char *const bad[] = {
        "00000000000000000000001", "-00000000000000000000001", "18446744073709551615a",
        "{18446744073709551615: 1}", "\"a\" 18446744073709551615", "18446744073709551615 \"a\"",
        "-", "+18446744073709551615", "[18446744073709551615", "", " ", "nan", "{\"a\" 1}",
        "1844674407370955161518446744073709551615-1", "\"\\", "\"", "1e999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(bad[i], strlen(bad[i]), LB_SYNTAX, "JSON");
    }
}

/* 8 MiB of one thing, in time that grows with length only. */
static void long_texts(void **state) {
    (void)state;
    static const char *const units[] = {
        "\"", "\\", "1", "-", "9223372036854775808,", "{", " ", "\"\\"};
    enum { N = 8 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = strlen(units[u]);
        for (size_t i = 0; i < N; i++) {
            text[i] = units[u][i % len];
        }
        json_t *v = NULL;
        assert_false(rt_json_read(text, N, &arena, &v, &err));
        assert_true(err.code == LB_SYNTAX || err.code == LB_LIMIT);
    }
    free(text);
}

static void memory_may_run_out(void **state) {
    (void)state;
    json_t *v = NULL;
    arena.fail_after = 0;
    assert_false(rt_json_read("18446744073709551615", 20, &arena, &v, &err));
    assert_int_equal(err.code, LB_NO_MEMORY);
    assert_true(rt_json_read("1", 1, &arena, &v, &err)); /* needs none of it */
    json_decref(v);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        named_test_fixture("C09 half surrogates are refused", half_surrogates, setup, teardown),
        TEST(depth_has_a_limit),
        TEST(values_have_a_limit),
        TEST(big_integers_keep_their_digits),
        TEST(long_texts),
        TEST(memory_may_run_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
