/* model_abi.h -- the one header between emitted code and the runtime.
 *
 * Emitted code defines `const rt_model lagen_model`: what the program was made for, the sizes of
 * its arenas, where its weights come from, and the function that runs one step. The runtime
 * allocates the arenas once, loads the weights, and calls `step`; it knows no architecture. Nothing
 * here grows after start. */
#ifndef RT_MODEL_ABI_H
#define RT_MODEL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/image.h"
#include "base/text.h"
#include "pool.h"

enum { RT_ABI_VERSION = 1 };

typedef struct rt_tokenizer rt_tokenizer; /* runtime/token/token.h */
struct rt_chat_template;                  /* runtime/chat/render.h */
struct rt_model;
struct rt_memory; /* runtime/memory.h */
struct rt_gpu;    /* runtime/cuda/gpu_abi.h */

/* How a token is to be chosen from a row of logits on a device: the steps of docs/sampling.md that
 * are done there (runtime/pick.h makes these). Kernels read it: isa_cuda.h declares it once more.
 */
enum { RT_PICK_CHANGES = 128 };

typedef struct rt_pick_change {
    uint32_t token, count; /* count: how often it occurs in the window of the penalties */
    float bias;
} rt_pick_change;

typedef struct rt_pick {
    uint64_t random; /* the next two outputs of the generator */
    double min_log;  /* ln min_p */
    float temperature, top_p, min_p, repeat, frequency, presence;
    int32_t top_k;
    uint32_t min_keep, n_changes, pad;
    rt_pick_change changes[RT_PICK_CHANGES]; /* every token once */
} rt_pick;

/* What a device chose: token | kind << 32 | (1 << 40 if `random` was used). */
typedef uint64_t rt_picked;
typedef enum rt_picked_kind {
    RT_PICKED_TOKEN,
    RT_PICKED_UNDECIDED,    /* more candidates are needed than the device keeps: the host chooses */
    RT_PICKED_NOT_A_NUMBER, /* the logit of `token` is */
    RT_PICKED_INFINITE,
    RT_PICKED_NONE_ALLOWED
} rt_picked_kind;

/* One pass over n_rows tokens of n_seqs sequences (contracts section 2). Rows of one sequence are
 * consecutive and their positions ascend by one. Arrays belong to the caller and stay valid during
 * the step. Limits: 1 <= n_rows <= t_max, n_seqs <= slots, n_logits <= logit_rows_max. */
typedef struct rt_step {
    uint32_t n_rows;
    uint32_t n_seqs;
    uint32_t n_logits;
    uint32_t n_prompt; /* the last n_prompt rows are of prompts, those before them are generated: a
                          device may compute the attention of prompts with less precision */
    const uint32_t *token_of_row; /* [n_rows], < n_vocab */
    const uint32_t *seq_of_row;   /* [n_rows], < n_seqs */
    const uint32_t *pos_of_row;   /* [n_rows], < ctx */
    const uint32_t *slot_of_seq;  /* [n_seqs], < slots, distinct */
    const uint32_t *logit_rows;   /* [n_logits], rows whose logits are wanted, ascending */
    const rt_pick
        *picks; /* [n_logits]: the step chooses tokens (rt_model.picks); NULL: it does not */
} rt_step;

typedef enum rt_arena_kind {
    RT_ARENA_WEIGHTS, /* filled once by the loader, then read only */
    RT_ARENA_KV,
    RT_ARENA_SCRATCH, /* activations of one step */
    RT_ARENA_IO,      /* logits */
    RT_N_ARENAS,
    RT_DEVICE =
        RT_N_ARENAS, /* no arena: the state of a GPU program's device; NULL in a CPU program */
    RT_TRACE,        /* no arena: an rt_trace, or NULL */
    RT_N_PLACES
} rt_arena_kind;

/* Told of every layer that a step is done with, in order, while nothing else runs: its hidden
 * states f32[n_rows][n_embd] lie at `offset_bytes` of RT_ARENA_SCRATCH. */
typedef struct rt_trace {
    void (*visit)(void *arg, uint32_t layer, uint64_t offset_bytes);
    void *arg;
} rt_trace;

/* Where one weight comes from and where it goes. With `--weights pack` the image file holds the
 * arena byte for byte and sources are informative; with `--weights link` the loader reads the rows
 * from the model file and applies the layout. */
typedef struct rt_weight {
    const char *name;
    const lb_layout *layout;         /* NULL: file_bytes are copied as they are */
    uint64_t n_rows, n_cols, n_mats; /* n_mats > 1 for expert tensors */
    uint64_t offset_bytes;           /* in the weights arena */
    uint64_t image_bytes;
    uint32_t file; /* index into rt_model.files */
    uint64_t file_offset_bytes, file_bytes;
} rt_weight;

/* Keys or values of one layer in RT_ARENA_KV: for each slot, for each head, blocks of
 * rt_model.cache_block positions, block_bytes each. Position p lies in place p % positions; a row
 * reads the last `window` positions, its own included (0: all). */
typedef struct rt_cache {
    uint64_t offset_bytes;
    uint32_t heads, positions, window, block_bytes;
} rt_cache;

typedef struct rt_file {
    const char *name; /* relative to the program's folder unless absolute */
    uint64_t n_bytes;
    const char *sha256; /* 64 hex digits: base/digest.h; NULL for linked model files */
} rt_file;

typedef struct rt_sampling {
    float temperature, top_p, min_p, repeat_penalty, frequency_penalty, presence_penalty;
    int32_t top_k, repeat_last_n;
} rt_sampling;

