/* stamp.h -- whether the packed image in a program's folder is still the one that its model and
 * plan give.
 *
 * The stamp is local state, not part of the program: it names the model files by size, time and
 * inode, and the plan by the digest of memory.json and of the weights' layouts. A stamp that does
 * not fit costs a second packing. */
#ifndef LG_STAMP_H
#define LG_STAMP_H

#include "base/digest.h"
#include "plan.h"

/* The stamp's text for this plan and model. */
bool lg_stamp_of(const lg_plan *plan, const lg_gguf *file, lb_arena *arena, const char **out,
                 lb_err *err);

/* Sets *fresh and the image's digest if the stamp at `path` has this text and the image this size.
 * An absent or unreadable stamp is not fresh; no failure. */
bool lg_stamp_fresh(const char *path, const char *want, const char *image, uint64_t image_bytes,
                    char hex[LB_DIGEST_HEX_BYTES], bool *fresh, lb_err *err);

/* Writes the stamp to `path`, from where its folder's owner puts it in place as `name`. */
bool lg_stamp_write(const char *path, const char *name, const char *text, const char *hex,
                    lb_err *err);

#endif
