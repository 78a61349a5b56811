/* watch.c -- see watch.h. */
#define _GNU_SOURCE
#include "server/watch.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "server/mail.h"

static const double LOOK_EVERY_S = 0.25;

static bool is_late(const rt_watch *w, const rt_watched *c, double now) {
    double age = now - c->since_s;
    double bytes = (double)c->n_bytes;
    switch (c->phase) {
    case RT_PHASE_HEAD: return age > w->header_s;
    case RT_PHASE_BODY: return age > RT_WATCH_GRACE_S && bytes < w->rate_bytes * age;
    case RT_PHASE_SEND:
        return age > w->header_s + (w->rate_bytes > 0.0 ? bytes / w->rate_bytes : 0.0);
    default: return false;
    }
}

static void wait_a_little(rt_watch *w) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + (int64_t)(LOOK_EVERY_S * 1e9);
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(&w->changed, &w->lock, &t);
}

static void *run(void *arg) {
    rt_watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        double now = rt_seconds();
        for (rt_watched *c = w->first; c != NULL; c = c->next) {
            if (is_late(w, c, now)) {
                shutdown(c->fd, SHUT_RDWR); /* its thread wakes and closes it */
                c->phase = RT_PHASE_WORK;
            }
        }
        wait_a_little(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool rt_watch_start(rt_watch *w, double header_s, double rate_bytes, lb_err *err) {
    pthread_condattr_t attr;
    *w = (rt_watch){.header_s = header_s, .rate_bytes = rate_bytes};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        return lb_err_set(err, LB_RESOURCES, "no thread to watch connections");
    }
    return true;
}

void rt_watch_stop(rt_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

rt_watched *rt_watch_add(rt_watch *w, int fd) {
    rt_watched *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->fd = fd;
    c->since_s = rt_seconds();
    pthread_mutex_lock(&w->lock);
    c->next = w->first;
    if (w->first != NULL) {
        w->first->prev = c;
    }
    w->first = c;
    pthread_mutex_unlock(&w->lock);
    return c;
}

void rt_watch_remove(rt_watch *w, rt_watched *c) {
    pthread_mutex_lock(&w->lock);
    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        w->first = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    pthread_mutex_unlock(&w->lock);
    free(c);
}

void rt_watch_phase(rt_watch *w, rt_watched *c, rt_phase phase, uint64_t n_bytes) {
    pthread_mutex_lock(&w->lock);
    c->phase = phase;
    c->since_s = rt_seconds();
    c->n_bytes = n_bytes;
    pthread_mutex_unlock(&w->lock);
}

void rt_watch_count(rt_watch *w, rt_watched *c, uint64_t n_bytes) {
    pthread_mutex_lock(&w->lock);
    c->n_bytes += n_bytes;
    pthread_mutex_unlock(&w->lock);
}
