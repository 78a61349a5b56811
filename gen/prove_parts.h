/* prove_parts.h -- what the prover's files share; private to them. */
#ifndef LG_PROVE_PARTS_H
#define LG_PROVE_PARTS_H

#include "prove.h"

#define LG_CTAS_MAX UINT32_MAX /* ctas are counted in uint32_t */

enum {
    LG_SCRATCH_MAX = 64 * 1024, /* stack bytes a kernel may use; worker stacks are far larger */
    LG_PARAMS_MAX = 64
};

/* What stands behind an argument, from the graph alone. */
typedef struct lg_shape {
    const char *name;  /* of the value or tensor */
    const char *ctype; /* of an element, in C */
    bool sized;        /* states and tensors: `bytes` is all there is; else rows of `width` */
    lg_rows rows;
    uint64_t width, elem_bytes, bytes;
    uint64_t extra; /* elements behind the rows */
    uint64_t below; /* of i32 */
} lg_shape;

/* A parameter of the launch in hand: its argument, and what the kernel declares about it. */
typedef struct lg_bound {
    const char *param;
    const lg_goperand *arg; /* NULL for the step and bases */
    const lg_operand *operand; /* NULL for the step and bases */
    const lg_cover *cover;     /* NULL for what is not written, and for states */
    lg_shape shape;
} lg_bound;

/* A launch that was proved for every T and L: its kernel and the shapes behind its arguments. */
typedef struct lg_proved {
    uint32_t kernel;
    lg_when when; /* T goes as far as this says */
    const lg_bound *bound;
} lg_proved;

typedef struct lg_prover {
    const lg_plan *plan;
    lb_arena *arena;
    lb_err *err;
    lg_fact *facts;
    uint32_t n_facts, cap_facts;
    lg_proved *proved;
    uint32_t n_proved;
    uint64_t T, L;   /* at which expressions are evaluated now */
    uint32_t launch; /* in hand; UINT32_MAX: none, the plan as a whole */
    uint32_t kernel_id;
    const lg_kernel *kernel; /* in hand: the launch's own, or the one for few rows */
    uint32_t n_bound;
    lg_bound bound[LG_PARAMS_MAX];
    uint64_t grid[3]; /* of the launch in hand at T and L */
} lg_prover;

/* Records value <= limit, or fails. */
bool lg_prove_fact(lg_prover *p, const char *kind, const char *subject, uint64_t value,
                   uint64_t limit);

/* LB_PROOF: "<launch>: <what> of '<subject>' is <value>, the limit is <limit> (T, L)". */
bool lg_prove_fail(lg_prover *p, const char *what, const char *subject, uint64_t value,
                   uint64_t limit);
bool lg_prove_fail_text(lg_prover *p, const char *what, const char *subject, const char *got,
                        const char *want);

/* The expression at the current T and L; what cannot be evaluated is not proved. */
bool lg_prove_eval(lg_prover *p, const lg_expr *e, const char *what, const char *subject,
                   uint64_t *out);

/* prove_operand.c. Takes launch i in hand with one of its kernels: for every parameter one argument
 * and one operand of its kind. */
bool lg_prove_take(lg_prover *p, uint32_t i, uint32_t kernel);

/* Bytes of the argument's rows at the current T and L. */
bool lg_prove_there(lg_prover *p, const lg_bound *b, uint64_t *out);

/* Byte range and index of parameter b at the current T and L; with `record`, as facts. */
bool lg_prove_operand(lg_prover *p, const lg_bound *b, bool record);

/* Where the arguments begin. */
bool lg_prove_alignment(lg_prover *p);

/* prove_grid.c. Grid and axes at the current T and L, then the coverage of output b in that grid.
 */
bool lg_prove_grid(lg_prover *p, bool record);
bool lg_prove_cover(lg_prover *p, const lg_bound *b, bool record);

/* One past the last byte that b's cover writes. */
bool lg_prove_cover_end(lg_prover *p, const lg_bound *b, uint64_t *out);

/* prove_sorted.c. Outputs whose rows lie in the order of other data, and those data: the grid has a
 * position for every tile that there can be, a map has an entry for each, and what is read was made
 * by one launch for the same tiles. */
bool lg_prove_sorted(lg_prover *p, const lg_bound *b, uint64_t rows);
bool lg_prove_scattered(lg_prover *p, const lg_bound *b, uint64_t *bytes);
bool lg_prove_order(lg_prover *p);

/* Elements that choose experts are below the number of matrices, by who writes them. */
bool lg_prove_indexed(lg_prover *p);

/* prove_own.c. Memory that the ctas of a launch share; outputs that only the last of those along an
 * axis (*dim) writes. */
bool lg_prove_own(lg_prover *p, const lg_bound *b, bool record);
bool lg_prove_last(lg_prover *p, const lg_bound *b, uint32_t *dim);

/* prove_gpu.c. What the row of a GPU demands of the launch in hand, whatever T is. */
bool lg_prove_gpu(lg_prover *p);

/* prove_memory.c. Places: of their arena, as large as their values, apart while alive, written
 * before read. */
bool lg_prove_memory(lg_prover *p);

/* Bytes of a weight by the prover's own formula. */
bool lg_prove_weight_bytes(lg_prover *p, uint32_t tensor, uint64_t *out);

#endif
