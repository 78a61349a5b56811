/* gguf_write.h -- makes the header of a GGUF file (version 3): keys, tensor directory, padding.
 *
 * Only the header is held in memory. The caller writes it, then each tensor's bytes in the order in
 * which they were added, with lg_gguf_write_pad behind each; so a model of any size streams. What
 * the reader (gguf.h) would refuse is refused here. Format: the GGUF specification of ggml; offsets
 * are the strict ones that llama.cpp asks for (each tensor right behind the padding of the last).
 * After a failure the writer is of no more use. */
#ifndef LG_GGUF_WRITE_H
#define LG_GGUF_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/outfile.h"
#include "qtype.h"
#include "value.h"

enum { LG_GGUF_WRITE_ALIGNMENT = 32 };

typedef struct lg_gguf_writer lg_gguf_writer;

bool lg_gguf_write_new(lb_arena *arena, lg_gguf_writer **out, lb_err *err);

/* Adds a key. `type` is "u8" "i8" "u16" "i16" "u32" "i32" "u64" "i64" "f32" "f64" "bool" "string",
 * or one of them with "[]" behind for an array of it. Fails with LB_DUPLICATE, LB_BAD_TYPE (the
 * value is of another kind, or no such type), LB_BAD_VALUE (an integer or float outside the type's
 * range), LB_LIMIT (key longer than the reader takes). */
bool lg_gguf_write_key(lg_gguf_writer *w, const char *key, const char *type, const lg_value *value,
                       lb_err *err);

/* Adds a tensor of n_dims (1..4) dimensions, ne[0] the row. Fails with LB_DUPLICATE, LB_LIMIT (name
 * of 0 or more than 63 bytes), LB_BAD_SHAPE, LB_OVERFLOW. */
bool lg_gguf_write_tensor(lg_gguf_writer *w, const char *name, lg_qtype type, uint32_t n_dims,
                          const uint64_t *ne, lb_err *err);

/* Sum of all tensors with their padding: the length of the file's data part. */
uint64_t lg_gguf_write_data_bytes(const lg_gguf_writer *w);

/* Writes the header and its padding; `out` must be empty, all keys and tensors added. */
bool lg_gguf_write_header(lg_gguf_writer *w, lb_out *out, lb_err *err);

/* Pads the file to the next multiple of the alignment. */
bool lg_gguf_write_pad(lb_out *out, lb_err *err);

#endif
