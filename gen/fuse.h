/* fuse.h -- rewrites a graph of ARCH ops into one of LAUNCH ops: step 5 of the flow.
 *
 * The result computes the same function; what is gained is fewer launches and activations quantised
 * once: rms_norm (+ take_rows)            -> norm_quant, with the outputs its readers need (f32, q8
 * or both) linears over one input: q, k, v   -> one matmul; rope + rope + kv_store -> rope_kv in
 * place gate and up with silu_mul         -> one matmul with a gated epilogue linear followed by a
 * residual add -> matmul_add, in place on the residual any other input of a quantised linear ->
 * quant in front of it, once What fits no rule is refused with LB_UNSUPPORTED, naming op and layer.
 */
#ifndef LG_FUSE_H
#define LG_FUSE_H

#include "graph.h"

bool lg_fuse(const lg_graph *in, lb_arena *arena, lg_graph **out, lb_err *err);

#endif
