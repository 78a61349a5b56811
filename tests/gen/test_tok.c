/* test_tok.c -- tokenizers of small model files: what is read, what is refused and how it says so,
 * and what the tables then encode. cases B14, C02, C07. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf_bytes.h"
#include "named.h"
#include "tok_bridge.h"

typedef struct fixture {
    gguf_bytes b;
    lb_arena arena;
    lb_err err;
    lg_gguf *g;
    lg_tok *tok;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    gb_init(&f->b);
    lb_arena_init(&f->arena, "test", UINT64_C(1) << 28);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    lg_gguf_close(f->g);
    gb_free(&f->b);
    lb_arena_reset(&f->arena);
    free(f);
    return 0;
}

static bool read_tok(fixture *f, const char *pre) {
    gb_finish(&f->b);
    lg_gguf_close(f->g);
    f->g = gb_open(&f->b, &f->arena);
    f->err = (lb_err){0};
    return lg_tok_read(f->g, &(lg_tok_options){.pre = pre}, &f->arena, &f->tok, &f->err);
}

static void refused(fixture *f, const char *pre, lb_code code, const char *says) {
    assert_false(read_tok(f, pre));
    if (f->err.code != code || strstr(f->err.text, says) == NULL) {
        print_message("# got %d '%s', wanted %d '%s'\n", (int)f->err.code, f->err.text, (int)code,
                      says);
        fail();
    }
}

/* Byte-level BPE: 0 <s>, 1 </s>, 2 <think> (user-defined), then these. */
enum { BASE = 3 };
static const char *const words[] = {"h", "e", "l", "o", "\xC4\xA0", "he", "ll", "hell",
                                    "hello", "\xC4\xA0hello", "<", ">", "s", "<s", "\xC4\x8A",
                                    "t", "i", "n", "k"};
enum { N_WORDS = sizeof words / sizeof words[0], N_TOKENS = BASE + N_WORDS };
static const char *const merges[] = {"h e", "l l", "he ll", "hell o", "\xC4\xA0 hello", "< s",
                                     "<s >"};
enum { N_MERGES = sizeof merges / sizeof merges[0] };

static void add_tokens(fixture *f, const char *last) {
    gb_array(&f->b, "tokenizer.ggml.tokens", LG_GGUF_STR, N_TOKENS);
    gb_put_str(&f->b.keys, "<s>");
    gb_put_str(&f->b.keys, "</s>");
    gb_put_str(&f->b.keys, "<think>");
    for (int i = 0; i < N_WORDS; i++) {
        gb_put_str(&f->b.keys, i == N_WORDS - 1 ? last : words[i]);
    }
}

static void add_types(fixture *f, uint64_t n, int32_t last) {
    gb_array(&f->b, "tokenizer.ggml.token_type", LG_GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++) {
        int32_t type = i < 2 ? LG_TOK_CONTROL : i == 2 ? LG_TOK_USER : LG_TOK_NORMAL;
        gb_put_u32(&f->b.keys, (uint32_t)(i + 1 == n ? last : type));
    }
}

static void add_head(fixture *f, const char *model, const char *pre) {
    gb_str(&f->b, "general.architecture", "llama");
    gb_str(&f->b, "tokenizer.ggml.model", model);
    if (pre != NULL) {
        gb_str(&f->b, "tokenizer.ggml.pre", pre);
    }
}

static void add_bpe(fixture *f, const char *pre) {
    add_head(f, "gpt2", pre);
    add_tokens(f, "k");
    add_types(f, N_TOKENS, LG_TOK_NORMAL);
    gb_strs(&f->b, "tokenizer.ggml.merges", N_MERGES, merges);
    gb_u32(&f->b, "tokenizer.ggml.bos_token_id", 0);
    gb_u32(&f->b, "tokenizer.ggml.eos_token_id", 1);
}

static uint32_t id_of(const fixture *f, const char *printed) {
    for (uint32_t id = 0; id < f->tok->n_tokens; id++) {
        size_t n = f->tok->text_at[id + 1] - f->tok->text_at[id];
        if (n == strlen(printed) && memcmp(f->tok->text + f->tok->text_at[id], printed, n) == 0) {
            return id;
        }
    }
    fail_msg("no token prints '%s'", printed);
    return 0;
}

