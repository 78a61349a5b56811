/* stop.h -- Ctrl-C and its like as a flag that long work looks at. A handler can write to nothing
 * but a global, so the process has one flag, and it is here. */
#ifndef LB_STOP_H
#define LB_STOP_H

#include <signal.h>

/* From now on these signals (`signals` ends with 0) set the flag to their number instead of ending
 * the process; blocking calls return with EINTR. A signal that the caller ignores (nohup, `&` of a
 * shell without job control) stays ignored. Returns the flag, which is 0 until then. */
const volatile sig_atomic_t *lb_stop_catch(const int *signals);

/* The flag is 0 again. */
void lb_stop_clear(void);

/* Ends the process by the signal that set the flag, once everything is in order: a shell sees 128 +
 * its number and stops its loop too. Returns that status if the signal does not end the process. */
int lb_stop_raise(void);

#endif
