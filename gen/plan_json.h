/* plan_json.h -- a plan and its proof as launches.json and memory.json, and back.
 *
 * The two files hold all that the prover needs, so that `lagen verify` can prove an emitted program
 * again from what lies in its folder. Schemas "lagen.launches/1" and "lagen.memory/1"; keys only
 * ever get added. */
#ifndef LG_PLAN_JSON_H
#define LG_PLAN_JSON_H

#include "prove.h"

/* Appends the text of the two files. */
bool lg_launches_json(const lg_plan *plan, const lg_proof *proof, lb_arena *arena, lb_text *out,
                      lb_err *err);
bool lg_memory_json(const lg_plan *plan, lb_arena *arena, lb_text *out, lb_err *err);

/* Rebuilds a plan from the two trees, for the prover alone: its graph has values and tensors but no
 * nodes, and no model file behind the tensors. Fails with the path inside the file. */
bool lg_plan_from_json(const lg_value *launches, const lg_value *memory, lb_arena *arena,
                       lg_plan **out, lb_err *err);

#endif
