/* control.h -- what a test asks of the recorder in its own process, through dlsym: the names are
 * exported beside the driver's. */
#ifndef REC_CONTROL_H
#define REC_CONTROL_H

/* Calls of entry points so far (the two that name errors are not counted). */
typedef unsigned lagen_recorder_calls_fn(void);
/* The k-th call from now on (1: the next) is not made and returns `code`; 0 takes the order back. A
 * code after which a context is of no use is returned by every later call too. */
typedef void lagen_recorder_fail_fn(unsigned k, unsigned code);
/* Behind the failure that was ordered last, others: `after` calls from one to the next (0: none), with
 * a code of their own, `times` in all with the first (0: no end). */
typedef void lagen_recorder_fail_again_fn(unsigned after, unsigned code, unsigned times);
/* Launches made, those of replayed graphs included; bytes of device memory taken now. */
typedef unsigned long long lagen_recorder_launches_fn(void);
typedef unsigned long long lagen_recorder_bytes_fn(void);
/* The name of the last call that was counted. */
typedef const char *lagen_recorder_last_fn(void);

#endif
