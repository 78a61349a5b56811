/* test_inspect.c -- the report on a model file: counts, roles, denied names, hostile strings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gen/gguf_bytes.h"
#include "inspect.h"
#include "inspect_data.h"
#include "value_text.h"

/* A file and the arena of its report. */
typedef struct fixture {
    gguf_bytes b;
    lb_arena a;
    lb_text text;
    lb_err e;
} fixture;

static void setup(fixture *f) {
    memset(f, 0, sizeof *f);
    gb_init(&f->b);
    lb_arena_init(&f->a, "inspect", 16 << 20);
}

static void teardown(fixture *f) {
    gb_free(&f->b);
    lb_arena_reset(&f->a);
}

static bool inspect(fixture *f, const char *path, bool json) {
    lg_gguf *g = gb_open(&f->b, &f->a);
    lb_text_init(&f->text, &f->a);
    return lg_inspect(g, path, json, &f->text, &f->e);
}

static const char *report(fixture *f, const char *path) {
    if (!inspect(f, path, false)) {
        fail_msg("%s", f->e.text);
    }
    return f->text.data;
}

static const lg_value *json(fixture *f, const char *path) {
    lg_value *v = NULL;
    if (!inspect(f, path, true) ||
        !lg_value_from_json("report", f->text.data, f->text.n_bytes, &f->a, &v, &f->e)) {
        fail_msg("%s", f->e.text);
    }
    return v;
}

static void has(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("no '%s' in:\n%s", part, text);
    }
}

static void has_not(const char *text, const char *part) {
    if (strstr(text, part) != NULL) {
        fail_msg("'%s' in:\n%s", part, text);
    }
}

static int64_t int_of(const lg_value *map, const char *key) {
    const lg_value *v = lg_value_find(map, key);
    assert_non_null(v);
    assert_int_equal(v->kind, LG_VALUE_INT);
    return v->u.integer;
}

static const char *str_of(const lg_value *map, const char *key) {
    const lg_value *v = lg_value_find(map, key);
    assert_non_null(v);
    assert_int_equal(v->kind, LG_VALUE_STRING);
    return v->u.string.bytes;
}

static void text_of_a_small_model(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_tiny_llama(&f.b, 2, LG_QTYPE_Q8_0);
    const char *t = report(&f, "dir/tiny-Q8_0.gguf");
    has(t, "file \"dir/tiny-Q8_0.gguf\"\n");
    has(t, "  architecture  \"llama\"\n");
    has(t, "  layers        2\n");
    has(t, "  context       128\n");
    has(t, "files: 1, ");
    has(t, "  blk.N.attn_q.weight                q8_0          2             8192 ");
    has(t, " 8704 ");
    has(t, "[64, 64]\n");
    has(t, "  bos           0 \"t0\"\n");
    has(t, "  tokens        320, 1 merges\n");
    has(t, "  chat template 14 bytes\n");
    has(t, "string 320: [\"t0\", \"t1\", \"t2\", \"t3\", \"t4\", ...]\n");
    has(t, "warnings: 0\n");
    teardown(&f);
}

static void json_of_a_small_model(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_tiny_llama(&f.b, 2, LG_QTYPE_Q8_0);
    const lg_value *v = json(&f, "tiny.gguf");
    assert_string_equal(str_of(v, "schema"), "lagen.inspect/1");
    assert_string_equal(str_of(v, "architecture"), "llama");
    assert_int_equal(int_of(v, "layers"), 2);
    assert_int_equal(int_of(v, "context_length"), 128);
    assert_int_equal(int_of(v, "tensors"), 20);
    const lg_value *groups = lg_value_find(v, "groups");
    assert_int_equal(lg_value_count(groups), 4); /* embedding attention ffn norms: nothing else */
    int64_t sum = 0;
    for (size_t i = 0; i < lg_value_count(groups); i++) {
        sum += int_of(groups->u.array.items[i], "bytes");
    }
    assert_int_equal(sum, int_of(v, "bytes"));
    const lg_value *roles = lg_value_find(v, "roles");
    assert_int_equal(lg_value_count(roles), 11);
    sum = 0;
    for (size_t i = 0; i < lg_value_count(roles); i++) {
        sum += int_of(roles->u.array.items[i], "bytes");
    }
    assert_int_equal(sum, int_of(v, "bytes"));
    const lg_value *tok = lg_value_find(v, "tokenizer");
    assert_int_equal(int_of(tok, "tokens"), 320);
    assert_string_equal(str_of(lg_value_find(lg_value_find(tok, "special"), "eos"), "text"), "t1");
    assert_int_equal(lg_value_count(lg_value_find(v, "metadata")), f.b.n_keys);
    assert_int_equal(lg_value_count(lg_value_find(v, "warnings")), 0);
    teardown(&f);
}

