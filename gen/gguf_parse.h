/* gguf_parse.h -- the bytes of one GGUF file, private to gguf.c and gguf_split.c.
 *
 * A file is walked twice: lg_gguf_scan checks it and allocates nothing, then the caller allocates
 * what the scan has proved to be there, and lg_gguf_read_* fill it. Both walks check the same, so a
 * file that changes between them is refused and not trusted. */
#ifndef LG_GGUF_PARSE_H
#define LG_GGUF_PARSE_H

#include "base/file.h"
#include "gguf.h"

typedef struct lg_gguf_part {
    lg_gguf_file info;
    lb_map map;
    bool owned;        /* unmapped by lg_gguf_close */
    uint64_t n_keys;   /* checked: at least so many keys and tensors fit in the header */
    uint64_t keys_pos; /* where the keys start */
    uint64_t tensors_pos;
} lg_gguf_part;

struct lg_gguf {
    lb_arena *arena;
    lg_gguf_part *parts;
    uint32_t n_parts; /* those that are mapped */
    lg_gguf_kv *keys;
    const lg_gguf_kv **keys_by_name;
    uint64_t n_keys;
    lg_gguf_tensor *tensors;
    const lg_gguf_tensor **tensors_by_name;
    uint64_t n_tensors;
    uint64_t tensor_bytes;
};

/* Walks `part->map` and fills the rest of `part`, path aside. */
bool lg_gguf_scan(lg_gguf_part *part, lb_err *err);

/* Fill part->n_keys and part->info.n_tensors entries. */
bool lg_gguf_read_keys(const lg_gguf_part *part, lg_gguf_kv *out, lb_err *err);
bool lg_gguf_read_tensors(const lg_gguf_part *part, uint32_t file_index, lg_gguf_tensor *out,
                          lb_err *err);

/* Maps and scans the file at `path`; errors start with the file's name. `path` must live long. */
bool lg_gguf_open_part(const char *path, lg_gguf_part *part, lb_err *err);

/* Reads the keys of one part into `g`, sorted and unique. */
bool lg_gguf_load_keys(lg_gguf *g, const lg_gguf_part *part, lb_err *err);

/* Puts the file's name in front of `err`; returns false. */
bool lg_gguf_err_file(lb_err *err, const char *path);

/* With part 0 and its keys in `g`: opens the other parts that its split keys promise. */
bool lg_gguf_open_split(lg_gguf *g, lb_err *err);

#endif
