/* kv.h -- types of cached keys and values; the table is kv.def. */
#ifndef LG_KV_H
#define LG_KV_H

#include "graph.h"

typedef struct lg_kv_row {
    const char *name;
    lg_elem elem;
    uint32_t group, scale_bytes;
} lg_kv_row;

/* The row of this name. Fails with LB_UNSUPPORTED, listing the names there are. */
bool lg_kv_find(const char *name, const lg_kv_row **out, lb_err *err);

/* All names, parted by '|', as an option's row lists them. */
const char *lg_kv_words(void);

/* Bytes of `width` elements of whole heads: halves or codes, and their scales. width below 2^32. */
uint64_t lg_kv_bytes(const lg_kv_row *row, uint64_t width);

#endif
