/* file.c -- see file.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool open_regular(const char *path, int *fd, uint64_t *n_bytes, lb_err *err) {
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f < 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    struct stat st;
    if (fstat(f, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(f);
        return lb_err_set(err, LB_IO, "%s: not a regular file", path);
    }
    *fd = f;
    *n_bytes = (uint64_t)st.st_size;
    return true;
}

bool lb_map_file(const char *path, lb_map *out, lb_err *err) {
    int fd = -1;
    uint64_t n = 0;
    if (!open_regular(path, &fd, &n, err)) {
        return false;
    }
    void *p = NULL;
    if (n > 0) {
        p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    int why = errno;
    close(fd);
    if (p == MAP_FAILED) {
        return lb_err_set(err, LB_IO, "%s: cannot map %" PRIu64 " bytes: %s", path, n,
                          strerror(why));
    }
    *out = (lb_map){.data = p, .n_bytes = n};
    return true;
}

void lb_unmap(lb_map *m) {
    if (m->data != NULL) {
        munmap((void *)(uintptr_t)m->data, m->n_bytes);
    }
    *m = (lb_map){0};
}

static bool read_all(int fd, const char *path, char *to, uint64_t n, lb_err *err) {
    for (uint64_t done = 0; done < n;) {
        ssize_t got = read(fd, to + done, n - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return lb_err_set(err, LB_IO, "%s: read stopped at byte %" PRIu64 " of %" PRIu64, path,
                              done, n);
        }
        done += (uint64_t)got;
    }
    return true;
}

bool lb_read_file(const char *path, uint64_t max_bytes, lb_arena *arena, char **out,
                  size_t *n_bytes, lb_err *err) {
    int fd = -1;
    uint64_t n = 0;
    if (!open_regular(path, &fd, &n, err)) {
        return false;
    }
    char *p = NULL;
    bool ok = true;
    if (n > max_bytes) {
        ok = lb_err_set(err, LB_LIMIT, "%s: %" PRIu64 " bytes; the limit is %" PRIu64, path, n,
                        max_bytes);
    }
    if (ok) {
        p = lb_alloc(arena, n + 1, err);
        ok = p != NULL && read_all(fd, path, p, n, err);
    }
    close(fd);
    if (ok) {
        *out = p;
        *n_bytes = n;
    }
    return ok;
}

bool lb_file_is(const char *path, const void *data, size_t n_bytes) {
    lb_map m = {0};
    if (!lb_map_file(path, &m, NULL)) {
        return false;
    }
    bool same = m.n_bytes == n_bytes && (n_bytes == 0 || memcmp(m.data, data, n_bytes) == 0);
    lb_unmap(&m);
    return same;
}

static bool write_all(int fd, const char *p, size_t n) {
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* A new file at `path`, or nothing there; `name` for errors. */
static bool write_new(const char *path, const char *name, const lb_map *data, bool sync,
                      lb_err *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be made: %s", name, strerror(errno));
    }
    bool ok = write_all(fd, (const char *)data->data, data->n_bytes) && (!sync || fsync(fd) == 0);
    int why = errno;
    if (close(fd) != 0 && ok) {
        why = errno;
        ok = false;
    }
    if (!ok) {
        unlink(path);
        return lb_err_set(err, LB_IO, "%s: cannot write %" PRIu64 " bytes: %s", name,
                          data->n_bytes, strerror(why));
    }
    return true;
}

bool lb_write_plain(const char *path, const char *name, const void *data, size_t n_bytes,
                    lb_err *err) {
    return write_new(path, name, &(lb_map){data, n_bytes}, false, err);
}

bool lb_write_file(const char *path, const void *data, size_t n_bytes, bool only_if_changed,
                   bool *changed, lb_err *err) {
    bool same = only_if_changed && lb_file_is(path, data, n_bytes);
    if (!same) {
        char temp[PATH_BYTES];
        int n = snprintf(temp, sizeof temp, "%s.tmp%ld", path, (long)getpid());
        if (n < 0 || n >= PATH_BYTES) {
            return lb_err_set(err, LB_LIMIT, "%s: path of more than %d bytes", path, PATH_BYTES);
        }
        if (!write_new(temp, path, &(lb_map){data, n_bytes}, true, err)) {
            return false;
        }
        if (rename(temp, path) != 0) {
            int why = errno;
            unlink(temp);
            return lb_err_set(err, LB_IO, "%s: cannot be put in place: %s", path, strerror(why));
        }
    }
    if (changed != NULL) {
        *changed = !same;
    }
    return true;
}

bool lb_make_dirs(const char *path, lb_err *err) {
    char part[PATH_BYTES];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part) {
        return lb_err_set(err, LB_LIMIT, "'%s': not a usable directory name", path);
    }
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0') {
            continue;
        }
        char keep = part[i];
        part[i] = '\0';
        struct stat st;
        int why = mkdir(part, 0755) == 0 ? 0 : errno;
        if (why != 0 && (stat(part, &st) != 0 || !S_ISDIR(st.st_mode))) {
            return lb_err_set(err, LB_IO, "%s: cannot make this directory: %s", part,
                              strerror(why));
        }
        part[i] = keep;
    }
    return true;
}
