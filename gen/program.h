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
 * the texts are not to the byte what plan and proof say, or the manifest says other than they. */
bool lg_program_manifest(const char *dir, lb_arena *arena, lg_program *out, lb_err *err);
bool lg_program_read(const char *dir, lb_arena *arena, lg_program *out, lb_err *err);

/* What the manifest says of limits, arenas, dims, types, counts, target and caches is what the plan
 * has; so a reader of the manifest alone is told what was proved. LB_DAMAGED otherwise, naming the key. */
bool lg_program_says(const lg_program *p, lb_err *err);

/* The manifest lists the plan's two files, the build file, and every file of the folders that programs
 * are compiled from, so that none escapes its digests. LB_DAMAGED otherwise, naming the file. */
bool lg_program_lists(const char *dir, const lg_program *p, lb_arena *arena, lb_err *err);

/* The manifest, but for its list of files, is to the byte what the program says of itself (src/model.c):
 * names, compilers, recipe, notes and the like, which no plan has. LB_DAMAGED otherwise, with both lines. */
bool lg_program_info(const char *dir, const lg_program *p, lb_arena *arena, lb_err *err);

/* What launches.json says a second time is what the emitted text says: of each kernel its family, launch,
 * cost, order and headers as the head of its file under src/ has them; of each launch its name and layer as
 * its op and its weights give them. LB_DAMAGED otherwise, naming key, values and file. */
bool lg_program_texts(const char *dir, const lg_program *p, lb_arena *arena, lb_err *err);

/* DIR is a folder into which lagen has written a program, and nobody is writing now. */
bool lg_program_folder(const char *dir, lb_arena *arena, lb_err *err);

/* Whatever is wrong in a folder that is there is damage: a file that is missing, cannot be read or
 * says what cannot be. Turns err's code into LB_DAMAGED, but for want of memory and Ctrl-C. */
void lg_program_damaged(lb_err *err);

#endif
