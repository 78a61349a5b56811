/* test_gguf.c -- the reader on right files, on every hostile header of the public cases B01 to B20,
 * on truncation at each byte and on failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/gguf_bytes.h"
#include "gguf.h"

#define DIMS(...) ((uint64_t[]){__VA_ARGS__})

static void reads_keys_and_tensors(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    gb_tiny_llama(&b, 2, LG_QTYPE_Q8_0);
    lg_gguf *g = gb_open(&b, &a);
    assert_int_equal(lg_gguf_n_keys(g), b.n_keys);
    assert_int_equal(lg_gguf_n_tensors(g), 20);
    assert_int_equal(lg_gguf_n_files(g), 1);
    assert_null(lg_gguf_key_at(g, b.n_keys));
    assert_null(lg_gguf_tensor_at(g, 20));
    assert_null(lg_gguf_file_at(g, 1));
    const lg_gguf_kv *kv = lg_gguf_key_at(g, 0);
    assert_int_equal(kv->type, LG_GGUF_STR);
    assert_ptr_equal(kv, lg_gguf_find(g, "general.architecture"));
    kv = lg_gguf_find(g, "tokenizer.ggml.tokens");
    assert_int_equal(kv->type, LG_GGUF_ARRAY);
    assert_int_equal(kv->elem_type, LG_GGUF_STR);
    assert_int_equal(kv->n_elems, 320);
    assert_null(lg_gguf_find(g, "general.architectur"));
    assert_null(lg_gguf_find(g, "general.architecture2"));
    assert_null(lg_gguf_find(g, ""));
    lg_gguf_close(g);
    gb_free(&b);
    lb_arena_reset(&a);
}

static void places_tensors(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    gb_tiny_llama(&b, 1, LG_QTYPE_Q8_0);
    lg_gguf *g = gb_open(&b, &a);
    const lg_gguf_file *f = lg_gguf_file_at(g, 0);
    uint64_t end = 0;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < lg_gguf_n_tensors(g); i++) {
        const lg_gguf_tensor *t = lg_gguf_tensor_at(g, i);
        assert_true(t->offset >= f->data_start && t->offset % 32 == 0);
        assert_true(t->offset + t->n_bytes <= f->n_bytes);
        assert_ptr_equal(t->data, b.map.data + t->offset);
        end = t->offset + t->n_bytes;
        sum += t->n_bytes;
    }
    assert_int_equal(end, f->n_bytes); /* the last one needs no padding */
    assert_int_equal(lg_gguf_tensor_bytes(g), sum);
    const lg_gguf_tensor *t = lg_gguf_tensor_find(g, "blk.0.ffn_down.weight");
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->ne[0], 128);
    assert_int_equal(t->ne[1], 64);
    assert_int_equal(t->ne[2] * t->ne[3], 1);
    assert_int_equal(t->n_elems, 8192);
    assert_int_equal(t->n_bytes, 8192 / 32 * 34);
    assert_int_equal(t->type, LG_QTYPE_Q8_0);
    assert_null(lg_gguf_tensor_find(g, "blk.1.ffn_down.weight"));
    lg_gguf_close(g);
    gb_free(&b);
    lb_arena_reset(&a);
}

static void small_and_old_files(void **state) {
    (void)state;
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    gguf_bytes b;
    gb_init(&b);
    b.version = 2;
    lg_gguf *g = gb_open(&b, &a); /* 24 bytes, nothing in it */
    assert_int_equal(lg_gguf_n_keys(g) + lg_gguf_n_tensors(g), 0);
    assert_null(lg_gguf_find(g, "a"));
    assert_null(lg_gguf_tensor_find(g, "a"));
    assert_int_equal(lg_gguf_file_at(g, 0)->version, 2);
    lg_gguf_close(g);
    lg_gguf_close(NULL);
    gb_info(&b, "scalar", LG_QTYPE_F32, 0, NULL, 0);
    b.data_bytes = 4;
    g = gb_open(&b, &a);
    assert_int_equal(lg_gguf_tensor_at(g, 0)->n_elems, 1);
    lg_gguf_close(g);
    gb_free(&b);
    lb_arena_reset(&a);
}