/* `want`: what each token prints, parted by '|'. */
static void encodes(fixture *f, const char *text, bool parse, bool add, const char *want) {
    rt_tokenizer rt = tok_bridge(f->tok);
    rt_token_input in = {.text = text, .n_bytes = strlen(text), .parse_special = parse,
                         .add_special = add};
    uint32_t ids[64];
    char got[512] = "";
    size_t n = tok_encode(&rt, &in, ids, 64);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = rt_token_text(&rt, ids[i], &len);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", i > 0 ? "|" : "",
                 (int)len, s);
    }
    assert_string_equal(got, want);
}

static void bpe_from_file_to_ids(void **state) {
    fixture *f = *state;
    add_bpe(f, "gpt-2");
    assert_true(read_tok(f, NULL));
    assert_int_equal(f->tok->kind, LG_TOK_BYTES);
    assert_int_equal(f->tok->n_tokens, N_TOKENS);
    assert_int_equal(f->tok->bos, 0);
    assert_int_equal(f->tok->unknown, LG_TOK_NONE);
    assert_false(f->tok->add_bos);
    encodes(f, "hello hello", false, true, "hello| hello");
    encodes(f, "hellohe\nhell", false, true, "hello|he|\n|hell");
    encodes(f, "<s>hello<think>", true, false, "<s>|hello|<think>");
    assert_int_equal(f->tok->byte_id['h'], BASE);
    assert_int_equal(f->tok->byte_id[' '], BASE + 4);
    assert_int_equal(f->tok->byte_id['z'], LG_TOK_NONE);
}

/* The merges could make "<s>" out of plain text; that one is dropped. */
static void merges_never_make_special_tokens(void **state) {
    fixture *f = *state;
    add_bpe(f, "bloom"); /* takes "<s>" as one word */
    assert_true(read_tok(f, NULL));
    assert_int_equal(f->tok->n_dropped_merges, 1);
    assert_int_equal(f->tok->n_ranks, N_MERGES - 1);
    encodes(f, "<s>", false, false, "<s|>");
    encodes(f, "<think>", false, false, "<|t|h|i|n|k|>");
}

static void switches_and_defaults(void **state) {
    fixture *f = *state;
    add_bpe(f, "llama-bpe");
    assert_true(read_tok(f, NULL));
    assert_true(f->tok->add_bos); /* this pre-tokenizer's default */
    assert_true(f->tok->whole_words);
    assert_non_null(f->tok->text_slots);
    encodes(f, "hello", false, true, "<s>|hello");
    gb_bool(&f->b, "tokenizer.ggml.add_bos_token", 0);
    gb_bool(&f->b, "tokenizer.ggml.add_eos_token", 1);
    assert_true(read_tok(f, NULL));
    encodes(f, "hello", false, true, "hello|</s>");
    assert_true(read_tok(f, "smollm"));
    assert_string_equal(f->tok->pre->name, "smollm");
    assert_false(f->tok->whole_words);
}

static void pre_must_be_known(void **state) {
    fixture *f = *state;
    add_bpe(f, NULL);
    refused(f, NULL, LB_MISSING, "say with --pre NAME");
    refused(f, "nosuch", LB_UNSUPPORTED, "pre-tokenizer 'nosuch' is not known");
    assert_true(read_tok(f, "qwen2"));
    gb_str(&f->b, "tokenizer.ggml.pre", "default");
    refused(f, NULL, LB_BAD_VALUE, "or --pre default if that is meant");
    assert_true(read_tok(f, "default"));
}

static void pre_in_the_file_may_be_unknown(void **state) {
    fixture *f = *state;
    add_bpe(f, "gpt-9");
    refused(f, NULL, LB_UNSUPPORTED, "pre-tokenizer 'gpt-9' is not known; --pre NAME");
    assert_true(read_tok(f, "gpt-2"));
}

