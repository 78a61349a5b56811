/* process.h -- the programs that lagen runs: ninja, and compilers asked for their version. */
#ifndef LG_PROCESS_H
#define LG_PROCESS_H

#include <signal.h>
#include <stdbool.h>

#include "base/arena.h"

/* Runs argv[0] from PATH with our stdout sent to stderr, and waits. Fails with LB_MISSING if it
 * cannot be started, LB_IO if it does not exit with 0, LB_CANCELLED if `*stop` was set meanwhile
 * (the child is told to stop, and waited for); `stop` may be NULL. */
bool lg_process_run(const char *const *argv, const volatile sig_atomic_t *stop, lb_err *err);

/* What `program arg` prints, at most 4095 bytes of it; LB_MISSING if it cannot be run. `stop` as
 * above. */
bool lg_process_output(const char *program, const char *arg, const volatile sig_atomic_t *stop,
                       lb_arena *arena, const char **out, lb_err *err);

/* Its first line. */
bool lg_process_first_line(const char *program, const char *arg, const volatile sig_atomic_t *stop,
                           lb_arena *arena, const char **out, lb_err *err);

#endif
