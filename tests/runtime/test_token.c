/* test_token.c -- the encoder around its merges: special tokens, user text, BOS and EOS, invalid
 * bytes, limits; and the way back to text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "named.h"
#include "small_stack.h"
#include "tok_fixture.h"
#include "token/detok.h"

enum { TEXT_MAX = 1 << 20, FIRST_BYTE = 20, N_ROWS = FIRST_BYTE + 256 };

/* Ids of the special rows of the fixture. */
enum { UNK, BOS, EOS, THINK, ABC, BCDE, AB, NEWLINE2, NEWLINE3, THE, N_NAMED };

typedef struct world {
    lb_arena arena;
    tok_row rows[N_ROWS];
    char bytes[256];
    char names[FIRST_BYTE][16];
    rt_merge merges[2];
    rt_tokenizer *tok;
    rt_token_scratch *scratch;
    uint32_t out[64];
    size_t n;
    lb_err err;
} world;

static tok_row row(const char *text, rt_token_type type) {
    return (tok_row){text, strlen(text), type, 0};
}

static int setup(void **state) {
    world *w = calloc(1, sizeof *w);
    lb_arena_init(&w->arena, "test", UINT64_C(1) << 30);
    w->rows[UNK] = row("<unk>", RT_TOKEN_UNKNOWN);
    w->rows[BOS] = row("<s>", RT_TOKEN_CONTROL);
    w->rows[EOS] = row("</s>", RT_TOKEN_CONTROL);
    w->rows[THINK] = row("<think>", RT_TOKEN_USER);
    w->rows[ABC] = row("[abc]", RT_TOKEN_USER);
    w->rows[BCDE] = row("bc]de[", RT_TOKEN_USER);
    w->rows[AB] = row("[ab", RT_TOKEN_USER);
    w->rows[NEWLINE2] = row("\n\n", RT_TOKEN_USER);
    w->rows[NEWLINE3] = row("\n\n\n", RT_TOKEN_USER);
    w->rows[THE] = row("he", RT_TOKEN_NORMAL);
    for (int i = N_NAMED; i < FIRST_BYTE; i++) {
        snprintf(w->names[i], sizeof w->names[i], "pad%d", i);
        w->rows[i] = row(w->names[i], i % 2 == 0 ? RT_TOKEN_UNUSED : RT_TOKEN_UNDEFINED);
    }
    for (int i = 0; i < 256; i++) {
        w->bytes[i] = (char)i;
        w->rows[FIRST_BYTE + i] = (tok_row){&w->bytes[i], 1, RT_TOKEN_NORMAL, 0};
    }
    w->merges[0] = (rt_merge){FIRST_BYTE + 'h', FIRST_BYTE + 'e', THE};
    w->tok = tok_fixture(RT_TOKENIZER_BYTES, w->rows, N_ROWS, w->merges, 1, &w->arena);
    w->tok->bos = BOS;
    w->tok->eos = EOS;
    w->tok->unknown = UNK;
    assert_true(rt_token_scratch_new(w->tok, TEXT_MAX, &w->arena, &w->scratch, &w->err));
    *state = w;
    return 0;
}

static int teardown(void **state) {
    world *w = *state;
    lb_arena_reset(&w->arena);
    free(w);
    return 0;
}

static bool encode(world *w, rt_token_input in) {
    w->err = (lb_err){0};
    return rt_token_encode(w->tok, &in, w->scratch, w->out, 64, &w->n, &w->err);
}

static rt_token_input input(const char *text, bool parse_special) {
    return (rt_token_input){
        .text = text, .n_bytes = strlen(text), .parse_special = parse_special};
}

/* Compares ids with `want`: a string whose bytes 1..9 are the ids of named rows (0xFE is UNK) and
 * all other bytes stand for themselves. */
static void expect(const world *w, const char *want) {
    assert_int_equal(w->n, strlen(want));
    for (size_t i = 0; i < w->n; i++) {
        uint8_t c = (uint8_t)want[i];
        uint32_t id = c == 0xFE ? UNK : c < N_NAMED ? c : FIRST_BYTE + c;
        assert_int_equal(w->out[i], id);
    }
}

static void plain_text(void **state) {
    world *w = *state;
    assert_true(encode(w, input("the <s>", false)));
    expect(w, "t\x09 <s>");
    assert_true(encode(w, input("", true)));
    expect(w, "");
}