static void kinds(void **state) {
    fixture *f = *state;
    gb_str(&f->b, "general.architecture", "llama");
    assert_true(read_tok(f, NULL));
    assert_null(f->tok);
    gb_str(&f->b, "tokenizer.ggml.model", "bert");
    refused(f, NULL, LB_UNSUPPORTED, "'bert' is not supported; gpt2 (BPE), llama (SPM) and gemma4");
}

static void no_vocabulary(void **state) {
    fixture *f = *state;
    add_head(f, "no_vocab", NULL);
    assert_true(read_tok(f, NULL));
    assert_null(f->tok);
}

static void no_tokens(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    refused(f, NULL, LB_MISSING, "'tokenizer.ggml.tokens'");
    gb_array(&f->b, "tokenizer.ggml.tokens", LG_GGUF_STR, 0);
    refused(f, NULL, LB_BAD_VALUE, "has no elements");
}

static void lengths_must_agree(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    add_types(f, 1, LG_TOK_NORMAL);
    refused(f, NULL, LB_BAD_VALUE, "'tokenizer.ggml.token_type': 1 elements for 22 tokens");
}

static void scores_must_agree(void **state) {
    fixture *f = *state;
    float scores[N_TOKENS - 1] = {0};
    add_head(f, "llama", NULL);
    add_tokens(f, "k");
    gb_f32s(&f->b, "tokenizer.ggml.scores", N_TOKENS - 1, scores);
    refused(f, NULL, LB_BAD_VALUE, "'tokenizer.ggml.scores': 21 elements for 22 tokens");
}

static void scores_must_be_numbers(void **state) {
    fixture *f = *state;
    float scores[N_TOKENS] = {0};
    uint32_t nan = 0x7FC00000;
    memcpy(&scores[7], &nan, 4);
    add_head(f, "llama", NULL);
    add_tokens(f, "k");
    gb_f32s(&f->b, "tokenizer.ggml.scores", N_TOKENS, scores);
    refused(f, NULL, LB_BAD_VALUE, "element 7");
}

static void types_have_a_range(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    add_types(f, N_TOKENS, 7);
    refused(f, NULL, LB_BAD_VALUE, "element 21 is 7; types are 0 to 6");
}

static void texts_are_unique(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "hello");
    refused(f, NULL, LB_DUPLICATE, "'hello' is both token 11 and token 21");
}

static void empty_texts_may_repeat(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    gb_strs(&f->b, "tokenizer.ggml.tokens", 3, (const char *[]){"", "a", ""});
    gb_strs(&f->b, "tokenizer.ggml.merges", 0, (const char *[]){""});
    assert_true(read_tok(f, NULL));
    encodes(f, "aa", false, false, "a|a");
}

static void bad_merge(const char *merge, lb_code code, const char *says) {
    void *state;
    setup(&state);
    fixture *f = state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    gb_strs(&f->b, "tokenizer.ggml.merges", 2, (const char *[]){"h e", merge});
    refused(f, NULL, code, says);
    teardown(&state);
}

static void merges_must_join_tokens(void **state) {
    (void)state;
    bad_merge("he", LB_BAD_FORMAT, "element 1 'he' is not two parts");
    bad_merge(" he", LB_BAD_FORMAT, "is not two parts");
    bad_merge("", LB_BAD_FORMAT, "element 1 '' is not two parts");
    bad_merge("h ", LB_MISSING, "names a part that is no token");
    bad_merge("h z", LB_MISSING, "element 1 'h z' names a part that is no token");
    bad_merge("zz ll", LB_MISSING, "names a part that is no token");
    bad_merge("h h", LB_MISSING, "makes a text that is no token");
}

static void first_of_equal_merges_counts(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    const char *const twice[] = {"l l", "h e", "l l", "he ll"};
    gb_strs(&f->b, "tokenizer.ggml.merges", 4, twice);
    assert_true(read_tok(f, NULL));
    assert_int_equal(f->tok->n_ranks, 3);
    encodes(f, "hell", false, false, "hell");
}

