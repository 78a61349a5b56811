/* prove_parts.h -- what the prover's files share; private to them. */
#ifndef LG_PROVE_PARTS_H
#define LG_PROVE_PARTS_H

#include "prove.h"

#define LG_CTAS_MAX UINT32_MAX /* ctas are counted in uint32_t */

enum { LG_SCRATCH_MAX = 64 * 1024 }; /* stack bytes a kernel may use; worker stacks are far larger */

typedef struct lg_prover {
    const lg_plan *plan;
    lb_arena *arena;
    lb_err *err;
    lg_fact *facts;
    uint32_t n_facts, cap_facts;
    uint32_t *like;     /* launch -> the launch of the same shapes that was proved for every T */
    uint64_t T, L;      /* at which expressions are evaluated now */
    uint64_t most_ctas; /* of the launch in hand */
} lg_prover;

/* Records value <= limit, or fails with the launch's label, T and L. */
bool lg_prove_fact(lg_prover *p, const char *kind, uint32_t launch, const char *subject, uint64_t value,
                   uint64_t limit);
bool lg_prove_fail(lg_prover *p, uint32_t launch, const char *kind, const char *subject, uint64_t value,
                   uint64_t limit);

/* Places: inside their arenas, as large as their values, apart while alive, written before read. */
bool lg_prove_memory(lg_prover *p);

/* What the row of a GPU demands of one launch, whatever T is. */
bool lg_prove_gpu(lg_prover *p, uint32_t launch);

#endif
