/* emit.h -- steps 10 and 11: the program's text, rendered from templates and written where it
 * changed.
 *
 * The folder stands alone afterwards: emitted sources in src/, a copy of the runtime in runtime/,
 * build.ninja, launches.json, memory.json, manifest.json. Same inputs, same bytes: no dates, no
 * paths, fixed order. Everything is rendered, and the image packed, before the first file is put in
 * place: the folder changes as a whole or not at all. */
#ifndef LG_EMIT_H
#define LG_EMIT_H

#include <signal.h>

#include "base/digest.h"
#include "cuda_compiler.h"
#include "outdir.h"
#include "prove.h"
#include "recipe.h"

/* Packs the weight image and gives its digest; called once all text that could be refused has been
 * rendered, so that a refusal leaves nothing behind. */
typedef bool (*lg_emit_image_fn)(void *arg, char hex[LB_DIGEST_HEX_BYTES], lb_err *err);

typedef struct lg_emit_options {
    const char *root; /* lagen's own folder, with templates/ and runtime/ */
    const char *out;  /* folder of the program */
    lg_outdir *folder; /* the same, open */
    const volatile sig_atomic_t *stop; /* non-zero: give up with LB_CANCELLED; may be NULL */
    const char *name; /* model name, [A-Za-z0-9._-] */
    const lg_gguf *file;
    const lg_recipe *recipe;
    bool weights_linked;
    lg_emit_image_fn image; /* NULL if linked */
    void *image_arg;
    const char *kv;
    const char *attn; /* as in lg_graph; NULL: "f32" */
    const char *chunk_why; /* why this chunk, in words */
    const char *pre;       /* pre-tokenizer in place of the file's, or NULL */
    const char *cc;        /* the C compiler for the row's host side */
    const char *compiler;  /* its identity, one line */
    const lg_hw_row *host; /* the CPU row of the host side; plan->hw itself for a CPU program */
    const lg_cuda_compiler
        *cuda; /* NULL for a CPU program, or if none is here: then the identity is unknown */
    const char *chat_template; /* path of a chat template in place of the file's, or NULL */
} lg_emit_options;

typedef struct lg_emit_result {
    uint32_t n_files, n_changed;
} lg_emit_result;

bool lg_emit(const lg_plan *plan, const lg_proof *proof, lg_host *host, const lg_emit_options *o,
             lb_arena *arena, lg_emit_result *result, lb_err *err);

/* The model's name from its path: base name without .gguf and split suffix, every other character
 * as '-'. */
bool lg_model_name(const char *path, lb_arena *arena, const char **out, lb_err *err);

#endif
