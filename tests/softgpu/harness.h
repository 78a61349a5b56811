/* harness.h -- the kernels of a harness program: made for a case table by soft.py (table.cpp). */
#ifndef SOFT_HARNESS_H
#define SOFT_HARNESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct soft_entry {
    const char *name;
    void (*kernel)(const void *params); /* params: pointers to the operands in order, then the step */
    uint32_t n_operands, block, smem_bytes;
    uint32_t early; /* bit i: operand i may be read before the launch in front has ended */
} soft_entry;

extern const soft_entry soft_kernels[];
extern const uint32_t n_soft_kernels;

#ifdef __cplusplus
}
#endif

#endif