static void bad_id(const char *key, uint32_t id, const char *says) {
    void *state;
    setup(&state);
    fixture *f = state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    gb_strs(&f->b, "tokenizer.ggml.merges", 1, (const char *[]){"h e"});
    gb_u32(&f->b, key, id);
    refused(f, NULL, LB_LIMIT, says);
    teardown(&state);
}

static void special_ids_have_a_range(void **state) {
    (void)state;
    bad_id("tokenizer.ggml.bos_token_id", 22, "bos_token_id");
    bad_id("tokenizer.ggml.eos_token_id", UINT32_MAX, "eos_token_id");
    bad_id("tokenizer.ggml.unknown_token_id", 1000, "unknown_token_id");
    bad_id("tokenizer.ggml.eot_token_id", 1000, "eot_token_id");
}

static void added_tokens_must_be_named(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "gpt-2");
    add_tokens(f, "k");
    gb_strs(&f->b, "tokenizer.ggml.merges", 1, (const char *[]){"h e"});
    gb_bool(&f->b, "tokenizer.ggml.add_bos_token", 1);
    refused(f, NULL, LB_MISSING, "'tokenizer.ggml.bos_token_id' is missing");
}

static const struct {
    const char *text;
    lg_tok_type type;
    float score;
} spm[] = {
    {"<unk>", LG_TOK_UNKNOWN, 0},       {"<s>", LG_TOK_CONTROL, 0},
    {"</s>", LG_TOK_CONTROL, 0},        {"<0x0A>", LG_TOK_BYTE, 0},
    {"<0xE2>", LG_TOK_BYTE, 0},         {"<0x96>", LG_TOK_BYTE, 0},
    {"<0x82>", LG_TOK_BYTE, 0},         {"\xE2\x96\x81", LG_TOK_NORMAL, -9},
    {"a", LG_TOK_NORMAL, -8},           {"b", LG_TOK_NORMAL, -7},
    {"ab", LG_TOK_NORMAL, -2},          {"\xE2\x96\x81" "a", LG_TOK_NORMAL, -2},
    {"\xE2\x96\x81\xE2\x96\x81", LG_TOK_USER, 0}, {"<", LG_TOK_NORMAL, -5},
    {"s>", LG_TOK_NORMAL, -4},          {"s", LG_TOK_NORMAL, -3},
    {">", LG_TOK_NORMAL, -3},
};

static void add_spm(fixture *f) {
    enum { N = sizeof spm / sizeof spm[0] };
    float scores[N];
    add_head(f, "llama", "default");
    gb_array(&f->b, "tokenizer.ggml.tokens", LG_GGUF_STR, N);
    for (int i = 0; i < N; i++) {
        gb_put_str(&f->b.keys, spm[i].text);
        scores[i] = spm[i].score;
    }
    gb_array(&f->b, "tokenizer.ggml.token_type", LG_GGUF_I32, N);
    for (int i = 0; i < N; i++) {
        gb_put_u32(&f->b.keys, (uint32_t)spm[i].type);
    }
    gb_f32s(&f->b, "tokenizer.ggml.scores", N, scores);
}

static void spm_from_file_to_ids(void **state) {
    fixture *f = *state;
    add_spm(f);
    assert_true(read_tok(f, NULL));
    assert_int_equal(f->tok->kind, LG_TOK_SCORES);
    assert_int_equal(f->tok->bos, 1);
    assert_int_equal(f->tok->eos, 2);
    assert_int_equal(f->tok->unknown, 0);
    assert_int_equal(f->tok->n_ranks, 8);
    encodes(f, "ab", false, true, "<s>| a|b"); /* equal scores: the left pair */
    encodes(f, "bab", false, false, " |b|ab");
    encodes(f, "a\n", false, false, " a|\n");
    encodes(f, "\xE2\x96\x82", false, false, " |\xE2|\x96|\x82");
    encodes(f, "z", false, false, " |<unk>");
    encodes(f, "<s>", false, false, " |<|s>"); /* never the control token */
    encodes(f, "a<s>a", true, false, " a|<s>| a");
}

