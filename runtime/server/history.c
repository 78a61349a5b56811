/* history.c -- see history.h. */
#include "server/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rt_history_init(rt_history *h) {
    memset(h, 0, sizeof *h);
    return pthread_mutex_init(&h->lock, NULL) == 0;
}

static void drop(rt_history *h, uint32_t i) {
    free(h->rows[i].text);
    h->n_bytes -= h->rows[i].n;
    h->rows[i].text = NULL;
    h->rows[i].n = 0;
    h->rows[i].id[0] = '\0';
}

void rt_history_free(rt_history *h) {
    for (uint32_t i = 0; i < RT_HISTORY_MAX; i++) {
        drop(h, i);
    }
    pthread_mutex_destroy(&h->lock);
}

void rt_history_put(rt_history *h, const char *id, const char *text, size_t n) {
    char *copy = n > RT_HISTORY_BYTES / 4 ? NULL : malloc(n + 1);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, text, n);
    pthread_mutex_lock(&h->lock);
    drop(h, h->next);
    for (uint32_t i = 1; h->n_bytes + n > RT_HISTORY_BYTES; i++) {
        drop(h, (h->next + i) % RT_HISTORY_MAX);
    }
    h->rows[h->next].text = copy;
    h->rows[h->next].n = n;
    snprintf(h->rows[h->next].id, RT_HISTORY_ID_BYTES, "%s", id);
    h->n_bytes += n;
    h->next = (h->next + 1) % RT_HISTORY_MAX;
    pthread_mutex_unlock(&h->lock);
}

bool rt_history_get(rt_history *h, const char *id, lb_arena *arena, char **text, size_t *n,
                    lb_err *err) {
    bool found = false;
    bool ok = true;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; i < RT_HISTORY_MAX && !found; i++) {
        if (id[0] != '\0' && strcmp(h->rows[i].id, id) == 0) {
            found = true;
            *text = lb_strndup(arena, h->rows[i].text, h->rows[i].n, err);
            *n = h->rows[i].n;
            ok = *text != NULL;
        }
    }
    pthread_mutex_unlock(&h->lock);
    return found ? ok
                 : lb_err_set(err, LB_MISSING,
                              "previous_response_id: '%.40s' is not here (any more); "
                              "send the conversation's items",
                              id);
}
