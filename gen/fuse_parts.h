/* fuse_parts.h -- what the rules of fusing are written with (fuse.c, fuse_attn.c): questions about
 * the graph of ARCH ops ("in"), and values and nodes of the graph of LAUNCH ops ("out").
 *
 * Numbers are LG_NONE where there is none. Everything made lives in the fuser's arena. */
#ifndef LG_FUSE_PARTS_H
#define LG_FUSE_PARTS_H

#include "graph.h"

#define LG_NONE UINT32_MAX

/* The quantised planes of a value in the new graph, or LG_NONE. */
typedef struct lg_planes {
    uint32_t q, d, s;
} lg_planes;

/* A mixture of experts in the graph of ARCH ops: its nodes, and values of the new graph that stand
 * between its launches. */
typedef struct lg_experts {
    const lg_gnode *gate, *up, *silu, *down, *sum, *add;
    /* the shared expert's, all NULL if there is none that fits: linears, silu_mul and add */
    const lg_gnode *s_gate, *s_up, *s_silu, *s_down, *s_add;
    const lg_gnode *first;    /* of gate and up, where the products are made */
    const lg_gnode *last_add; /* where the residual gets all of it */
    uint32_t residual;        /* in-value before both adds */
    uint32_t pairs, map, act; /* out-values; act: LG_NONE where no weights read plain numbers */
    lg_planes planes;         /* of act; LG_NONE where none read bytes */
    bool f32, q8;             /* which of the two is made */
} lg_experts;

/* The nodes that read a value first and last; both LG_NONE if none does. */
typedef struct lg_readers {
    uint32_t first, last;
} lg_readers;

typedef struct lg_fuser {
    const lg_graph *in;
    lg_graph *out;
    lb_arena *arena;
    lb_err *err;
    uint32_t *value_of;   /* in-value -> out-value, LG_NONE while not made */
    lg_planes *planes_of; /* in-value -> its quantised planes */
    lg_readers *readers_of; /* in-value -> its readers */
    bool *absorbed;       /* in-node -> already part of an earlier new node */
    lg_experts *experts;
    uint32_t *experts_of; /* in-node -> number of its mixture, or LG_NONE */
    uint32_t *parts_of;   /* in-value of a router's logits -> out-value of their parts */
    uint32_t values_cap, nodes_cap;
} lg_fuser;

/* A node under construction. Operands that find no room are counted all the same; lg_fuse_emit
 * refuses them. */
enum { LG_DRAFT_MAX = 20 };

typedef struct lg_draft {
    lg_goperand operands[LG_DRAFT_MAX];
    uint32_t n;
} lg_draft;

/* Fails with LB_UNSUPPORTED, naming op, layer and `why`. */
bool lg_fuse_unsupported(lg_fuser *f, const lg_gnode *n, const char *why);

/* The number behind a role; the next node from `start` on that reads in-value v; the only one, or
 * NULL; the node's index; the linear whose output in-value v is, or NULL. */
uint32_t lg_fuse_id(const lg_gnode *n, const char *role);
uint32_t lg_fuse_next_reader(const lg_fuser *f, uint32_t v, uint32_t start);
const lg_gnode *lg_fuse_only_reader(const lg_fuser *f, uint32_t v);
uint32_t lg_fuse_index(const lg_fuser *f, const lg_gnode *n);
const lg_gnode *lg_fuse_linear_to(const lg_fuser *f, uint32_t v);

/* A value of the new graph, LG_NONE with the error set where there is no room; the one for in-value
 * v, made on first use. */
uint32_t lg_fuse_new_value(lg_fuser *f, const char *name, lg_rows rows, lg_elem elem,
                           uint64_t width);
uint32_t lg_fuse_map(lg_fuser *f, uint32_t v);

void lg_draft_put(lg_draft *d, const char *role, lg_access access, uint32_t id);
bool lg_fuse_emit(lg_fuser *f, lg_op op, int32_t layer, const lg_draft *d, const lg_value *attrs);
bool lg_fuse_emit_when(lg_fuser *f, lg_op op, lg_when when, int32_t layer, const lg_draft *d,
                       const lg_value *attrs);

/* Whether a product's weights are quantised; quantises in-value v in front of `reader` unless its
 * producer or an earlier reader has. */
bool lg_fuse_quantised(const lg_fuser *f, const lg_gnode *linear);
bool lg_fuse_ensure_planes(lg_fuser *f, const lg_gnode *reader, uint32_t v);

/* One matmul of `n_parts` linears over the same input, writing out-value y. */
bool lg_fuse_matmul(lg_fuser *f, const lg_gnode *const *parts, uint32_t n_parts, lg_op op,
                    uint32_t y, const char *epilogue);

/* fuse_attn.c: the kv_store that this linear feeds, or NULL; all that stands around a store, from
 * its products on; the attention of a block in its own turn. */
const lg_gnode *lg_fuse_store_behind(const lg_fuser *f, const lg_gnode *linear);
bool lg_fuse_block(lg_fuser *f, const lg_gnode *store);
bool lg_fuse_attention(lg_fuser *f, const lg_gnode *n);

/* fuse_moe.c: fills experts and experts_of; a node of a mixture in its turn; whether a linear makes
 * a router's logits alone, and these in its turn; a router. */
bool lg_fuse_find_experts(lg_fuser *f);
bool lg_fuse_expert_node(lg_fuser *f, const lg_gnode *n);
bool lg_fuse_makes_logits(const lg_fuser *f, const lg_gnode *linear);
bool lg_fuse_logits(lg_fuser *f, const lg_gnode *linear);
bool lg_fuse_router(lg_fuser *f, const lg_gnode *n);

#endif
