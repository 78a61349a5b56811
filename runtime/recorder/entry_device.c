/* entry_device.c -- the driver, devices, contexts, error names. */
#include <stdlib.h>
#include <string.h>

#include "recorder/entry.h"

struct CUctx_st {
    int device;
};

typedef struct error_text {
    rt_cu_result code;
    const char *name, *text;
} error_text;

/* Texts are the recorder's own; the names are CUDA's. */
static const error_text ERRORS[] = {
    {RT_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {RT_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {RT_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {RT_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {RT_CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {RT_CU_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device busy or unavailable"},
    {RT_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {RT_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {RT_CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {RT_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {RT_CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device"},
    {RT_CU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {RT_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {RT_CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {RT_CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {RT_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {RT_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {RT_CU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {RT_CU_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {RT_CU_ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {RT_CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {RT_CU_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many ctas in cooperative launch"},
    {RT_CU_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not permitted when stream is capturing"},
    {RT_CU_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "failed due to a previous error during capture"},
    {RT_CU_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {RT_CU_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {RT_CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const error_text *text_of(rt_cu_result r) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
        if (ERRORS[i].code == r) {
            return &ERRORS[i];
        }
    }
    return NULL;
}

rt_cu_result cuGetErrorName(rt_cu_result result, const char **text) {
    const error_text *e = text_of(result);
    *text = e == NULL ? NULL : e->name;
    return e == NULL ? RT_CU_INVALID_VALUE : RT_CU_SUCCESS;
}

rt_cu_result cuGetErrorString(rt_cu_result result, const char **text) {
    const error_text *e = text_of(result);
    *text = e == NULL ? NULL : e->text;
    return e == NULL ? RT_CU_INVALID_VALUE : RT_CU_SUCCESS;
}

rt_cu_result cuInit(unsigned flags) {
    rt_cu_result r = rec_enter("cuInit", REC_NOTHING);
    if (r == RT_CU_SUCCESS) {
        rec_begin();
        r = flags != 0 ? RT_CU_INVALID_VALUE : rec.s.devices == 0 ? RT_CU_NO_DEVICE : RT_CU_SUCCESS;
        rec.initialized = rec.initialized || r == RT_CU_SUCCESS;
    }
    return rec_leave("cuInit", r);
}

rt_cu_result cuDriverGetVersion(int *version) {
    rt_cu_result r = rec_enter("cuDriverGetVersion", REC_NOTHING);
    *version = r == RT_CU_SUCCESS ? (int)rec.s.driver_version : 0;
    return rec_leave("cuDriverGetVersion", r);
}

rt_cu_result cuDeviceGetCount(int *n) {
    rt_cu_result r = rec_enter("cuDeviceGetCount", REC_INIT);
    *n = r == RT_CU_SUCCESS ? (int)rec.s.devices : 0;
    return rec_leave("cuDeviceGetCount", r);
}

static bool is_device(rt_cu_device d) {
    return d >= 0 && (unsigned long long)d < rec.s.devices && d < REC_DEVICES_MAX;
}

/* Enters a call about a device. */
static rt_cu_result enter_device(const char *call, rt_cu_device device) {
    rt_cu_result r = rec_enter(call, REC_INIT);
    return r == RT_CU_SUCCESS && !is_device(device) ? rec_refuse(REC_no_such_device) : r;
}

rt_cu_result cuDeviceGet(rt_cu_device *device, int index) {
    rt_cu_result r = enter_device("cuDeviceGet", index);
    *device = index;
    return rec_leave("cuDeviceGet", r);
}

rt_cu_result cuDeviceGetName(char *name, int n_bytes, rt_cu_device device) {
    rt_cu_result r = enter_device("cuDeviceGetName", device);
    if (r == RT_CU_SUCCESS) {
        snprintf(name, (size_t)n_bytes, "%s", rec.s.name);
    }
    return rec_leave("cuDeviceGetName", r);
}

rt_cu_result cuDeviceGetUuid_v2(rt_cu_uuid *uuid, rt_cu_device device) {
    rt_cu_result r = enter_device("cuDeviceGetUuid_v2", device);
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[0] = (char)(0x10 + device);
    uuid->bytes[15] = (char)device;
    return rec_leave("cuDeviceGetUuid_v2", r);
}

rt_cu_result cuDeviceGetPCIBusId(char *id, int n_bytes, rt_cu_device device) {
    rt_cu_result r = enter_device("cuDeviceGetPCIBusId", device);
    if (r == RT_CU_SUCCESS) {
        snprintf(id, (size_t)n_bytes, "0000:%02x:00.0", (unsigned)device + 1);
    }
    return rec_leave("cuDeviceGetPCIBusId", r);
}

rt_cu_result cuDeviceTotalMem_v2(size_t *n_bytes, rt_cu_device device) {
    rt_cu_result r = enter_device("cuDeviceTotalMem_v2", device);
    *n_bytes = rec.s.memory_bytes;
    return rec_leave("cuDeviceTotalMem_v2", r);
}

static bool attribute(rt_cu_device_attr attr, unsigned long long *out) {
    const struct {
        rt_cu_device_attr attr;
        unsigned long long value;
    } rows[] = {
        {RT_CU_DEV_CTA_THREADS, rec.s.cta_threads_max},
        {RT_CU_DEV_CTA_X, rec.s.cta_x_max},
        {RT_CU_DEV_CTA_Y, rec.s.cta_y_max},
        {RT_CU_DEV_CTA_Z, rec.s.cta_z_max},
        {RT_CU_DEV_GRID_X, rec.s.grid_x_max},
        {RT_CU_DEV_GRID_Y, rec.s.grid_y_max},
        {RT_CU_DEV_GRID_Z, rec.s.grid_z_max},
        {RT_CU_DEV_SMEM_PER_CTA, 49152},
        {RT_CU_DEV_WARP, rec.s.warp_threads},
        {RT_CU_DEV_REGS_PER_CTA, rec.s.regs_per_cta_max},
        {RT_CU_DEV_SMS, rec.s.sms},
        {RT_CU_DEV_INTEGRATED, rec.s.unified},
        {RT_CU_DEV_COMPUTE_MODE, 0},
        {RT_CU_DEV_L2_BYTES, rec.s.l2_bytes},
        {RT_CU_DEV_THREADS_PER_SM, rec.s.threads_per_sm},
        {RT_CU_DEV_MAJOR, rec.s.compute_major},
        {RT_CU_DEV_MINOR, rec.s.compute_minor},
        {RT_CU_DEV_SMEM_PER_SM, rec.s.smem_per_sm_bytes},
        {RT_CU_DEV_REGS_PER_SM, rec.s.regs_per_sm},
        {RT_CU_DEV_COOPERATIVE, 1},
        {RT_CU_DEV_SMEM_OPTIN, rec.s.smem_per_cta_bytes},
        {RT_CU_DEV_CTAS_PER_SM, rec.s.ctas_per_sm},
        {RT_CU_DEV_SMEM_RESERVED, rec.s.smem_reserved_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].attr == attr) {
            *out = rows[i].value;
            return true;
        }
    }
    return false;
}

rt_cu_result cuDeviceGetAttribute(int *value, rt_cu_device_attr attr, rt_cu_device device) {
    unsigned long long v = 0;
    rt_cu_result r = enter_device("cuDeviceGetAttribute", device);
    if (r == RT_CU_SUCCESS && !attribute(attr, &v)) {
        r = RT_CU_INVALID_VALUE;
    }
    *value = (int)v;
    return rec_leave("cuDeviceGetAttribute", r);
}

rt_cu_result cuCtxCreate_v4(rt_cu_context *context, rt_cu_ctx_params *params, unsigned flags,
                            rt_cu_device device) {
    rt_cu_result r = enter_device("cuCtxCreate_v4", device);
    if (r == RT_CU_SUCCESS && (params != NULL || (flags & ~7U) != 0)) {
        r = RT_CU_INVALID_VALUE;
    }
    rt_cu_context c = r == RT_CU_SUCCESS ? calloc(1, sizeof *c) : NULL;
    if (r == RT_CU_SUCCESS) {
        r = c == NULL ? RT_CU_OUT_OF_MEMORY : RT_CU_SUCCESS;
    }
    if (r == RT_CU_SUCCESS) {
        c->device = device;
        *context = c;
        rec.contexts++;
        rec_has_context = true;
    }
    return rec_leave("cuCtxCreate_v4", r);
}

/* A destroyed context takes a lost device's state with it: what comes next starts anew. */
rt_cu_result cuCtxDestroy_v2(rt_cu_context context) {
    rt_cu_result r = rec_enter("cuCtxDestroy_v2", REC_INIT);
    if (context != NULL && (r == RT_CU_SUCCESS || r == rec.lost)) {
        free(context);
        rec.contexts--;
        rec.lost = RT_CU_SUCCESS;
        rec.capture = REC_NOT;
        rec_has_context = false;
    } else if (r == RT_CU_SUCCESS) {
        r = rec_refuse(REC_no_context);
    }
    return rec_leave("cuCtxDestroy_v2", r);
}

rt_cu_result cuCtxSetCurrent(rt_cu_context context) {
    rt_cu_result r = rec_enter("cuCtxSetCurrent", REC_INIT);
    if (r == RT_CU_SUCCESS) {
        rec_has_context = context != NULL;
    }
    return rec_leave("cuCtxSetCurrent", r);
}
