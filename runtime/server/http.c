/* http.c -- libmicrohttpd's callbacks: a request is taken in, answered, and sent; see server.h. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/guard.h"
#include "server/server.h"

enum {
    HEAD_BYTES = 64 * 1024, /* of a connection's buffer: heads beyond that are refused with 431 */
    STACK_BYTES = LB_CONNECTION_BYTES - HEAD_BYTES,
    STREAM_BYTES = 16 * 1024,
    DRAIN_TIMES = 4 /* a body that is too large is read up to so many times its limit */
};
static const uint64_t REQUEST_BYTES = UINT64_C(6) << 30; /* encoding 32 MiB takes much of it */

/* ---- what handlers ask about a request */

const char *rt_request_header(const rt_request *r, const char *name) {
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

const char *rt_request_query(const rt_request *r, const char *name) {
    return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

bool rt_request_gone(const rt_request *r) {
    struct pollfd p = {.fd = r->watched->fd, .events = POLLRDHUP};
    return atomic_load(&r->server->abort) ||
           (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

/* ---- requests begin and end */

static void make_id(rt_server *s, char out[RT_ID_BYTES]) {
    uint64_t n = atomic_fetch_add(&s->n_requests, 1);
    uint64_t x = (n + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ s->salt; /* odd factor: all differ */
    snprintf(out, RT_ID_BYTES, "%016llx", (unsigned long long)x);
}

static rt_watched *watched_of(struct MHD_Connection *c) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static rt_request *new_request(rt_server *s, struct MHD_Connection *c, const char *url,
                               const char *method) {
    rt_request *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    lb_arena_init(&r->arena, "request", REQUEST_BYTES);
    r->server = s;
    r->mhd = c;
    r->watched = watched_of(c);
    r->path = lb_strndup(&r->arena, url, strlen(url), NULL);
    r->method = lb_strndup(&r->arena, method, strlen(method), NULL);
    if (r->path == NULL || r->method == NULL || r->watched == NULL) {
        lb_arena_reset(&r->arena);
        free(r);
        return NULL;
    }
    r->begin_s = rt_seconds();
    r->status = 200;
    r->type = "application/json";
    r->anthropic =
        strncmp(url, "/v1/messages", 12) == 0 || rt_request_header(r, "anthropic-version") != NULL;
    lb_text_init(&r->out, &r->arena);
    make_id(s, r->id);
    return r;
}

static void log_request(rt_request *r, bool broken) {
    bool quiet = r->status < 400 && !broken && strcmp(r->method, "POST") != 0;
    atomic_fetch_add(&r->server->metrics.requests[broken ? 0 : r->status / 100], 1);
    if (!quiet) {
        RT_LOG(&r->server->log, r->status >= 500 && !r->left ? "error" : "info", "request",
               RT_LOG_S("id", r->id), RT_LOG_S("method", r->method), RT_LOG_S("path", r->path),
               RT_LOG_U("status", (uint64_t)r->status), RT_LOG_S("broken", broken ? "yes" : NULL),
               RT_LOG_T("took", rt_seconds() - r->begin_s));
    }
}

static void free_request(rt_request *r) {
    if (r->release != NULL) {
        r->release(r);
    }
    free(r->body);
    lb_arena_reset(&r->arena);
    free(r);
}

/* ---- replies */

/* Headers that browsers of an allowed origin look for. */
static void add_cors(const rt_request *r, struct MHD_Response *m) {
    const char *origin = rt_request_header(r, "Origin");
    lb_err err;
    if (origin == NULL || rt_guard_origin(r, &err) != 0) {
        return;
    }
    MHD_add_response_header(m, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(m, "Access-Control-Expose-Headers",
                            "request-id, x-request-id, retry-after");
    MHD_add_response_header(m, "Vary", "Origin");
}

static void add_preflight(const rt_request *r, struct MHD_Response *m) {
    const char *asked = rt_request_header(r, "Access-Control-Request-Headers");
    if (strcmp(r->method, "OPTIONS") != 0) {
        return;
    }
    MHD_add_response_header(m, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    MHD_add_response_header(m, "Access-Control-Max-Age", "600");
    MHD_add_response_header(m, "Access-Control-Allow-Headers",
                            asked != NULL ? asked
                                          : "authorization, x-api-key, content-type, "
                                            "anthropic-version, anthropic-beta");
}

static void add_headers(const rt_request *r, struct MHD_Response *m) {
    if (r->status != 204) {
        MHD_add_response_header(m, "Content-Type", r->type);
    }
    char id[RT_ID_BYTES + 8];
    snprintf(id, sizeof id, "req_%s", r->id);
    MHD_add_response_header(m, "request-id", id);
    MHD_add_response_header(m, "x-request-id", id);
    MHD_add_response_header(m, "Cache-Control", "no-store");
    if (r->next != NULL) {
        MHD_add_response_header(m, "X-Accel-Buffering", "no"); /* proxies pass on at once */
    }
    if (r->retry_after != NULL) {
        MHD_add_response_header(m, "Retry-After", r->retry_after);
    }
    if (r->policy != NULL) {
        MHD_add_response_header(m, "Content-Security-Policy", r->policy);
    }
    MHD_add_response_header(m, "X-Content-Type-Options", "nosniff");
    if (r->allow != NULL) {
        MHD_add_response_header(m, "Allow", r->allow);
    }
    if (r->too_large) {
        MHD_add_response_header(m, "Connection", "close");
    }
    add_cors(r, m);
    add_preflight(r, m);
}

/* The stream's next bytes, waited for here: this connection has a thread of its own. */
static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max) {
    rt_request *r = cls;
    rt_watch *w = &r->server->watch;
    (void)pos;
    rt_watch_phase(w, r->watched, RT_PHASE_WORK, 0);
    if (r->n_sent == r->out.n_bytes) {
        r->n_sent = 0;
        r->out.n_bytes = 0;
        bool more = true;
        while (more && r->out.n_bytes == 0) {
            more = r->next(r);
        }
        if (r->out.failed || rt_request_gone(r)) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (r->out.n_bytes == 0) {
            rt_watch_phase(w, r->watched, RT_PHASE_SEND, 0);
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
    }
    size_t n = r->out.n_bytes - r->n_sent < max ? r->out.n_bytes - r->n_sent : max;
    memcpy(buf, r->out.data + r->n_sent, n);
    r->n_sent += n;
    rt_watch_phase(w, r->watched, RT_PHASE_SEND, n);
    return (ssize_t)n;
}

static enum MHD_Result reply(rt_request *r) {
    struct MHD_Response *m = NULL;
    if (r->next != NULL) {
        m = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES, read_stream, r, NULL);
    } else {
        m = MHD_create_response_from_buffer(r->out.n_bytes, r->out.data, MHD_RESPMEM_PERSISTENT);
    }
    if (m == NULL) {
        return MHD_NO;
    }
    add_headers(r, m);
    rt_watch_phase(&r->server->watch, r->watched, RT_PHASE_SEND, r->out.n_bytes);
    enum MHD_Result ok = MHD_queue_response(r->mhd, (unsigned)r->status, m);
    MHD_destroy_response(m);
    return ok;
}

static enum MHD_Result refuse(rt_request *r, int status, const lb_err *err) {
    rt_fault(r, status, err);
    return reply(r);
}

/* ---- routes */

static bool is_method(const rt_route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* A route's path, or what follows it where it ends in a star. */
static bool is_path(const rt_route *route, const char *path) {
    size_t n = strlen(route->path);
    return route->path[n - 1] == '*' ? strncmp(route->path, path, n - 1) == 0 && path[n - 1] != '\0'
                                     : strcmp(route->path, path) == 0;
}

/* The route, or NULL with the status of the refusal. */
static const rt_route *find_route(rt_request *r, int *status, lb_err *err) {
    *status = 404;
    for (size_t i = 0; i < rt_n_routes; i++) {
        if (is_path(&rt_routes[i], r->path)) {
            if (is_method(&rt_routes[i], r->method)) {
                return &rt_routes[i];
            }
            *status = 405;
            r->allow = rt_routes[i].method;
        }
    }
    lb_err_set(err, LB_MISSING, *status == 405 ? "%s %s: the method is %s" : "%s %s is not there",
               r->method, r->path, r->allow);
    return NULL;
}

typedef struct framing {
    unsigned n_hosts, n_lengths, n_encodings;
    bool chunked; /* the encoding, if there is one, is that */
} framing;

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    framing *f = cls;
    (void)kind;
    if (strcasecmp(key, "Host") == 0) {
        f->n_hosts++;
    } else if (strcasecmp(key, "Content-Length") == 0) {
        f->n_lengths++;
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        f->n_encodings++;
        f->chunked = value != NULL && strcasecmp(value, "chunked") == 0;
    }
    return MHD_YES;
}

/* Where the body ends, and whom it is for, must be no matter of opinion: a proxy in front could
 * have another one. The connection ends with the refusal. (RFC 9112, 3.2 and 6.3.) */
static bool is_clear(rt_request *r, lb_err *err) {
    framing f = {0};
    MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &f);
    if (f.n_lengths > 0 && f.n_encodings > 0) {
        lb_err_set(err, LB_BAD_VALUE,
                   "Content-Length and Transfer-Encoding exclude each other");
    } else if (f.n_hosts > 1 || f.n_lengths > 1 || f.n_encodings > 1) {
        lb_err_set(err, LB_BAD_VALUE, "there is more than one %s header",
                   f.n_hosts > 1     ? "Host"
                   : f.n_lengths > 1 ? "Content-Length"
                                     : "Transfer-Encoding");
    } else if (f.n_encodings > 0 && !f.chunked) {
        lb_err_set(err, LB_UNSUPPORTED, "Transfer-Encoding: chunked is what is supported");
    } else {
        return true;
    }
    r->too_large = true;
    return false;
}

/* What the head alone tells: 0, or the status to refuse with. */
static int check_head(rt_request *r, lb_err *err) {
    int status = is_clear(r, err) ? rt_guard_origin(r, err) : 400;
    if (status != 0) {
        return status;
    }
    if (strcmp(r->method, "OPTIONS") == 0) {
        return 0; /* a preflight carries no key */
    }
    const rt_route *route = find_route(r, &status, err);
    if ((route == NULL || !route->open) && rt_guard_key(r, err) != 0) {
        return 401;
    }
    if (route == NULL) {
        return status;
    }
    const char *length = rt_request_header(r, "Content-Length");
    uint64_t limit = r->server->config->body_max_bytes;
    if (length != NULL && (strlen(length) > 18 || strtoull(length, NULL, 10) > limit)) {
        r->too_large = true;
        lb_err_set(err, LB_LIMIT, "a body of %s bytes; the most is %llu", length,
                   (unsigned long long)limit);
        return 413;
    }
    return 0;
}

static enum MHD_Result answer(rt_request *r) {
    lb_err err = {0};
    int status = 0;
    if (strcmp(r->method, "OPTIONS") == 0) {
        r->status = 204;
        return reply(r);
    }
    if (r->too_large) {
        lb_err_set(&err, LB_LIMIT, "a body of more than %llu bytes",
                   (unsigned long long)r->server->config->body_max_bytes);
        return refuse(r, 413, &err);
    }
    const rt_route *route = find_route(r, &status, &err);
    if (route == NULL) {
        return refuse(r, status, &err);
    }
    rt_watch_phase(&r->server->watch, r->watched, RT_PHASE_WORK, 0);
    r->status = 200;
    if (!route->handle(r, &err)) {
        return refuse(r, r->status == 200 ? 0 : r->status, &err);
    }
    if (r->out.failed) {
        return refuse(r, 500, &r->out.err);
    }
    return reply(r);
}

/* A piece of the body. False: not even worth reading to its end. */
static bool take_body(rt_request *r, const char *data, size_t n) {
    uint64_t limit = r->server->config->body_max_bytes;
    rt_watch_count(&r->server->watch, r->watched, n);
    if (r->too_large || n > limit - r->n_body) {
        r->too_large = true;
        free(r->body);
        r->body = NULL;
        r->n_body = 0;
        r->cap_body += n; /* counts what is dropped from here on */
        return r->cap_body < DRAIN_TIMES * limit;
    }
    if (r->n_body + n + 1 > r->cap_body) {
        size_t cap = 2 * (r->n_body + n) + 4096;
        char *p = realloc(r->body, cap);
        if (p == NULL) {
            return false;
        }
        r->body = p;
        r->cap_body = cap;
    }
    memcpy(r->body + r->n_body, data, n);
    r->n_body += n;
    r->body[r->n_body] = '\0';
    return true;
}

/* %XX of a path; one with %00 stays as it is, as the rest would be cut off. */
static size_t unescape(void *cls, struct MHD_Connection *c, char *s) {
    (void)cls;
    (void)c;
    return strstr(s, "%00") != NULL ? strlen(s) : MHD_http_unescape(s);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **state) {
    rt_request *r = *state;
    lb_err err = {0};
    (void)version;
    if (r == NULL) {
        r = new_request(cls, c, url, method);
        *state = r;
        if (r == NULL) {
            return MHD_NO;
        }
        rt_watch_phase(&r->server->watch, r->watched, RT_PHASE_BODY, 0);
        int status = check_head(r, &err);
        return status == 0 ? MHD_YES : refuse(r, status, &err);
    }
    if (*n_data > 0) {
        bool ok = take_body(r, data, *n_data);
        *n_data = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    return answer(r);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why) {
    rt_request *r = *state;
    (void)cls;
    (void)c;
    if (r != NULL) {
        *state = NULL;
        log_request(r, r->left || why != MHD_REQUEST_TERMINATED_COMPLETED_OK);
        rt_watch_phase(&r->server->watch, r->watched, RT_PHASE_HEAD, 0);
        free_request(r);
    }
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    rt_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info == NULL ? NULL : rt_watch_add(&s->watch, info->connect_fd);
        atomic_fetch_add(&s->metrics.connections, 1);
    } else {
        if (*context != NULL) {
            rt_watch_remove(&s->watch, *context);
            *context = NULL;
        }
        atomic_fetch_sub(&s->metrics.connections, 1);
    }
}

/* ---- the port */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static bool make_address(const rt_server_config *c, address *a) {
    *a = (address){0};
    if (inet_pton(AF_INET, c->host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)c->port);
        return false;
    }
    inet_pton(AF_INET6, c->host, &a->v6.sin6_addr);
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons((uint16_t)c->port);
    return true;
}

static bool no_port(const rt_server_config *c, lb_err *err) {
    return lb_err_set(err, LB_IO, "cannot listen at %s port %u: %s", c->host, (unsigned)c->port,
                      errno != 0 ? strerror(errno) : "the system does not say why");
}

bool rt_http_try(const rt_server_config *c, lb_err *err) {
    address a;
    bool v6 = make_address(c, &a);
    int yes = 1;
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
              bind(fd, &a.any, v6 ? sizeof a.v6 : sizeof a.v4) == 0;
    ok = ok || no_port(c, err);
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

bool rt_http_start(rt_server *s, lb_err *err) {
    address a;
    const rt_server_config *c = s->config;
    bool v6 = make_address(c, &a);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                     MHD_USE_POLL | MHD_USE_ITC | (v6 ? MHD_USE_IPv6 : 0U);
    s->daemon = MHD_start_daemon(
        flags, (uint16_t)c->port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &a.any,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)c->connections, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (s->daemon == NULL) {
        return no_port(c, err);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info == NULL ? (uint16_t)c->port : info->port;
    return true;
}

void rt_http_quiesce(rt_server *s) {
    int fd = s->daemon == NULL ? -1 : MHD_quiesce_daemon(s->daemon);
    if (fd >= 0) {
        shutdown(fd, SHUT_RDWR); /* whoever comes now is told so; its thread may still look at it */
        s->quiet_fd = fd;
    }
}

void rt_http_stop(rt_server *s) {
    if (s->daemon != NULL) {
        MHD_stop_daemon(s->daemon);
        s->daemon = NULL;
    }
    if (s->quiet_fd >= 0) {
        close(s->quiet_fd);
        s->quiet_fd = -1;
    }
}
