/* test_recipe.c -- recipes: which one knows a file, what it may say, what the file says itself; and
 * those in models/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "gguf_bytes.h"
#include "gguf_value.h"
#include "recipe.h"
#include "tok.h"

/* A file, a folder of recipes, and what was found. */
typedef struct found {
    lb_arena arena;
    gguf_bytes bytes;
    lg_gguf *file;
    folder f;
    lg_recipe r;
    lb_err err;
} found;

static void open_found(found *x, void (*keys)(gguf_bytes *b)) {
    memset(x, 0, sizeof *x);
    lb_arena_init(&x->arena, "recipe", 1 << 26);
    gb_tiny_llama(&x->bytes, 1, LG_QTYPE_F32);
    if (keys != NULL) {
        keys(&x->bytes);
    }
    x->file = gb_open(&x->bytes, &x->arena);
    assert_true(folder_open(&x->f));
}

static void close_found(found *x) {
    lg_gguf_close(x->file);
    gb_free(&x->bytes);
    assert_true(folder_close(&x->f));
    lb_arena_reset(&x->arena);
}

static bool find(found *x) {
    x->err = (lb_err){0};
    return lg_recipe_find(x->f.path, x->file, &x->arena, &x->r, &x->err);
}

/* recipe(file) with this body. */
static void put(found *x, const char *name, const char *body) {
    char text[1024];
    snprintf(text, sizeof text, "return { recipe = function(file)\n%s\nend }\n", body);
    assert_true(folder_put(&x->f, name, text));
}

static void without_a_recipe_there_are_defaults(void **state) {
    (void)state;
    found x;
    open_found(&x, NULL);
    assert_true(find(&x));
    assert_null(x.r.name);
    assert_true(x.r.sampling.temperature == 0.8 && x.r.sampling.top_p == 0.95 &&
                x.r.sampling.min_p == 0.05 && x.r.sampling.repeat_penalty == 1.0);
    assert_true(x.r.sampling.top_k == 40 && x.r.sampling.repeat_last_n == 64);
    put(&x, "other.lua", "return false");
    put(&x, "notes.txt", "no Lua at all");
    assert_true(find(&x));
    assert_null(x.r.name);
    assert_true(lg_recipe_find("no/such/folder", x.file, &x.arena, &x.r, &x.err));
    assert_null(x.r.name);
    close_found(&x);
}

static void the_recipe_that_knows_the_file(void **state) {
    (void)state;
    found x;
    open_found(&x, NULL);
    put(&x, "a.lua", "return false");
    put(&x, "mine.lua",
        "return file.meta['general.architecture'] == 'llama' and file.meta['llama.block_count'] == 1\n"
        "and { why = 'seen', thinking = 'off', ends = { '<end>', '<stop>' }, output = 'hermes',\n"
        "sampling = { temperature = 1, top_k = 0, repeat_penalty = 1.1 } }");
    assert_true(find(&x));
    assert_string_equal(x.r.name, "mine");
    assert_string_equal(x.r.why, "seen");
    assert_string_equal(x.r.thinking, "off");
    assert_string_equal(x.r.output->u.string.bytes, "hermes");
    assert_int_equal(x.r.n_ends, 2);
    assert_string_equal(x.r.ends[1], "<stop>");
    assert_true(x.r.sampling.temperature == 1.0 && x.r.sampling.top_k == 0 &&
                x.r.sampling.repeat_penalty == 1.1 && x.r.sampling.top_p == 0.95);
    put(&x, "second.lua", "return { why = 'too' }");
    assert_false(find(&x));
    assert_int_equal(x.err.code, LB_DUPLICATE);
    assert_non_null(strstr(x.err.text, "mine.lua and second.lua"));
    close_found(&x);
}

static void own_sampling(gguf_bytes *b) {
    gb_f32(b, "general.sampling.temp", 0.25F);
    gb_f32(b, "general.sampling.top_p", 1.0F);
    gb_i32(b, "general.sampling.top_k", 7);
    gb_f32(b, "general.sampling.penalty_repeat", 1.5F);
    gb_i32(b, "general.sampling.penalty_last_n", -1);
}

