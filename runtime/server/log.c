/* log.c -- see log.h. A line is made in a buffer of fixed size and written at once. */
#define _GNU_SOURCE
#include "server/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, TAIL_BYTES = 8 }; /* the tail closes what was begun */

typedef struct line {
    char s[LINE_BYTES];
    size_t n;
} line;

bool rt_log_init(rt_log *l, int fd, bool json) {
    *l = (rt_log){.fd = fd, .json = json};
    return pthread_mutex_init(&l->lock, NULL) == 0;
}

void rt_log_free(rt_log *l) {
    pthread_mutex_destroy(&l->lock);
}

static void add(line *l, const char *fmt, ...) {
    va_list ap;
    size_t room = LINE_BYTES - TAIL_BYTES - l->n;
    va_start(ap, fmt);
    int n = vsnprintf(l->s + l->n, room, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < room) {
        l->n += (size_t)n;
    } else {
        l->s[l->n] = '\0'; /* it does not fit: left out as a whole */
    }
}

/* `s` in quotes, control characters and quotes as JSON has them. */
static void add_quoted(line *l, const char *s) {
    add(l, "\"");
    for (; *s != '\0' && l->n < LINE_BYTES - 128; s++) {
        unsigned char b = (unsigned char)*s;
        if (b < 0x20 || b == 0x7F) {
            add(l, "\\u%04x", b);
        } else {
            add(l, b == '"' || b == '\\' ? "\\%c" : "%c", b);
        }
    }
    add(l, "\"");
}

static bool plain(const char *s) {
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == 0x7F) {
            return false;
        }
    }
    return true;
}

static void add_value(line *l, const rt_log_field *f, bool json) {
    if (f->kind == RT_LOG_UINT) {
        add(l, "%" PRIu64, f->number);
    } else if (f->kind == RT_LOG_MS) {
        add(l, "%.1f", f->seconds * 1e3);
    } else if (json || !plain(f->text)) {
        add_quoted(l, f->text);
    } else {
        add(l, "%s", f->text);
    }
}

static void add_time(line *l) {
    struct timespec t;
    struct tm tm;
    char text[32] = "";
    clock_gettime(CLOCK_REALTIME, &t);
    if (gmtime_r(&t.tv_sec, &tm) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    }
    add(l, "%s.%03ldZ", text, t.tv_nsec / 1000000);
}

void rt_log_write(rt_log *l, const char *level, const char *event, const rt_log_field *fields,
                  size_t n_fields) {
    line out = {.n = 0};
    if (l->json) {
        add(&out, "{\"time\": \"");
        add_time(&out);
        add(&out, "\", \"level\": \"%s\", \"event\": ", level);
        add_quoted(&out, event);
    } else {
        add_time(&out);
        add(&out, " %s %s", level, event);
    }
    for (size_t i = 0; i < n_fields; i++) {
        if (fields[i].kind != RT_LOG_TEXT || fields[i].text != NULL) {
            bool ms = fields[i].kind == RT_LOG_MS;
            add(&out, l->json ? ", \"%s%s\": " : " %s%s=", fields[i].key, ms ? "_ms" : "");
            add_value(&out, &fields[i], l->json);
        }
    }
    memcpy(out.s + out.n, l->json ? "}\n" : "\n", 2);
    out.n += l->json ? 2 : 1;
    pthread_mutex_lock(&l->lock);
    for (size_t at = 0; at < out.n;) {
        ssize_t n = write(l->fd, out.s + at, out.n - at);
        if (n < 0 && errno != EINTR) {
            break; /* nowhere to say so */
        }
        at += n > 0 ? (size_t)n : 0;
    }
    pthread_mutex_unlock(&l->lock);
}
