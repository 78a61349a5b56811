/* hw_rows.h -- for the files of hw only: the fields of a row as data, so that printing and values
 * need no list of their own. */
#ifndef LG_HW_ROWS_H
#define LG_HW_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "hw.h"

typedef struct lg_hw_number {
    const char *name;
    size_t offset; /* of the uint64_t in an lg_hw_row */
} lg_hw_number;

extern const lg_hw_number lg_hw_numbers[];  /* ends with a NULL name */
extern const char *const lg_hw_cap_names[]; /* bit i of caps; ends with NULL */

uint64_t lg_hw_number_of(const lg_hw_row *row, const lg_hw_number *number);

#endif
