/* driver.c -- see driver.h. POSIX (dlopen). */
#define _POSIX_C_SOURCE 200809L
#include "cuda/driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char DEFAULT_LIBRARY[] = "libcuda.so.1";

/* Errors after which CUDA says that the process must end, or that the device is gone. Source:
 * comments of CUresult in cuda.h 13.0 ("the process must be terminated and relaunched" and the
 * like). */
static const rt_cu_result LOST[] = {RT_CU_DEINITIALIZED,        RT_CU_ECC_UNCORRECTABLE,
                                    RT_CU_NVLINK_UNCORRECTABLE, RT_CU_CONTAINED,
                                    RT_CU_ILLEGAL_ADDRESS,      RT_CU_LAUNCH_TIMEOUT,
                                    RT_CU_CONTEXT_IS_DESTROYED, RT_CU_ASSERT,
                                    RT_CU_HARDWARE_STACK_ERROR, RT_CU_ILLEGAL_INSTRUCTION,
                                    RT_CU_MISALIGNED_ADDRESS,   RT_CU_INVALID_ADDRESS_SPACE,
                                    RT_CU_INVALID_PC,           RT_CU_LAUNCH_FAILED,
                                    RT_CU_TENSOR_MEMORY_LEAK,   RT_CU_UNKNOWN};

bool rt_cuda_lost(rt_cu_result r) {
    for (size_t i = 0; i < sizeof LOST / sizeof *LOST; i++) {
        if (LOST[i] == r) {
            return true;
        }
    }
    return false;
}

bool rt_cuda_ok(const rt_cuda_driver *d, rt_cu_result r, const char *call, lb_err *err) {
    const char *name = NULL;
    const char *text = NULL;
    if (r == RT_CU_SUCCESS) {
        return true;
    }
    if (d->cuGetErrorName(r, &name) != RT_CU_SUCCESS || name == NULL ||
        d->cuGetErrorString(r, &text) != RT_CU_SUCCESS || text == NULL) {
        name = "an error without name";
        text = "unknown to this driver";
    }
    lb_code code = rt_cuda_lost(r)            ? LB_DEVICE_LOST
                   : r == RT_CU_OUT_OF_MEMORY ? LB_RESOURCES
                                              : LB_REFUSED;
    return lb_err_set(err, code, "%s: %s (%u: %s)", call, name, r, text);
}

/* dlsym gives a pointer to an object; POSIX promises that it holds a function's address. */
static bool find(void *library, const char *path, const char *name, void *to, lb_err *err) {
    void *at = dlsym(library, name);
    if (at == NULL) {
        return lb_err_set(err, LB_WRONG_BOX, "%s has no %s: the driver is too old for this program",
                          path, name);
    }
    memcpy(to, &at, sizeof at);
    return true;
}

static bool find_all(rt_cuda_driver *d, const char *path, lb_err *err) {
    return true
#define RT_CU(name, parameters) &&find(d->library, path, #name, &d->name, err)
#include "cuda/driver.def"
        ;
}

static bool start(rt_cuda_driver *d, const char *path, int least, lb_err *err) {
    bool ok = RT_CU_CALL(d, err, cuInit, 0) && RT_CU_CALL(d, err, cuDriverGetVersion, &d->version);
    if (!ok && err != NULL) {
        err->code = LB_WRONG_BOX;
    }
    if (ok && d->version < least) {
        return lb_err_set(
            err, LB_WRONG_BOX,
            "%s is a driver for CUDA %d.%d; this program needs one for %d.%d or newer", path,
            d->version / 1000, d->version % 1000 / 10, least / 1000, least % 1000 / 10);
    }
    return ok;
}

static const char *library_path(void) {
    const char *other = getenv("LAGEN_CUDA_DRIVER");
    return other != NULL && other[0] != '\0' ? other : DEFAULT_LIBRARY;
}

bool rt_cuda_driver_find(rt_cuda_driver *d, lb_err *err) {
    const char *path = library_path();
    *d = (rt_cuda_driver){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (d->library == NULL) {
        return lb_err_set(err, LB_WRONG_BOX, "no CUDA driver: %s", dlerror());
    }
    if (!find_all(d, path, err)) {
        rt_cuda_driver_close(d);
        return false;
    }
    return true;
}

bool rt_cuda_driver_open(rt_cuda_driver *d, int least_version, lb_err *err) {
    if (!rt_cuda_driver_find(d, err)) {
        return false;
    }
    if (!start(d, library_path(), least_version, err)) {
        rt_cuda_driver_close(d);
        return false;
    }
    return true;
}

void rt_cuda_driver_close(rt_cuda_driver *d) {
    if (d->library != NULL) {
        dlclose(d->library);
    }
    *d = (rt_cuda_driver){0};
}
