/* heap.h -- the bound of a program's memory beside its arenas, kept by the system. */
#ifndef RT_HEAP_H
#define RT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* From now on the process gets at most `n_bytes` more of private memory than it has (RLIMIT_DATA):
 * malloc then fails, and with it the request or the command that asked, not the machine. A
 * lower limit that is in force already stays. *limit: what is in force then; 0 in a sanitized
 * program, which is left alone, since its allocator ends the process instead. LB_IO if the system
 * does not tell or take it. Linux. */
bool rt_heap_limit(uint64_t n_bytes, uint64_t *limit, lb_err *err);

/* A number of /proc/self/status in bytes ("VmData:", "VmRSS:", "VmLck:"); false if it is not
 * there. */
bool rt_heap_status(const char *key, uint64_t *out);

#endif
