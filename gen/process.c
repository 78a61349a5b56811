/* process.c -- see process.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts argv with its standard output on descriptor `out`. */
static bool start(const char *const *argv, int out, pid_t *pid, lb_err *err) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    int why = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (why != 0) {
        return lb_err_set(err, LB_MISSING, "cannot run '%s': %s; is it installed?", argv[0],
                          strerror(why));
    }
    return true;
}

/* The child's exit status, or -1 if a signal ended it. When `stop` is set the child is told to stop
 * too: Ctrl-C on a terminal reaches it by itself, a signal to this process alone does not. */
static int wait_for(pid_t pid, const volatile sig_atomic_t *stop) {
    int status = 0;
    bool told = false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
        if (stop != NULL && *stop != 0 && !told) {
            kill(pid, SIGTERM);
            told = true;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool lg_process_run(const char *const *argv, const volatile sig_atomic_t *stop, lb_err *err) {
    pid_t pid = 0;
    if (!start(argv, 2, &pid, err)) {
        return false;
    }
    int status = wait_for(pid, stop);
    if (stop != NULL && *stop != 0) {
        return lb_err_set(err, LB_CANCELLED, "stopped");
    }
    if (status < 0) {
        return lb_err_set(err, LB_IO, "'%s' was ended by a signal", argv[0]);
    }
    return status == 0 ||
           lb_err_set(err, LB_IO, "'%s' failed with status %d; its messages stand above", argv[0],
                      status);
}

bool lg_process_output(const char *program, const char *arg, lb_arena *arena, const char **out,
                       lb_err *err) {
    const char *const argv[] = {program, arg, NULL};
    int ends[2];
    pid_t pid = 0;
    if (pipe(ends) != 0) {
        return lb_err_set(err, LB_IO, "pipe: %s", strerror(errno));
    }
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    bool ok = start(argv, ends[1], &pid, err);
    close(ends[1]);
    char text[4095];
    size_t n = 0;
    for (ssize_t got = 1; ok && (got > 0 || (got < 0 && errno == EINTR));) {
        char rest[512]; /* what finds no room is read too: the child must not wait for us */
        bool full = n == sizeof text;
        got = read(ends[0], full ? rest : text + n, full ? sizeof rest : sizeof text - n);
        n += full || got < 0 ? 0 : (size_t)got;
    }
    close(ends[0]);
    if (!ok) {
        return false;
    }
    if (wait_for(pid, NULL) != 0) {
        return lb_err_set(err, LB_MISSING, "'%s %s' failed", program, arg);
    }
    *out = lb_strndup(arena, text, n, err);
    return *out != NULL;
}

bool lg_process_first_line(const char *program, const char *arg, lb_arena *arena, const char **out,
                           lb_err *err) {
    const char *text = NULL;
    if (!lg_process_output(program, arg, arena, &text, err)) {
        return false;
    }
    *out = lb_strndup(arena, text, strcspn(text, "\n"), err);
    return *out != NULL;
}
