/* outfile.c -- see outfile.h. POSIX. */
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"

enum { PATH_BYTES = 4096 };

/* Aborts and reports; `why` is the system's reason. The byte is where the file really ended: a write
 * of many bytes may have brought some of them. */
static bool failed(lb_out *o, int why, lb_err *err) {
    off_t end = lseek(o->fd, 0, SEEK_CUR);
    lb_out_abort(o);
    return lb_err_set(err, LB_IO, "%s: cannot write past byte %" PRIu64 ": %s", o->name,
                      end < 0 ? o->n_bytes : (uint64_t)end, strerror(why));
}

/* The file that a symbolic link names: it is that one which gets new content, and not the link that
 * is replaced (/dev/stdout is one). */
static bool follow(const char **path, const char *name, char real[PATH_MAX], lb_err *err) {
    struct stat st;
    if (lstat(*path, &st) != 0 || !S_ISLNK(st.st_mode)) {
        return true;
    }
    if (realpath(*path, real) == NULL) {
        return lb_err_set(err, LB_IO, "%s: a symbolic link that cannot be followed: %s", name,
                          strerror(errno));
    }
    *path = real;
    return true;
}

bool lb_out_open(const char *path, lb_arena *arena, lb_out *out, lb_err *err) {
    return lb_out_open_as(path, path, arena, out, err);
}

bool lb_out_open_as(const char *path, const char *name, lb_arena *arena, lb_out *out, lb_err *err) {
    struct stat st;
    char real[PATH_MAX];
    if (!follow(&path, name, real, err)) {
        return false;
    }
    if (strlen(path) > PATH_BYTES - 32) {
        return lb_err_set(err, LB_LIMIT, "path of %zu bytes; the limit is %d", strlen(path),
                          PATH_BYTES - 32);
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return lb_err_set(err, LB_IO, "%s: exists and is not a regular file", name);
    }
    lb_out o = {.fd = -1};
    o.path = lb_strndup(arena, path, strlen(path), err);
    o.name = lb_strndup(arena, name, strlen(name), err);
    o.temp = lb_format(arena, err, "%s.tmp%ld", path, (long)getpid());
    o.buffer = lb_alloc(arena, LB_OUT_BUFFER_BYTES, err);
    if (o.path == NULL || o.name == NULL || o.temp == NULL || o.buffer == NULL) {
        return false;
    }
    o.fd = open(o.temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (o.fd < 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be made: %s", o.name, strerror(errno));
    }
    *out = o;
    return true;
}

static bool put(lb_out *o, const uint8_t *data, size_t n, lb_err *err) {
    while (n > 0) {
        ssize_t done = write(o->fd, data, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return failed(o, done == 0 ? ENOSPC : errno, err);
        }
        data += done;
        n -= (size_t)done;
    }
    return true;
}

static bool flush(lb_out *o, lb_err *err) {
    size_t n = o->n_buffered;
    o->n_buffered = 0;
    return put(o, o->buffer, n, err);
}

bool lb_out_write(lb_out *o, const void *data, size_t n_bytes, lb_err *err) {
    if (n_bytes > LB_OUT_BUFFER_BYTES - o->n_buffered && !flush(o, err)) {
        return false;
    }
    if (n_bytes > LB_OUT_BUFFER_BYTES) {
        if (!put(o, data, n_bytes, err)) {
            return false;
        }
    } else if (n_bytes > 0) {
        memcpy(o->buffer + o->n_buffered, data, n_bytes);
        o->n_buffered += n_bytes;
    }
    o->n_bytes += n_bytes;
    return true;
}

bool lb_out_skip(lb_out *o, uint64_t n_bytes, lb_err *err) {
    uint64_t end = 0;
    if (!lb_add(o->n_bytes, n_bytes, &end) || end > INT64_MAX) {
        return failed(o, EFBIG, err);
    }
    if (!flush(o, err)) {
        return false;
    }
    if (ftruncate(o->fd, (off_t)end) != 0 || lseek(o->fd, (off_t)end, SEEK_SET) < 0) {
        return failed(o, errno, err);
    }
    o->n_bytes = end;
    return true;
}

bool lb_out_finish(lb_out *o, lb_err *err) {
    if (!flush(o, err)) {
        return false;
    }
    if (fsync(o->fd) != 0) {
        return failed(o, errno, err);
    }
    int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0 || rename(o->temp, o->path) != 0) {
        int why = errno;
        unlink(o->temp);
        return lb_err_set(err, LB_IO, "%s: cannot be put in place: %s", o->name, strerror(why));
    }
    return true;
}

void lb_out_abort(lb_out *o) {
    if (o->fd >= 0) {
        close(o->fd);
        unlink(o->temp);
        o->fd = -1;
    }
}
