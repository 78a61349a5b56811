/* file.h -- files as lagen needs them: read-only maps, and writes that are whole or absent. */
#ifndef LB_FILE_H
#define LB_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct lb_map {
    const uint8_t *data; /* NULL when n_bytes is 0 */
    uint64_t n_bytes;
} lb_map;

/* Maps a regular file read-only; nothing is read until touched. Fails with LB_IO (the message has
 * the path and the system's reason) for a missing file, a directory, a pipe. Unmap with lb_unmap. */
bool lb_map_file(const char *path, lb_map *out, lb_err *err);
void lb_unmap(lb_map *m);

/* Reads a whole text file of at most `max_bytes` into the arena, NUL-terminated. */
bool lb_read_file(const char *path, uint64_t max_bytes, lb_arena *arena, char **out,
                  size_t *n_bytes, lb_err *err);

/* True if `path` is a regular file that holds exactly these bytes. */
bool lb_file_is(const char *path, const void *data, size_t n_bytes);

/* Writes `path` so that it holds either its old or the whole new content (temporary name in the same
 * folder, fsync, rename). With `only_if_changed`, an equal file is left alone, time stamp included.
 * `*changed` (may be NULL) says whether anything was written. */
bool lb_write_file(const char *path, const void *data, size_t n_bytes, bool only_if_changed,
                   bool *changed, lb_err *err);

/* The same where a caller sees to the rest: no temporary name, not flushed to the disk. Nothing is
 * left at `path` on failure. `name` is what errors call it: the file that it becomes. */
bool lb_write_plain(const char *path, const char *name, const void *data, size_t n_bytes,
                    lb_err *err);

/* mkdir -p. An existing directory is fine; an existing file of that name is LB_IO. */
bool lb_make_dirs(const char *path, lb_err *err);

#endif
