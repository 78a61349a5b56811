/* outfile.h -- a large file written piece by piece: whole under its name, or not there at all.
 *
 * Bytes go to "<path>.tmp<pid>" in the same folder; lb_out_finish gives the file its name. Until
 * then a file that was at `path` stays as it was; lb_out_abort, or any failure, removes the temporary
 * one. A symbolic link is followed. For small texts see lb_write_file. */
#ifndef LB_OUTFILE_H
#define LB_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct lb_out {
    int fd; /* -1 when nothing is open */
    const char *path, *temp;
    const char *name; /* in errors: the path as it was given, or what the file becomes later */
    uint8_t *buffer; /* LB_OUT_BUFFER_BYTES */
    size_t n_buffered;
    uint64_t n_bytes; /* written so far, buffered and skipped ones included */
} lb_out;

enum { LB_OUT_BUFFER_BYTES = 1 << 16 };

/* Starts a file. Names and buffer lie in the arena, which must outlive the lb_out. Refuses a path
 * that holds anything but a regular file (LB_IO) and one too long (LB_LIMIT). */
bool lb_out_open(const char *path, lb_arena *arena, lb_out *out, lb_err *err);

/* The same for a file that takes another's place later: errors call it `name`. */
bool lb_out_open_as(const char *path, const char *name, lb_arena *arena, lb_out *out, lb_err *err);

/* Appends. On failure (LB_IO) the file is aborted; only lb_out_abort may follow. */
bool lb_out_write(lb_out *o, const void *data, size_t n_bytes, lb_err *err);

/* Appends zero bytes as a hole: they read as zeros and take no room on most file systems. */
bool lb_out_skip(lb_out *o, uint64_t n_bytes, lb_err *err);

/* Flushes to the disk and renames. */
bool lb_out_finish(lb_out *o, lb_err *err);

/* Removes the temporary file; does nothing when nothing is open. */
void lb_out_abort(lb_out *o);

#endif
