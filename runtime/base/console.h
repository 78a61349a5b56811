/* console.h -- a program's three standard streams, and the signals that writing can raise. */
#ifndef LB_CONSOLE_H
#define LB_CONSOLE_H

#include <stdbool.h>

#include "base/err.h"

/* To be called first in main. Descriptors 0 to 2 that the caller closed are opened so that reading
 * and writing them fails: else the first file that is opened would become standard output, and
 * messages would be written into it. SIGPIPE and SIGXFSZ are ignored: a write that cannot be made
 * is an error with a name, and what was begun is taken back. LB_IO without /dev/null. */
bool lb_console_init(lb_err *err);

/* What was printed so far is written: LB_CLOSED if nobody reads it any more, LB_IO with the
 * system's reason if it cannot be written. */
bool lb_console_flush(lb_err *err);

/* LB_CLOSED if whatever read standard output has gone, so that long work need not go on. */
bool lb_console_heard(lb_err *err);

#endif
