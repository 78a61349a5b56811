/* entry_memory.c -- memory: taking, giving back, copying, setting. */
#include "recorder/entry.h"

/* Enters a call that may not stand inside a capture; one that does spoils it. */
static rt_cu_result enter_outside(const char *call) {
    rt_cu_result r = rec_enter(call, REC_CONTEXT);
    if (r == RT_CU_SUCCESS && rec.capture != REC_NOT) {
        rec.capture = REC_SPOILT;
        return rec_refuse(REC_alloc_during_capture);
    }
    return r;
}

rt_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    rt_cu_result r = rec_enter("cuMemGetInfo_v2", REC_CONTEXT);
    *free_bytes = rec.s.memory_bytes - rec.s.reserve_bytes - rec.device_bytes;
    *total_bytes = rec.s.memory_bytes;
    return rec_leave("cuMemGetInfo_v2", r);
}

rt_cu_result cuMemAlloc_v2(rt_cu_ptr *at, size_t n_bytes) {
    void *p = NULL;
    rt_cu_result r = enter_outside("cuMemAlloc_v2");
    if (r == RT_CU_SUCCESS) {
        r = rec_take(n_bytes, false, &p);
    }
    if (r == RT_CU_SUCCESS) {
        *at = (rt_cu_ptr)(uintptr_t)p;
    }
    return rec_leave("cuMemAlloc_v2", r);
}

/* After a lost device the memory goes all the same, and the call says what was lost. */
static rt_cu_result give(const char *call, void *at, bool host) {
    rt_cu_result r = enter_outside(call);
    if (r == RT_CU_SUCCESS || r == rec.lost) {
        rt_cu_result given = rec_give(at, host);
        r = r == RT_CU_SUCCESS ? given : r;
    }
    return rec_leave(call, r);
}

rt_cu_result cuMemFree_v2(rt_cu_ptr at) {
    return give("cuMemFree_v2", (void *)(uintptr_t)at, false);
}

rt_cu_result cuMemHostAlloc(void **at, size_t n_bytes, unsigned flags) {
    void *p = NULL;
    rt_cu_result r = enter_outside("cuMemHostAlloc");
    if (r == RT_CU_SUCCESS) {
        r = flags > 7 ? RT_CU_INVALID_VALUE : rec_take(n_bytes, true, &p);
    }
    if (r == RT_CU_SUCCESS) {
        *at = p;
    }
    return rec_leave("cuMemHostAlloc", r);
}

rt_cu_result cuMemFreeHost(void *at) {
    return give("cuMemFreeHost", at, true);
}

/* Whether [device, device + n_bytes) lies in an allocation, or the refusal. */
static rt_cu_result ranged(const rec_op *op) {
    if (op->n_bytes != 0 && !rec_owns(op->device, op->n_bytes, false)) {
        return rec_refuse(op->kind == REC_SET ? REC_set_outside : REC_copy_outside);
    }
    return RT_CU_SUCCESS;
}

/* The calls that return when the work is done; a capture does not see them. */
static rt_cu_result now(const char *call, const rec_op *op) {
    rt_cu_result r = rec_enter(call, REC_CONTEXT);
    if (r == RT_CU_SUCCESS) {
        r = ranged(op);
    }
    if (r == RT_CU_SUCCESS && op->n_bytes != 0) {
        r = rec_do_now(op);
    }
    return rec_leave(call, r == RT_CU_SUCCESS ? rec_backend_here()->sync() : r);
}

static rt_cu_result later(const char *call, const rec_op *op, rt_cu_stream stream) {
    rt_cu_result r = rec_enter(call, REC_CONTEXT);
    if (r == RT_CU_SUCCESS && stream == NULL && rec.capture != REC_NOT) {
        rec.capture = REC_SPOILT;
        r = RT_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (r == RT_CU_SUCCESS) {
        r = ranged(op);
    }
    return rec_leave(call, r == RT_CU_SUCCESS && op->n_bytes != 0 ? rec_do(op) : r);
}

rt_cu_result cuMemsetD8_v2(rt_cu_ptr to, unsigned char value, size_t n_bytes) {
    const rec_op op = {.kind = REC_SET, .device = to, .n_bytes = n_bytes, .value = value};
    return now("cuMemsetD8_v2", &op);
}

rt_cu_result cuMemcpyHtoD_v2(rt_cu_ptr to, const void *from, size_t n_bytes) {
    const rec_op op = {
        .kind = REC_TO_DEVICE, .device = to, .host = (void *)(uintptr_t)from, .n_bytes = n_bytes};
    return now("cuMemcpyHtoD_v2", &op);
}

rt_cu_result cuMemcpyDtoH_v2(void *to, rt_cu_ptr from, size_t n_bytes) {
    const rec_op op = {.kind = REC_TO_HOST, .device = from, .host = to, .n_bytes = n_bytes};
    return now("cuMemcpyDtoH_v2", &op);
}

rt_cu_result cuMemcpyHtoDAsync_v2(rt_cu_ptr to, const void *from, size_t n_bytes,
                                  rt_cu_stream stream) {
    const rec_op op = {
        .kind = REC_TO_DEVICE, .device = to, .host = (void *)(uintptr_t)from, .n_bytes = n_bytes};
    return later("cuMemcpyHtoDAsync_v2", &op, stream);
}

rt_cu_result cuMemcpyDtoHAsync_v2(void *to, rt_cu_ptr from, size_t n_bytes, rt_cu_stream stream) {
    const rec_op op = {.kind = REC_TO_HOST, .device = from, .host = to, .n_bytes = n_bytes};
    return later("cuMemcpyDtoHAsync_v2", &op, stream);
}