static void the_file_s_own_numbers_win(void **state) {
    (void)state;
    found x;
    open_found(&x, own_sampling);
    put(&x, "mine.lua",
        "return { why = 'seen', sampling = { temperature = 1.0, min_p = 0.5, top_k = 3 } }");
    assert_true(find(&x));
    assert_true(x.r.sampling.temperature == 0.25 && x.r.sampling.top_p == 1.0 &&
                x.r.sampling.min_p == 0.5 && x.r.sampling.repeat_penalty == 1.5);
    assert_true(x.r.sampling.top_k == 7 && x.r.sampling.repeat_last_n == -1);
    close_found(&x);
}

static void hot(gguf_bytes *b) {
    gb_f32(b, "general.sampling.temp", -1.0F);
}

static void many(gguf_bytes *b) {
    gb_i32(b, "general.sampling.top_k", 1 << 25);
}

static void text(gguf_bytes *b) {
    gb_str(b, "general.sampling.min_p", "a little");
}

static void bad_numbers_of_the_file_are_refused(void **state) {
    (void)state;
    static const struct {
        void (*keys)(gguf_bytes *b);
        lb_code code;
        const char *says;
    } bad[] = {{hot, LB_BAD_VALUE, "key 'general.sampling.temp' is -1; it may be 0 to 1000"},
               {many, LB_BAD_VALUE, "top_k is 33554432; it may be -1 to 16777216"},
               {text, LB_BAD_TYPE, "general.sampling.min_p"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        found x;
        open_found(&x, bad[i].keys);
        assert_false(find(&x));
        if (x.err.code != bad[i].code || strstr(x.err.text, bad[i].says) == NULL) {
            fail_msg("%d '%s'; expected: '%s'", (int)x.err.code, x.err.text, bad[i].says);
        }
        close_found(&x);
    }
}

static void bad_recipes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *body;
        lb_code code;
        const char *says;
    } bad[] = {
        {"return {}", LB_BAD_TYPE, "mine.lua: expected map"},
        {"return { thinking = 'on' }", LB_MISSING, "mine.lua.why: missing"},
        {"return true", LB_BAD_TYPE, "mine.lua: expected map"},
        {"return 7", LB_BAD_TYPE, "mine.lua: expected map"},
        {"return { why = 'x', temperature = 1 }", LB_BAD_VALUE, "temperature"},
        {"return { why = 'x', sampling = { temp = 1 } }", LB_BAD_VALUE, "mine.lua.sampling.temp"},
        {"return { why = 'x', sampling = { temperature = -0.5 } }", LB_BAD_VALUE,
         "sampling.temperature is -0.5; it may be 0 to 1000"},
        {"return { why = 'x', sampling = { top_p = 1.01 } }", LB_BAD_VALUE, "it may be 0 to 1"},
        {"return { why = 'x', sampling = { temperature = 0 / 0 } }", LB_BAD_VALUE, "temperature"},
        {"return { why = 'x', sampling = { top_k = 1.5 } }", LB_BAD_TYPE, "top_k"},
        {"return { why = 'x', thinking = 'maybe' }", LB_BAD_VALUE, "mine.lua.thinking"},
        {"return { why = 'x', ends = { 1 } }", LB_BAD_TYPE, "mine.lua.ends[0]"},
        {"return file.no_such", LB_BAD_VALUE, "mine.lua:2"},
        {"return }", LB_SYNTAX, "mine.lua"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        found x;
        open_found(&x, NULL);
        put(&x, "mine.lua", bad[i].body);
        assert_false(find(&x));
        if (x.err.code != bad[i].code || strstr(x.err.text, bad[i].says) == NULL) {
            fail_msg("%s: %d '%s'; expected: %d '%s'", bad[i].body, (int)x.err.code, x.err.text,
                     (int)bad[i].code, bad[i].says);
        }
        close_found(&x);
    }
}

