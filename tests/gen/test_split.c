/* test_split.c -- every pre-tokenizer, as emitted C, against PCRE2 running the original expressions
 * on random text; and the time that long runs take. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pcre2.h>

#include "gen/splits.h"
#include "named.h"
#include "pretok.h"
#include "small_stack.h"

enum { N_TEXTS = 10000, CHARS_MAX = 48, BYTES_MAX = 4 * CHARS_MAX };

/* One pre-tokenizer's expressions, compiled by PCRE2. */
typedef struct oracle {
    pcre2_code *code[8];
    size_t n;
    pcre2_match_data *match;
} oracle;

/* Copies `from` with every `old` replaced. */
static void replace(const char *from, const char *old, const char *new, char *to, size_t cap) {
    for (const char *at; (at = strstr(from, old)) != NULL; from = at + strlen(old)) {
        int n = snprintf(to, cap, "%.*s%s", (int)(at - from), from, new);
        assert_true(n > 0 && (size_t)n < cap);
        to += n;
        cap -= (size_t)n;
    }
    assert_true(strlen(from) < cap);
    strcpy(to, from);
}

/* "[A&&[^B]]" as PCRE2 understands it: "(?:(?![B])[A])". And the script Han, which to PCRE2 also
 * has the characters that Han shares with others unless it is told. */
static void for_pcre2(const char *pattern, char *to, size_t cap) {
    char text[8192];
    const char *from = text;
    replace(pattern, "\\p{Han}", "\\p{sc:Han}", text, sizeof text);
    while (*from != '\0') {
        const char *and = strstr(from, "&&[^");
        if (and == NULL) {
            break;
        }
        const char *open = and;
        while (*open != '[') {
            open--;
        }
        const char *close = strstr(and, "]]");
        int n = snprintf(to, cap, "%.*s(?:(?![%.*s])%.*s])", (int)(open - from), from,
                         (int)(close - and - 4), and + 4, (int)(and - open), open);
        assert_true(n > 0 && (size_t)n < cap);
        to += n;
        cap -= (size_t)n;
        from = close + 2;
    }
    assert_true(strlen(from) < cap);
    strcpy(to, from);
}

static oracle oracle_new(const lg_split *split) {
    oracle o = {.n = split->n_stages};
    for (size_t i = 0; i < o.n; i++) {
        int error;
        PCRE2_SIZE at;
        char text[8192];
        for_pcre2(split->stages[i], text, sizeof text);
        o.code[i] = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &at, NULL);
        assert_non_null(o.code[i]);
        pcre2_jit_compile(o.code[i], PCRE2_JIT_COMPLETE);
    }
    o.match = pcre2_match_data_create(16, NULL);
    return o;
}

static void oracle_free(oracle *o) {
    for (size_t i = 0; i < o->n; i++) {
        pcre2_code_free(o->code[i]);
    }
    pcre2_match_data_free(o->match);
}

static size_t char_bytes(const char *s) {
    uint32_t code;
    return lb_utf8_decode(s, 4, &code);
}

/* Marks in cuts[] (by byte) where stage `code` cuts the segment [from, end), taken alone. */
static void oracle_segment(const oracle *o, const pcre2_code *code, const char *text, size_t from,
                           size_t end, bool *cuts) {
    size_t n = end - from;
    for (size_t at = 0; at < n;) {
        int found = pcre2_match(code, (PCRE2_SPTR)(text + from), n, at, PCRE2_NO_UTF_CHECK,
                                o->match, NULL);
        if (found < 0) {
            assert_int_equal(found, PCRE2_ERROR_NOMATCH);
            return;
        }
        const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(o->match);
        cuts[from + ovector[0]] = true;
        cuts[from + ovector[1]] = true;
        size_t stop = ovector[1];
        at = stop > ovector[0] ? stop : stop < n ? stop + char_bytes(text + from + stop) : n;
    }
}

