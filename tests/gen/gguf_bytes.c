/* gguf_bytes.c -- see gguf_bytes.h. */
#include "gguf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"

void gb_put(gb_bytes *to, const void *data, size_t n_bytes) {
    if (n_bytes > to->cap_bytes - to->n_bytes) {
        size_t cap = to->cap_bytes < 64 ? 64 : to->cap_bytes;
        while (n_bytes > cap - to->n_bytes) {
            cap *= 2;
        }
        to->data = realloc(to->data, cap);
        assert_non_null(to->data);
        to->cap_bytes = cap;
    }
    if (n_bytes > 0) {
        memcpy(to->data + to->n_bytes, data, n_bytes);
        to->n_bytes += n_bytes;
    }
}

static void put_int(gb_bytes *to, uint64_t v, size_t n_bytes) {
    uint8_t byte[8];
    for (size_t i = 0; i < n_bytes; i++) {
        byte[i] = (uint8_t)(v >> (8 * i));
    }
    gb_put(to, byte, n_bytes);
}

void gb_put_u8(gb_bytes *to, unsigned v) {
    put_int(to, v, 1);
}

void gb_put_u16(gb_bytes *to, unsigned v) {
    put_int(to, v, 2);
}

void gb_put_u32(gb_bytes *to, uint32_t v) {
    put_int(to, v, 4);
}

void gb_put_u64(gb_bytes *to, uint64_t v) {
    put_int(to, v, 8);
}

void gb_put_f32(gb_bytes *to, float v) {
    uint32_t bits = 0;
    memcpy(&bits, &v, sizeof bits);
    put_int(to, bits, 4);
}

static void put_str_n(gb_bytes *to, const char *s, uint64_t n_bytes) {
    gb_put_u64(to, n_bytes);
    gb_put(to, s, n_bytes);
}

void gb_put_str(gb_bytes *to, const char *s) {
    put_str_n(to, s, strlen(s));
}

void gb_init(gguf_bytes *b) {
    *b = (gguf_bytes){.version = 3, .alignment = 32};
}

void gb_free(gguf_bytes *b) {
    free(b->keys.data);
    free(b->infos.data);
    free(b->file.data);
    *b = (gguf_bytes){0};
}

void gb_key(gguf_bytes *b, const char *key, uint32_t type) {
    gb_put_str(&b->keys, key);
    gb_put_u32(&b->keys, type);
    b->n_keys++;
}

void gb_array(gguf_bytes *b, const char *key, uint32_t elem_type, uint64_t n) {
    gb_key(b, key, LG_GGUF_ARRAY);
    gb_put_u32(&b->keys, elem_type);
    gb_put_u64(&b->keys, n);
}

void gb_u8(gguf_bytes *b, const char *key, unsigned v) {
    gb_key(b, key, LG_GGUF_U8);
    gb_put_u8(&b->keys, v);
}

void gb_u16(gguf_bytes *b, const char *key, unsigned v) {
    gb_key(b, key, LG_GGUF_U16);
    gb_put_u16(&b->keys, v);
}

void gb_u32(gguf_bytes *b, const char *key, uint32_t v) {
    gb_key(b, key, LG_GGUF_U32);
    gb_put_u32(&b->keys, v);
}

void gb_i32(gguf_bytes *b, const char *key, int32_t v) {
    gb_key(b, key, LG_GGUF_I32);
    gb_put_u32(&b->keys, (uint32_t)v);
}

void gb_u64(gguf_bytes *b, const char *key, uint64_t v) {
    gb_key(b, key, LG_GGUF_U64);
    gb_put_u64(&b->keys, v);
}

void gb_i64(gguf_bytes *b, const char *key, int64_t v) {
    gb_key(b, key, LG_GGUF_I64);
    gb_put_u64(&b->keys, (uint64_t)v);
}

void gb_f32(gguf_bytes *b, const char *key, float v) {
    gb_key(b, key, LG_GGUF_F32);
    gb_put_f32(&b->keys, v);
}

void gb_f64(gguf_bytes *b, const char *key, double v) {
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof bits);
    gb_key(b, key, LG_GGUF_F64);
    gb_put_u64(&b->keys, bits);
}

void gb_bool(gguf_bytes *b, const char *key, unsigned v) {
    gb_key(b, key, LG_GGUF_BOOL);
    gb_put_u8(&b->keys, v);
}

