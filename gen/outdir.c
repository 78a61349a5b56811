/* outdir.c -- see outdir.h. POSIX (fcntl locks, nftw), and syncfs. */
#define _GNU_SOURCE
#include "outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "manifest.h"

enum { STAGED_MAX = 4096, LOCK_TRIES = 10, WALK_DESCRIPTORS = 8 };

struct lg_outdir {
    lb_arena *arena;
    const char *path, *lock_path, *staging;
    int lock;                         /* descriptor */
    size_t n_made;                    /* leading bytes of path that were there before */
    const char *staged[STAGED_MAX];   /* names, in order */
    const char *removed[STAGED_MAX];
    uint32_t n_staged, n_removed;
};

/* ---- making and unmaking folders */

/* How much of `path` is there: a prefix that ends before a slash or at its end. */
static size_t there(const char *path, char *part) {
    size_t n = strlen(path);
    for (;;) {
        struct stat st;
        memcpy(part, path, n);
        part[n] = '\0';
        if (n == 0 || stat(part, &st) == 0) {
            return n;
        }
        while (n > 0 && path[n - 1] == '/') {
            n--;
        }
        while (n > 0 && path[n - 1] != '/') {
            n--;
        }
    }
}

/* Removes the folders that were made, from the last one up, as far as they are empty. */
static void unmake(const lg_outdir *f) {
    char *part = lb_strndup(f->arena, f->path, strlen(f->path), NULL);
    for (size_t n = part == NULL ? 0 : strlen(part); n > f->n_made;) {
        part[n] = '\0';
        if (rmdir(part) != 0 && errno != ENOENT) {
            return;
        }
        while (n > f->n_made && part[n - 1] != '/') {
            n--;
        }
        while (n > f->n_made && part[n - 1] == '/') {
            n--;
        }
    }
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where) {
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static bool remove_tree(const char *path, lb_err *err) {
    if (nftw(path, remove_entry, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) {
        return true;
    }
    return lb_err_set(err, LB_IO, "%s: cannot be removed: %s", path, strerror(errno));
}

/* ---- the lock */

static bool held(const char *path, const struct flock *by, lb_err *err) {
    char who[64] = "another process";
    if (by->l_type != F_UNLCK && by->l_pid > 0) {
        snprintf(who, sizeof who, "process %ld", (long)by->l_pid);
    }
    return lb_err_set(err, LB_IO, "%s: %s is writing into this folder; wait until it has ended",
                      path, who);
}

/* *again: the holder took its lock file away between our opening and our locking it. */
static bool try_lock(lg_outdir *f, bool *again, lb_err *err) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat ours;
    struct stat now;
    *again = false;
    int fd = open(f->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        *again = errno == ENOENT; /* so was the folder: it was made for nothing */
        return lb_err_set(err, LB_IO, "%s: cannot make .lock in it: %s", f->path, strerror(errno));
    }
    if (fcntl(fd, F_SETLK, &whole) != 0) {
        int why = errno;
        struct flock by = whole;
        bool busy = why == EACCES || why == EAGAIN;
        if (busy && fcntl(fd, F_GETLK, &by) != 0) {
            by.l_type = F_UNLCK;
        }
        close(fd);
        return busy ? held(f->path, &by, err)
                    : lb_err_set(err, LB_IO, "%s: cannot be locked: %s", f->path, strerror(why));
    }
    if (fstat(fd, &ours) != 0 || stat(f->lock_path, &now) != 0 || ours.st_ino != now.st_ino) {
        close(fd);
        *again = true;
        return lb_err_set(err, LB_IO, "%s: cannot be locked: its .lock comes and goes", f->path);
    }
    f->lock = fd;
    return true;
}

static bool make_and_lock(lg_outdir *f, lb_err *err) {
    bool again = true;
    for (int i = 0; i < LOCK_TRIES && again; i++) {
        if (!lb_make_dirs(f->path, err)) {
            return false;
        }
        if (try_lock(f, &again, err)) {
            return true;
        }
    }
    return false;
}

bool lg_outdir_idle(const char *path, lb_arena *arena, lb_err *err) {
    struct flock by = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const char *lock = lb_format(arena, err, "%s/.lock", path);
    if (lock == NULL) {
        return false;
    }
    int fd = open(lock, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return true;
    }
    bool busy = fcntl(fd, F_GETLK, &by) == 0 && by.l_type != F_UNLCK;
    close(fd);
    return !busy || held(path, &by, err);
}

/* ---- opening, closing */

static bool is_own(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".lock") == 0 ||
           strcmp(name, ".staged") == 0;
}

/* An empty folder, or one that lagen made, or was killed in making: folders may stand there while
 * the manifest, which goes first, is still among what was staged. */
static bool is_ours(const lg_outdir *f, lb_err *err) {
    DIR *d = opendir(f->path);
    if (d == NULL) {
        return lb_err_set(err, LB_IO, "%s: cannot be read: %s", f->path, strerror(errno));
    }
    char other[64] = "";
    for (struct dirent *e = readdir(d); e != NULL && other[0] == '\0'; e = readdir(d)) {
        if (!is_own(e->d_name)) {
            snprintf(other, sizeof other, "%.60s", e->d_name);
        }
    }
    closedir(d);
    return other[0] == '\0' || lg_manifest_is_in(f->path, f->arena) ||
           lg_manifest_is_in(f->staging, f->arena) ||
           lb_err_set(err, LB_BAD_VALUE,
                      "%s: holds '%s' and no program of lagen; its files might be overwritten, so "
                      "name a new folder",
                      f->path, other);
}

