/* plan.h -- what a program is made of, decided before it exists: kernels, launches, bytes.
 *
 * The planner (launch.c) asks each op's kernel template for its descriptor and makes one launch per
 * op; the memory planner (memory.c) gives every value and weight a place. The prover (prove.h)
 * reads this structure and trusts nothing in it. All of it is data: launches.json and memory.json
 * hold the same. */
#ifndef LG_PLAN_H
#define LG_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/image.h"
#include "expr.h"
#include "graph.h"
#include "hw.h"

/* What the symbols of expressions stand for. T = 1..t_max, L = 1..logit_rows_max. */
typedef struct lg_limits {
    uint64_t ctx, slots, chunk, t_max, logit_rows_max;
} lg_limits;

typedef struct lg_axis {
    const char *name;
    const char *kind; /* "dim", "rows", "logits", "kv" */
    const lg_expr *bound;
    uint64_t tile;
    const char *on;   /* "x", "y", "z" or "loop" */
    const char *base; /* parameter that takes the first position of a launch; NULL: never cut */
} lg_axis;

/* A piece of dynamic shared memory. */
typedef struct lg_smem {
    const char *name;
    uint64_t bytes, align;
} lg_smem;

typedef struct lg_param {
    const char *name, *ctype;
} lg_param;

/* Pairs in the order of their experts and the tiles that they make: where an output's rows lie is
 * then data of the device. Names of parameters; NULL where rows lie as they are numbered. */
typedef struct lg_sorted {
    const char *pairs, *map;
    uint64_t tile, groups; /* pairs of a tile at most; experts */
} lg_sorted;

typedef struct lg_operand {
    const char *param;
    lg_access access;
    const lg_expr *bytes;     /* one past the last byte touched */
    const lg_expr *max_index; /* largest element index computed */
    uint64_t align;
    uint32_t index_bits;
    uint64_t below;       /* of i32: every element is less; 0: not said */
    const char *index_by; /* the parameter whose elements choose what is read; NULL: none does */
    /* of a state that is read: how many positions back, its own included, a row reads (0: all of
     * them); has_window: it is said */
    uint64_t window;
    bool has_window;
} lg_operand;

/* Which columns of an output one axis position writes: position p of `axis`, from `first` on,
 * writes columns begin + (p - first) * tile, up to n of them in all. */
typedef struct lg_cover_cols {
    const char *axis; /* NULL: the cta that has the row writes all of them */
    uint64_t first, tile, begin, n;
} lg_cover_cols;

/* Memory through which the ctas of one launch speak to each other: what lies there when the launch
 * ends is nobody's. A row has `groups of axis` times `splits` tiles; a group's ctas write tiles of
 * their own, or count in them. */
typedef struct lg_own {
    const char *axis;      /* of groups; NULL: a row has one */
    const char *of;        /* the state whose splits of 256 positions are the tiles; NULL: counters */
    uint64_t tile, splits; /* elements of a tile; tiles of a group. 0: the cover is no such one */
} lg_own;

typedef struct lg_cover {
    const char *param;
    const char *rows_axis; /* NULL where rows are not tiled */
    uint64_t rows_tile;
    const lg_expr *rows_n;
    const lg_cover_cols *cols;
    uint32_t n_cols;
    bool partial; /* columns are left as they were, on purpose */
    const char *scattered; /* why every element is written once, where data say which cta does */
    lg_sorted sorted;
    lg_own own;
    /* of ctas that differ in their position on this axis only the last to count in `last_count`
     * writes; NULL: each writes what is its own */
    const char *last_axis, *last_count;
} lg_cover;

typedef struct lg_kernel {
    const char *name, *family;
    const lg_value *op;         /* what describe() and the body are given */
    const lg_value *descriptor; /* what describe() returned */
    const lg_axis *axes;
    const lg_param *params;
    const lg_operand *operands;
    const lg_cover *covers;
    const lg_smem *smem;
    const char *const *early; /* parameters read before the launch in front has ended: weights */
    uint32_t n_axes, n_params, n_operands, n_covers, n_smem, n_early;
    bool waits; /* it waits for that launch itself, before it touches anything else */
    const lg_expr *grid[3];
    uint64_t per_launch[3]; /* static tile: positions of one launch on x, y, z; 0: all of them */
    uint64_t block, scratch_bytes;
    uint64_t ctas_per_sm; /* 0 on a CPU */
    uint64_t smem_bytes;  /* end of the carve list */
    uint32_t few; /* GPU: index of the kernel that takes this one's place for at most LG_FEW_ROWS
                     rows, or its own */
    const lg_expr *bytes, *flops;
} lg_kernel;

