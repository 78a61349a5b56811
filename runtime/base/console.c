/* console.c -- see console.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool lb_console_init(lb_err *err) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* the lowest free descriptor is this one, for those below are open */
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) {
            return lb_err_set(err, LB_IO, "/dev/null: cannot be opened: %s", strerror(errno));
        }
    }
    return true;
}

bool lb_console_heard(lb_err *err) {
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0 ||
           lb_err_set(err, LB_CLOSED, "standard output: nobody reads it");
}

bool lb_console_flush(lb_err *err) {
    int why = fflush(stdout) == 0 ? 0 : errno;
    if (why == 0 && ferror(stdout) == 0) {
        return true;
    }
    if (why == EPIPE || !lb_console_heard(NULL)) {
        return lb_err_set(err, LB_CLOSED, "standard output: nobody reads it");
    }
    /* after an earlier write that failed errno speaks of something else by now */
    return lb_err_set(err, LB_IO, "standard output: cannot be written: %s",
                      why != 0 ? strerror(why) : "not all of it could be written");
}