/* What a device's driver said of its memory, in bytes. */
typedef struct rt_device_memory {
    uint64_t total;
    uint64_t before, after; /* free: with the context there and nothing else; ready for requests */
    bool shared;            /* it is the host's memory too */
} rt_device_memory;

/* How a program with a device of its own takes memory and loads weights (cuda/gpu_abi.h). memory.h
 * and load.h call these in place of what they do themselves; other parts of the runtime know
 * nothing of it. */
typedef struct rt_device_ops {
    /* Checks the machine, chooses the device (`wanted`: index, UUID or PCI address; NULL: the only
     * one that fits), allocates all arenas. mem->arenas: WEIGHTS, KV, SCRATCH are device addresses;
     * IO is host memory that mirrors the device's. */
    bool (*map)(const struct rt_model *model, const char *wanted, struct rt_memory *mem,
                lb_err *err);
    void (*unmap)(struct rt_memory *mem);

    /* Loading: a buffer of RT_STAGE_BYTES for worker `index`, or NULL if that one has to stand
     * aside; then its first n_bytes go to `offset` of the weights arena. */
    uint8_t *(*stage)(const struct rt_memory *mem, uint32_t index);
    bool (*put)(const struct rt_memory *mem, uint32_t index, uint64_t offset, uint64_t n_bytes,
                lb_err *err);

    /* Bytes of an arena to the host, and from it; an arena to zeros. Between steps. */
    bool (*get)(const struct rt_memory *mem, rt_arena_kind kind, uint64_t offset, void *to,
                uint64_t n_bytes, lb_err *err);
    bool (*set)(const struct rt_memory *mem, rt_arena_kind kind, uint64_t offset, const void *from,
                uint64_t n_bytes, lb_err *err);
    bool (*clear)(const struct rt_memory *mem, rt_arena_kind kind, lb_err *err);

    /* What there is on this machine, in lines for people, whether or not it would do. */
    void (*describe)(const struct rt_model *model, lb_text *out);

    /* After the weights: everything that may fail or take memory late happens here. */
    bool (*ready)(const struct rt_model *model, struct rt_memory *mem, lb_err *err);

    /* After `ready`. */
    void (*measured)(const struct rt_memory *mem, rt_device_memory *out);
} rt_device_ops;

enum { RT_STAGE_BYTES = LB_STAGE_BYTES };

typedef struct rt_model {
    uint32_t abi_version; /* RT_ABI_VERSION */
    const char *name;     /* model name, from its file name */
    const char *arch_row; /* hardware row, e.g. as given to --arch */
    const char *const
        *cpu_features; /* names the CPU must have (/proc/cpuinfo spelling), NULL-ended */
    uint32_t n_vocab, n_embd, n_layers;
    uint32_t ctx, slots, chunk, t_max, logit_rows_max;
    const char *chunk_why; /* why a prompt's steps have `chunk` rows, in words */
    const char *kv_type;
    const char *attn_type; /* what attention of prompts multiplies: "f32" or "f16"; NULL: f32 */
    /* Layers that see a window keep fewer positions than the context: the smallest ring of them, and
     * how many positions may be stored behind a point so that the window before it is still whole.
     * 0: every layer keeps all. */
    uint32_t ring, ring_spare;
    const rt_cache *caches; /* NULL: what is in slots cannot be taken out */
    uint32_t n_caches, cache_block;
    uint64_t n_params; /* weights in the model's matrices */
    uint64_t arena_bytes[RT_N_ARENAS];
    uint64_t logits_offset_bytes; /* f32[logit_rows_max][n_vocab] in RT_ARENA_IO */
    bool samples; /* steps can choose tokens: rt_step.picks. Logits then stay where they were made,
                     unless a choice is RT_PICKED_UNDECIDED */
    uint64_t choices_offset_bytes; /* rt_picked[logit_rows_max] in RT_ARENA_IO, if it samples */
    bool weights_linked;
    const char *linked_sha256; /* of samples of all weights in their files, in the order of `weights`
                                  (lb_digest_sample); NULL: not linked */
    const rt_file *files;
    uint32_t n_files;
    const rt_weight *weights;
    uint32_t n_weights;
    uint32_t image_file;                 /* index of the packed image in files, unless linked */
    const rt_tokenizer *tokenizer;       /* NULL if the model has none */
    const struct rt_chat_template *chat; /* NULL if the model has none */
    rt_sampling sampling;                /* defaults from recipe or model file */
    const char *info_json;               /* the manifest's text, for `info --json` */

    /* Runs one step on the pool's threads; logits of row logit_rows[i] land in row i of the logits
     * buffer. `arenas[k]` has arena_bytes[k] bytes, 64-byte aligned (rt_memory.arenas, RT_DEVICE
     * included). T = 0 runs nothing. */
    bool (*step)(uint8_t *const *arenas, const rt_step *step, rt_pool *pool, lb_err *err);

    /* The same step by the plain-C twins of all kernels, slow and equal to the bit: `selftest` runs
     * both on this machine and compares logits and caches. NULL if the program was emitted without
     * them. In a GPU program it runs on the CPU, over arenas of the host (rt_memory_twin). */
    bool (*step_plain)(uint8_t *const *arenas, const rt_step *step, rt_pool *pool, lb_err *err);

    const rt_device_ops *device; /* NULL: a CPU program */
    const struct rt_gpu *gpu;    /* NULL: likewise */
} rt_model;

extern const rt_model lagen_model;

#endif
