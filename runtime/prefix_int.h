/* prefix_int.h -- the store's state; private to prefix*.c. */
#ifndef RT_PREFIX_INT_H
#define RT_PREFIX_INT_H

#include "prefix_pages.h"

struct rt_prefix {
    rt_engine *engine;
    rt_pages pages;
    uint32_t window; /* rt_prefix_window */
    uint32_t *chain; /* [ctx / RT_PAGE + 1]: pages of the tokens that were looked up last */
    uint32_t n_chain, n_same;
    uint8_t *room; /* [ROOM_BYTES] for a device's bytes; NULL for a CPU program */
    lb_arena arena;
};

#endif
