/* gguf_bytes.h -- builds GGUF files byte by byte for tests: right ones with little text, and wrong
 * ones, since every count, type, dimension and offset can be set to anything.
 *
 *     gguf_bytes b;
 *     gb_init(&b);
 *     gb_str(&b, "general.architecture", "llama");
 *     gb_u32(&b, "llama.block_count", 2);
 *     gb_strs(&b, "tokenizer.ggml.tokens", 2, (const char *[]){"a", "b"});
 *     gb_tensor(&b, "token_embd.weight", LG_QTYPE_F32, 2, (uint64_t[]){64, 320});
 *     gb_write(&b, path);              // or gb_finish(&b) for the bytes themselves
 *     gb_free(&b);
 *
 * Nothing is checked against the format; running out of memory fails the test by assertion. */
#ifndef GGUF_BYTES_H
#define GGUF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "gguf.h"

/* A growing byte string. */
typedef struct gb_bytes {
    uint8_t *data;
    size_t n_bytes;
    size_t cap_bytes;
} gb_bytes;

void gb_put(gb_bytes *to, const void *data, size_t n_bytes);
void gb_put_u8(gb_bytes *to, unsigned v);
void gb_put_u16(gb_bytes *to, unsigned v);
void gb_put_u32(gb_bytes *to, uint32_t v);
void gb_put_u64(gb_bytes *to, uint64_t v);
void gb_put_f32(gb_bytes *to, float v);
void gb_put_str(gb_bytes *to, const char *s); /* u64 length, then the bytes */

/* The file to be. Fields may be set at any time before gb_finish. */
typedef struct gguf_bytes {
    uint32_t version;   /* 3 */
    uint64_t n_keys;    /* counted by the functions below; set it to lie */
    uint64_t n_tensors; /* the same */
    uint32_t alignment; /* 32: of tensor offsets and of the data part; writes no key by itself */
    bool no_data;       /* leave the weights out: a truncated file */
    gb_bytes keys;      /* bytes of the keys so far; put raw ones behind it as you like */
    gb_bytes infos;     /* bytes of the tensor directory so far */
    uint64_t data_bytes; /* bytes of the data part so far */
    gb_bytes file;      /* the result of gb_finish */
    lb_map map;         /* the same as a map, for lg_gguf_open_memory */
} gguf_bytes;

void gb_init(gguf_bytes *b);
void gb_free(gguf_bytes *b);

/* One key with a value. */
void gb_u8(gguf_bytes *b, const char *key, unsigned v);
void gb_u16(gguf_bytes *b, const char *key, unsigned v);
void gb_u32(gguf_bytes *b, const char *key, uint32_t v);
void gb_i32(gguf_bytes *b, const char *key, int32_t v);
void gb_u64(gguf_bytes *b, const char *key, uint64_t v);
void gb_i64(gguf_bytes *b, const char *key, int64_t v);
void gb_f32(gguf_bytes *b, const char *key, float v);
void gb_f64(gguf_bytes *b, const char *key, double v);
void gb_bool(gguf_bytes *b, const char *key, unsigned v); /* the byte as given */
void gb_str(gguf_bytes *b, const char *key, const char *v);
void gb_str_n(gguf_bytes *b, const char *key, const char *v, uint64_t n_bytes);
void gb_strs(gguf_bytes *b, const char *key, uint64_t n, const char *const *v);
void gb_u32s(gguf_bytes *b, const char *key, uint64_t n, const uint32_t *v);
void gb_i32s(gguf_bytes *b, const char *key, uint64_t n, const int32_t *v);
void gb_f32s(gguf_bytes *b, const char *key, uint64_t n, const float *v);

/* The key and the type number; the value's bytes are put to b->keys by the caller. */
void gb_key(gguf_bytes *b, const char *key, uint32_t type);
/* The same for an array: key, array type, element type, count; its elements are put by the caller. */
void gb_array(gguf_bytes *b, const char *key, uint32_t elem_type, uint64_t n);
/* `key` with a harmless value of any of the 13 types: 1, 1.0, true, "1", or an array with a u32. */
void gb_any(gguf_bytes *b, const char *key, lg_gguf_type type);

/* A tensor of zeros at the next free offset. Type and dimensions must be valid. */
void gb_tensor(gguf_bytes *b, const char *name, lg_qtype type, uint32_t n_dims,
               const uint64_t *ne);
/* A directory entry of anything, with no data: `type` and `offset` go in as they are. */
void gb_info(gguf_bytes *b, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne,
             uint64_t offset);

/* Puts the parts together into b->file and b->map; may be called again after changes. */
const lb_map *gb_finish(gguf_bytes *b);
/* gb_finish, then writes the file, which must be possible. */
void gb_write(gguf_bytes *b, const char *path);

/* A small valid model of architecture llama: n_layers layers (at least 1), 64 wide, 4 heads of 16,
 * 320 tokens of a byte-level vocabulary, tied embeddings, all matrices of `type`, norms F32, all
 * weights zero. For tests of what reads files, not of what computes with them. */
void gb_tiny_llama(gguf_bytes *b, uint32_t n_layers, lg_qtype type);

/* Opens b's bytes from memory, which must succeed; the bytes must outlive what is returned. */
lg_gguf *gb_open(gguf_bytes *b, lb_arena *arena);

/* Opens b's bytes and expects failure `code` with `says` in a message of one line. */
void gb_refused(gguf_bytes *b, lb_code code, const char *says);

#endif