static void spm_defaults(void **state) {
    fixture *f = *state;
    add_spm(f);
    gb_bool(&f->b, "tokenizer.ggml.add_space_prefix", 0);
    gb_bool(&f->b, "tokenizer.ggml.add_bos_token", 0);
    assert_true(read_tok(f, NULL));
    encodes(f, "a<s>a", true, true, "a|<s>|a");
}

/* phi-3: every special token swallows what is behind it, but for a few. */
static void white_space_behind_is_swallowed(void **state) {
    fixture *f = *state;
    add_bpe(f, "gpt-2");
    gb_str(&f->b, "general.name", "A Phi-3 of mine");
    assert_true(read_tok(f, NULL));
    encodes(f, "<think> \n\t hello</s> ", true, false, "<think>|hello|</s>");
    encodes(f, "<think>hello <think>", true, false, "<think>|hello| |<think>");
    encodes(f, "<s> hello", true, false, "<s>| hello");
    encodes(f, "<think>  <think> ", true, false, "<think>|<think>");
    encodes(f, "<think> ", false, false, "<|t|h|i|n|k|>| ");
}

static void white_space_before_is_swallowed(void **state) {
    fixture *f = *state;
    add_head(f, "gpt2", "jina-v2-de");
    add_tokens(f, "<mask>");
    add_types(f, N_TOKENS, LG_TOK_CONTROL);
    gb_strs(&f->b, "tokenizer.ggml.merges", N_MERGES, merges);
    gb_str(&f->b, "general.name", "phi-2 3"); /* says nothing */
    assert_true(read_tok(f, NULL));
    encodes(f, "hello \t<mask> hello", true, false, "hello|<mask>| hello");
    encodes(f, " <mask><s> ", true, false, "<mask>|<s>| ");
}

static void names_of_any_length(void **state) {
    fixture *f = *state;
    add_bpe(f, "gpt-2");
    gb_str(&f->b, "general.name", "phi");
    assert_true(read_tok(f, NULL));
    encodes(f, "<think> hello", true, false, "<think>| hello");
}

static void characters(void **state) {
    fixture *f = *state;
    add_head(f, "gemma4", NULL);
    const char *const tokens[] = {"<bos>", "<0x7A>", "\xE2\x96\x81", "\xC3\xA9", "t", "\xC3\xA9t",
                                  "\xE2\x96\x81\xC3\xA9t", "\n", "\n\n", "\n\n\n"};
    gb_strs(&f->b, "tokenizer.ggml.tokens", 10, tokens);
    gb_array(&f->b, "tokenizer.ggml.token_type", LG_GGUF_I32, 10);
    for (uint32_t i = 0; i < 10; i++) {
        gb_put_u32(&f->b.keys, i == 0 ? 3 : i == 1 ? 6 : 1);
    }
    const char *const pairs[] = {"\xC3\xA9 t", "\xE2\x96\x81 \xC3\xA9t", "\n \n"};
    gb_strs(&f->b, "tokenizer.ggml.merges", 3, pairs);
    gb_u32(&f->b, "tokenizer.ggml.bos_token_id", 0);
    gb_bool(&f->b, "tokenizer.ggml.add_bos_token", 0);
    assert_true(read_tok(f, NULL));
    assert_int_equal(f->tok->kind, LG_TOK_CHARS);
    encodes(f, "\xC3\xA9t \xC3\xA9tz", false, true, "<bos>|\xC3\xA9t| \xC3\xA9t|z");
    encodes(f, "t\n\n\nt\n\n\n\n", false, false, "t|\n\n\n|t|\n\n|\n\n");
}

static bool is_eog(const fixture *f, uint32_t id) {
    rt_tokenizer rt = tok_bridge(f->tok);
    return rt_token_is_eog(&rt, id);
}

