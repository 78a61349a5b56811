/* prefix_disk.h -- the prefix store's pages as files, so that conversations go on after the program
 * was started anew.
 *
 * They lie in DIR/<model>-<16 digits>, one file a page, named by a digest of its tokens and of
 * those before it; the digits are of this program and its weights, so that programs can share DIR
 * and nobody reads another's bits. The folder mirrors the store: a page that makes room in memory
 * loses its file, so there are never more bytes than the store has, and 1 KiB a page. A file is
 * written under another name, flushed and renamed; its last 32 bytes are the digest of the others.
 * What is damaged (and was written here) is removed; what is no regular file, or has a name that is
 * not ours, is left alone; neither is read.
 *
 * One caller at a time: the store's. POSIX. */
#ifndef RT_PREFIX_DISK_H
#define RT_PREFIX_DISK_H

#include "prefix.h"

typedef struct rt_disk rt_disk;

/* Told of what happens to files: `file` may be NULL. */
typedef void (*rt_disk_say)(void *arg, const char *event, const char *file, const char *reason);

typedef struct rt_disk_opts {
    const char *dir;
    rt_disk_say say;
    void *say_arg;
} rt_disk_opts;

typedef struct rt_disk_stats {
    uint64_t n_read, n_written, n_failed; /* pages, since the start; writes that failed */
} rt_disk_stats;

/* Makes the folder, takes it for this process alone, and reads what it holds into the store, which
 * must be empty. LB_IO; LB_RESOURCES if another process has it. */
bool rt_disk_open(rt_prefix *p, const rt_disk_opts *o, rt_disk **out, lb_err *err);

/* Closes it; writes nothing more. NULL is allowed. Before rt_prefix_close. */
void rt_disk_close(rt_disk *d);

/* Writes one page that has changed; false: there is none, or a write failed a short time ago. */
bool rt_disk_work(rt_disk *d);

void rt_disk_stats_of(const rt_disk *d, rt_disk_stats *out);

#endif
