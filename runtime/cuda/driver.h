/* driver.h -- the CUDA driver, opened at run time: no CUDA library is linked, no CUDA header is
 * read.
 *
 * The library is libcuda.so.1, or the file that LAGEN_CUDA_DRIVER names (the recorder, the
 * emulator). Every call goes through rt_cuda_ok, so every failure names the call and CUDA's own
 * name for the error. */
#ifndef RT_CUDA_DRIVER_H
#define RT_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/err.h"
#include "cuda/abi.h"

typedef struct rt_cuda_driver {
    void *library;
    int version; /* 13000 = CUDA 13.0 */
#define RT_CU(name, parameters) rt_cu_result(*name) parameters;
#include "cuda/driver.def"
} rt_cuda_driver;

/* Opens the library and finds every entry point; LB_WRONG_BOX without one of them. */
bool rt_cuda_driver_find(rt_cuda_driver *d, lb_err *err);

/* The same, and calls cuInit. Fails with LB_WRONG_BOX: no library, one without an entry
 * point (an older driver: names it), no GPU, a driver below `least_version`. Close with
 * rt_cuda_driver_close, which allows a zeroed struct. */
bool rt_cuda_driver_open(rt_cuda_driver *d, int least_version, lb_err *err);
void rt_cuda_driver_close(rt_cuda_driver *d);

/* True for CUDA_SUCCESS; else sets "<call>: CUDA_ERROR_... (text)". Codes: LB_DEVICE_LOST for
 * errors after which the context is of no use, LB_RESOURCES for memory, LB_REFUSED for all
 * others. */
bool rt_cuda_ok(const rt_cuda_driver *d, rt_cu_result result, const char *call, lb_err *err);

/* Calls an entry point and reports under its name: RT_CU_CALL(d, err, cuMemFree_v2, at). */
#define RT_CU_CALL(d, err, call, ...) rt_cuda_ok((d), (d)->call(__VA_ARGS__), #call, (err))

/* Whether the context, or the device, is of no use after this error. */
bool rt_cuda_lost(rt_cu_result result);

#endif
