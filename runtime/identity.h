/* identity.h -- is this the machine that the program was made for?
 *
 * Asked once, before any memory is taken. x86: the feature names that the kernel lists in
 * /proc/cpuinfo (so what the kernel has switched off counts as absent). aarch64: the same names
 * from the auxiliary vector. */
#ifndef RT_IDENTITY_H
#define RT_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model_abi.h"

enum { RT_CPU_FLAGS_BYTES = 8192 };

/* Names of this CPU's features, separated by spaces, in `out`. Fails with LB_IO if the system does
 * not tell, LB_LIMIT if the list is longer than `size`. */
bool rt_cpu_flags(char *out, size_t size, lb_err *err);

/* Compares the names that `model` needs with `flags`. Fails with LB_WRONG_BOX naming every
 * missing one. */
bool rt_identity_compare(const rt_model *model, const char *flags, lb_err *err);

/* Both of the above, and the version of the model ABI (LB_DAMAGED: the files do not fit
 * together). */
bool rt_identity_check(const rt_model *model, lb_err *err);

#endif
