/* entry.h -- the driver's entry points, declared from driver.def, which the entry_*.c files define.
 */
#ifndef REC_ENTRY_H
#define REC_ENTRY_H

#include "recorder/recorder.h"

#define RT_CU(name, parameters) rt_cu_result name parameters;
#include "cuda/driver.def"

#endif
