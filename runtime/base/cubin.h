/* cubin.h -- reads the numbers of kernels from a cubin: what the compiler made of proved text.
 *
 * A cubin is a 64-bit ELF file. Sources: ELF-64 object file format; the EIATTR records of .nv.info
 * as `cuobjdump -elf` prints them, checked against `ptxas -v` for toolkit 13.0 and sm_80 to
 * sm_121a. Bytes are untrusted: every offset is checked. */
#ifndef LB_CUBIN_H
#define LB_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct lb_cubin {
    const uint8_t *data;
    uint64_t n_bytes;
    uint64_t sections;          /* offset of the section headers */
    uint32_t n_sections, names; /* names: index of the section that holds their names */
    uint32_t symbols;           /* index of .symtab */
    uint32_t arch;              /* 90 for sm_90 and sm_90a */
} lb_cubin;

typedef struct lb_cubin_kernel {
    const char *name;
    uint32_t regs;              /* of a thread */
    uint32_t local_bytes;       /* stack and spills of a thread, functions that it calls included */
    uint32_t static_smem_bytes; /* without what the system keeps */
    uint32_t param_bytes;
    uint32_t max_threads; /* of __launch_bounds__; 0: not said */
} lb_cubin_kernel;

/* `data` must outlive `out`. LB_BAD_FORMAT for anything that is not a whole cubin. */
bool lb_cubin_open(const void *data, uint64_t n_bytes, lb_cubin *out, lb_err *err);

/* The bytes that the ELF header at `data` (64 bytes readable) claims for its tables: an embedded
 * image tells no size. 0 if it is no ELF file for a GPU. */
uint64_t lb_cubin_size(const void *data);

/* Kernel i in the order of the symbol table; false when there are no more. A damaged record sets
 * err. */
bool lb_cubin_kernel_at(const lb_cubin *c, uint32_t i, lb_cubin_kernel *out, lb_err *err);

/* The kernel of this name. LB_MISSING, LB_BAD_FORMAT. */
bool lb_cubin_find(const lb_cubin *c, const char *name, lb_cubin_kernel *out, lb_err *err);

#endif