static void files_that_say_little(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    const char *t = report(&f, "x.gguf");
    has(t, "architecture  not said");
    has(t, "tokenizer: none");
    has(t, "0 in 0 tensors");
    const lg_value *v = json(&f, "x.gguf");
    assert_int_equal(lg_value_find(v, "architecture")->kind, LG_VALUE_NIL);
    assert_int_equal(lg_value_find(v, "tokenizer")->kind, LG_VALUE_NIL);
    assert_int_equal(lg_value_count(lg_value_find(v, "roles")), 0);
    teardown(&f);
}

static void groups_by_name(void **state) {
    (void)state;
    static const struct {
        const char *tensor;
        const char *role;
        const char *group;
    } want[] = {
        {"token_embd.weight", "token_embd.weight", "embedding"},
        {"token_embd_norm.weight", "token_embd_norm.weight", "norms"},
        {"output.weight", "output.weight", "output"},
        {"output_norm.weight", "output_norm.weight", "norms"},
        {"rope_freqs.weight", "rope_freqs.weight", "other"},
        {"blk.12.attn_output.weight", "blk.N.attn_output.weight", "attention"},
        {"blk.12.attn_q_norm.weight", "blk.N.attn_q_norm.weight", "norms"},
        {"blk.3.ffn_up_exps.weight", "blk.N.ffn_up_exps.weight", "experts"},
        {"blk.3.ffn_up_shexp.weight", "blk.N.ffn_up_shexp.weight", "ffn"},
        {"blk.3.ffn_gate_inp.weight", "blk.N.ffn_gate_inp.weight", "ffn"},
        {"blk.3.exp_probs_b.bias", "blk.N.exp_probs_b.bias", "ffn"},
        {"blk.3.ffn_up.7.weight", "blk.N.ffn_up.N.weight", "experts"},
        {"blk.3.ssm_in.weight", "blk.N.ssm_in.weight", "other"},
        {"x1.2y.33.", "x1.2y.N.", "other"},
        {"..4", "..N", "other"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        fixture f;
        setup(&f);
        gb_tensor(&f.b, want[i].tensor, LG_QTYPE_F32, 1, (uint64_t[]){3});
        const lg_value *roles = lg_value_find(json(&f, "x.gguf"), "roles");
        assert_int_equal(lg_value_count(roles), 1);
        assert_string_equal(str_of(roles->u.array.items[0], "role"), want[i].role);
        assert_string_equal(str_of(roles->u.array.items[0], "group"), want[i].group);
        teardown(&f);
    }
}

/* A model of two layers whose attention, dense and expert matrices have the types given. */
static void put_mix(fixture *f, lg_qtype attn, lg_qtype ffn, lg_qtype experts) {
    for (unsigned i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.attn_q.weight", i);
        gb_tensor(&f->b, name, attn, 2, (uint64_t[]){256, 16});
        snprintf(name, sizeof name, "blk.%u.ffn_up.weight", i);
        gb_tensor(&f->b, name, ffn, 2, (uint64_t[]){256, 16});
        snprintf(name, sizeof name, "blk.%u.ffn_up_exps.weight", i);
        gb_tensor(&f->b, name, experts, 3, (uint64_t[]){256, 64, 8});
    }
    gb_tensor(&f->b, "token_embd.weight", LG_QTYPE_F32, 2, (uint64_t[]){256, 4096});
}

static void contradicted_names(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int file_type; /* -1: no such key */
        lg_qtype attn, ffn, experts;
        const char *says; /* NULL: no warning */
    } want[] = {
        {"m-Q4_K_M.gguf", 15, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, NULL},
        {"m.Q4_K_M.gguf", -1, LG_QTYPE_F16, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K,
         "the file's name says Q4_K_M, but the attention matrices are f16 (100.0 % of"},
        {"UD/m-UD-IQ4_XS-00001-of-00002.gguf", -1, LG_QTYPE_IQ4_XS, LG_QTYPE_IQ4_XS,
         LG_QTYPE_IQ3_S,
         "the file's name says IQ4_XS, but most bytes of the layers' matrices are iq3_s (92.8 %"},
        {"m-iq3_xs.gguf", -1, LG_QTYPE_IQ3_XXS, LG_QTYPE_IQ3_S, LG_QTYPE_IQ3_XXS, NULL},
        {"m-mxfp4.gguf", 38, LG_QTYPE_Q8_0, LG_QTYPE_Q8_0, LG_QTYPE_MXFP4, NULL},
        {"m-MXFP4_MOE.gguf", -1, LG_QTYPE_Q8_0, LG_QTYPE_Q8_0, LG_QTYPE_Q4_K,
         "says MXFP4_MOE, but the experts matrices are q4_k"},
        {"m-RoutedQ2_K-Last27Q3_K.gguf", 1024 + 10, LG_QTYPE_Q8_0, LG_QTYPE_Q8_0, LG_QTYPE_Q3_K,
         "general.file_type says Q2_K, but most bytes of the layers' matrices are q3_k"},
        {"Q8_0/m.gguf", -1, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, NULL},
        {"mQ8_0.gguf", -1, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, NULL},
        {"m-Q4_K_M_imat.gguf", -1, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, LG_QTYPE_Q4_K, NULL},
        {"m-f16.gguf", 1, LG_QTYPE_Q4_K, LG_QTYPE_F16, LG_QTYPE_F16,
         "the file's name, like general.file_type, says F16, but the attention matrices are q4_k"},
        {"m.gguf", 999, LG_QTYPE_Q4_K, LG_QTYPE_F16, LG_QTYPE_F16, NULL},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        fixture f;
        setup(&f);
        if (want[i].file_type >= 0) {
            gb_u32(&f.b, "general.file_type", (uint32_t)want[i].file_type);
        }
        put_mix(&f, want[i].attn, want[i].ffn, want[i].experts);
        const char *t = report(&f, want[i].path);
        if (want[i].says == NULL) {
            has_not(t, " says ");
        } else {
            has(t, want[i].says);
        }
        teardown(&f);
    }
}

