/* test_synth.c -- synthetic models: the same bytes everywhere, every recipe readable, options kept,
 * bad recipes refused, nothing left behind. Runs in the repository's root. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/file.h"
#include "gguf.h"
#include "gguf_value.h"
#include "synth.h"
#include "synth_random.h"

static char folder[] = "/tmp/test_synth.XXXXXX";
static char path[128];
static char recipe_path[128];
static lb_arena arena;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "synth", 1 << 28);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(recipe_path, sizeof recipe_path, "%s/r.lua", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    unlink(path);
    unlink(recipe_path);
    return rmdir(folder) == 0 && mkdir(folder, 0700) == 0 ? 0 : -1;
}

static lg_synth_options options(const char *recipe) {
    return (lg_synth_options){.models_dir = "models", .recipe = recipe, .out_path = path};
}

static void make(const lg_synth_options *o, lg_synth_report *report) {
    lb_err e = {0};
    if (!lg_synth_run(o, report, &arena, &e)) {
        fail_msg("%s: %s", o->recipe, e.text);
    }
}

static void digest_of_file(char *hex) {
    lb_map m;
    lb_err e = {0};
    uint8_t digest[LB_DIGEST_BYTES];
    assert_true(lb_map_file(path, &m, &e));
    assert_true(lb_sha256(m.data, m.n_bytes, digest, &e));
    lb_digest_hex(digest, hex);
    lb_unmap(&m);
}

/* Any machine and compiler must give these; a change here changes every recorded measurement. */
static void known_bytes(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *types, *digest;
        uint64_t seed;
    } known[] = {
        {"synth/llama-tiny", NULL, "2d5ce7765e667a960a14c08c7014f542f21755b2774a9755716915fbf71b8da5", 0},
        {"models/synth/llama-tiny.lua", "q4_1", "175e3f7490b0e712113a7d3767852044d21a362626179dc20a4f403d76afd83f", 1},
        {"synth/llama-wide", "mixed_iq", "eb03e5248f16ac8922d7418b6cf3637769df647481dea6dbd0ec8d1f9a2e1943", 3},
        {"synth/llama-spm.lua", NULL, "dc3696a025dbd627471d11110e6206e398345a3d9cc962576895686ac888718f", 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        lg_synth_options o = options(known[i].recipe);
        char hex[LB_DIGEST_HEX_BYTES];
        o.seed = known[i].seed;
        o.types = known[i].types;
        make(&o, NULL);
        digest_of_file(hex);
        assert_string_equal(hex, known[i].digest);
    }
}

static void every_recipe_reads_back(void **state) {
    (void)state;
    static const char *const recipes[] = {
        "llama-tiny",   "llama-spm",  "llama-freqs", "llama-linear",
        "llama-peaked", "llama-yarn", "llama-nvfp4", "llama-moe-nvfp4",
        "llama-wide",   "llama-576",
    };
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        char name[64];
        lg_synth_report r = {0};
        lg_gguf *g = NULL;
        lb_err e = {0};
        uint32_t n_layers = 0;
        uint64_t n_tokens = 0;
        const lg_gguf_str *tokens = NULL;
        snprintf(name, sizeof name, "synth/%s", recipes[i]);
        lg_synth_options o = options(name);
        o.header_only = i >= 8;
        make(&o, &r);
        if (!lg_gguf_open(path, &arena, &g, &e)) {
            fail_msg("%s: %s", name, e.text);
        }
        assert_int_equal(r.n_tensors, lg_gguf_n_tensors(g));
        assert_int_equal(r.n_bytes, lg_gguf_file_at(g, 0)->n_bytes);
        assert_true(lg_gguf_n_layers(g, &n_layers, &e));
        assert_true(lg_gguf_strs(g, "tokenizer.ggml.tokens", &arena, &tokens, &n_tokens, &e));
        assert_int_equal(n_tokens, lg_gguf_tensor_find(g, "token_embd.weight")->ne[1]);
        lg_gguf_close(g);
    }
}

