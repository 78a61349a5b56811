/* pack.h -- step 13: the weight image, in the layout that the kernels read. */
#ifndef LG_PACK_H
#define LG_PACK_H

#include <signal.h>

#include "base/digest.h"
#include "plan.h"

/* Called as bytes are done; total is the image's size. */
typedef void (*lg_progress_fn)(void *arg, const char *what, uint64_t done, uint64_t total);

typedef struct lg_pack_options {
    const char *path; /* of the image; a temporary file beside it until it is whole */
    const char *name; /* what errors call it; NULL: path */
    const volatile sig_atomic_t *stop; /* non-zero: give up with LB_CANCELLED; may be NULL */
    lg_progress_fn progress;           /* may be NULL */
    void *progress_arg;
} lg_pack_options;

/* Writes the weights arena of `plan` to a file, weight after weight, strip after strip, and returns
 * the digest of runtime/base/digest.h. Checks every scale; LB_BAD_VALUE names tensor,
 * expert, row and column of one that is infinite or NaN. On failure nothing is left behind. */
bool lg_pack(const lg_plan *plan, const lg_pack_options *o, uint8_t digest[LB_DIGEST_BYTES],
             lb_err *err);

#endif
