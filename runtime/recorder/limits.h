/* limits.h -- what hardware checks of a launch, from the settings and the kernel's own numbers. */
#ifndef REC_LIMITS_H
#define REC_LIMITS_H

#include "recorder/recorder.h"

enum { REC_SMEM_WITHOUT_OPT_IN = 48 * 1024 };

/* Most threads of a cta of this function: its launch bounds and its registers. */
unsigned rec_function_threads(const rec_function *f);

/* Ctas of that many threads and dynamic bytes that an SM holds together; 0 if not even one.
 * Source: cuda_occupancy.h of toolkit 13.0. */
unsigned rec_ctas_of_sm(const rec_function *f, unsigned threads, size_t smem_bytes);

/* RT_CU_SUCCESS, or the code that hardware gives. */
rt_cu_result rec_check_launch(const rec_function *f, const rec_launch *l);

#endif