static void layers_and_types_are_kept(void **state) {
    (void)state;
    lg_synth_options o = options("synth/llama-wide");
    lg_gguf *g = NULL;
    lb_err e = {0};
    o.layers = 8;
    o.types = "q4_k_m";
    make(&o, NULL);
    assert_true(lg_gguf_open(path, &arena, &g, &e));
    static const struct {
        const char *name;
        lg_qtype type;
    } want[] = {
        {"output.weight", LG_QTYPE_Q6_K},          {"token_embd.weight", LG_QTYPE_Q4_K},
        {"blk.0.attn_v.weight", LG_QTYPE_Q6_K},    {"blk.1.attn_v.weight", LG_QTYPE_Q4_K},
        {"blk.3.ffn_down.weight", LG_QTYPE_Q6_K},  {"blk.7.ffn_down.weight", LG_QTYPE_Q6_K},
        {"blk.7.attn_norm.weight", LG_QTYPE_F32},  {"blk.7.attn_output.weight", LG_QTYPE_Q4_K},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_non_null(lg_gguf_tensor_find(g, want[i].name));
        assert_int_equal(lg_gguf_tensor_find(g, want[i].name)->type, want[i].type);
    }
    assert_null(lg_gguf_tensor_find(g, "blk.8.attn_v.weight"));
    lg_gguf_close(g);
    o = options("synth/llama-576");
    o.types = "q4_k_m"; /* 576 is no multiple of 256 */
    o.header_only = true;
    make(&o, NULL);
    assert_true(lg_gguf_open(path, &arena, &g, &e));
    assert_int_equal(lg_gguf_tensor_find(g, "token_embd.weight")->type, LG_QTYPE_Q8_0);
    assert_int_equal(lg_gguf_tensor_find(g, "blk.0.attn_q.weight")->type, LG_QTYPE_Q5_0);
    assert_int_equal(lg_gguf_tensor_find(g, "blk.0.ffn_down.weight")->type, LG_QTYPE_Q4_K);
    lg_gguf_close(g);
}

/* The weights of a tensor do not depend on the layers beside it. */
static void tensors_are_independent(void **state) {
    (void)state;
    uint8_t first[512];
    lg_synth_options o = options("synth/llama-tiny");
    for (uint32_t layers = 1; layers <= 3; layers += 2) {
        lg_gguf *g = NULL;
        lb_err e = {0};
        o.layers = layers;
        o.seed = 77;
        make(&o, NULL);
        assert_true(lg_gguf_open(path, &arena, &g, &e));
        const lg_gguf_tensor *t = lg_gguf_tensor_find(g, "blk.0.ffn_down.weight");
        assert_true(t->n_bytes > sizeof first);
        if (layers == 1) {
            memcpy(first, t->data, sizeof first);
        }
        assert_memory_equal(first, t->data, sizeof first);
        lg_gguf_close(g);
    }
}

static void header_only_is_long_and_empty(void **state) {
    (void)state;
    lg_synth_options o = options("synth/llama-70b");
    lg_synth_report r = {0};
    struct stat st;
    o.layers = 76;
    o.header_only = true;
    make(&o, &r);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 71334219200);
    assert_true(st.st_blocks < 20000);
    assert_int_equal(r.n_tensors, 688);
}

/* What configures the graph is there all the same, and equal to that of the whole file. */
static void header_only_has_the_recipes_numbers(void **state) {
    (void)state;
    float numbers[2][16];
    for (int i = 0; i < 2; i++) {
        lg_synth_options o = options("synth/llama-freqs");
        lg_gguf *g = NULL;
        lb_err e = {0};
        o.header_only = i == 1;
        make(&o, NULL);
        assert_true(lg_gguf_open(path, &arena, &g, &e));
        const lg_gguf_tensor *t = lg_gguf_tensor_find(g, "rope_freqs.weight");
        assert_int_equal(t->n_bytes, sizeof numbers[0]);
        memcpy(numbers[i], t->data, sizeof numbers[0]);
        const lg_gguf_tensor *w = lg_gguf_tensor_find(g, "blk.1.ffn_down.weight");
        assert_int_equal(w->data[w->n_bytes / 2] == 0 && w->data[0] == 0, i);
        lg_gguf_close(g);
    }
    assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
    assert_true(numbers[0][0] >= 1.0F);
}

