/* emit_parts.h -- what the emitter's files share; private to them. */
#ifndef LG_EMIT_PARTS_H
#define LG_EMIT_PARTS_H

#include "emit.h"
#include "manifest.h"

typedef lg_manifest_file lg_emit_file;

typedef struct lg_emitter {
    const lg_plan *plan;
    lg_host *host;
    const lg_emit_options *o;
    lb_arena *arena;
    lg_emit_file *files;
    uint32_t n_files;
    bool has_tokenizer, has_chat;
    char image_digest[LB_DIGEST_HEX_BYTES]; /* of the packed image, once it is there; else "" */
} lg_emitter;

/* emit_files.c: an empty list of files. */
bool lg_emit_begin(lg_emitter *e, lb_err *err);

/* Adds a file to be written; `data` must live in the arena or longer. LB_CANCELLED when stopped. */
bool lg_emit_add(lg_emitter *e, const char *path, const void *data, size_t n_bytes, lb_err *err);

/* Renders one template of templates/ into one file. */
bool lg_emit_render(lg_emitter *e, const char *template, const lg_value *params, const char *path,
                    lb_err *err);

/* Adds a file of lagen's own folder, copied as it is. */
bool lg_emit_copy(lg_emitter *e, const char *from, const char *to, lb_err *err);

/* Adds the headers of templates/lib, sorted: what kernel text includes. */
bool lg_emit_headers(lg_emitter *e, lb_err *err);

/* Puts all files into the program's folder, and takes away what an earlier emission left there. */
bool lg_emit_write(const lg_emitter *e, lg_emit_result *result, lb_err *err);

/* emit_info.c: the tree that `info --json` prints: model, target, options, sizes, compiler. */
bool lg_emit_info(lg_emitter *e, const lg_value *all, const lg_value **out, lb_err *err);

/* emit_text.c: the tokenizer and the chat template as C, where the model file has them. */
bool lg_emit_text_parts(lg_emitter *e, lb_err *err);

/* emit_gpu.c: what the program templates read about a GPU: key "gpu" of the whole and of each
 * kernel. */
void lg_emit_gpu_kernel(lg_builder *b, const lg_plan *plan, uint32_t kernel, lb_arena *arena,
                        lg_value *out);
const lg_value *lg_emit_gpu(lg_builder *b, const lg_plan *plan, const lg_emit_options *o);

/* emit_gpu.c: the files of a GPU program beside its kernels; the kernels' cubins if lagen compiles
 * them. */
bool lg_emit_gpu_files(lg_emitter *e, const lg_value *all, lb_err *err);

#endif