bool lg_outdir_open(const char *path, lb_arena *arena, lg_outdir **out, lb_err *err) {
    lg_outdir *f = lb_alloc(arena, sizeof *f, err);
    char *part = f == NULL ? NULL : lb_alloc(arena, strlen(path) + 1, err);
    if (part == NULL) {
        return false;
    }
    *f = (lg_outdir){.arena = arena, .lock = -1, .n_made = there(path, part)};
    f->path = lb_strndup(arena, path, strlen(path), err);
    f->lock_path = lb_format(arena, err, "%s/.lock", path);
    f->staging = lb_format(arena, err, "%s/.staged", path);
    if (f->path == NULL || f->lock_path == NULL || f->staging == NULL) {
        return false;
    }
    if (!make_and_lock(f, err) || !is_ours(f, err) || !remove_tree(f->staging, err)) {
        lg_outdir_close(f);
        return false;
    }
    *out = f;
    return true;
}

/* Folders that were made for files that then did not come: those that are empty. */
static void unmake_places(const lg_outdir *f) {
    for (uint32_t i = 0; i < f->n_staged; i++) {
        char *path = lb_format(f->arena, NULL, "%s/%s", f->path, f->staged[i]);
        size_t least = strlen(f->path);
        char *slash = path == NULL ? NULL : strrchr(path, '/');
        for (; slash != NULL && slash > path + least; slash = strrchr(path, '/')) {
            *slash = '\0';
            rmdir(path);
        }
    }
}

void lg_outdir_close(lg_outdir *f) {
    if (f == NULL) {
        return;
    }
    if (f->lock >= 0) {
        unmake_places(f);
        remove_tree(f->staging, NULL);
        unlink(f->lock_path);
    }
    unmake(f); /* while the lock is held, if it is: nobody writes here meanwhile */
    if (f->lock >= 0) {
        close(f->lock);
        f->lock = -1;
    }
}

/* ---- files */

static bool note(const lg_outdir *f, const char **list, uint32_t *n, const char *name,
                 lb_err *err) {
    if (*n == STAGED_MAX) {
        return lb_err_set(err, LB_LIMIT, "%s: more than %d files", f->path, STAGED_MAX);
    }
    list[*n] = lb_strndup(f->arena, name, strlen(name), err);
    return list[(*n)++] != NULL;
}

/* Makes the folders between `base` and the file `name` below it; its path. */
static bool place(const lg_outdir *f, const char *base, const char *name, const char **path,
                  lb_err *err) {
    *path = lb_format(f->arena, err, "%s/%s", base, name);
    char *dir = *path == NULL ? NULL
                              : lb_strndup(f->arena, *path,
                                           (uint64_t)(strrchr(*path, '/') - *path), err);
    return dir != NULL &&
           (lb_make_dirs(dir, err) || lb_err_prefix(err, "%s/%s", f->path, name));
}

bool lg_outdir_stage(lg_outdir *f, const char *name, const char **path, lb_err *err) {
    struct stat st;
    const char *to = lb_format(f->arena, err, "%s/%s", f->path, name);
    if (to == NULL) {
        return false;
    }
    if (lstat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
        return lb_err_set(err, LB_IO, "%s: a folder stands where a file is to be written", to);
    }
    return place(f, f->staging, name, path, err) && note(f, f->staged, &f->n_staged, name, err);
}

bool lg_outdir_write(lg_outdir *f, const char *name, const void *data, size_t n_bytes,
                     bool *changed, lb_err *err) {
    const char *path = NULL;
    const char *to = lb_format(f->arena, err, "%s/%s", f->path, name);
    if (to == NULL) {
        return false;
    }
    *changed = !lb_file_is(to, data, n_bytes);
    return !*changed || (lg_outdir_stage(f, name, &path, err) &&
                         lb_write_plain(path, to, data, n_bytes, err));
}

bool lg_outdir_remove(lg_outdir *f, const char *name, lb_err *err) {
    return note(f, f->removed, &f->n_removed, name, err);
}

/* All folders are made before the first file changes. */
static bool make_places(const lg_outdir *f, const char **paths, lb_err *err) {
    for (uint32_t i = 0; i < f->n_staged; i++) {
        if (!place(f, f->path, f->staged[i], &paths[i], err)) {
            return false;
        }
    }
    return true;
}

static bool put(const lg_outdir *f, const char *name, const char *path, lb_err *err) {
    const char *from = lb_format(f->arena, err, "%s/%s", f->staging, name);
    if (from == NULL || rename(from, path) == 0) {
        return from != NULL;
    }
    return lb_err_set(err, LB_IO, "%s: cannot be put in place: %s", path, strerror(errno));
}

static bool remove_old(const lg_outdir *f, lb_err *err) {
    for (uint32_t i = 0; i < f->n_removed; i++) {
        const char *path = lb_format(f->arena, err, "%s/%s", f->path, f->removed[i]);
        if (path == NULL || (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)) {
            return path != NULL &&
                   lb_err_set(err, LB_IO, "%s: cannot be removed: %s", path, strerror(errno));
        }
    }
    return true;
}

bool lg_outdir_commit(lg_outdir *f, const char *first, lb_err *err) {
    const char **paths = lb_alloc_n(f->arena, f->n_staged + 1, sizeof *paths, err);
    if (paths == NULL || !make_places(f, paths, err)) {
        return false;
    }
    /* one flush for all files: a file that has its name has its bytes, even if the power fails */
    if (f->n_staged > 0 && syncfs(f->lock) != 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be written to the disk: %s", f->path,
                          strerror(errno));
    }
    if (!remove_old(f, err)) {
        return false;
    }
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < f->n_staged; i++) {
            bool leads = strcmp(f->staged[i], first) == 0;
            if (leads == (turn == 0) && !put(f, f->staged[i], paths[i], err)) {
                return false;
            }
        }
    }
    f->n_staged = 0;
    f->n_removed = 0;
    return remove_tree(f->staging, err);
}
