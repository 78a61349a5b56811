/* splits.h -- the table at the end of the file that emit_splits.c writes. */
#ifndef TESTS_SPLITS_H
#define TESTS_SPLITS_H

#include "token/split.h"

typedef struct split_row {
    const char *id;
    void (*split)(rt_char *t, size_t n);
} split_row;

extern const split_row splits[]; /* ends with a NULL id */

#endif