/* Row r of the short way is row r % n of the long one, in every random tensor; values stay whole. */
static void rows_repeat(uint64_t n) {
    lg_gguf *g[2] = {NULL, NULL};
    lb_err e = {0};
    char paths[2][160];
    for (int i = 0; i < 2; i++) {
        lg_synth_options o = options("synth/llama-freqs");
        o.distinct_rows = i == 0 ? 0 : n;
        snprintf(paths[i], sizeof paths[i], "%s.%d", path, i);
        o.out_path = paths[i];
        make(&o, NULL);
        assert_true(lg_gguf_open(paths[i], &arena, &g[i], &e));
        unlink(paths[i]);
    }
    assert_int_equal(lg_gguf_n_tensors(g[0]), lg_gguf_n_tensors(g[1]));
    for (size_t k = 0; k < lg_gguf_n_tensors(g[0]); k++) {
        const lg_gguf_tensor *all = lg_gguf_tensor_at(g[0], k);
        const lg_gguf_tensor *few = lg_gguf_tensor_at(g[1], k);
        assert_int_equal(all->n_bytes, few->n_bytes);
        uint64_t rows = all->ne[1] * all->ne[2] * all->ne[3];
        uint64_t row_bytes = all->n_bytes / rows;
        for (uint64_t r = 0; r < rows; r++) {
            assert_memory_equal(few->data + r * row_bytes, all->data + r % n * row_bytes, row_bytes);
        }
    }
    lg_gguf_close(g[0]);
    lg_gguf_close(g[1]);
}

static void distinct_rows_repeat(void **state) {
    (void)state;
    const uint64_t n[] = {1, 2, 7, 64, 1000000};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        rows_repeat(n[i]);
    }
}

static void stop_after_some(void *arg, uint64_t done, uint64_t total) {
    assert_true(done <= total);
    *(volatile sig_atomic_t *)arg = 1;
}

static void stopping_leaves_nothing(void **state) {
    (void)state;
    volatile sig_atomic_t stop = 0;
    lg_synth_options o = options("synth/llama-576");
    lb_err e = {0};
    o.stop = &stop;
    o.progress = stop_after_some;
    o.progress_arg = (void *)(uintptr_t)&stop;
    assert_false(lg_synth_run(&o, NULL, &arena, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void refusals(void **state) {
    (void)state;
    lg_synth_report r;
    lb_err e = {0};
    lg_synth_options o = options("synth/no-such");
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_IO);
    o = options("../etc/passwd");
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    o = options("lib/types");
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_MISSING);
    o = options("synth/llama-tiny");
    o.types = "q4_k"; /* 64 columns */
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_non_null(strstr(e.text, "token_embd.weight"));
    o.types = "tq1_0";
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    assert_non_null(strstr(e.text, "nor random payload for type tq1_0; --header-only needs none"));
    o.types = "iq2_xxs"; /* 64 columns */
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    o.types = "q9";
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_USAGE);
    o.types = NULL;
    o.seed = UINT64_MAX;
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    o.seed = 0;
    o.out_path = folder;
    assert_false(lg_synth_run(&o, &r, &arena, &e));
    assert_int_equal(e.code, LB_IO);
}