static void not_a_gguf_file(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        lb_code code;
        const char *says;
    } want[] = {
        {"", LB_BAD_FORMAT, "not a GGUF file: 0 bytes"},
        {"GGUF", LB_BAD_FORMAT, "not a GGUF file: 4 bytes"},
        {"<!DOCTYPE html><html><head></head>", LB_BAD_FORMAT, "starts with 3c 21 44 4f"},
        {"ggml\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", LB_BAD_FORMAT, "starts with 67 67"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        lb_arena a;
        lb_err e = {0};
        lg_gguf *g = NULL;
        lb_arena_init(&a, "load", 1 << 20);
        size_t n = strlen(want[i].bytes);
        lb_map m = {.data = n == 0 ? NULL : (const uint8_t *)want[i].bytes, .n_bytes = n};
        assert_false(lg_gguf_open_memory(&m, "dir/page.gguf", &a, &g, &e));
        assert_int_equal(e.code, want[i].code);
        assert_non_null(strstr(e.text, want[i].says));
        assert_memory_equal(e.text, "page.gguf: ", 11);
        lb_arena_reset(&a);
    }
}

static void versions(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        const char *says;
    } want[] = {
        {0, "version 0"},         {1, "version 1; lagen reads 2 and 3"},
        {4, "version 4"},         {0x03000000, "big-endian"},
        {0x02000000, "big-endian"}, {UINT32_MAX, "version 4294967295"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        gguf_bytes b;
        gb_init(&b);
        b.version = want[i].version;
        gb_refused(&b, LB_UNSUPPORTED, want[i].says);
        gb_free(&b);
    }
}

/* B05, B10: counts that no file of this size can hold, and counts beyond the limits. */
static void counts(void **state) {
    (void)state;
    static const uint64_t hostile[] = {1,          500000000,       1ULL << 32,     1ULL << 62,
                                       1ULL << 63, UINT64_MAX / 64, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        gguf_bytes b;
        gb_init(&b);
        b.n_keys = hostile[i];
        gb_refused(&b, LB_BAD_FORMAT, "key count");
        b.n_keys = 0;
        b.n_tensors = hostile[i];
        gb_refused(&b, LB_BAD_FORMAT, "tensor count");
        gb_free(&b);
    }
    gguf_bytes b;
    gb_init(&b);
    b.n_keys = LG_GGUF_MAX_KEYS + 1;
    gb_array(&b, "a", LG_GGUF_U8, 0);
    for (int i = 0; i < 1 << 20; i++) {
        gb_put_u8(&b.keys, 0);
    }
    b.n_keys = LG_GGUF_MAX_KEYS + 1;
    gb_refused(&b, LB_LIMIT, "key count 65537; the limit is 65536");
    gb_free(&b);
}

/* B02, B03: alignments. */
static void alignments(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 3, 24, 33, 1U << 21, 1U << 30, 1U << 31, UINT32_MAX};
    gguf_bytes b;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gb_init(&b);
        gb_u32(&b, "general.alignment", bad[i]);
        gb_refused(&b, LB_BAD_VALUE, "key 'general.alignment': ");
        gb_free(&b);
    }
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    for (uint32_t good = 1; good <= 1 << 20; good *= 2) {
        gb_init(&b);
        b.alignment = good;
        gb_u32(&b, "general.alignment", good);
        gb_tensor(&b, "a", LG_QTYPE_I8, 1, DIMS(7));
        gb_tensor(&b, "b", LG_QTYPE_I8, 1, DIMS(7));
        lg_gguf *g = gb_open(&b, &a);
        assert_int_equal(lg_gguf_file_at(g, 0)->alignment, good);
        assert_int_equal(lg_gguf_tensor_at(g, 1)->offset % good, 0);
        lg_gguf_close(g);
        gb_free(&b);
    }
    for (lg_gguf_type t = LG_GGUF_U8; t < LG_GGUF_N_TYPES; t++) {
        gb_init(&b);
        gb_any(&b, "general.alignment", t);
        if (t != LG_GGUF_U32) {
            gb_refused(&b, LB_BAD_TYPE, "where u32 is needed");
        }
        gb_free(&b);
    }
    lb_arena_reset(&a);
}

/* B04, B06: lengths of strings and arrays. */
static void lengths(void **state) {
    (void)state;
    static const uint64_t hostile[] = {37, 38, 1 << 20, 1 << 30, 1ULL << 63, UINT64_MAX};
    gguf_bytes b;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        gb_init(&b);
        gb_key(&b, "k", LG_GGUF_STR); /* 24 + 9 + 4 bytes, then the length */
        gb_put_u64(&b.keys, hostile[i]);
        gb_put_u8(&b.keys, 0);
        gb_refused(&b, LB_BAD_FORMAT, "key 'k': truncated: ");
        gb_free(&b);
        gb_init(&b); /* the key's own length */
        gb_put_u64(&b.keys, hostile[i]);
        gb_put_u64(&b.keys, 0);
        b.n_keys = 1;
        gb_refused(&b, LB_BAD_FORMAT, "key 0: truncated: ");
        gb_free(&b);
        gb_init(&b); /* a tensor's name */
        gb_put_u64(&b.infos, hostile[i]);
        gb_put_u64(&b.infos, 0);
        gb_put_u64(&b.infos, 0);
        gb_put_u64(&b.infos, 0);
        b.n_tensors = 1;
        gb_refused(&b, LB_BAD_FORMAT, "tensor 0: truncated: ");
        gb_free(&b);
    }
}

