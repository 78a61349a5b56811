/* decl.c -- compared by the compiler: our declarations of the CUDA driver API against the toolkit's
 * cuda.h. Not linked. Compiled with -I<toolkit>/include; see test_driver_decl.py. */
#include <cuda.h>
#include <stddef.h>

#include "cuda/abi.h"

/* ---- entry points: our names for the header's types, then one assertion a row */

#define rt_cu_result CUresult
#define rt_cu_device CUdevice
#define rt_cu_device_attr CUdevice_attribute
#define rt_cu_func_attr CUfunction_attribute
#define rt_cu_capture_mode CUstreamCaptureMode
#define rt_cu_ptr CUdeviceptr
#define rt_cu_ctx_params CUctxCreateParams
#define rt_cu_uuid CUuuid
#define rt_cu_launch_config CUlaunchConfig

/* cuda.h maps unsuffixed names to the versioned ones by macros: a row with an unsuffixed name would
 * grow here. A versioned name that is not this header's current one is not declared. */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define RT_CU(name, parameters)                                                                    \
    _Static_assert(sizeof TEXT(name) == sizeof #name, #name " is not the versioned name");         \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) parameters),        \
                   #name " differs from cuda.h");
#include "cuda/driver.def"

#undef rt_cu_result
#undef rt_cu_device
#undef rt_cu_device_attr
#undef rt_cu_func_attr
#undef rt_cu_capture_mode
#undef rt_cu_ptr
#undef rt_cu_ctx_params
#undef rt_cu_uuid
#undef rt_cu_launch_config

/* ---- types and structs */

#define SAME_SIZE(ours, theirs)                                                                    \
    _Static_assert(sizeof(ours) == sizeof(theirs), #ours " and " #theirs " differ in size");
SAME_SIZE(rt_cu_result, CUresult)
SAME_SIZE(rt_cu_device, CUdevice)
SAME_SIZE(rt_cu_device_attr, CUdevice_attribute)
SAME_SIZE(rt_cu_func_attr, CUfunction_attribute)
SAME_SIZE(rt_cu_capture_mode, CUstreamCaptureMode)
SAME_SIZE(rt_cu_ptr, CUdeviceptr)
SAME_SIZE(rt_cu_uuid, CUuuid)
SAME_SIZE(rt_cu_launch_attr, CUlaunchAttribute)
SAME_SIZE(rt_cu_launch_config, CUlaunchConfig)

#define SAME_PLACE(ours, a, theirs, b)                                                             \
    _Static_assert(offsetof(ours, a) == offsetof(theirs, b),                                       \
                   #ours "." #a " is not where " #theirs "." #b " is");
SAME_PLACE(rt_cu_launch_attr, id, CUlaunchAttribute, id)
SAME_PLACE(rt_cu_launch_attr, value, CUlaunchAttribute, value)
SAME_PLACE(rt_cu_launch_attr, value.cooperative, CUlaunchAttribute, value.cooperative)
SAME_PLACE(rt_cu_launch_attr, value.programmatic_serialization, CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed)
SAME_PLACE(rt_cu_launch_attr, value.cluster, CUlaunchAttribute, value.clusterDim)
SAME_PLACE(rt_cu_launch_config, grid[0], CUlaunchConfig, gridDimX)
SAME_PLACE(rt_cu_launch_config, grid[1], CUlaunchConfig, gridDimY)
SAME_PLACE(rt_cu_launch_config, grid[2], CUlaunchConfig, gridDimZ)
SAME_PLACE(rt_cu_launch_config, block[0], CUlaunchConfig, blockDimX)
SAME_PLACE(rt_cu_launch_config, block[2], CUlaunchConfig, blockDimZ)
SAME_PLACE(rt_cu_launch_config, smem_bytes, CUlaunchConfig, sharedMemBytes)
SAME_PLACE(rt_cu_launch_config, stream, CUlaunchConfig, hStream)
SAME_PLACE(rt_cu_launch_config, attrs, CUlaunchConfig, attrs)
SAME_PLACE(rt_cu_launch_config, n_attrs, CUlaunchConfig, numAttrs)

/* ---- numbers */

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs);
SAME(RT_CU_SUCCESS, CUDA_SUCCESS)
SAME(RT_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE)
SAME(RT_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY)
SAME(RT_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED)
SAME(RT_CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED)
SAME(RT_CU_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE)
SAME(RT_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE)
SAME(RT_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE)
SAME(RT_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE)
SAME(RT_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT)
SAME(RT_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU)
SAME(RT_CU_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE)
SAME(RT_CU_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE)
SAME(RT_CU_CONTAINED, CUDA_ERROR_CONTAINED)
SAME(RT_CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE)
SAME(RT_CU_ILLEGAL_STATE, CUDA_ERROR_ILLEGAL_STATE)
SAME(RT_CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND)
SAME(RT_CU_NOT_READY, CUDA_ERROR_NOT_READY)
SAME(RT_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS)
SAME(RT_CU_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
SAME(RT_CU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT)
SAME(RT_CU_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED)
SAME(RT_CU_ASSERT, CUDA_ERROR_ASSERT)
SAME(RT_CU_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR)
SAME(RT_CU_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION)
SAME(RT_CU_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS)
SAME(RT_CU_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE)
SAME(RT_CU_INVALID_PC, CUDA_ERROR_INVALID_PC)
SAME(RT_CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED)
SAME(RT_CU_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
SAME(RT_CU_TENSOR_MEMORY_LEAK, CUDA_ERROR_TENSOR_MEMORY_LEAK)
SAME(RT_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED)
SAME(RT_CU_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
SAME(RT_CU_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
SAME(RT_CU_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
SAME(RT_CU_INVALID_CLUSTER_SIZE, CUDA_ERROR_INVALID_CLUSTER_SIZE)
SAME(RT_CU_UNKNOWN, CUDA_ERROR_UNKNOWN)

SAME(RT_CU_DEV_CTA_THREADS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(RT_CU_DEV_CTA_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)
SAME(RT_CU_DEV_CTA_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)
SAME(RT_CU_DEV_CTA_Z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)
SAME(RT_CU_DEV_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)
SAME(RT_CU_DEV_GRID_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)
SAME(RT_CU_DEV_GRID_Z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)
SAME(RT_CU_DEV_SMEM_PER_CTA, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
SAME(RT_CU_DEV_WARP, CU_DEVICE_ATTRIBUTE_WARP_SIZE)
SAME(RT_CU_DEV_REGS_PER_CTA, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)
SAME(RT_CU_DEV_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
SAME(RT_CU_DEV_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED)
SAME(RT_CU_DEV_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
SAME(RT_CU_DEV_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
SAME(RT_CU_DEV_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
SAME(RT_CU_DEV_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
SAME(RT_CU_DEV_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
SAME(RT_CU_DEV_SMEM_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
SAME(RT_CU_DEV_REGS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
SAME(RT_CU_DEV_COOPERATIVE, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)
SAME(RT_CU_DEV_SMEM_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
SAME(RT_CU_DEV_CTAS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)
SAME(RT_CU_DEV_SMEM_RESERVED, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)

SAME(RT_CU_FUNC_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(RT_CU_FUNC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
SAME(RT_CU_FUNC_CONST_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
SAME(RT_CU_FUNC_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
SAME(RT_CU_FUNC_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS)
SAME(RT_CU_FUNC_BINARY_VERSION, CU_FUNC_ATTRIBUTE_BINARY_VERSION)
SAME(RT_CU_FUNC_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)

SAME(RT_CU_ATTR_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
SAME(RT_CU_ATTR_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
SAME(RT_CU_ATTR_PROGRAMMATIC_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
SAME(RT_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING)
SAME(RT_CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
