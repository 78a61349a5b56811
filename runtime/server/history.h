/* history.h -- conversations of /v1/responses by the id of their last response, as JSON text. A
 * bounded store in memory: the oldest ones leave first, and all of them with the process. */
#ifndef RT_SERVER_HISTORY_H
#define RT_SERVER_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { RT_HISTORY_MAX = 256, RT_HISTORY_BYTES = 64 * 1024 * 1024, RT_HISTORY_ID_BYTES = 48 };

typedef struct rt_history {
    pthread_mutex_t lock;
    struct {
        char id[RT_HISTORY_ID_BYTES];
        char *text; /* malloc */
        size_t n;
    } rows[RT_HISTORY_MAX];
    uint32_t next; /* to be written; the oldest */
    size_t n_bytes;
} rt_history;

bool rt_history_init(rt_history *h);
void rt_history_free(rt_history *h);

/* Keeps a copy; a text that is too large, or for which there is no memory, is not kept. */
void rt_history_put(rt_history *h, const char *id, const char *text, size_t n);

/* A copy in the arena; LB_MISSING if the id is not (or no longer) there. */
bool rt_history_get(rt_history *h, const char *id, lb_arena *arena, char **text, size_t *n,
                    lb_err *err);

#endif