void gb_str_n(gguf_bytes *b, const char *key, const char *v, uint64_t n_bytes) {
    gb_key(b, key, LG_GGUF_STR);
    put_str_n(&b->keys, v, n_bytes);
}

void gb_str(gguf_bytes *b, const char *key, const char *v) {
    gb_str_n(b, key, v, strlen(v));
}

void gb_strs(gguf_bytes *b, const char *key, uint64_t n, const char *const *v) {
    gb_array(b, key, LG_GGUF_STR, n);
    for (uint64_t i = 0; i < n; i++) {
        gb_put_str(&b->keys, v[i]);
    }
}

void gb_u32s(gguf_bytes *b, const char *key, uint64_t n, const uint32_t *v) {
    gb_array(b, key, LG_GGUF_U32, n);
    for (uint64_t i = 0; i < n; i++) {
        gb_put_u32(&b->keys, v[i]);
    }
}

void gb_i32s(gguf_bytes *b, const char *key, uint64_t n, const int32_t *v) {
    gb_array(b, key, LG_GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++) {
        gb_put_u32(&b->keys, (uint32_t)v[i]);
    }
}

void gb_f32s(gguf_bytes *b, const char *key, uint64_t n, const float *v) {
    gb_array(b, key, LG_GGUF_F32, n);
    for (uint64_t i = 0; i < n; i++) {
        gb_put_f32(&b->keys, v[i]);
    }
}

void gb_any(gguf_bytes *b, const char *key, lg_gguf_type type) {
    switch (type) {
    case LG_GGUF_F32: gb_f32(b, key, 1); return;
    case LG_GGUF_F64: gb_f64(b, key, 1); return;
    case LG_GGUF_STR: gb_str(b, key, "1"); return;
    case LG_GGUF_ARRAY: gb_u32s(b, key, 1, (uint32_t[]){1}); return;
    case LG_GGUF_U64:
    case LG_GGUF_I64: gb_u64(b, key, 1); break;
    case LG_GGUF_U32:
    case LG_GGUF_I32: gb_u32(b, key, 1); break;
    case LG_GGUF_U16:
    case LG_GGUF_I16: gb_u16(b, key, 1); break;
    default: gb_u8(b, key, 1); break;
    }
    /* The integer was written as unsigned; name the type that was asked for. */
    static const uint8_t size[LG_GGUF_N_TYPES] = {1, 1, 2, 2, 4, 4, 0, 1, 0, 0, 8, 8, 0};
    b->keys.data[b->keys.n_bytes - size[type] - 4] = (uint8_t)type;
}

void gb_info(gguf_bytes *b, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne,
             uint64_t offset) {
    gb_put_str(&b->infos, name);
    gb_put_u32(&b->infos, n_dims);
    for (uint32_t d = 0; d < n_dims; d++) {
        gb_put_u64(&b->infos, ne[d]);
    }
    gb_put_u32(&b->infos, type);
    gb_put_u64(&b->infos, offset);
    b->n_tensors++;
}

void gb_tensor(gguf_bytes *b, const char *name, lg_qtype type, uint32_t n_dims,
               const uint64_t *ne) {
    uint64_t at = 0;
    uint64_t n = 0;
    assert_true(lb_round_up(b->data_bytes, b->alignment, &at));
    assert_true(lg_qtype_tensor_bytes(type, n_dims, ne, NULL, &n, NULL));
    gb_info(b, name, (uint32_t)type, n_dims, ne, at);
    assert_true(lb_add(at, n, &b->data_bytes));
}

const lb_map *gb_finish(gguf_bytes *b) {
    static const uint8_t zero[4096];
    gb_bytes *f = &b->file;
    f->n_bytes = 0;
    gb_put(f, "GGUF", 4);
    gb_put_u32(f, b->version);
    gb_put_u64(f, b->n_tensors);
    gb_put_u64(f, b->n_keys);
    gb_put(f, b->keys.data, b->keys.n_bytes);
    gb_put(f, b->infos.data, b->infos.n_bytes);
    uint64_t end = f->n_bytes;
    if (!b->no_data && b->data_bytes > 0) {
        assert_true(lb_round_up(end, b->alignment, &end));
        assert_true(lb_add(end, b->data_bytes, &end));
    }
    while (f->n_bytes < end) {
        size_t n = end - f->n_bytes;
        gb_put(f, zero, n < sizeof zero ? n : sizeof zero);
    }
    b->map = (lb_map){.data = f->data, .n_bytes = f->n_bytes};
    return &b->map;
}

