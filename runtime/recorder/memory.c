/* memory.c -- allocations: device memory from the backend, pinned memory from the system, and what
 * lies in them. */
#include <stdlib.h>

#include "recorder/recorder.h"

static rec_alloc *find(const void *at, bool host) {
    for (unsigned i = 0; i < REC_ALLOCS_MAX; i++) {
        rec_alloc *a = &rec.allocs[i];
        if (a->n_bytes != 0 && a->at == at && a->host == host) {
            return a;
        }
    }
    return NULL;
}

bool rec_owns(rt_cu_ptr at, size_t n_bytes, bool host) {
    for (unsigned i = 0; i < REC_ALLOCS_MAX; i++) {
        const rec_alloc *a = &rec.allocs[i];
        rt_cu_ptr begin = (rt_cu_ptr)(uintptr_t)a->at;
        if (a->n_bytes != 0 && a->host == host && at >= begin && at - begin <= a->n_bytes &&
            n_bytes <= a->n_bytes - (at - begin)) {
            return true;
        }
    }
    return false;
}

static rec_alloc *free_entry(void) {
    for (unsigned i = 0; i < REC_ALLOCS_MAX; i++) {
        if (rec.allocs[i].n_bytes == 0) {
            return &rec.allocs[i];
        }
    }
    return NULL;
}

rt_cu_result rec_take(size_t n_bytes, bool host, void **out) {
    rec_alloc *a = free_entry();
    if (n_bytes == 0) {
        return rec_refuse(REC_alloc_zero);
    }
    unsigned long long room = rec.s.memory_bytes - rec.s.reserve_bytes - rec.device_bytes;
    if (a == NULL || (!host && n_bytes > room)) {
        return rec_refuse(REC_alloc_too_much);
    }
    void *at = host ? aligned_alloc(4096, (n_bytes + 4095) / 4096 * 4096)
                    : rec_backend_here()->alloc(n_bytes);
    if (at == NULL) {
        return rec_refuse(REC_alloc_too_much);
    }
    *a = (rec_alloc){at, n_bytes, host};
    rec.device_bytes += host ? 0 : n_bytes;
    *out = at;
    rec_note("%s %zu", host ? "alloc host" : "alloc device", n_bytes);
    return RT_CU_SUCCESS;
}

rt_cu_result rec_give(void *at, bool host) {
    rec_alloc *a = find(at, host);
    if (a == NULL) {
        return rec_refuse(REC_free_twice);
    }
    if (host) {
        free(at);
    } else {
        rec_backend_here()->release(at, a->n_bytes);
        rec.device_bytes -= a->n_bytes;
    }
    *a = (rec_alloc){0};
    return RT_CU_SUCCESS;
}
