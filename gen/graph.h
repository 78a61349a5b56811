/* graph.h -- the model as typed ops over a symbolic number of rows.
 *
 * Architecture files build a graph of ARCH ops (templates/arch, through lib/graph.lua); fuse.h
 * turns it into LAUNCH ops, one per kernel call; the verifier checks it after each of those steps.
 * A node's operands name values (activations, states) or weight tensors by number. Nodes are in
 * execution order and every value is written before it is read. Graphs live in the arena they were
 * built in. */
#ifndef LG_GRAPH_H
#define LG_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "gguf.h"
#include "host.h"
#include "value.h"

typedef enum lg_op {
#define OP(NAME, name, level, family, roles) LG_OP_##NAME,
#include "op.def"
#undef OP
    LG_N_OPS
} lg_op;

typedef enum lg_op_level { LG_LEVEL_ARCH, LG_LEVEL_LAUNCH } lg_op_level;

typedef struct lg_op_row {
    const char *name;
    lg_op_level level;
    const char *family; /* kernel family of a launch op */
    const char *roles;  /* op.def's role list */
} lg_op_row;

const lg_op_row *lg_op_get(lg_op op);

/* How many rows a value has: T (rows of the step), L (rows whose logits are wanted), or it is a
 * state that outlives the step; FEW: T rows, in steps of few rows only. */
typedef enum lg_rows { LG_ROWS_T, LG_ROWS_L, LG_ROWS_STATE, LG_ROWS_FEW } lg_rows;

typedef enum lg_elem {
    LG_ELEM_F32,
    LG_ELEM_I8,
    LG_ELEM_I16,
    LG_ELEM_F16,
    LG_ELEM_I32,
    LG_ELEM_U64
} lg_elem;

uint32_t lg_elem_bytes(lg_elem e);

/* As dumps and JSON spell them, by number, NULL at the end. */
extern const char *const LG_ELEM_NAMES[];
extern const char *const LG_ROWS_NAMES[];
extern const char *const LG_ACCESS_NAMES[];
extern const char *const LG_WHEN_NAMES[];

typedef struct lg_gvalue {
    const char *name;
    lg_rows rows;
    lg_elem elem;
    uint64_t width; /* elements per row; 0 for states */
    uint64_t below; /* i32 only: every element is less than this; 0: the number of rows says */
    uint64_t extra; /* elements behind those of the rows, however many rows there are */
    /* states only: bytes of all slots; positions that a slot's ring holds; how many positions back,
     * its own included, a row reads (0: all of them) */
    uint64_t state_bytes, slots, positions, window;
} lg_gvalue;

typedef enum lg_access { LG_READ, LG_WRITE, LG_BOTH, LG_STATE, LG_TENSOR } lg_access;

typedef struct lg_goperand {
    const char *role;
    lg_access access;
    uint32_t id; /* of a tensor where access is LG_TENSOR, else of a value */
} lg_goperand;

typedef struct lg_gtensor {
    const char *name;
    const lg_gguf_tensor *file; /* type, data range */
    uint64_t n_cols, n_rows, n_mats;
} lg_gtensor;

/* For how many rows of a step a node is there: any, at most LG_FEW_ROWS, or more. */
typedef enum lg_when { LG_WHEN_ANY, LG_WHEN_FEW, LG_WHEN_MANY } lg_when;

typedef struct lg_gnode {
    lg_op op;
    lg_when when;
    int32_t layer; /* -1 outside the layers */
    const lg_goperand *operands;
    uint32_t n_operands;
    const lg_value *attrs; /* a map */
} lg_gnode;

typedef struct lg_graph {
    const char *arch;
    lg_op_level level;
    uint64_t n_layers, n_embd, n_vocab, ctx_train;
    lg_gvalue *values;
    uint32_t n_values;
    lg_gtensor *tensors;
    uint32_t n_tensors;
    lg_gnode *nodes;
    uint32_t n_nodes;
    uint32_t logits; /* value: f32 [L][n_vocab] */
    bool samples;    /* tokens are chosen from them: sampling.h */
    uint32_t choices; /* then, value: u64 [L][1] */
    const lg_gguf_tensor **unused; /* of the file, read for nothing: worth a warning */
    uint32_t n_unused;
    const char *attn;      /* what attention of prompts computes with: "f32" or, on a GPU, "f16" */
    const lg_value *notes; /* what the architecture wants recorded: a map of texts, or NULL */
} lg_graph;

typedef struct lg_build_options {
    uint64_t ctx, slots, chunk;
    const char *kv; /* "f16" or "q8_0" */
    /* How a file's YaRN is read (templates/lib/rope.lua); NULL: "formula", "fixed" */
    const char *rope_mscale, *rope_beta;
    const char *attn; /* as in lg_graph; NULL: "f32" */
} lg_build_options;

/* Runs templates/arch/<general.architecture>.lua over the file's metadata. Reads no weight data but
 * the few configuration tensors the architecture names. Fails with LB_UNSUPPORTED for an
 * architecture without a file, LB_MISSING / LB_BAD_SHAPE / LB_BAD_VALUE with the key or tensor, the
 * value and the limit. */
bool lg_graph_build(const lg_gguf *file, lg_host *host, const lg_build_options *options,
                    lb_arena *arena, lg_graph **out, lb_err *err);

/* The file's keys as architecture files and recipes see them: a map; of arrays of more than 1024
 * elements only { long_array = n }. */
const lg_value *lg_graph_meta(lg_builder *b, const lg_gguf *file);

/* Checks roles, ids, order of writes and reads, and each op's shape rule. `after` names the step in
 * errors. */
bool lg_graph_check(const lg_graph *g, const char *after, lb_err *err);

/* The operand with this role, or NULL. Numbered roles are spelled "w0", "w1", ... */
const lg_goperand *lg_node_operand(const lg_gnode *n, const char *role);

/* Stable text, one line per value and node. */
void lg_graph_dump(const lg_graph *g, lb_text *out);

#endif