/* Each is the body of synth(); all are refused with the code beside it, and name what is wrong. */
static void bad_recipes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *body;
        lb_code code;
        const char *names;
    } bad[] = {
        {"return 1", LB_BAD_TYPE, "r.lua"},
        {"return { keys = {} }", LB_MISSING, "tensors"},
        {"return { keys = {}, tensors = {}, more = 1 }", LB_BAD_VALUE, "more"},
        {"return { keys = { { key = 'k', type = 'u8', value = 300 } }, tensors = {} }", LB_BAD_VALUE, "k"},
        {"return { keys = { { key = 'k', type = 'u8' } }, tensors = {} }", LB_MISSING, "keys[0].value"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = {} } } }", LB_BAD_SHAPE, "ne"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { 1, 1, 1, 1, 1 } } } }",
         LB_BAD_SHAPE, "ne"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { 0 } } } }", LB_BAD_SHAPE, "t"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { -1 } } } }", LB_BAD_VALUE, "ne"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { 4 }, fill = 'ones' } } }",
         LB_BAD_VALUE, "fill"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { 4 }, fill = 'values', "
         "values = { 1, 2, 3 } } } }", LB_BAD_SHAPE, "3 given for 4"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f32', ne = { 4 }, fill = 'values', "
         "values = { 1, 2, 'x', 4 } } } }", LB_BAD_TYPE, "[2]"},
        {"return { keys = {}, tensors = { { name = 't', type = 'f16', ne = { 4 }, fill = 'normal', "
         "mean = 1e9, std = 0 } } }", LB_BAD_VALUE, "tensor 't'"},
        {"return { keys = {}, tensors = { { name = 't', type = 'iq3_s', ne = { 256 }, fill = 'normal', "
         "mean = 1, std = 1 } } }", LB_UNSUPPORTED, "tensor 't'"},
        {"return { keys = {}, tensors = { { name = 't', type = 'iq1_m', ne = { 256 }, fill = 'normal', "
         "mean = 0, std = 1e9 } } }", LB_BAD_VALUE, "deviation 1e+09"},
        {"return { keys = {}, tensors = { { name = 't', type = 'iq1_m', ne = { 256 }, fill = 'normal', "
         "mean = 0, std = -1 } } }", LB_BAD_VALUE, "tensor 't'"},
        {"fail('not today')", LB_BAD_VALUE, "not today"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lb_err e = {0};
        char *text = lb_format(&arena, &e, "return { synth = function(opts)\n%s\nend }\n", bad[i].body);
        assert_true(lb_write_file(recipe_path, text, strlen(text), false, NULL, &e));
        lg_synth_options o = options("r");
        o.models_dir = folder;
        assert_false(lg_synth_run(&o, NULL, &arena, &e));
        if (e.code != bad[i].code || strstr(e.text, bad[i].names) == NULL) {
            fail_msg("recipe %zu gave code %d: %s", i, (int)e.code, e.text);
        }
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void random_numbers_have_their_moments(void **state) {
    (void)state;
    static float x[100000];
    double sum = 0;
    double squares = 0;
    float most = 0;
    float again[3];
    uint64_t stream = lg_synth_stream(5, "blk.0.attn_q.weight");
    lg_synth_normal(stream, 0, 100000, 0.5, 2.0, x);
    for (int i = 0; i < 100000; i++) {
        double v = ((double)x[i] - 0.5) / 2.0;
        sum += v;
        squares += v * v;
        most = fmaxf(most, fabsf((float)v));
    }
    assert_true(fabs(sum / 100000) < 0.01);
    assert_true(fabs(squares / 100000 - 1.0) < 0.015);
    assert_true(most > 3.0F && most < 3.47F);
    lg_synth_normal(stream, 777, 3, 0.5, 2.0, again);
    assert_memory_equal(again, x + 777, sizeof again);
    assert_true(lg_synth_stream(5, "blk.0.attn_k.weight") != stream);
    assert_true(lg_synth_stream(6, "blk.0.attn_q.weight") != stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(known_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(every_recipe_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_and_types_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_are_independent, setup, teardown),
        cmocka_unit_test_setup_teardown(distinct_rows_repeat, setup, teardown),
        cmocka_unit_test_setup_teardown(header_only_is_long_and_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(header_only_has_the_recipes_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_recipes_are_refused, setup, teardown),
        cmocka_unit_test(random_numbers_have_their_moments),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests_name("synth", tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
