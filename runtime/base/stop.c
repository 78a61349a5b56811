/* stop.c -- see stop.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "base/stop.h"

#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
    stop_signal = number;
}

const volatile sig_atomic_t *lb_stop_catch(const int *signals) {
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: reads end */
    sigemptyset(&act.sa_mask);
    for (const int *s = signals; *s != 0; s++) {
        struct sigaction was;
        if (sigaction(*s, NULL, &was) == 0 && was.sa_handler != SIG_IGN) {
            sigaction(*s, &act, NULL);
        }
    }
    return &stop_signal;
}

void lb_stop_clear(void) {
    stop_signal = 0;
}

int lb_stop_raise(void) {
    int number = stop_signal;
    struct sigaction act = {.sa_handler = SIG_DFL};
    sigemptyset(&act.sa_mask);
    sigaction(number, &act, NULL);
    raise(number);
    return 128 + number;
}
