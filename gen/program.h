/* program.h -- an emitted program as its own files describe it: manifest, launches.json and
 * memory.json of a folder, read back, proved again, and compared with what they would say then.
 * For `lagen verify` and `lagen report`; shares no data with the build that made the folder. */
#ifndef LG_PROGRAM_H
#define LG_PROGRAM_H

#include "prove.h"

typedef struct lg_program {
    const lg_value *manifest;
    lg_plan *plan; /* as lg_plan_from_json gives it */
    lg_proof proof;
} lg_program;

/* The manifest alone; then, given that, the rest. Fails as their readers do, with LB_DAMAGED where
 * the texts are not to the byte what plan and proof say. */
bool lg_program_manifest(const char *dir, lb_arena *arena, lg_program *out, lb_err *err);
bool lg_program_read(const char *dir, lb_arena *arena, lg_program *out, lb_err *err);

/* DIR is a folder that nobody is writing into. */
bool lg_program_folder(const char *dir, lb_arena *arena, lb_err *err);

/* Whatever is wrong in a folder that is there is damage: a file that is missing, cannot be read or
 * says what cannot be. Turns err's code into LB_DAMAGED, but for want of memory and Ctrl-C. */
void lg_program_damaged(lb_err *err);

#endif
