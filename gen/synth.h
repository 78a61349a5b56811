/* synth.h -- `lagen synth`: writes a GGUF file with random weights from a recipe.
 *
 * A recipe is a Lua file below models/ whose module has a function synth(opts); opts = { seed,
 * layers (if asked for), types (if asked for) }. It returns, as data,
 *   keys     array of { key, type, value }; types as in gguf_write.h
 *   tensors  array in file order of { name, type, ne = { row, ... }, fill, ... }:
 *            fill = "normal" with mean and std (synth_random.h), or "values" with values = { ... };
 *            types of payload.def take "normal" with mean 0: random bits under fitting scales
 * Nothing here knows an architecture. The file is streamed: memory does not grow with the model. It
 * is there whole under its name, or not at all. Same recipe, options and seed: same bytes. */
#ifndef LG_SYNTH_H
#define LG_SYNTH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct lg_synth_options {
    const char *models_dir; /* folder of the recipes */
    const char *recipe;     /* file below it, as in "synth/llama-tiny"; ".lua" may be left out */
    const char *out_path;
    const char *types;      /* a tensor type or a mix that the recipe knows; NULL = the recipe's */
    uint32_t layers;        /* 0 = the recipe's */
    uint64_t seed;          /* at most 2^63 - 1 */
    uint64_t distinct_rows; /* a tensor's row r holds what row r % distinct_rows of the whole model
                               would: a big file in the time that it takes to write; 0 = all rows */
    bool header_only;       /* random weights are a hole: right length, no disk space; those of the
                               recipe (fill = "values") are written: plans depend on them */
    const volatile sig_atomic_t *stop; /* becomes non-zero to stop; may be NULL */
    void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes); /* may be NULL */
    void *progress_arg;
} lg_synth_options;

typedef struct lg_synth_report {
    uint64_t n_tensors;
    uint64_t n_params; /* elements of all tensors */
    uint64_t n_bytes;  /* length of the file */
} lg_synth_report;

/* Makes the file. `report` may be NULL. Fails with LB_CANCELLED when stopped, LB_MISSING for an
 * unknown recipe or one without synth(), LB_BAD_VALUE, LB_BAD_TYPE, LB_BAD_SHAPE for what it holds
 * (the message has its file and path), LB_UNSUPPORTED for weights to be made in a type that is
 * neither quantised to nor in payload.def, or that takes no such fill, LB_IO. */
bool lg_synth_run(const lg_synth_options *o, lg_synth_report *report, lb_arena *arena, lb_err *err);

#endif