static void ends_by_key_and_by_text(void **state) {
    fixture *f = *state;
    const char *const tokens[] = {"a",           "<|im_end|>",   "<|endoftext|>", "b",
                                  "<|file_sep|>", "<PAD>",       "[PAD]",         "<|message|>",
                                  "</assistant>", "<|eom_id|>"};
    add_head(f, "gpt2", "gpt-2");
    gb_strs(&f->b, "tokenizer.ggml.tokens", 10, tokens);
    gb_strs(&f->b, "tokenizer.ggml.merges", 0, tokens);
    gb_u32(&f->b, "tokenizer.ggml.eos_token_id", 3);
    assert_true(read_tok(f, NULL));
    static const bool want[10] = {false, true, true, true, true, true, false, false, true, true};
    for (uint32_t id = 0; id < 10; id++) {
        assert_int_equal(is_eog(f, id), want[id]);
    }
    assert_int_equal(f->tok->type[1], LG_TOK_CONTROL);
    assert_int_equal(f->tok->type[3], LG_TOK_NORMAL);
    assert_int_equal(f->tok->type[6], LG_TOK_NORMAL); /* <PAD> has that role already */
    assert_int_equal(f->tok->type[7], LG_TOK_USER);
    encodes(f, "a<|im_end|>", true, false, "a|<|im_end|>");
}

static void harmony_ends_a_message_not_a_turn(void **state) {
    fixture *f = *state;
    const char *const tokens[] = {"<|end|>", "<|return|>", "<|call|>", "<|channel|>", "a"};
    add_head(f, "gpt2", "gpt-4o");
    gb_strs(&f->b, "tokenizer.ggml.tokens", 5, tokens);
    gb_strs(&f->b, "tokenizer.ggml.merges", 0, tokens);
    assert_true(read_tok(f, NULL));
    assert_false(is_eog(f, 0));
    assert_true(is_eog(f, 1) && is_eog(f, 2));
    assert_int_equal(f->tok->type[0], LG_TOK_USER);
}

static void image_holds_the_tables(void **state) {
    fixture *f = *state;
    add_bpe(f, "llama-bpe");
    assert_true(read_tok(f, NULL));
    const uint8_t *image = NULL;
    size_t n = 0;
    const lg_value *v = NULL;
    assert_true(lg_tok_image(f->tok, &f->arena, &image, &n, &v, &f->err));
    const lg_value *tables = lg_value_find(v, "tables");
    assert_int_equal(lg_value_count(tables), 10); /* all but ranks by score */
    uint64_t end = 0;
    for (size_t i = 0; i < 10; i++) {
        const lg_value *row = tables->u.array.items[i];
        uint64_t at = (uint64_t)lg_value_find(row, "offset")->u.integer;
        assert_int_equal(at % 64, 0);
        assert_true(at >= end && at < end + 64);
        end = at + (uint64_t)lg_value_find(row, "n_bytes")->u.integer;
    }
    assert_int_equal(n, (end + 63) / 64 * 64);
    assert_memory_equal(image, f->tok->text, f->tok->text_at[f->tok->n_tokens]);
    assert_non_null(lg_value_find(v, "splitter"));
    assert_int_equal(lg_value_find(v, "bos")->u.integer, 0);
    assert_null(lg_value_find(v, "unknown"));
    assert_int_equal(id_of(f, " hello"), 12);
}

static void memory_may_run_out_anywhere(void **state) {
    fixture *f = *state;
    add_bpe(f, "llama-bpe");
    assert_true(read_tok(f, NULL));
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        lb_arena small;
        lb_arena_init(&small, "small", UINT64_C(1) << 28);
        small.fail_after = n;
        const uint8_t *image = NULL;
        const lg_value *v = NULL;
        size_t n_bytes = 0;
        lg_tok *t = NULL;
        lb_err err = {0};
        done = lg_tok_read(f->g, &(lg_tok_options){0}, &small, &t, &err) &&
               lg_tok_image(t, &small, &image, &n_bytes, &v, &err);
        assert_true(done || err.code == LB_NO_MEMORY);
        lb_arena_reset(&small);
    }
}