static void special_tokens_longest_first(void **state) {
    world *w = *state;
    assert_true(encode(w, input("x<s>y</s><think><unk>", true)));
    expect(w, "x\x01y\x02\x03\xFE");
    assert_true(encode(w, input("[abc]de[abc]", true)));
    expect(w, "[a\x05" "abc]"); /* the longer token wins although it begins later */
    assert_true(encode(w, input("[abc]d[ab[abc", true)));
    expect(w, "\x04" "d\x06\x06" "c");
    assert_true(encode(w, input("<s<s>>", true)));
    expect(w, "<s\x01>");
    assert_true(encode(w, input("\n\n\n\n\n\n\n\n", true)));
    expect(w, "\x08\x08\x07");
}

/* The switch means what it says; only white space, which marks nothing, is matched. */
static void without_parse_special(void **state) {
    world *w = *state;
    assert_true(encode(w, input("<s><think>\n\n", false)));
    expect(w, "<s><t" "hink>\x07");
}

/* Text of a user never becomes a control or a marker token, not even in part. */
static void user_text_gives_no_special_tokens(void **state) {
    world *w = *state;
    const char *text = "<s>U<think></s>\n\n[abc]<s>";
    for (size_t from = 0; from <= strlen(text); from++) {
        for (size_t end = from; end <= strlen(text); end++) {
            rt_token_span user = {from, end - from};
            rt_token_input in = input(text, true);
            in.user = &user;
            in.n_user = 1;
            assert_true(encode(w, in));
            size_t at = 0;
            for (size_t i = 0; i < w->n; i++) {
                size_t n;
                rt_token_text(w->tok, w->out[i], &n);
                bool special = w->out[i] < THE && w->out[i] != NEWLINE2;
                assert_false(special && at < end && at + n > from && end > from);
                at += n;
            }
            assert_int_equal(at, strlen(text));
        }
    }
    rt_token_span all[] = {{0, 3}, {3, 0}, {3, 12}, {17, 8}};
    rt_token_input in = input(text, true);
    in.user = all;
    in.n_user = 4;
    assert_true(encode(w, in));
    expect(w, "<s>U<think></s>\x07[abc]<s>");
}

static void bad_user_spans(void **state) {
    world *w = *state;
    const rt_token_span bad[][2] = {
        {{3, 2}, {4, 1}}, {{0, 1}, {9, SIZE_MAX}}, {{0, 0}, {11, 0}}, {{2, 0}, {1, 0}}};
    for (size_t i = 0; i < 4; i++) {
        rt_token_input in = input("0123456789", true);
        in.user = bad[i];
        in.n_user = 2;
        assert_false(encode(w, in));
        assert_int_equal(w->err.code, LB_BAD_VALUE);
    }
}

static void bos_and_eos(void **state) {
    world *w = *state;
    w->tok->add_bos = true;
    w->tok->add_eos = true;
    rt_token_input in = input("<s>a</s>", true);
    assert_true(encode(w, in));
    expect(w, "\x01" "a\x02");
    in.add_special = true;
    assert_true(encode(w, in));
    expect(w, "\x01\x01" "a\x02\x02");
    in.at_most_one = true;
    assert_true(encode(w, in));
    expect(w, "\x01" "a\x02");
    in = input(" <s>a</s> ", true);
    in.add_special = in.at_most_one = true;
    assert_true(encode(w, in));
    expect(w, "\x01 \x01" "a\x02 \x02");
    rt_token_span user = {0, 8};
    in = input("<s>a</s>", true);
    in.add_special = in.at_most_one = true;
    in.user = &user;
    in.n_user = 1;
    assert_true(encode(w, in));
    expect(w, "\x01<s>a</s>\x02");
    w->tok->add_bos = w->tok->add_eos = false;
    assert_true(encode(w, in));
    expect(w, "<s>a</s>");
}

static void more_ids_than_room_are_counted(void **state) {
    world *w = *state;
    char text[200];
    memset(text, 'x', sizeof text);
    rt_token_input in = {.text = text, .n_bytes = sizeof text};
    w->out[63] = 7;
    assert_true(rt_token_encode(w->tok, &in, w->scratch, w->out, 63, &w->n, &w->err));
    assert_int_equal(w->n, 200);
    assert_int_equal(w->out[63], 7);
}

