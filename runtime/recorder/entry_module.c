/* entry_module.c -- modules and functions: what a cubin says of its kernels. */
#include <stdlib.h>
#include <string.h>

#include "recorder/entry.h"
#include "recorder/limits.h"

static rec_module *as_module(rt_cu_module m) {
    return (rec_module *)(void *)m;
}

static rec_function *as_function(rt_cu_function f) {
    return (rec_function *)(void *)f;
}

/* Fills a module from an image that the caller vouches for: the API gives no size. */
static rt_cu_result read_module(rec_module *m, const void *image) {
    lb_err err = {0};
    uint64_t n = image == NULL ? 0 : lb_cubin_size(image);
    if (n == 0 || !lb_cubin_open(image, n, &m->cubin, &err)) {
        return rec_refuse(REC_bad_image);
    }
    if (m->cubin.arch != rec.s.compute_major * 10 + rec.s.compute_minor) {
        return rec_refuse(REC_other_architecture);
    }
    lb_cubin_kernel k;
    while (m->n_functions < REC_KERNELS_MAX &&
           lb_cubin_kernel_at(&m->cubin, m->n_functions, &k, &err)) {
        rec_function *f = &m->functions[m->n_functions++];
        snprintf(f->name, sizeof f->name, "%s", k.name);
        f->facts = k;
        f->facts.name = f->name;
        f->dynamic_smem_max =
            REC_SMEM_WITHOUT_OPT_IN -
            (k.static_smem_bytes < REC_SMEM_WITHOUT_OPT_IN ? k.static_smem_bytes : 0);
        f->module = m;
    }
    return err.code == LB_OK ? rec_backend_here()->load(image, n) : rec_refuse(REC_bad_image);
}

rt_cu_result cuModuleLoadData(rt_cu_module *module, const void *image) {
    rt_cu_result r = rec_enter("cuModuleLoadData", REC_CONTEXT);
    rec_module *m = r == RT_CU_SUCCESS ? calloc(1, sizeof *m) : NULL;
    if (r == RT_CU_SUCCESS) {
        r = m == NULL ? RT_CU_OUT_OF_MEMORY : read_module(m, image);
    }
    if (r == RT_CU_SUCCESS) {
        *module = (rt_cu_module)(void *)m;
    } else {
        free(m);
    }
    return rec_leave("cuModuleLoadData", r);
}

rt_cu_result cuModuleUnload(rt_cu_module module) {
    rt_cu_result r = rec_enter("cuModuleUnload", REC_CONTEXT);
    if (r == RT_CU_SUCCESS || r == rec.lost) {
        free(as_module(module));
    }
    return rec_leave("cuModuleUnload", r);
}

rt_cu_result cuModuleGetFunction(rt_cu_function *function, rt_cu_module module, const char *name) {
    rt_cu_result r = rec_enter("cuModuleGetFunction", REC_CONTEXT);
    rec_module *m = as_module(module);
    rt_cu_function found = NULL;
    for (unsigned i = 0; r == RT_CU_SUCCESS && i < m->n_functions; i++) {
        if (strcmp(m->functions[i].name, name) == 0) {
            found = (rt_cu_function)(void *)&m->functions[i];
        }
    }
    if (r == RT_CU_SUCCESS && found == NULL) {
        r = rec_refuse(REC_no_such_kernel);
    }
    if (r == RT_CU_SUCCESS) {
        *function = found;
    }
    return rec_leave("cuModuleGetFunction", r);
}

rt_cu_result cuFuncLoad(rt_cu_function function) {
    rt_cu_result r = rec_enter("cuFuncLoad", REC_CONTEXT);
    if (r == RT_CU_SUCCESS && function == NULL) {
        r = rec_refuse(REC_null_function);
    }
    return rec_leave("cuFuncLoad", r);
}

rt_cu_result cuFuncGetAttribute(int *value, rt_cu_func_attr attr, rt_cu_function function) {
    rt_cu_result r = rec_enter("cuFuncGetAttribute", REC_CONTEXT);
    if (r == RT_CU_SUCCESS) {
        const rec_function *f = as_function(function);
        switch (attr) {
        case RT_CU_FUNC_THREADS: *value = (int)rec_function_threads(f); break;
        case RT_CU_FUNC_SHARED_BYTES: *value = (int)f->facts.static_smem_bytes; break;
        case RT_CU_FUNC_CONST_BYTES: *value = 0; break;
        case RT_CU_FUNC_LOCAL_BYTES: *value = (int)f->facts.local_bytes; break;
        case RT_CU_FUNC_REGS: *value = (int)f->facts.regs; break;
        case RT_CU_FUNC_BINARY_VERSION: *value = (int)f->module->cubin.arch; break;
        case RT_CU_FUNC_DYNAMIC_SHARED_BYTES: *value = (int)f->dynamic_smem_max; break;
        default: r = RT_CU_INVALID_VALUE;
        }
    }
    return rec_leave("cuFuncGetAttribute", r);
}

rt_cu_result cuFuncSetAttribute(rt_cu_function function, rt_cu_func_attr attr, int value) {
    rt_cu_result r = rec_enter("cuFuncSetAttribute", REC_CONTEXT);
    if (r == RT_CU_SUCCESS) {
        rec_function *f = as_function(function);
        bool known = attr == RT_CU_FUNC_DYNAMIC_SHARED_BYTES && value >= 0;
        bool fits =
            known && (unsigned)value + f->facts.static_smem_bytes <= rec.s.smem_per_cta_bytes;
        r = fits ? RT_CU_SUCCESS : rec_refuse(REC_shared_attribute_above_limit);
        f->dynamic_smem_max = fits ? (unsigned)value : f->dynamic_smem_max;
    }
    return rec_leave("cuFuncSetAttribute", r);
}

/* Kernels of lagen take one struct. */
rt_cu_result cuFuncGetParamInfo(rt_cu_function function, size_t index, size_t *offset,
                                size_t *n_bytes) {
    rt_cu_result r = rec_enter("cuFuncGetParamInfo", REC_CONTEXT);
    if (r == RT_CU_SUCCESS) {
        const rec_function *f = as_function(function);
        if (index != 0 || f->facts.param_bytes == 0) {
            r = rec_refuse(REC_no_such_parameter);
        } else {
            *offset = 0;
            *n_bytes = f->facts.param_bytes;
        }
    }
    return rec_leave("cuFuncGetParamInfo", r);
}

rt_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, rt_cu_function function,
                                                         int threads, size_t smem_bytes) {
    static const char call[] = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
    rt_cu_result r = rec_enter(call, REC_CONTEXT);
    if (r == RT_CU_SUCCESS && threads <= 0) {
        r = RT_CU_INVALID_VALUE;
    }
    if (r == RT_CU_SUCCESS) {
        *n = (int)rec_ctas_of_sm(as_function(function), (unsigned)threads, smem_bytes);
    }
    return rec_leave(call, r);
}
