/* rewrite.c -- see rewrite.h. A GPU shares the splits of attention among ctas, and its logits are far
 * from the host. */
#include "rewrite.h"

#include "attn_splits.h"
#include "fuse.h"
#include "sampling.h"

bool lg_rewrite(const lg_graph *in, const lg_hw_row *hw, lg_host *host, lb_arena *arena,
                lg_graph **out, lb_err *err) {
    return lg_fuse(in, arena, out, err) &&
           (!hw->gpu || (lg_add_attn_splits(*out, host, arena, err) &&
                         lg_add_sampling(*out, host, arena, err)));
}
