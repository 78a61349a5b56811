/* cubin_check.h -- step 12b, the second half of the proof: what the compiler made of proved kernel
 * text. */
#ifndef LG_CUBIN_CHECK_H
#define LG_CUBIN_CHECK_H

#include "base/text.h"
#include "plan.h"

/* Reads cubin/<kernel>.cubin of every kernel in the program's folder and compares: made for the
 * row's architecture, registers within the cap of its launch bounds, no local memory, no static
 * shared memory, the parameter struct's bytes, the block's threads. Writes cubins.json (schema
 * lagen.cubins/1: the numbers and each file's SHA-256) into `json`. LB_PROOF with kernel, number
 * and limit; LB_BAD_FORMAT or LB_MISSING for a file that is no cubin of that kernel. */
bool lg_cubins_check(const lg_plan *plan, const char *dir, lb_arena *arena, lb_text *json,
                     lb_err *err);

#endif