/* Whatever a file holds: it is refused, or its tables encode any text within their bounds. */
static void try_bytes(const uint8_t *bytes, size_t n_bytes, unsigned *n_read) {
    static const char text[] = "<s>hello ab\n\n \xE2\x96\x82 \xFF<think>  </s> it's 123";
    lb_map map = {.data = bytes, .n_bytes = n_bytes};
    lb_arena arena;
    lb_err err = {0};
    lg_gguf *g = NULL;
    lg_tok *t = NULL;
    lb_arena_init(&arena, "mutant", UINT64_C(1) << 24);
    if (lg_gguf_open_memory(&map, "mutant", &arena, &g, &err) &&
        lg_tok_read(g, &(lg_tok_options){0}, &arena, &t, &err) && t != NULL) {
        rt_tokenizer rt = tok_bridge(t);
        rt_token_scratch *scratch = NULL;
        uint32_t ids[256];
        size_t n = 0;
        rt_token_input in = {.text = text, .n_bytes = sizeof text - 1, .parse_special = true,
                             .add_special = true, .at_most_one = true};
        assert_true(rt_token_scratch_new(&rt, sizeof text, &arena, &scratch, &err));
        if (rt_token_encode(&rt, &in, scratch, ids, 256, &n, &err)) {
            for (size_t i = 0; i < n && i < 256; i++) {
                assert_true(ids[i] < t->n_tokens);
            }
        }
        *n_read += 1;
    }
    lg_gguf_close(g);
    lb_arena_reset(&arena);
}

static void mutants(fixture *f) {
    uint64_t seed = 1;
    unsigned n_read = 0;
    enum { N_MUTANTS = 4000 };
    gb_finish(&f->b);
    uint8_t *bytes = malloc(f->b.file.n_bytes);
    for (int k = 0; k < N_MUTANTS; k++) {
        memcpy(bytes, f->b.file.data, f->b.file.n_bytes);
        for (int edits = 1 + k % 3; edits > 0; edits--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t at = (size_t)(seed >> 20) % f->b.file.n_bytes;
            bytes[at] = (uint8_t)(seed >> 56 & 1 ? bytes[at] ^ 1u << (seed >> 57 & 7) : seed >> 50);
        }
        try_bytes(bytes, f->b.file.n_bytes, &n_read);
    }
    for (size_t n = 0; n < f->b.file.n_bytes; n++) {
        memcpy(bytes, f->b.file.data, n); /* cut off at every byte */
        try_bytes(bytes, n, &n_read);
    }
    free(bytes);
    print_message("# %u of the mutants were read as tokenizers\n", n_read);
    assert_true(n_read > 20);
}

static void mutated_bpe(void **state) {
    add_bpe(*state, "gpt-2");
    mutants(*state);
}

static void mutated_spm(void **state) {
    add_spm(*state);
    mutants(*state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bpe_from_file_to_ids),
        named_test_fixture("C02 merges never make special tokens", merges_never_make_special_tokens,
                           setup, teardown),
        TEST(switches_and_defaults),
        named_test_fixture("C07 the pre-tokenizer must be known", pre_must_be_known, setup,
                           teardown),
        TEST(pre_in_the_file_may_be_unknown),
        TEST(kinds),
        TEST(no_vocabulary),
        TEST(no_tokens),
        TEST(lengths_must_agree),
        TEST(scores_must_agree),
        TEST(scores_must_be_numbers),
        TEST(types_have_a_range),
        TEST(texts_are_unique),
        TEST(empty_texts_may_repeat),
        TEST(merges_must_join_tokens),
        TEST(first_of_equal_merges_counts),
        TEST(special_ids_have_a_range),
        TEST(added_tokens_must_be_named),
        TEST(spm_from_file_to_ids),
        TEST(spm_defaults),
        TEST(white_space_behind_is_swallowed),
        TEST(white_space_before_is_swallowed),
        TEST(names_of_any_length),
        TEST(characters),
        TEST(ends_by_key_and_by_text),
        TEST(harmony_ends_a_message_not_a_turn),
        TEST(image_holds_the_tables),
        TEST(memory_may_run_out_anywhere),
        TEST(mutated_bpe),
        TEST(mutated_spm),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("tok", tests, NULL, NULL);
}