static void arrays(void **state) {
    (void)state;
    gguf_bytes b;
    for (uint32_t t = 0; t < LG_GGUF_N_TYPES; t++) {
        static const uint64_t hostile[] = {UINT64_MAX, 0x40000000, 0xFFFFFFFF, 1ULL << 61};
        for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
            gb_init(&b);
            gb_array(&b, "k", t, hostile[i]);
            gb_put_u64(&b.keys, 0);
            if (t == LG_GGUF_ARRAY) {
                gb_refused(&b, LB_UNSUPPORTED, "key 'k': an array of arrays");
            } else {
                gb_refused(&b, LB_LIMIT, "key 'k': an array of ");
            }
            gb_free(&b);
        }
        gb_init(&b);
        gb_array(&b, "k", t, 9);
        gb_put_u64(&b.keys, 0);
        if (t != LG_GGUF_ARRAY) {
            gb_refused(&b, LB_BAD_FORMAT, "key 'k': ");
        }
        gb_free(&b);
    }
    gb_init(&b);
    gb_array(&b, "k", 13, 1);
    gb_refused(&b, LB_BAD_FORMAT, "key 'k': value type 13");
    gb_free(&b);
    gb_init(&b);
    gb_key(&b, "k", UINT32_MAX);
    gb_put_u64(&b.keys, 0);
    gb_refused(&b, LB_BAD_FORMAT, "value type 4294967295");
    gb_free(&b);
}

static void names(void **state) {
    (void)state;
    gguf_bytes b;
    char name[65536 + 1];
    memset(name, 'x', sizeof name);
    gb_init(&b);
    gb_u64(&b, "", 1);
    gb_refused(&b, LB_BAD_FORMAT, "key 0: the name is empty");
    gb_free(&b);
    gb_init(&b);
    gb_u8(&b, "a\nb", 1);
    gb_refused(&b, LB_BAD_FORMAT, "byte 1 of the name is 0x0a");
    gb_free(&b);
    gb_init(&b);
    name[65536] = '\0';
    gb_u8(&b, name, 1);
    gb_refused(&b, LB_LIMIT, "a name of 65536 bytes; the limit is 65535");
    gb_free(&b);
    gb_init(&b);
    name[64] = '\0';
    gb_tensor(&b, name, LG_QTYPE_F32, 1, DIMS(1));
    gb_refused(&b, LB_LIMIT, "tensor 0: a name of 64 bytes; the limit is 63");
    gb_free(&b);
    gb_init(&b);
    gb_tensor(&b, "", LG_QTYPE_F32, 1, DIMS(1));
    gb_refused(&b, LB_BAD_FORMAT, "tensor 0: the name is empty");
    gb_free(&b);
    gb_init(&b);
    gb_tensor(&b, "caf\xC3\xA9", LG_QTYPE_F32, 1, DIMS(1));
    gb_refused(&b, LB_BAD_FORMAT, "byte 3 of the name is 0xc3");
    gb_free(&b);
}

/* B01, B08: dimensions. */
static void dimensions(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        uint32_t n_dims;
        uint64_t ne[5];
        lb_code code;
        const char *says;
    } want[] = {
        {LG_QTYPE_F32, 2, {1, 0}, LB_BAD_SHAPE, "tensor 't': dimension 1 is 0"},
        {LG_QTYPE_F32, 1, {0}, LB_BAD_SHAPE, "tensor 't': dimension 0 is 0"},
        {LG_QTYPE_F32, 2, {4, 0}, LB_BAD_SHAPE, "dimension 1 is 0"},
        {LG_QTYPE_F32, 4, {0, 0, 0, 0}, LB_BAD_SHAPE, "dimension 0 is 0"},
        {LG_QTYPE_F32, 5, {1, 1, 1, 1, 1}, LB_BAD_SHAPE, "5 dimensions; the limit is 4"},
        {LG_QTYPE_F32, 2, {1, UINT64_MAX}, LB_BAD_SHAPE, "dimension 1 is negative (-1)"},
        {LG_QTYPE_I8, 4, {INT64_MAX, 2, 1, 1}, LB_OVERFLOW, "dimension 1 (2)"},
        {LG_QTYPE_I8, 2, {1ULL << 32, 1ULL << 32}, LB_OVERFLOW, "2^63-1 elements"},
        {LG_QTYPE_F32, 2, {1ULL << 62, 4}, LB_OVERFLOW, "2^63-1 elements"},
        {LG_QTYPE_Q4_K, 2, {255, 2}, LB_BAD_SHAPE, "255 columns"},
        {LG_QTYPE_F32, 1, {UINT64_MAX / 4}, LB_BAD_FORMAT, "damaged file"},
        {LG_QTYPE_F64, 1, {INT64_MAX}, LB_OVERFLOW, "2^64 bytes"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        gguf_bytes b;
        gb_init(&b);
        gb_info(&b, "t", want[i].type, want[i].n_dims, want[i].ne, 0);
        gb_refused(&b, want[i].code, want[i].says);
        gb_free(&b);
    }
}