void gb_write(gguf_bytes *b, const char *path) {
    gb_finish(b);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->file.data, 1, b->file.n_bytes, f), b->file.n_bytes);
    assert_int_equal(fclose(f), 0);
}

static void tiny_vocabulary(gguf_bytes *b, uint32_t n_tokens) {
    gb_str(b, "tokenizer.ggml.model", "gpt2");
    gb_str(b, "tokenizer.ggml.pre", "gpt-2");
    gb_array(b, "tokenizer.ggml.tokens", LG_GGUF_STR, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++) {
        char token[16];
        snprintf(token, sizeof token, "t%u", (unsigned)i);
        /* the two parts of the only merge */
        gb_put_str(&b->keys, i == 10 ? "t" : i == 11 ? "2" : token);
    }
    gb_array(b, "tokenizer.ggml.token_type", LG_GGUF_I32, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++) {
        gb_put_u32(&b->keys, i < 2 ? 3 : 1);
    }
    gb_strs(b, "tokenizer.ggml.merges", 1, (const char *[]){"t 2"});
    gb_u32(b, "tokenizer.ggml.bos_token_id", 0);
    gb_u32(b, "tokenizer.ggml.eos_token_id", 1);
    gb_str(b, "tokenizer.chat_template", "{{ messages }}");
}

static void tiny_layer(gguf_bytes *b, uint32_t layer, lg_qtype type) {
    static const struct {
        const char *name;
        uint64_t ne[2];
        bool norm;
    } tensors[] = {
        {"attn_norm", {64, 1}, true},  {"attn_q", {64, 64}, false},
        {"attn_k", {64, 32}, false},   {"attn_v", {64, 32}, false},
        {"attn_output", {64, 64}, false}, {"ffn_norm", {64, 1}, true},
        {"ffn_gate", {64, 128}, false}, {"ffn_up", {64, 128}, false},
        {"ffn_down", {128, 64}, false},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s.weight", (unsigned)layer, tensors[i].name);
        gb_tensor(b, name, tensors[i].norm ? LG_QTYPE_F32 : type, tensors[i].norm ? 1 : 2,
                  tensors[i].ne);
    }
}

void gb_tiny_llama(gguf_bytes *b, uint32_t n_layers, lg_qtype type) {
    const uint32_t n_tokens = 320;
    gb_init(b);
    gb_str(b, "general.architecture", "llama");
    gb_str(b, "general.name", "tiny");
    gb_u32(b, "llama.context_length", 128);
    gb_u32(b, "llama.embedding_length", 64);
    gb_u32(b, "llama.block_count", n_layers);
    gb_u32(b, "llama.feed_forward_length", 128);
    gb_u32(b, "llama.attention.head_count", 4);
    gb_u32(b, "llama.attention.head_count_kv", 2);
    gb_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
    gb_f32(b, "llama.rope.freq_base", 10000);
    gb_u32(b, "llama.rope.dimension_count", 16);
    tiny_vocabulary(b, n_tokens);
    gb_tensor(b, "token_embd.weight", type, 2, (uint64_t[]){64, n_tokens});
    for (uint32_t i = 0; i < n_layers; i++) {
        tiny_layer(b, i, type);
    }
    gb_tensor(b, "output_norm.weight", LG_QTYPE_F32, 1, (uint64_t[]){64});
}

lg_gguf *gb_open(gguf_bytes *b, lb_arena *arena) {
    lb_err e = {0};
    lg_gguf *g = NULL;
    if (!lg_gguf_open_memory(gb_finish(b), "test.gguf", arena, &g, &e)) {
        fail_msg("%s", e.text);
    }
    return g;
}

void gb_refused(gguf_bytes *b, lb_code code, const char *says) {
    lb_arena arena;
    lb_err e = {0};
    lg_gguf *g = NULL;
    lb_arena_init(&arena, "load", 64 << 20);
    if (lg_gguf_open_memory(gb_finish(b), "test.gguf", &arena, &g, &e)) {
        fail_msg("accepted; expected: %s", says);
    }
    if (e.code != code || strstr(e.text, says) == NULL) {
        fail_msg("code %d '%s'; expected: code %d '%s'", (int)e.code, e.text, (int)code, says);
    }
    assert_null(g);
    assert_null(strchr(e.text, '\n'));
    assert_memory_equal(e.text, "test.gguf: ", 11);
    lb_arena_reset(&arena);
}
