/* guard.c -- see guard.h. */
#define _GNU_SOURCE
#include "server/guard.h"

#include <string.h>
#include <strings.h>

/* Bytes of the name in "name:port" or "[::1]:port". */
static size_t name_bytes(const char *host) {
    if (host[0] == '[') {
        const char *end = strchr(host, ']');
        return end == NULL ? strlen(host) : (size_t)(end - host) + 1;
    }
    return strcspn(host, ":");
}

static bool named(const char *host, const char *name) {
    size_t n = name_bytes(host);
    return n == strlen(name) && strncasecmp(host, name, n) == 0;
}

bool rt_guard_is_local(const char *host) {
    size_t n = name_bytes(host);
    bool digits = strspn(host, "0123456789.") == n;
    return named(host, "localhost") || named(host, "[::1]") ||
           (digits && strncmp(host, "127.", 4) == 0);
}

static bool listens_locally(const rt_server *s) {
    return strcmp(s->config->host, "::1") == 0 || rt_guard_is_local(s->config->host);
}

static bool host_allowed(const rt_server *s, const char *host) {
    const lb_opt_list *hosts = &s->config->hosts;
    for (uint32_t i = 0; i < hosts->n; i++) {
        if (named(host, hosts->items[i]) || strcmp(host, hosts->items[i]) == 0) {
            return true;
        }
    }
    return hosts->n == 0 && (!listens_locally(s) || rt_guard_is_local(host));
}

static bool origin_allowed(const rt_server *s, const char *origin, const char *host) {
    const lb_opt_list *origins = &s->config->origins;
    for (uint32_t i = 0; i < origins->n; i++) {
        if (strcmp(origins->items[i], "*") == 0 || strcasecmp(origin, origins->items[i]) == 0) {
            return true;
        }
    }
    const char *at = strstr(origin, "://");
    if (at == NULL) {
        return false; /* "null": a file, a sandboxed frame */
    }
    return rt_guard_is_local(at + 3) || (host != NULL && strcasecmp(at + 3, host) == 0);
}

int rt_guard_origin(const rt_request *r, lb_err *err) {
    const char *host = rt_request_header(r, "Host");
    const char *origin = rt_request_header(r, "Origin");
    if (host != NULL && !host_allowed(r->server, host)) {
        lb_err_set(err, LB_UNSUPPORTED, "Host '%s' is not served here; --allow-host would allow it",
                   host);
        return 403;
    }
    if (origin != NULL && !origin_allowed(r->server, origin, host)) {
        lb_err_set(err, LB_UNSUPPORTED, "Origin '%s' may not ask; --allow-origin would allow it",
                   origin);
        return 403;
    }
    return 0;
}

static bool equal(const char *a, const char *b) {
    size_t n_a = strlen(a);
    size_t n_b = strlen(b);
    unsigned differs = n_a != n_b;
    for (size_t i = 0; i < n_a; i++) {
        differs |= (unsigned char)a[i] ^ (unsigned char)b[n_b == 0 ? 0 : i % n_b];
    }
    return differs == 0;
}

int rt_guard_key(const rt_request *r, lb_err *err) {
    const char *const *keys = r->server->config->keys;
    const char *key = rt_request_header(r, "x-api-key");
    const char *bearer = rt_request_header(r, "Authorization");
    bool found = keys == NULL;
    if (key == NULL && bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0) {
        key = bearer + 7 + strspn(bearer + 7, " ");
    }
    for (size_t i = 0; keys != NULL && key != NULL && keys[i] != NULL; i++) {
        found = equal(key, keys[i]) || found;
    }
    if (!found) {
        lb_err_set(err, LB_UNSUPPORTED,
                   "%s API key; send one as 'Authorization: Bearer KEY' or as "
                   "'x-api-key: KEY'",
                   key == NULL ? "no" : "unknown");
        return 401;
    }
    return 0;
}
