/* fuzz_gguf.c -- libFuzzer target: any bytes as a model file, opened, reported on in both forms,
 * and each key asked for through each accessor. Whatever the bytes, the only outcomes are success
 * and an error of one line. Built and run by run.sh. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_value.h"
#include "inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Ends the run if what is promised does not hold; libFuzzer keeps the input. */
static void must(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

static void check_error(const lb_err *e) {
    must(e->code != LB_OK && e->text[0] != '\0' && e->line > 0);
    must(strchr(e->text, '\n') == NULL && memchr(e->text, '\0', sizeof e->text) != NULL);
}

static void ask_scalars(const lg_gguf *g, const char *key) {
    lb_err e = {0};
    uint64_t u = 0;
    int64_t i = 0;
    uint32_t n = 0;
    float f = 0;
    bool b = false;
    lg_gguf_str s = {0};
    unsigned ok = 0;
    ok += lg_gguf_u64(g, key, NULL, &u, &e);
    ok += lg_gguf_i64(g, key, NULL, &i, &e);
    ok += lg_gguf_u32_in(g, key, NULL, 1, 512, &n, &e);
    ok += lg_gguf_f32(g, key, NULL, &f, &e);
    ok += lg_gguf_bool(g, key, NULL, &b, &e);
    ok += lg_gguf_str_key(g, key, &s, &e);
    must(ok < 4); /* at most the three integer ones */
    check_error(&e);
}

static void ask_arrays(const lg_gguf *g, const char *key, lb_arena *arena) {
    lb_err e = {0};
    uint64_t n = 0;
    const int64_t *is = NULL;
    const float *fs = NULL;
    const bool *bs = NULL;
    const lg_gguf_str *ss = NULL;
    const uint32_t *us = NULL;
    unsigned ok = 0;
    ok += lg_gguf_i64s(g, key, arena, &is, &n, &e);
    ok += lg_gguf_f32s(g, key, arena, &fs, &n, &e);
    ok += lg_gguf_strs(g, key, arena, &ss, &n, &e);
    must(ok < 2);
    ok += lg_gguf_bools(g, key, arena, &bs, &n, &e);
    ok += lg_gguf_u32_each(g, key, NULL, 3, arena, &us, &e);
    must(ok < 4);
    check_error(&e);
}

/* Elements lie in the value's bytes, and each can be read. */
static void walk(const lg_gguf_kv *kv) {
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v = {0};
    uint64_t n = 0;
    unsigned sum = 0;
    for (; lg_gguf_next(&it, &v); n++) {
        for (uint64_t i = 0; v.kind == LG_GGUF_KIND_STR && i < v.s.n_bytes; i++) {
            sum += (unsigned char)v.s.data[i];
        }
    }
    must(n == kv->n_elems && it.left_bytes == 0 && sum != UINT32_MAX);
}

static void use(const lg_gguf *g, const lb_map *map, lb_arena *arena) {
    lb_err e = {0};
    uint64_t sum = 0;
    uint32_t n_layers = 0;
    const char *arch = NULL;
    for (uint64_t i = 0; i < lg_gguf_n_keys(g); i++) {
        const lg_gguf_kv *kv = lg_gguf_key_at(g, i);
        char *key = lb_strndup(arena, kv->key.data, kv->key.n_bytes, &e);
        must(key != NULL && lg_gguf_find(g, key) == kv);
        walk(kv);
        ask_scalars(g, key);
        ask_arrays(g, key, arena);
    }
    for (uint64_t i = 0; i < lg_gguf_n_tensors(g); i++) {
        const lg_gguf_tensor *t = lg_gguf_tensor_at(g, i);
        must(t->offset <= map->n_bytes && t->n_bytes <= map->n_bytes - t->offset);
        must(t->data == map->data + t->offset && t->n_bytes > 0);
        sum += t->n_bytes;
    }
    must(sum == lg_gguf_tensor_bytes(g) && sum <= map->n_bytes);
    must(lg_gguf_n_layers(g, &n_layers, &e) == (n_layers > 0) && n_layers <= LG_GGUF_MAX_LAYERS);
    must(lg_gguf_arch(g, arena, &arch, &e) == (arch != NULL));
}

static void report(const lg_gguf *g, bool json, lb_arena *arena) {
    lb_err e = {0};
    lb_text text;
    lb_text_init(&text, arena);
    if (!lg_inspect(g, "model-Q4_K_M.gguf", json, &text, &e)) {
        check_error(&e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    lb_map map = {.data = n_bytes == 0 ? NULL : data, .n_bytes = n_bytes};
    lb_arena arena;
    lb_err e = {0};
    lg_gguf *g = NULL;
    lb_arena_init(&arena, "fuzz", 64 << 20);
    if (lg_gguf_open_memory(&map, "fuzz.gguf", &arena, &g, &e)) {
        use(g, &map, &arena);
        report(g, false, &arena);
        report(g, true, &arena);
        lg_gguf_close(g);
    } else {
        check_error(&e);
    }
    lb_arena_reset(&arena);
    return 0;
}
