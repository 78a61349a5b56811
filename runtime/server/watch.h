/* watch.h -- looks after connections: a client that does not move is shut out.
 *
 * A connection has header_s for the head of its next request, whatever comes in between (so bytes
 * sent one a second do not keep it); a body must come at min_rate after a grace of
 * RT_WATCH_GRACE_S; and what is sent to a client must be taken within header_s and the time that
 * min_rate gives it. Times of libmicrohttpd itself start anew with every byte, and do not run while
 * a request is worked on. */
#ifndef RT_SERVER_WATCH_H
#define RT_SERVER_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RT_WATCH_GRACE_S = 5 };

typedef enum rt_phase { RT_PHASE_HEAD, RT_PHASE_BODY, RT_PHASE_WORK, RT_PHASE_SEND } rt_phase;

typedef struct rt_watched rt_watched;
struct rt_watched {
    rt_watched *prev, *next;
    int fd;
    rt_phase phase;
    double since_s;
    uint64_t n_bytes; /* of the body so far, or to be sent */
};

typedef struct rt_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    rt_watched *first;
    double header_s, rate_bytes;
    bool stop;
} rt_watch;

bool rt_watch_start(rt_watch *w, double header_s, double rate_bytes,
                    lb_err *err); /* LB_RESOURCES */
void rt_watch_stop(rt_watch *w);

/* A connection begins; NULL without memory. And ends, before its descriptor is closed. */
rt_watched *rt_watch_add(rt_watch *w, int fd);
void rt_watch_remove(rt_watch *w, rt_watched *c);

/* `phase` begins now, for n_bytes; or n_bytes more have come. */
void rt_watch_phase(rt_watch *w, rt_watched *c, rt_phase phase, uint64_t n_bytes);
void rt_watch_count(rt_watch *w, rt_watched *c, uint64_t n_bytes);

#endif
