/* golden.h -- tokens that this program once answered with on this machine: `selftest --bless` of
 * the command line records them, the server asks for the same ones before it opens its port.
 *
 * The file `golden.json` in the program's folder: {"schema": "lagen.golden/1", "model": name,
 * "row": hardware row, "weights": digest or "linked", "prompt": [ids], "tokens": [ids], "sha256":
 * digest of all of that}. It is local state, as no other machine need have the same device. */
#ifndef RT_GOLDEN_H
#define RT_GOLDEN_H

#include "engine.h"

#define RT_GOLDEN_FILE "golden.json"

/* Answers a fixed prompt greedily in slot 0, and writes the file. Fails as rt_engine_step, LB_IO.
 */
bool rt_golden_bless(rt_engine *e, const char *dir, lb_arena *arena, lb_err *err);

/* Answers the file's prompt and compares. *found tells whether there is a file; without one nothing
 * is checked. LB_DAMAGED: not a golden file, changed, or another program's. LB_PROOF: other tokens;
 * says which. */
bool rt_golden_check(rt_engine *e, const char *dir, lb_arena *arena, bool *found, lb_err *err);

#endif