static void oracle_split(const oracle *o, const char *text, size_t n, bool *cuts) {
    memset(cuts, 0, (n + 1) * sizeof *cuts);
    cuts[0] = cuts[n] = true;
    for (size_t i = 0; i < o->n; i++) {
        bool before[BYTES_MAX + 1];
        memcpy(before, cuts, (n + 1) * sizeof *cuts);
        for (size_t from = 0; from < n;) {
            size_t end = from + 1;
            while (!before[end]) {
                end++;
            }
            oracle_segment(o, o->code[i], text, from, end, cuts);
            from = end;
        }
    }
}

static uint32_t random_below(uint64_t *seed, uint32_t n) {
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

/* Code points whose category PCRE2 sees as we do. Its tables may be of another Unicode version,
 * where some are not assigned yet; U+180E, no white space since Unicode 6.3, is space to it. */
static bool agreed[LB_UNICODE_END];

static int find_agreed(void **state) {
    (void)state;
    static const char *const names[] = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
                                        "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
                                        "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn"};
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char pattern[16] = "\\p{xx}";
        memcpy(pattern + 3, names[i], 2);
        int error;
        PCRE2_SIZE where;
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP, &error, &where, NULL);
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        for (uint32_t c = 0; c < LB_UNICODE_END; c++) {
            if (strcmp(lb_category_name(lb_unicode_category(c)), names[i]) == 0) {
                char s[4];
                size_t len = lb_utf8_encode(c, s);
                agreed[c] = c != 0x180E && pcre2_match(code, (PCRE2_SPTR)s, len, 0,
                                                       PCRE2_NO_UTF_CHECK, match, NULL) > 0;
                n += agreed[c];
            }
        }
        pcre2_code_free(code);
    }
    pcre2_match_data_free(match);
    print_message("# %zu of 1112064 code points are classed alike by this PCRE2\n", n);
    return n > 1090000 ? 0 : -1;
}

/* Text that meets the corners of the expressions: words, contractions, runs of one kind, marks, and
 * characters from everywhere. */
static size_t random_text(uint64_t *seed, char *out) {
    static const char *const bits[] = {
        " ",  "  ",  "\n", "\r\n", "\n\n", "\t", "a",  "Zx",  "the", "'s",  "'LL", "'ve",
        "'r", "'",   "1",  "123",  "9999", ".",  "!?", "...", "/",   "//",  "_",   "\xC2\xA0",
        "É",  "ß",   "ǅ",  "ʰ",    "e\xCC\x81", "\xCC\x81", "नमस्ते", "中文", "日本", "ひらカタ", "한국", "½",
        "٣",  "Ⅷ",   "€",  "😀",   "\xE2\x80\xA8", "\xE3\x80\x80", "$", "<|", "|>", "AB", "aB",
        "中々", "〇", "⺀", "〡", "豈", "ⓐ", "²", "1234567", "๓ไทย", "ລາວ", "ខ្មែរ", "가", "ﾊﾟ", "ꩠ",
        "ㄅㄆ", "ㄱ", "！", "…", "、", "﹏", "<sentinel:1", "<sentinel:23>", "IMGIMG", "IMGIMGABZ", "IZ",
        "    ", "Ⅷ9", "a_b", "9a", "\x85"};
    enum { N_BITS = sizeof bits / sizeof bits[0] };
    size_t n = 0;
    uint32_t n_bits = random_below(seed, 24);
    uint32_t style = random_below(seed, 4);
    uint32_t few = random_below(seed, 3) == 0 ? random_below(seed, N_BITS - 4) : 0;
    for (uint32_t i = 0; i < n_bits; i++) {
        const char *bit = bits[few > 0 ? few + random_below(seed, 4) : random_below(seed, N_BITS)];
        char one[4];
        size_t len = strlen(bit);
        if (strcmp(bit, "\x85") == 0 || (few == 0 && random_below(seed, 3) == 0)) {
            uint32_t code;
            do {
                uint32_t top = style == 0 ? 0x80 : style == 1 ? 0x3000 : LB_UNICODE_END;
                code = random_below(seed, top);
            } while (!agreed[code]);
            len = lb_utf8_encode(code, one);
            bit = one;
        }
        uint32_t times = random_below(seed, 8) == 0 ? 1 + random_below(seed, 6) : 1;
        for (uint32_t k = 0; k < times && n + len <= BYTES_MAX; k++) {
            memcpy(out + n, bit, len);
            n += len;
        }
    }
    return n;
}