static void invalid_bytes_become_replacements(void **state) {
    world *w = *state;
    assert_true(encode(w, input("a\xFFz\xE2\x82", false)));
    expect(w, "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
    char *text = calloc(1, TEXT_MAX + 1);
    memset(text, 0xC0, TEXT_MAX + 1);
    rt_token_input in = {.text = text, .n_bytes = TEXT_MAX};
    assert_false(encode(w, in));
    assert_int_equal(w->err.code, LB_LIMIT);
    in.n_bytes = TEXT_MAX / 3;
    assert_true(encode(w, in));
    assert_int_equal(w->n, TEXT_MAX / 3 * 3);
    in.n_bytes = TEXT_MAX + 1;
    assert_false(encode(w, in));
    assert_int_equal(w->err.code, LB_LIMIT);
    free(text);
}

static void spm_spaces(void **state) {
    world *w = *state;
    w->rows[THE] = row(" he", RT_TOKEN_NORMAL);
    w->rows[10] = row(" h", RT_TOKEN_NORMAL);
    rt_tokenizer *t = tok_fixture(RT_TOKENIZER_SCORES, w->rows, N_ROWS, NULL, 0, &w->arena);
    t->space_marks = t->add_space_prefix = true;
    t->bos = BOS;
    rt_token_scratch *s;
    assert_true(rt_token_scratch_new(t, 64, &w->arena, &s, &w->err));
    rt_token_input in = input("he<s>he\xE2\x96\x81he \xFF", true);
    assert_true(rt_token_encode(t, &in, s, w->out, 64, &w->n, &w->err));
    /* a space goes in front of the first fragment and of each behind a special token */
    expect(w, "\x09\x01\x09\x09 \xFF");
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef struct job {
    world *w;
    rt_token_input in;
    bool ok;
    double took;
} job;

static void *encode_job(void *to) {
    job *j = to;
    double start = seconds();
    j->ok = encode(j->w, j->in);
    j->took = seconds() - start;
    return NULL;
}

/* The part that needs no splitter: nothing recurses, time grows with length only. */
static void long_runs(void **state) {
    world *w = *state;
    static const char *const units[] = {"Z",  ".",   " ",  "\n",  "<",
                                        "<s", "<s>", "us", "[ab", "\xE4\xB8\xAD"};
    char *text = malloc(TEXT_MAX);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = strlen(units[u]);
        for (size_t i = 0; i < TEXT_MAX; i++) {
            text[i] = units[u][i % len];
        }
        job j = {.w = w, .in = {.text = text, .parse_special = true}};
        j.in.n_bytes = TEXT_MAX - TEXT_MAX % len;
        assert_true(on_small_stack(encode_job, &j) && j.ok);
        const char *name = units[u][0] == '\n' ? "\\n" : units[u];
        print_message("# 1 MiB of '%s': %.0f ms\n", name, j.took * 1e3);
        assert_true(j.took < 5);
    }
    free(text);
}

static void detok_all(const rt_tokenizer *t, const uint32_t *ids, size_t n, bool control,
                      char *out) {
    rt_detok d;
    rt_detok_init(&d, t, control, false);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at += rt_detok_push(&d, ids[i], out + at);
        assert_int_equal(lb_utf8_valid_bytes(out, at), at); /* whole characters at every step */
    }
    at += rt_detok_flush(&d, out + at);
    assert_int_equal(rt_detok_flush(&d, out + at), 0);
    out[at] = '\0';
}

static void bytes_to_text(const world *w, const char *bytes, const char *want) {
    uint32_t ids[64];
    char out[512];
    size_t n = strlen(bytes);
    for (size_t i = 0; i < n; i++) {
        ids[i] = FIRST_BYTE + (uint8_t)bytes[i];
    }
    detok_all(w->tok, ids, n, false, out);
    assert_string_equal(out, want);
}

#define R "\xEF\xBF\xBD"
static void streaming_gives_whole_characters(void **state) {
    world *w = *state;
    bytes_to_text(w, "h\xC3\xA9\xF0\x9F\x98\x80!", "h\xC3\xA9\xF0\x9F\x98\x80!");
    bytes_to_text(w, "\xF0\x9F\x98", R);
    bytes_to_text(w, "\x99", R);
    bytes_to_text(w, "\xC0\x80", R R);
    bytes_to_text(w, "\xED\xA0\x80", R R R);
    bytes_to_text(w, "\xF4\x90\x80\x80", R R R R);
    bytes_to_text(w, "\xE2\x82" "a", R "a");
    bytes_to_text(w, "\xE2\x82\xE2\x82\xAC", R "\xE2\x82\xAC");
    bytes_to_text(w, "\xF0\x9F\xF0\x9F\x98\x80\xFF", R "\xF0\x9F\x98\x80" R);
}

