/* backend.h -- the seam between the driver look-alike and what stands behind it.
 *
 * The recorder checks, counts and records every call and hands the work on as operations, in stream
 * order. Its own backend (record_only.c) executes none of them; an emulator links the same objects
 * with another rec_backend_here and executes. */
#ifndef REC_BACKEND_H
#define REC_BACKEND_H

#include "base/cubin.h"
#include "cuda/abi.h"

typedef struct rec_launch {
    const char *kernel;
    const lb_cubin_kernel *facts; /* from its cubin */
    unsigned grid[3], block[3];
    unsigned smem_bytes; /* dynamic */
    unsigned cluster[3]; /* 1, 1, 1 without a cluster */
    bool cooperative;
    bool overlaps;      /* programmatic dependent launch: may begin before its predecessor ends */
    const void *params; /* facts->param_bytes bytes, valid during the call */
} rec_launch;

typedef enum rec_op_kind { REC_LAUNCH, REC_TO_DEVICE, REC_TO_HOST, REC_SET } rec_op_kind;

typedef struct rec_op {
    rec_op_kind kind;
    rec_launch launch; /* of REC_LAUNCH */
    rt_cu_ptr device;  /* of the others; [device, device + n_bytes) lies in one allocation */
    void *host;
    size_t n_bytes;
    unsigned char value;
} rec_op;

typedef struct rec_backend {
    /* Device memory of n_bytes, 512-byte aligned; its address is what programs see. NULL: none
     * left. */
    void *(*alloc)(size_t n_bytes);
    void (*release)(void *at, size_t n_bytes);

    /* A module was loaded: RT_CU_SUCCESS, or what the load call returns. */
    rt_cu_result (*load)(const void *cubin, size_t n_bytes);

    /* The next operation of the stream. May be done now or at the next sync; an error is returned
     * here or there. */
    rt_cu_result (*run)(const rec_op *op);
    rt_cu_result (*sync)(void);
} rec_backend;

const rec_backend *rec_backend_here(void);

#endif