/* B20: type numbers. */
static void tensor_types(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        const char *says;
    } bad[] = {
        {4, "tensor 't': type 4 (q4_2"}, {5, "type 5 (q4_3"},   {31, "type 31"},
        {36, "type 36 (iq4_nl_4_4"},     {43, "type 43 is"},     {133, "type 133 (q6_0"},
        {1000, "type 1000"},             {UINT32_MAX, "type 4294967295"},
    };
    gguf_bytes b;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gb_init(&b);
        gb_info(&b, "t", bad[i].id, 1, DIMS(256), 0);
        gb_refused(&b, LB_UNSUPPORTED, bad[i].says);
        gb_free(&b);
    }
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    gb_init(&b);
    const lg_qtype_row *r;
    for (size_t i = 0; (r = lg_qtype_at(i)) != NULL; i++) {
        gb_tensor(&b, r->name, r->id, 2, DIMS(256, 3));
    }
    lg_gguf *g = gb_open(&b, &a); /* every known type opens; building with it is another matter */
    assert_int_equal(lg_gguf_n_tensors(g), 35);
    lg_gguf_close(g);
    gb_free(&b);
    lb_arena_reset(&a);
}

/* B09, B16: offsets and sizes against the file. */
static void offsets(void **state) {
    (void)state;
    static const struct {
        uint64_t offset;
        const char *says;
    } bad[] = {
        {1, "is not a multiple of the alignment 32"},
        {16, "is not a multiple"},
        {64, "the file ends at"},
        {1ULL << 40, "the file ends at"},
        {UINT64_MAX - 31, "truncated or damaged file"},
        {UINT64_MAX, "is not a multiple"},
        {1ULL << 63, "truncated or damaged file"},
    };
    gguf_bytes b;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gb_init(&b);
        gb_info(&b, "t", LG_QTYPE_F32, 1, DIMS(16), bad[i].offset);
        b.data_bytes = 64;
        gb_refused(&b, LB_BAD_FORMAT, bad[i].says);
        gb_free(&b);
    }
    static const uint64_t huge[] = {UINT64_MAX / 4, (UINT64_MAX - 31) / 4, (UINT64_MAX - 64) / 4};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        gb_init(&b);
        gb_info(&b, "first", LG_QTYPE_F32, 1, DIMS(huge[i]), 0);
        gb_info(&b, "second", LG_QTYPE_F32, 1, DIMS(8), 0);
        b.data_bytes = 64;
        gb_refused(&b, LB_BAD_FORMAT, "tensor 'first': truncated or damaged file");
        gb_free(&b);
    }
}

/* B19: names that occur twice, and data that two tensors claim. */
static void duplicates(void **state) {
    (void)state;
    gguf_bytes b;
    gb_init(&b);
    gb_u32(&b, "a.b", 1);
    gb_u32(&b, "a.c", 1);
    gb_str(&b, "a.b", "other type");
    gb_refused(&b, LB_DUPLICATE, "key 'a.b' occurs twice");
    gb_free(&b);
    gb_init(&b);
    gb_tensor(&b, "t", LG_QTYPE_F32, 1, DIMS(8));
    gb_tensor(&b, "u", LG_QTYPE_F32, 1, DIMS(8));
    gb_tensor(&b, "t", LG_QTYPE_F16, 1, DIMS(8));
    gb_refused(&b, LB_DUPLICATE, "tensor 't' occurs twice");
    gb_free(&b);
    gb_init(&b);
    gb_info(&b, "t", LG_QTYPE_F32, 1, DIMS(9), 0);
    gb_info(&b, "u", LG_QTYPE_F32, 1, DIMS(8), 32);
    b.data_bytes = 64;
    gb_refused(&b, LB_DUPLICATE, "tensors 't' and 'u' overlap");
    gb_free(&b);
}