typedef struct lg_launch {
    uint32_t kernel;
    uint32_t node; /* of the launch graph */
    int32_t layer;
    lg_when when;
    const char *label;              /* e.g. "blk.3.ffn_down" for messages and comments */
    uint32_t n_args;                /* as many as the kernel has parameters */
    const lg_goperand *const *args; /* one per kernel param; NULL for `step` and bases */
} lg_launch;

typedef enum lg_arena_kind {
    LG_ARENA_WEIGHTS,
    LG_ARENA_KV,
    LG_ARENA_SCRATCH,
    LG_ARENA_IO,
    LG_N_ARENAS
} lg_arena_kind;

/* "weights", "kv", "scratch", "io", NULL. */
extern const char *const LG_ARENA_NAMES[];

/* The place of a value of the launch graph. */
typedef struct lg_place {
    lg_arena_kind arena;
    uint64_t offset, bytes;
    uint32_t first, last; /* launches between which it must not be overwritten; states: all */
} lg_place;

/* The place of a weight: whole strips in the layout's order, or (layout NULL) plain numbers. */
typedef struct lg_weight {
    const lb_layout *layout;
    uint64_t offset, bytes;
} lg_weight;

typedef struct lg_plan {
    const lg_graph *graph; /* LAUNCH level */
    const lg_hw_row *hw;
    lg_limits limits;
    lg_kernel *kernels;
    lg_launch *launches;
    uint32_t n_kernels, n_launches;
    lg_place *places;   /* per value of the graph */
    lg_weight *weights; /* per tensor of the graph */
    uint64_t arena_bytes[LG_N_ARENAS];
    uint64_t step_offset, step_bytes; /* GPU: the step's block in the IO arena; 0 on a CPU */
} lg_plan;

/* What --ctx, --slots and --chunk may be at most; logit rows that a step has room for at least. */
enum { LG_CTX_MAX = 1 << 24, LG_SLOTS_MAX = 1024, LG_CHUNK_MAX = 1 << 17, LG_LOGIT_ROWS = 64 };

/* A step's block on the device: a copy of rt_step (model_abi.h), then slot_of_seq, logit_rows,
 * token_of_row, seq_of_row and pos_of_row as u32, each as long as this step's numbers say, then, at
 * the next multiple of 8, an rt_pick for each logit row. */
enum { LG_ALIGN_BYTES = 64, LG_STEP_HEAD_BYTES = 64, LG_PICK_BYTES = 1592 };

/* Rows of its own kind (T or L) up to which a launch takes the kernel of role "decode". Both
 * compute the same bits, so this is a matter of speed alone. */
enum { LG_FEW_ROWS = 8 };

/* Steps 7 and 8. Both build into `arena`; lg_plan_memory needs lg_plan_launches before it. */
bool lg_plan_launches(const lg_graph *graph, const lg_hw_row *hw, const lg_limits *limits,
                      lg_host *host, lb_arena *arena, lg_plan **out, lb_err *err);
bool lg_plan_memory(lg_plan *plan, lg_host *host, lb_arena *arena, lb_err *err);

/* Step 8 alone, to know sizes: the plan has places and arenas, and neither kernels nor launches. */
bool lg_plan_sizes(const lg_graph *graph, const lg_hw_row *hw, const lg_limits *limits,
                   lg_host *host, lb_arena *arena, lg_plan **out, lb_err *err);

/* The smallest ring of those that are shorter than the context, in positions, and the least that any
 * of them has beside what a row sees of the past. 0: there are none. The plan is proved or made here. */
void lg_plan_ring(const lg_plan *plan, uint64_t *ring, uint64_t *spare);

/* T_max = max(chunk, slots); logit rows of a step: max(slots, 64), at most T_max. Fails with
 * LB_BAD_VALUE for zero or out-of-range ctx, slots, chunk, naming the largest that would do. */
bool lg_limits_make(uint64_t ctx, uint64_t slots, uint64_t chunk, lg_limits *out, lb_err *err);

#endif
