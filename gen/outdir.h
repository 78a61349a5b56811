/* outdir.h -- a program's folder while lagen writes into it: one writer at a time, and new files put
 * in place together, so that until then, and after any failure, the folder is as it was.
 *
 * The lock is a POSIX record lock on DIR/.lock, which is there only while it is held; a writer that
 * is killed loses it. New files wait in DIR/.staged, on the same file system. */
#ifndef LG_OUTDIR_H
#define LG_OUTDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct lg_outdir lg_outdir;

/* Makes the folder and those above it where they are absent, and locks it. What a killed writer
 * left staged is removed. Fails with LB_IO if it cannot be made or another process holds the lock
 * (the message has its id), with LB_BAD_VALUE if it holds files and no manifest of lagen: they are
 * not overwritten. */
bool lg_outdir_open(const char *path, lb_arena *arena, lg_outdir **out, lb_err *err);

/* A file to be written: relative path `name`, e.g. "src/step.c". Stages it unless the folder has it
 * with this content; *changed says which. */
bool lg_outdir_write(lg_outdir *f, const char *name, const void *data, size_t n_bytes,
                     bool *changed, lb_err *err);

/* Where the caller may write a file that will become `name`. */
bool lg_outdir_stage(lg_outdir *f, const char *name, const char **path, lb_err *err);

/* A file to be removed; it may be absent. */
bool lg_outdir_remove(lg_outdir *f, const char *name, lb_err *err);

/* Puts everything in place: removals, then the file `first` if it is among the others, then those
 * in the order of their staging. */
bool lg_outdir_commit(lg_outdir *f, const char *first, lb_err *err);

/* Forgets what was staged and not put in place, removes folders that were made for it and are
 * empty, and unlocks. NULL is fine. */
void lg_outdir_close(lg_outdir *f);

/* Fails with LB_IO while a process writes into the folder, which may be absent. */
bool lg_outdir_idle(const char *path, lb_arena *arena, lb_err *err);

#endif
