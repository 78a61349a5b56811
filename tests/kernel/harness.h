/* harness.h -- the kernels of a harness program: made for a case table by test_kernels.py
 * (table.c). */
#ifndef KERNEL_HARNESS_H
#define KERNEL_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model_abi.h"

typedef struct kernel_entry {
    const char *name;
    uint32_t n_operands;
    /* params: pointers to the operands in order, then the step. */
    void (*call)(void *const *params, uint32_t cta_begin, uint32_t cta_end);
} kernel_entry;

extern const kernel_entry kernels[];
extern const uint32_t n_kernels;

#endif