/* Texts of a recipe end answers, beside what the file says; one that no token has is no fault. */
static void ends_of_a_recipe_end_answers(void **state) {
    (void)state;
    found x;
    lg_tok *plain = NULL;
    lg_tok *more = NULL;
    const lg_gguf_str *tokens = NULL;
    uint64_t n = 0;
    open_found(&x, NULL);
    assert_true(lg_gguf_strs(x.file, "tokenizer.ggml.tokens", &x.arena, &tokens, &n, &x.err));
    const char *last = lb_strndup(&x.arena, tokens[n - 1].data, tokens[n - 1].n_bytes, &x.err);
    const char *const ends[] = {"no token is called so", last};
    assert_true(lg_tok_read(x.file, &(lg_tok_options){0}, &x.arena, &plain, &x.err));
    assert_true(lg_tok_read(x.file, &(lg_tok_options){.ends = ends, .n_ends = 2}, &x.arena, &more,
                            &x.err));
    assert_int_equal(more->n_eog, plain->n_eog + 1);
    assert_int_equal(more->eog[more->n_eog - 1], n - 1);
    assert_int_equal(more->type[n - 1], LG_TOK_CONTROL);
    close_found(&x);
}

/* ---- models/ */

typedef struct sizes {
    uint32_t layers, embd, experts, used, vocab;
    const char *name; /* of the recipe, or NULL */
} sizes;

static void known_models(void **state) {
    (void)state;
    static const sizes models[] = {
        {40, 2048, 256, 8, 100, "laguna-xs"},  {48, 3072, 256, 10, 100, "laguna-s"},
        {70, 4096, 256, 16, 100, "laguna-m1"}, {70, 5120, 256, 16, 100, "laguna-m1"},
        {8, 256, 12, 4, 4096, "laguna-tiny"},  {8, 256, 12, 4, 4095, NULL},
        {48, 3072, 256, 8, 100, NULL},         {41, 2048, 256, 8, 100, NULL},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const sizes *m = &models[i];
        lb_arena arena;
        gguf_bytes b;
        lg_recipe r;
        lb_err e = {0};
        lb_arena_init(&arena, "recipe", 1 << 26);
        gb_init(&b);
        gb_str(&b, "general.architecture", "laguna");
        gb_u32(&b, "laguna.block_count", m->layers);
        gb_u32(&b, "laguna.embedding_length", m->embd);
        gb_u32(&b, "laguna.expert_count", m->experts);
        gb_u32(&b, "laguna.expert_used_count", m->used);
        gb_u32(&b, "laguna.vocab_size", m->vocab);
        gb_array(&b, "tokenizer.ggml.tokens", LG_GGUF_U32, m->vocab);
        for (uint32_t t = 0; t < m->vocab; t++) {
            gb_put_u32(&b.keys, t);
        }
        lg_gguf *file = gb_open(&b, &arena);
        if (!lg_recipe_find("models", file, &arena, &r, &e)) {
            fail_msg("%s", e.text);
        }
        assert_true((r.name == NULL) == (m->name == NULL));
        if (r.name != NULL) {
            assert_string_equal(r.name, m->name);
            assert_string_equal(r.thinking, "on");
            assert_string_equal(r.output->u.string.bytes, "laguna");
            assert_string_equal(r.ends[0], "</assistant>");
            assert_true(strlen(r.why) > 20);
        }
        lg_gguf_close(file);
        gb_free(&b);
        lb_arena_reset(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_recipe_there_are_defaults),
        cmocka_unit_test(the_recipe_that_knows_the_file),
        cmocka_unit_test(the_file_s_own_numbers_win),
        cmocka_unit_test(bad_numbers_of_the_file_are_refused),
        cmocka_unit_test(bad_recipes_are_refused),
        cmocka_unit_test(ends_of_a_recipe_end_answers),
        cmocka_unit_test(known_models),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
