/* rehearse.h -- every step that a GPU program can be asked for, made once without weights, on
 * whatever driver is there: on the recorder this shows that none of its launches is refused, by
 * the program's own code and not by its plan (`lagen verify --replay`); on a board it is slow and
 * shows the same of hardware. */
#ifndef RT_REHEARSE_H
#define RT_REHEARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model_abi.h"

typedef struct rt_rehearsal {
    uint64_t steps;
    uint32_t slots[3], contexts[5]; /* what was tried; 0 where there is no more */
} rt_rehearsal;

/* For each number of sequences among 1, 2 and all slots, and each length of context among 1, the
 * window less one, the window, the window and one, and the whole context: one step of every number
 * of rows from 1 to t_max that such sequences can have, with the logits of their last rows; with
 * the most logits at t_max. `device` as for rt_memory_map_on. Fails with LB_BAD_VALUE in a CPU
 * program, else as starting and stepping do, naming rows, sequences and context. */
bool rt_rehearse(const rt_model *m, const char *device, rt_rehearsal *out, lb_err *err);

#endif