static void show_difference(const char *id, const char *text, size_t n, const bool *want,
                            const bool *got) {
    print_message("# %s differs on ", id);
    for (size_t i = 0; i < n; i++) {
        print_message("%s%02X", want[i] != got[i] ? (want[i] ? " <" : " >") : want[i] ? " |" : " ",
                      (uint8_t)text[i]);
    }
    print_message("\n");
}

static void compare_one(const split_row *row, const oracle *o, const char *text, size_t n) {
    bool want[BYTES_MAX + 1], got[BYTES_MAX + 1] = {false};
    rt_char t[BYTES_MAX];
    oracle_split(o, text, n, want);
    size_t n_chars = rt_split_chars(text, n, t);
    row->split(t, n_chars);
    size_t at = 0;
    for (size_t i = 0; i < n_chars; i++) {
        got[at] = (t[i] & RT_CHAR_CUT) != 0;
        at += char_bytes(text + at);
    }
    got[n] = true;
    if (memcmp(want, got, n + 1) != 0) {
        show_difference(row->id, text, n, want, got);
        fail();
    }
}

static void equal_to_pcre2(void **state) {
    (void)state;
    size_t n_splits;
    const lg_split *rows = lg_split_rows(&n_splits);
    for (size_t i = 0; i < n_splits; i++) {
        assert_string_equal(splits[i].id, rows[i].id);
        oracle o = oracle_new(&rows[i]);
        uint64_t seed = i + 1;
        for (int k = 0; k < N_TEXTS; k++) {
            char text[BYTES_MAX];
            compare_one(&splits[i], &o, text, random_text(&seed, text));
        }
        oracle_free(&o);
    }
    assert_null(splits[n_splits].id);
    print_message("# %zu pre-tokenizers equal on %d texts each\n", n_splits, N_TEXTS);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A text to be cut, and what that took. */
typedef struct job {
    const split_row *row;
    const char *text;
    size_t n_bytes;
    rt_char *t;
    double took;
} job;

static void *cut(void *to) {
    job *j = to;
    double start = seconds();
    j->row->split(j->t, rt_split_chars(j->text, j->n_bytes, j->t));
    j->took = seconds() - start;
    return NULL;
}

/* 1 MiB of anything, in time that grows with length only, and in constant stack. */
static void long_runs_take_linear_time(void **state) {
    (void)state;
    static const char *const units[] = {"a", "A",  "Z",  " ",   "\n", ".",    "1",   "'",  "\t",
                                        "中", "é", "us", "Aa",  "日A", " \n", "\n ", "a ", ". ",
                                        " 1", "!A", "\xCC\x81", "a\xCC\x81", "\r", "'s", "  x"};
    enum { N = 1 << 20 };
    rt_char *t = malloc(N * sizeof *t);
    char *text = malloc(N + 1);
    double worst = 0;
    const char *worst_id = "", *worst_unit = "";
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = strlen(units[u]);
        size_t n_bytes = N - N % len;
        for (size_t i = 0; i < n_bytes; i++) {
            text[i] = units[u][i % len];
        }
        text[n_bytes - 1] = (uint8_t)text[n_bytes - 1] < 128 ? '#' : text[n_bytes - 1];
        for (const split_row *row = splits; row->id != NULL; row++) {
            job j = {.row = row, .text = text, .n_bytes = n_bytes, .t = t};
            assert_true(on_small_stack(cut, &j));
            if (j.took > worst) {
                worst = j.took;
                worst_id = row->id;
                worst_unit = units[u];
            }
        }
    }
    print_message("# slowest: %s on 1 MiB of '%s', %.0f ms\n", worst_id,
                  worst_unit[0] == '\n' ? "\\n" : worst_unit, worst * 1e3);
    assert_true(worst < 2);
    free(t);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_pcre2),
        named_test("C01 every pre-tokenizer is linear", long_runs_take_linear_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("split", tests, find_agreed, NULL);
}
