/* stream.c -- see stream.h. */
#include "stream.h"

#include <string.h>

#include "base/num.h"

bool rt_stream_new(rt_stream *s, size_t push_max_bytes, size_t stop_max_bytes, lb_arena *arena,
                   lb_err *err) {
    uint64_t cap = 0;
    if (!lb_add(push_max_bytes, stop_max_bytes, &cap)) {
        return lb_err_set(err, LB_OVERFLOW, "stop strings of %zu bytes", stop_max_bytes);
    }
    *s = (rt_stream){.cap_bytes = cap, .push_max_bytes = push_max_bytes};
    s->buf = lb_alloc(arena, cap, err);
    return s->buf != NULL;
}

bool rt_stream_start(rt_stream *s, const rt_stop_string *stops, size_t n_stops, lb_err *err) {
    for (size_t i = 0; i < n_stops; i++) {
        if (stops[i].n_bytes == 0) {
            return lb_err_set(err, LB_BAD_VALUE, "stop string %zu is empty", i + 1);
        }
        if (stops[i].n_bytes > s->cap_bytes - s->push_max_bytes) {
            return lb_err_set(err, LB_LIMIT, "stop string %zu has %zu bytes; the most is %zu",
                              i + 1, stops[i].n_bytes, s->cap_bytes - s->push_max_bytes);
        }
    }
    s->stops = stops;
    s->n_stops = n_stops;
    s->n_bytes = 0;
    s->n_taken = 0;
    return true;
}

char *rt_stream_room(rt_stream *s) {
    s->n_bytes -= s->n_taken;
    memmove(s->buf, s->buf + s->n_taken, s->n_bytes);
    s->n_taken = 0;
    return s->buf + s->n_bytes;
}

/* The beginning of the stop string that ends first, looking at ends behind `from`; the longest if
 * several end there; n_bytes if there is none. So the result does not depend on how the text is cut
 * into pushes. */
static size_t find_stop(const rt_stream *s, size_t from) {
    for (size_t end = from + 1; end <= s->n_bytes; end++) {
        size_t longest = 0;
        for (size_t k = 0; k < s->n_stops; k++) {
            const rt_stop_string *t = &s->stops[k];
            if (t->n_bytes <= end && t->n_bytes > longest &&
                memcmp(s->buf + end - t->n_bytes, t->text, t->n_bytes) == 0) {
                longest = t->n_bytes;
            }
        }
        if (longest > 0) {
            return end - longest;
        }
    }
    return s->n_bytes;
}

/* Bytes at the end that begin a stop string. */
static size_t held(const rt_stream *s) {
    size_t most = 0;
    for (size_t k = 0; k < s->n_stops; k++) {
        const rt_stop_string *t = &s->stops[k];
        size_t n = t->n_bytes - 1 < s->n_bytes ? t->n_bytes - 1 : s->n_bytes;
        while (n > most && memcmp(s->buf + s->n_bytes - n, t->text, n) != 0) {
            n--;
        }
        most = n > most ? n : most;
    }
    return most;
}

bool rt_stream_push(rt_stream *s, size_t n_bytes, const char **out, size_t *n_out) {
    size_t before = s->n_bytes;
    s->n_bytes += n_bytes;
    *out = s->buf;
    size_t stop = find_stop(s, before);
    if (stop < s->n_bytes) {
        s->n_bytes = stop;
        s->n_taken = stop;
        *n_out = stop;
        return true;
    }
    s->n_taken = s->n_bytes - held(s);
    *n_out = s->n_taken;
    return false;
}

void rt_stream_end(rt_stream *s, const char **out, size_t *n_out) {
    rt_stream_room(s);
    *out = s->buf;
    *n_out = s->n_bytes;
    s->n_taken = s->n_bytes;
}
