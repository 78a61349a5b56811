/* abi.h -- the CUDA driver API's types, numbers and structs that lagen uses, declared here so that
 * neither programs nor tools need a CUDA header. tests/gpu/test_driver_decl.py compares every one
 * with the toolkit's cuda.h. Source: cuda.h of CUDA 13.0. Handles keep the tags of that header;
 * everything else has lagen's names. */
#ifndef RT_CUDA_ABI_H
#define RT_CUDA_ABI_H

#include <stddef.h>

typedef unsigned rt_cu_result;        /* CUresult */
typedef int rt_cu_device;             /* CUdevice */
typedef unsigned rt_cu_device_attr;   /* CUdevice_attribute */
typedef unsigned rt_cu_func_attr;     /* CUfunction_attribute */
typedef unsigned rt_cu_capture_mode;  /* CUstreamCaptureMode */
typedef unsigned long long rt_cu_ptr; /* CUdeviceptr */
typedef struct CUctx_st *rt_cu_context;
typedef struct CUmod_st *rt_cu_module;
typedef struct CUfunc_st *rt_cu_function;
typedef struct CUstream_st *rt_cu_stream;
typedef struct CUgraph_st *rt_cu_graph;
typedef struct CUgraphExec_st *rt_cu_graph_exec;
typedef struct rt_cu_ctx_params rt_cu_ctx_params; /* CUctxCreateParams; only NULL is passed */

typedef struct rt_cu_uuid { /* CUuuid */
    char bytes[16];
} rt_cu_uuid;

typedef struct rt_cu_launch_attr { /* CUlaunchAttribute: the members of its union that are used */
    unsigned id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        int programmatic_serialization;
        unsigned cluster[3];
    } value;
} rt_cu_launch_attr;

typedef struct rt_cu_launch_config { /* CUlaunchConfig */
    unsigned grid[3];
    unsigned block[3];
    unsigned smem_bytes;
    rt_cu_stream stream;
    rt_cu_launch_attr *attrs;
    unsigned n_attrs;
} rt_cu_launch_config;

/* CUresult */
enum {
    RT_CU_SUCCESS = 0,
    RT_CU_INVALID_VALUE = 1,
    RT_CU_OUT_OF_MEMORY = 2,
    RT_CU_NOT_INITIALIZED = 3,
    RT_CU_DEINITIALIZED = 4,
    RT_CU_DEVICE_UNAVAILABLE = 46,
    RT_CU_NO_DEVICE = 100,
    RT_CU_INVALID_DEVICE = 101,
    RT_CU_INVALID_IMAGE = 200,
    RT_CU_INVALID_CONTEXT = 201,
    RT_CU_NO_BINARY_FOR_GPU = 209,
    RT_CU_ECC_UNCORRECTABLE = 214,
    RT_CU_NVLINK_UNCORRECTABLE = 220,
    RT_CU_CONTAINED = 226,
    RT_CU_INVALID_HANDLE = 400,
    RT_CU_ILLEGAL_STATE = 401,
    RT_CU_NOT_FOUND = 500,
    RT_CU_NOT_READY = 600,
    RT_CU_ILLEGAL_ADDRESS = 700,
    RT_CU_LAUNCH_OUT_OF_RESOURCES = 701,
    RT_CU_LAUNCH_TIMEOUT = 702,
    RT_CU_CONTEXT_IS_DESTROYED = 709,
    RT_CU_ASSERT = 710,
    RT_CU_HARDWARE_STACK_ERROR = 714,
    RT_CU_ILLEGAL_INSTRUCTION = 715,
    RT_CU_MISALIGNED_ADDRESS = 716,
    RT_CU_INVALID_ADDRESS_SPACE = 717,
    RT_CU_INVALID_PC = 718,
    RT_CU_LAUNCH_FAILED = 719,
    RT_CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    RT_CU_TENSOR_MEMORY_LEAK = 721,
    RT_CU_NOT_SUPPORTED = 801,
    RT_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    RT_CU_STREAM_CAPTURE_INVALIDATED = 901,
    RT_CU_STREAM_CAPTURE_UNMATCHED = 903,
    RT_CU_INVALID_CLUSTER_SIZE = 912,
    RT_CU_UNKNOWN = 999
};

/* CUdevice_attribute */
enum {
    RT_CU_DEV_CTA_THREADS = 1,
    RT_CU_DEV_CTA_X = 2,
    RT_CU_DEV_CTA_Y = 3,
    RT_CU_DEV_CTA_Z = 4,
    RT_CU_DEV_GRID_X = 5,
    RT_CU_DEV_GRID_Y = 6,
    RT_CU_DEV_GRID_Z = 7,
    RT_CU_DEV_SMEM_PER_CTA = 8,
    RT_CU_DEV_WARP = 10,
    RT_CU_DEV_REGS_PER_CTA = 12,
    RT_CU_DEV_SMS = 16,
    RT_CU_DEV_INTEGRATED = 18,
    RT_CU_DEV_COMPUTE_MODE = 20,
    RT_CU_DEV_L2_BYTES = 38,
    RT_CU_DEV_THREADS_PER_SM = 39,
    RT_CU_DEV_MAJOR = 75,
    RT_CU_DEV_MINOR = 76,
    RT_CU_DEV_SMEM_PER_SM = 81,
    RT_CU_DEV_REGS_PER_SM = 82,
    RT_CU_DEV_COOPERATIVE = 95,
    RT_CU_DEV_SMEM_OPTIN = 97,
    RT_CU_DEV_CTAS_PER_SM = 106,
    RT_CU_DEV_SMEM_RESERVED = 111
};

/* CUfunction_attribute */
enum {
    RT_CU_FUNC_THREADS = 0,
    RT_CU_FUNC_SHARED_BYTES = 1, /* static */
    RT_CU_FUNC_CONST_BYTES = 2,
    RT_CU_FUNC_LOCAL_BYTES = 3,
    RT_CU_FUNC_REGS = 4,
    RT_CU_FUNC_BINARY_VERSION = 6,
    RT_CU_FUNC_DYNAMIC_SHARED_BYTES = 8
};

/* CUlaunchAttributeID, CUstream_flags, CUstreamCaptureMode */
enum {
    RT_CU_ATTR_COOPERATIVE = 2,
    RT_CU_ATTR_CLUSTER = 4,
    RT_CU_ATTR_PROGRAMMATIC_SERIALIZATION = 6,
    RT_CU_STREAM_NON_BLOCKING = 1,
    RT_CU_CAPTURE_THREAD_LOCAL = 1
};

#endif
