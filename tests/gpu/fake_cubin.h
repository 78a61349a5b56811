/* fake_cubin.h -- cubins made without a compiler: an ELF file with the records that lagen reads and
 * no code. */
#ifndef FAKE_CUBIN_H
#define FAKE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_kernel {
    const char *name;
    uint32_t regs, local_bytes, static_smem_bytes, param_bytes, max_threads;
} fake_kernel;

/* Writes a cubin for sm_<arch> with one kernel; returns its bytes (at most `size`). */
size_t fake_cubin(uint32_t arch, const fake_kernel *k, uint8_t *out, size_t size);

#endif
