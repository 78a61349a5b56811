/* descriptor.h -- reads a kernel descriptor (docs/kernels.md) from the tree that a template or
 * launches.json holds. */
#ifndef LG_DESCRIPTOR_H
#define LG_DESCRIPTOR_H

#include "at.h"
#include "plan.h"

/* Fills everything of `k` but family, op and descriptor. Refuses descriptors that break contracts
 * section 3 (an axis that grows with the request on y or z) or that are malformed; the message has
 * the path. */
bool lg_descriptor_read(const lg_at *at, lb_arena *arena, lg_kernel *k, lb_err *err);

#endif
