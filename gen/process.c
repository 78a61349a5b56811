/* process.c -- see process.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Starts argv with its standard output on descriptor `out`. Signals that lagen ignores mean to it
 * what they mean to others. */
static bool start(const char *const *argv, int out, pid_t *pid, lb_err *err) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    int why = posix_spawnp(pid, argv[0], &actions, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (why != 0) {
        return lb_err_set(err, LB_MISSING, "cannot run '%s': %s; is it installed?", argv[0],
                          strerror(why));
    }
    return true;
}

static bool stopped(const volatile sig_atomic_t *stop) {
    return stop != NULL && *stop != 0;
}

/* Waits for a child to end, or for a tenth of a second: the flag may have been set after it was
 * looked at, when its signal interrupts nothing any more. SIGCHLD is blocked. */
static void pause_for_child(void) {
    static const struct timespec A_WHILE = {.tv_nsec = 100000000};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &A_WHILE);
}

/* The child's exit status, or -1 if a signal ended it. When `stop` is set the child is told to stop
 * too: Ctrl-C on a terminal reaches it by itself, a signal to this process alone does not. */
static int wait_for(pid_t pid, const volatile sig_atomic_t *stop) {
    int status = 0;
    bool told = false;
    pid_t ended = 0;
    sigset_t child;
    sigset_t before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    for (;;) {
        ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) {
            break;
        }
        if (stopped(stop) && !told) {
            kill(pid, SIGTERM);
            told = true;
        }
        pause_for_child();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool lg_process_run(const char *const *argv, const volatile sig_atomic_t *stop, lb_err *err) {
    pid_t pid = 0;
    if (!start(argv, 2, &pid, err)) {
        return false;
    }
    int status = wait_for(pid, stop);
    if (stopped(stop)) {
        return lb_err_set(err, LB_CANCELLED, "stopped");
    }
    if (status < 0) {
        return lb_err_set(err, LB_IO, "'%s' was ended by a signal", argv[0]);
    }
    return status == 0 ||
           lb_err_set(err, LB_IO, "'%s' failed with status %d; its messages stand above", argv[0],
                      status);
}

/* Reads to the end, or until told to stop; what finds no room is read too: the child must not wait
 * for us. */
static size_t read_output(int fd, char *text, size_t size, const volatile sig_atomic_t *stop) {
    enum { WAIT_MS = 100 };
    struct pollfd in = {.fd = fd, .events = POLLIN};
    char rest[512];
    size_t n = 0;
    while (!stopped(stop)) {
        if (poll(&in, 1, WAIT_MS) <= 0) {
            continue;
        }
        bool full = n == size;
        ssize_t got = read(fd, full ? rest : text + n, full ? sizeof rest : size - n);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        n += full || got < 0 ? 0 : (size_t)got;
    }
    return n;
}

bool lg_process_output(const char *program, const char *arg, const volatile sig_atomic_t *stop,
                       lb_arena *arena, const char **out, lb_err *err) {
    const char *const argv[] = {program, arg, NULL};
    int ends[2];
    pid_t pid = 0;
    if (pipe(ends) != 0) {
        return lb_err_set(err, LB_IO, "cannot make a pipe: %s", strerror(errno));
    }
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    bool ok = start(argv, ends[1], &pid, err);
    close(ends[1]);
    char text[4095];
    size_t n = ok ? read_output(ends[0], text, sizeof text, stop) : 0;
    close(ends[0]);
    if (!ok) {
        return false;
    }
    int status = wait_for(pid, stop);
    if (stopped(stop)) {
        return lb_err_set(err, LB_CANCELLED, "stopped");
    }
    if (status != 0) {
        return lb_err_set(err, LB_MISSING, "'%s %s' failed", program, arg);
    }
    *out = lb_strndup(arena, text, n, err);
    return *out != NULL;
}

bool lg_process_first_line(const char *program, const char *arg, const volatile sig_atomic_t *stop,
                           lb_arena *arena, const char **out, lb_err *err) {
    const char *text = NULL;
    if (!lg_process_output(program, arg, stop, arena, &text, err)) {
        return false;
    }
    *out = lb_strndup(arena, text, strcspn(text, "\n"), err);
    return *out != NULL;
}