static void mixed_types_and_shapes(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_tensor(&f.b, "blk.0.attn_q.weight", LG_QTYPE_Q4_0, 2, (uint64_t[]){32, 2});
    gb_tensor(&f.b, "blk.1.attn_q.weight", LG_QTYPE_Q4_0, 2, (uint64_t[]){32, 3});
    gb_tensor(&f.b, "blk.2.attn_q.weight", LG_QTYPE_TQ1_0, 2, (uint64_t[]){256, 2});
    const char *t = report(&f, "x.gguf");
    has(t, "q4_0          2              160               90");
    has(t, "[32, 2] and others\n");
    has(t, "tq1_0         1 ");
    has(t, "1 tensors are of type tq1_0, which this lagen cannot run\n");
    const lg_value *roles = lg_value_find(json(&f, "x.gguf"), "roles");
    assert_int_equal(lg_value_count(roles), 2);
    assert_int_equal(lg_value_find(roles->u.array.items[0], "shape")->kind, LG_VALUE_NIL);
    teardown(&f);
}

static void hostile_strings_stay_on_their_line(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_str(&f.b, "general.name", "a\nb\x1b[31m\xFF\xC2\x9B\"\\ \xE2\x80\xAE");
    gb_str_n(&f.b, "nul", "x\0y", 3);
    char longer[6000];
    for (size_t i = 0; i + 3 <= sizeof longer; i += 3) {
        memcpy(longer + i, "\xE2\x82\xAC", 3);
    }
    gb_str_n(&f.b, "long", longer, sizeof longer);
    gb_str(&f.b, "cut", "\xF0\x9F\x98");
    const char *t = report(&f, "odd\npath.gguf");
    has(t, "file \"odd\\npath.gguf\"\n");
    has(t, "\"a\\nb\\x1b[31m\xEF\xBF\xBD\\x9b\\\"\\\\ \\u202e\"\n");
    has(t, "\"x\\x00y\"\n");
    has(t, "\xE2\x82\xAC...\"\n");
    has(t, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
    for (const char *p = t; *p != '\0'; p++) {
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
    }
    const lg_value *meta = lg_value_find(json(&f, "x.gguf"), "metadata");
    const lg_value *cut = meta->u.array.items[2];
    assert_true(lg_value_find(cut, "cut")->u.boolean);
    assert_int_equal(lg_value_find(cut, "value")->u.string.n_bytes, 4095);
    teardown(&f);
}

static void numbers_that_json_cannot_hold(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_u64(&f.b, "big", UINT64_MAX);
    gb_f32(&f.b, "nan", NAN);
    gb_f64(&f.b, "inf", -INFINITY);
    gb_bool(&f.b, "two", 2);
    gb_array(&f.b, "none", LG_GGUF_STR, 0);
    const lg_value *meta = lg_value_find(json(&f, "x.gguf"), "metadata");
    assert_string_equal(str_of(meta->u.array.items[0], "value"), "18446744073709551615");
    assert_string_equal(str_of(meta->u.array.items[1], "value"), "nan");
    assert_string_equal(str_of(meta->u.array.items[2], "value"), "-inf");
    assert_int_equal(int_of(meta->u.array.items[3], "value"), 2);
    assert_int_equal(int_of(meta->u.array.items[4], "elems"), 0);
    has(report(&f, "x.gguf"), "string 0: []\n");
    teardown(&f);
}

static void refused(fixture *f, lb_code code, const char *says) {
    assert_false(inspect(f, "x.gguf", false));
    if (f->e.code != code || strstr(f->e.text, says) == NULL) {
        fail_msg("code %d '%s'; expected '%s'", (int)f->e.code, f->e.text, says);
    }
    assert_false(inspect(f, "x.gguf", true));
    assert_int_equal(f->e.code, code);
    teardown(f);
}

/* B03: every key that the report reads by meaning, once as each type. */
static void keys_of_wrong_types(void **state) {
    (void)state;
    static const struct {
        const char *key;
        bool integer; /* any integer type will do */
        lg_gguf_type other;
    } want[] = {
        {"general.name", false, LG_GGUF_STR},
        {"general.architecture", false, LG_GGUF_STR},
        {"general.file_type", true, LG_GGUF_U32},
        {"llama.context_length", true, LG_GGUF_U32},
        {"llama.block_count", true, LG_GGUF_U32},
        {"tokenizer.ggml.model", false, LG_GGUF_STR},
        {"tokenizer.ggml.pre", false, LG_GGUF_STR},
        {"tokenizer.ggml.bos_token_id", true, LG_GGUF_U32},
        {"tokenizer.chat_template", false, LG_GGUF_STR},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        for (lg_gguf_type t = LG_GGUF_U8; t < LG_GGUF_N_TYPES; t++) {
            bool integer = t != LG_GGUF_F32 && t != LG_GGUF_F64 && t != LG_GGUF_STR &&
                           t != LG_GGUF_BOOL && t != LG_GGUF_ARRAY;
            fixture f;
            setup(&f);
            if (strcmp(want[i].key, "general.architecture") != 0) {
                gb_str(&f.b, "general.architecture", "llama");
            }
            gb_any(&f.b, want[i].key, t);
            gb_tensor(&f.b, "blk.0.attn_q.weight", LG_QTYPE_F32, 1, (uint64_t[]){3});
            if ((want[i].integer && integer) || t == want[i].other) {
                report(&f, "x.gguf");
                teardown(&f);
            } else {
                refused(&f, LB_BAD_TYPE, want[i].key);
            }
        }
    }
}

/* B14: arrays of the tokenizer. */
static void tokenizer_arrays(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_strs(&f.b, "tokenizer.ggml.tokens", 3, (const char *[]){"a", "b", "c"});
    gb_f32s(&f.b, "tokenizer.ggml.scores", 2, (float[]){1, 2});
    refused(&f, LB_BAD_SHAPE, "key 'tokenizer.ggml.scores': 2 elements for 3 tokens");
    setup(&f);
    gb_strs(&f.b, "tokenizer.ggml.tokens", 3, (const char *[]){"a", "b", "c"});
    gb_i32s(&f.b, "tokenizer.ggml.token_type", 1, (int32_t[]){1});
    refused(&f, LB_BAD_SHAPE, "key 'tokenizer.ggml.token_type': 1 elements for 3 tokens");
    setup(&f);
    gb_u32s(&f.b, "tokenizer.ggml.tokens", 1, (uint32_t[]){1});
    refused(&f, LB_BAD_TYPE, "key 'tokenizer.ggml.tokens': array of u32 where an array of string");
    setup(&f);
    gb_str(&f.b, "tokenizer.ggml.merges", "a b");
    refused(&f, LB_BAD_TYPE, "key 'tokenizer.ggml.merges': string where an array of string");
    setup(&f);
    gb_strs(&f.b, "tokenizer.ggml.tokens", 3, (const char *[]){"a", "b", "c"});
    gb_u32(&f.b, "tokenizer.ggml.bos_token_id", 3);
    gb_u64(&f.b, "tokenizer.ggml.eos_token_id", UINT64_MAX);
    const char *t = report(&f, "x.gguf");
    has(t, "  bos           3 (no such token)\n");
    has(t, "key 'tokenizer.ggml.bos_token_id': 3 is none of the 3 tokens\n");
    json(&f, "x.gguf");
    teardown(&f);
}

/* B12: 513 layers. */
/* Shares and bits are to the nearest. */
static void ratios_are_rounded(void **state) {
    (void)state;
    assert_int_equal(lg_inspect_permille(2, 3), 667);
    assert_int_equal(lg_inspect_permille(1, 3), 333);
    assert_int_equal(lg_inspect_permille(1, 2000), 1);
    assert_int_equal(lg_inspect_permille(1, 2001), 0);
    assert_int_equal(lg_inspect_permille(0, 0), 0);
    assert_int_equal(lg_inspect_permille(UINT64_MAX, UINT64_MAX), 1000);
    assert_int_equal(lg_inspect_permille(UINT64_MAX / 2, UINT64_MAX), 500);
    const lg_tally t = {.n_elems = 18450748, .n_bytes = 12223472}; /* 5.29994 bits */
    assert_int_equal(lg_inspect_centibits(&t), 530);
}

static void too_many_layers(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    gb_str(&f.b, "general.architecture", "llama");
    gb_u32(&f.b, "llama.block_count", 513);
    refused(&f, LB_LIMIT, "key 'llama.block_count': 513 is not from 1 to 512");
}

static void each_allocation_may_fail(void **state) {
    (void)state;
    for (int as_json = 0; as_json <= 1; as_json++) {
        bool ok = false;
        for (int64_t n = 0; !ok; n++) {
            fixture f;
            setup(&f);
            gb_tiny_llama(&f.b, 1, LG_QTYPE_Q8_1);
            lg_gguf *g = gb_open(&f.b, &f.a);
            lb_text_init(&f.text, &f.a);
            f.a.fail_after = n;
            ok = lg_inspect(g, "m-Q8_0.gguf", as_json == 1, &f.text, &f.e);
            if (!ok) {
                assert_int_equal(f.e.code, LB_NO_MEMORY);
            } else {
                assert_true(n > 20);
            }
            teardown(&f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_a_small_model),
        cmocka_unit_test(json_of_a_small_model),
        cmocka_unit_test(files_that_say_little),
        cmocka_unit_test(groups_by_name),
        cmocka_unit_test(contradicted_names),
        cmocka_unit_test(mixed_types_and_shapes),
        cmocka_unit_test(hostile_strings_stay_on_their_line),
        cmocka_unit_test(numbers_that_json_cannot_hold),
        cmocka_unit_test(keys_of_wrong_types),
        cmocka_unit_test(tokenizer_arrays),
        cmocka_unit_test(ratios_are_rounded),
        cmocka_unit_test(too_many_layers),
        cmocka_unit_test(each_allocation_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
