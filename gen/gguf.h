/* gguf.h -- one model file, or all parts of a split one, as keys and tensors over read-only maps.
 *
 * Opening checks every count, length, offset and product of the header before it is used, and reads
 * no byte of the weights. Strings and elements stay where they are in the map: pointer and length,
 * no NUL, bytes as in the file. Typed access to values is in gguf_value.h. Pointers handed out live
 * until lg_gguf_close. Versions 2 and 3, little-endian. Format: the GGUF specification of ggml. */
#ifndef LG_GGUF_H
#define LG_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/file.h"
#include "qtype.h"

/* Limits of this reader, far above any real model. They bound its time and memory: a file that
 * passes them is refused with LB_LIMIT. */
enum {
    LG_GGUF_MAX_KEYS = 1 << 16,
    LG_GGUF_MAX_KEY_BYTES = 65535, /* from the specification */
    LG_GGUF_MAX_TENSORS = 1 << 18, /* over all parts */
    LG_GGUF_MAX_NAME_BYTES = 63,   /* from ggml */
    LG_GGUF_MAX_ELEMS = 1 << 24,   /* of one array */
    LG_GGUF_MAX_STRS = 1 << 22,    /* of one array of strings */
    LG_GGUF_MAX_HEADER_BYTES = 64 << 20,
    LG_GGUF_MAX_ALIGNMENT = 1 << 20,
    LG_GGUF_MAX_FILES = 1024,
    LG_GGUF_MAX_LAYERS = 512
};

typedef enum lg_gguf_type { /* numbers as in the file */
    LG_GGUF_U8 = 0,
    LG_GGUF_I8,
    LG_GGUF_U16,
    LG_GGUF_I16,
    LG_GGUF_U32,
    LG_GGUF_I32,
    LG_GGUF_F32,
    LG_GGUF_BOOL,
    LG_GGUF_STR,
    LG_GGUF_ARRAY,
    LG_GGUF_U64,
    LG_GGUF_I64,
    LG_GGUF_F64,
    LG_GGUF_N_TYPES
} lg_gguf_type;

typedef struct lg_gguf_str {
    const char *data; /* not terminated; not NULL where n_bytes > 0 */
    uint64_t n_bytes;
} lg_gguf_str;

typedef struct lg_gguf_kv {
    lg_gguf_str key;        /* 1..65535 bytes of printable ASCII */
    lg_gguf_type type;      /* LG_GGUF_ARRAY for arrays */
    lg_gguf_type elem_type; /* of an array's elements, never LG_GGUF_ARRAY; else equal to type */
    uint64_t n_elems;       /* 1 for what is no array */
    const uint8_t *data;    /* the elements as in the file: a string is its length, then bytes */
    uint64_t n_bytes;
} lg_gguf_kv;

typedef struct lg_gguf_tensor {
    lg_gguf_str name; /* 1..63 bytes of printable ASCII */
    lg_qtype type;
    uint32_t n_dims;     /* 0..4 */
    uint64_t ne[4];      /* ne[0] is the row; dimensions that the file leaves out are 1, no 0 */
    uint64_t n_elems;    /* product of ne, < 2^63 */
    uint32_t file_index; /* which part holds it, 0 for a file in one piece */
    uint64_t offset;     /* absolute, in that part */
    uint64_t n_bytes;    /* offset + n_bytes <= size of that part */
    const uint8_t *data; /* in the map; touching it reads the file */
} lg_gguf_tensor;

typedef struct lg_gguf_file {
    const char *path;
    uint64_t n_bytes;
    uint32_t version;
    uint64_t alignment;
    uint64_t data_start; /* offset of the first possible tensor byte */
    uint64_t n_tensors;
} lg_gguf_file;

typedef struct lg_gguf lg_gguf;

/* Opens the model at `path`: a whole file, or the first part of a split one, whose other parts are
 * found by name (m-00001-of-00003.gguf) beside it. Keys come from the first file only.
 *   arena  holds directory and index; at most a small multiple of the header's size
 *   out    set on success; give it to lg_gguf_close before the arena is reset
 * Fails with LB_IO (cannot map a file), LB_BAD_FORMAT (not a GGUF file, truncated, offsets outside
 * the file, parts that do not belong together), LB_BAD_TYPE, LB_BAD_VALUE, LB_BAD_SHAPE,
 * LB_OVERFLOW, LB_DUPLICATE (a key or tensor twice, tensors that overlap), LB_UNSUPPORTED (version,
 * byte order, tensor type), LB_LIMIT, LB_MISSING, LB_NO_MEMORY. Nothing stays mapped then. */
bool lg_gguf_open(const char *path, lb_arena *arena, lg_gguf **out, lb_err *err);
void lg_gguf_close(lg_gguf *g); /* g may be NULL */

/* The same for one whole file in memory: `map` is read, never unmapped; `path` is for messages. A
 * split file is refused with LB_UNSUPPORTED. */
bool lg_gguf_open_memory(const lb_map *map, const char *path, lb_arena *arena, lg_gguf **out,
                         lb_err *err);

uint64_t lg_gguf_n_keys(const lg_gguf *g);
const lg_gguf_kv *lg_gguf_key_at(const lg_gguf *g, uint64_t i); /* in file order */
const lg_gguf_kv *lg_gguf_find(const lg_gguf *g, const char *key); /* NULL if absent */

uint64_t lg_gguf_n_tensors(const lg_gguf *g);
/* In file order; one array, so a tensor's number is its distance from the first. */
const lg_gguf_tensor *lg_gguf_tensor_at(const lg_gguf *g, uint64_t i);
const lg_gguf_tensor *lg_gguf_tensor_find(const lg_gguf *g, const char *name); /* or NULL */

uint32_t lg_gguf_n_files(const lg_gguf *g);
const lg_gguf_file *lg_gguf_file_at(const lg_gguf *g, uint32_t i);

/* Sum of all tensors' bytes; at most the sum of all files' sizes. */
uint64_t lg_gguf_tensor_bytes(const lg_gguf *g);

#endif