static void many_tensors(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena a;
    lb_arena_init(&a, "load", 64 << 20);
    gb_init(&b);
    for (unsigned i = 0; i < 100000; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%u", (i * 7919U) % 100000U);
        gb_tensor(&b, name, LG_QTYPE_I8, 1, DIMS(1));
    }
    lg_gguf *g = gb_open(&b, &a);
    assert_non_null(lg_gguf_tensor_find(g, "t99999"));
    lg_gguf_close(g);
    gb_tensor(&b, "t50000", LG_QTYPE_I8, 1, DIMS(1));
    gb_refused(&b, LB_DUPLICATE, "tensor 't50000' occurs twice");
    gb_free(&b);
    lb_arena_reset(&a);
}

/* B16: no truncated file opens, and none is read past its end (each prefix is its own heap piece,
 * so that the sanitizer sees one byte too many). */
static void truncated_at_each_byte(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena a;
    lb_arena_init(&a, "load", 1 << 20);
    gb_tiny_llama(&b, 1, LG_QTYPE_Q4_0);
    lg_gguf_close(gb_open(&b, &a));
    uint64_t data_start = b.map.n_bytes - b.data_bytes;
    for (uint64_t n = 0; n < b.map.n_bytes; n += n < data_start + 64 ? 1 : 997) {
        uint8_t *copy = malloc(n == 0 ? 1 : n);
        assert_non_null(copy);
        memcpy(copy, b.map.data, n);
        lb_map m = {.data = n == 0 ? NULL : copy, .n_bytes = n};
        lb_err e = {0};
        lg_gguf *g = NULL;
        assert_false(lg_gguf_open_memory(&m, "cut.gguf", &a, &g, &e));
        assert_int_equal(e.code, LB_BAD_FORMAT);
        free(copy);
        lb_arena_reset(&a);
    }
    gb_finish(&b);
    b.map.n_bytes--;
    lb_err e = {0};
    lg_gguf *g = NULL;
    assert_false(lg_gguf_open_memory(&b.map, "cut.gguf", &a, &g, &e));
    assert_non_null(strstr(e.text, "tensor 'output_norm.weight': truncated or damaged file"));
    gb_free(&b);
    lb_arena_reset(&a);
}

static void each_allocation_may_fail(void **state) {
    (void)state;
    gguf_bytes b;
    gb_tiny_llama(&b, 1, LG_QTYPE_Q4_0);
    gb_finish(&b);
    for (int64_t n = 0;; n++) {
        lb_arena a;
        lb_err e = {0};
        lg_gguf *g = NULL;
        lb_arena_init(&a, "load", 1 << 20);
        a.fail_after = n;
        bool ok = lg_gguf_open_memory(&b.map, "t.gguf", &a, &g, &e);
        lg_gguf_close(g);
        lb_arena_reset(&a);
        if (ok) {
            assert_true(n > 4);
            break;
        }
        assert_int_equal(e.code, LB_NO_MEMORY);
        assert_null(g);
    }
    gb_free(&b);
}

/* A byte changed anywhere in the header is either harmless or an error, never a crash. */
static void each_byte_changed(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena a;
    lb_arena_init(&a, "load", 4 << 20);
    gb_tiny_llama(&b, 1, LG_QTYPE_Q4_0);
    gb_finish(&b);
    uint64_t header = b.map.n_bytes - b.data_bytes;
    static const uint8_t to[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    for (uint64_t i = 0; i < header; i++) {
        uint8_t old = b.file.data[i];
        for (size_t k = 0; k < sizeof to; k++) {
            lb_err e = {0};
            lg_gguf *g = NULL;
            b.file.data[i] = to[k];
            if (!lg_gguf_open_memory(&b.map, "t.gguf", &a, &g, &e)) {
                assert_true(e.code != LB_OK && e.text[0] != '\0');
            }
            lg_gguf_close(g);
            lb_arena_reset(&a);
        }
        b.file.data[i] = old;
    }
    gb_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_keys_and_tensors),
        cmocka_unit_test(places_tensors),
        cmocka_unit_test(small_and_old_files),
        cmocka_unit_test(not_a_gguf_file),
        cmocka_unit_test(versions),
        cmocka_unit_test(counts),
        cmocka_unit_test(alignments),
        cmocka_unit_test(lengths),
        cmocka_unit_test(arrays),
        cmocka_unit_test(names),
        cmocka_unit_test(dimensions),
        cmocka_unit_test(tensor_types),
        cmocka_unit_test(offsets),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(many_tensors),
        cmocka_unit_test(truncated_at_each_byte),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(each_byte_changed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