static void pieces(void **state) {
    world *w = *state;
    uint32_t ids[] = {BOS, THE, THINK, UNK, 10, 11, N_ROWS, UINT32_MAX, EOS};
    char out[512];
    detok_all(w->tok, ids, 9, false, out);
    assert_string_equal(out, "he<think>");
    detok_all(w->tok, ids, 9, true, out);
    assert_string_equal(out, "<s>he<think><unk></s>");
    rt_detok d;
    rt_detok_init(&d, w->tok, false, true);
    assert_int_equal(rt_detok_push(&d, BOS, out), 0);
    assert_int_equal(rt_detok_push(&d, FIRST_BYTE + ' ', out), 0);
    assert_int_equal(rt_detok_push(&d, FIRST_BYTE + ' ', out), 1);
    uint32_t eog[] = {EOS, 7, 300};
    w->tok->eog = eog;
    w->tok->n_eog = 3;
    assert_true(rt_token_is_eog(w->tok, EOS) && rt_token_is_eog(w->tok, 7));
    assert_true(rt_token_is_eog(w->tok, 300));
    assert_false(rt_token_is_eog(w->tok, 1) || rt_token_is_eog(w->tok, 8) ||
                 rt_token_is_eog(w->tok, 301));
}

static void scratch_limits(void **state) {
    world *w = *state;
    rt_token_scratch *s = NULL;
    assert_false(rt_token_scratch_new(w->tok, RT_TOKEN_TEXT_MAX + 1u, &w->arena, &s, &w->err));
    assert_int_equal(w->err.code, LB_LIMIT);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        lb_arena arena;
        lb_arena_init(&arena, "scratch", UINT64_C(1) << 30);
        arena.fail_after = n;
        done = rt_token_scratch_new(w->tok, 10, &arena, &s, &w->err);
        assert_true(done || w->err.code == LB_NO_MEMORY);
        lb_arena_reset(&arena);
        assert_true(n < 100);
    }
}

/* Room for long words is made when one comes; where there is none, that text fails alone. */
static void long_words_take_room(void **state) {
    world *w = *state;
    rt_token_scratch *s = NULL;
    lb_arena arena;
    enum { N = 100000 };
    static uint32_t ids[N];
    char *text = malloc(N);
    memset(text, 'x', N);
    lb_arena_init(&arena, "scratch", UINT64_C(1) << 24);
    assert_true(rt_token_scratch_new(w->tok, N, &arena, &s, &w->err));
    assert_true(arena.used_bytes < 20 * N);
    for (size_t n = N / 8; n <= N; n *= 2) {
        rt_token_input in = {.text = text, .n_bytes = n};
        arena.fail_after = 0;
        assert_false(rt_token_encode(w->tok, &in, s, ids, N, &w->n, &w->err));
        assert_int_equal(w->err.code, LB_NO_MEMORY);
        in.n_bytes = 4096;
        assert_true(rt_token_encode(w->tok, &in, s, ids, N, &w->n, &w->err));
        assert_int_equal(w->n, 4096);
        arena.fail_after = -1;
        in.n_bytes = n;
        assert_true(rt_token_encode(w->tok, &in, s, ids, N, &w->n, &w->err));
        assert_int_equal(w->n, n);
    }
    assert_true(arena.used_bytes < (14 + 64 + 2) * N);
    lb_arena_reset(&arena);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain_text, setup, teardown),
        cmocka_unit_test_setup_teardown(special_tokens_longest_first, setup, teardown),
        named_test_fixture("C03 parse_special off means off", without_parse_special, setup,
                           teardown),
        named_test_fixture("C02 user text gives no special tokens",
                           user_text_gives_no_special_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_user_spans, setup, teardown),
        named_test_fixture("C04 at most one BOS and EOS", bos_and_eos, setup, teardown),
        cmocka_unit_test_setup_teardown(more_ids_than_room_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(invalid_bytes_become_replacements, setup, teardown),
        cmocka_unit_test_setup_teardown(spm_spaces, setup, teardown),
        named_test_fixture("C01 long runs take linear time", long_runs, setup, teardown),
        named_test_fixture("C10 streams are whole characters", streaming_gives_whole_characters,
                           setup, teardown),
        cmocka_unit_test_setup_teardown(pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(scratch_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(long_words_take_room, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
