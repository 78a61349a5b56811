/* mail.c -- see mail.h. */
#define _GNU_SOURCE
#include "server/mail.h"

#include <string.h>
#include <time.h>

enum { MAIL_BYTES = 256 * 1024 * 1024 };

double rt_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool rt_mail_init(rt_mail *m, lb_err *err) {
    pthread_condattr_t attr;
    memset(m, 0, sizeof *m);
    atomic_init(&m->cancelled, false);
    lb_arena_init(&m->arena, "answer", MAIL_BYTES);
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        return lb_err_set(err, LB_RESOURCES, "no mutex for an answer");
    }
    bool ok = pthread_condattr_init(&attr) == 0;
    if (ok) {
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        ok = pthread_cond_init(&m->changed, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    if (!ok) {
        pthread_mutex_destroy(&m->lock);
        return lb_err_set(err, LB_RESOURCES, "no condition for an answer");
    }
    return true;
}

void rt_mail_free(rt_mail *m) {
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    lb_arena_reset(&m->arena);
}

static bool copy_string(lb_arena *a, rt_string from, rt_string *to, lb_err *err) {
    char *s = from.s == NULL ? NULL : lb_strndup(a, from.s, from.n, err);
    *to = (rt_string){.s = s, .n = from.n};
    return from.s == NULL || s != NULL;
}

static bool copy_note(lb_arena *a, const rt_note *from, rt_note *to, lb_err *err) {
    *to = *from;
    to->next = NULL;
    if (!copy_string(a, from->text, &to->text, err) ||
        !copy_string(a, from->name, &to->name, err)) {
        return false;
    }
    if (from->n_top > 0) {
        rt_token_prob *top = lb_alloc_n(a, from->n_top, sizeof *top, err);
        if (top == NULL) {
            return false;
        }
        memcpy(top, from->top, from->n_top * sizeof *top);
        to->top = top;
    }
    return true;
}

bool rt_mail_add(rt_mail *m, const rt_note *note, lb_err *err) {
    pthread_mutex_lock(&m->lock);
    rt_note *copy =
        note->kind == RT_NOTE_END ? &m->ends[m->n_ends++] : lb_alloc(&m->arena, sizeof *copy, err);
    bool ok = copy != NULL && copy_note(&m->arena, note, copy, err);
    if (ok) {
        if (m->last == NULL) {
            m->first = copy;
        } else {
            m->last->next = copy;
        }
        m->last = copy;
        pthread_cond_signal(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    return ok;
}

static struct timespec deadline_in(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + (int64_t)(seconds * 1e9);
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    return t;
}

const rt_note *rt_mail_next(rt_mail *m, const rt_note *seen, double seconds) {
    struct timespec until = deadline_in(seconds);
    pthread_mutex_lock(&m->lock);
    rt_note *const *next = seen == NULL ? &m->first : &((rt_note *)(uintptr_t)seen)->next;
    int late = 0;
    while (*next == NULL && late == 0) {
        late = pthread_cond_timedwait(&m->changed, &m->lock, &until);
    }
    const rt_note *note = *next;
    pthread_mutex_unlock(&m->lock);
    return note;
}
