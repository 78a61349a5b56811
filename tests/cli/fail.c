/* fail.c -- stands between a program and libc (LD_PRELOAD): the FAIL_AT-th call that changes a file
 * system fails as on a full disk, a write after its first half. Calls are counted from 1; standard
 * streams do not count. The file FAIL_LOG, if named, is told which call it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;

static void tell(const char *what, const char *path) {
    const char *log = getenv("FAIL_LOG");
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s\n", what, path);
    if (log != NULL && n > 0) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        syscall(SYS_write, fd, line, n);
        syscall(SYS_close, fd);
    }
}

/* True for the call that is to fail. */
static bool fails(const char *what, const char *path) {
    const char *at = getenv("FAIL_AT");
    if (at == NULL || ++calls != atol(at)) {
        return false;
    }
    tell(what, path);
    errno = ENOSPC;
    return true;
}

static int open_file(const char *path, int flags, va_list args) {
    int mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
    if ((flags & O_CREAT) != 0 && fails("open", path)) {
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int fd = open_file(path, flags, args);
    va_end(args);
    return fd;
}

int open64(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int fd = open_file(path, flags, args);
    va_end(args);
    return fd;
}

ssize_t write(int fd, const void *data, size_t n) {
    if (fd > 2 && fails("write", "")) {
        syscall(SYS_write, fd, data, n / 2);
        return -1;
    }
    return syscall(SYS_write, fd, data, n);
}

int fsync(int fd) {
    return fails("fsync", "") ? -1 : (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd) {
    return fails("syncfs", "") ? -1 : (int)syscall(SYS_syncfs, fd);
}

int ftruncate(int fd, off_t n) {
    return fails("ftruncate", "") ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int ftruncate64(int fd, off_t n) {
    return ftruncate(fd, n);
}

int rename(const char *from, const char *to) {
    return fails("rename", to) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode) {
    struct stat st;
    bool there = stat(path, &st) == 0; /* such a call changes nothing */
    return !there && fails("mkdir", path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
