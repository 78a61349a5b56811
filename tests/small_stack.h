/* small_stack.h -- runs a function on a thread whose stack has 64 KiB, far less than a frame for
 * each byte of a long text would take. cmocka's asserts must not be called in there. */
#ifndef TESTS_SMALL_STACK_H
#define TESTS_SMALL_STACK_H

#include <pthread.h>
#include <stdbool.h>

enum { SMALL_STACK_BYTES = 64 * 1024 };

/* False if the thread could not be made. */
static inline bool on_small_stack(void *(*run)(void *), void *arg) {
    pthread_attr_t attr;
    pthread_t thread;
    bool made = pthread_attr_init(&attr) == 0 &&
                pthread_attr_setstacksize(&attr, SMALL_STACK_BYTES) == 0 &&
                pthread_create(&thread, &attr, run, arg) == 0;
    pthread_attr_destroy(&attr);
    return made && pthread_join(thread, NULL) == 0;
}

#endif
