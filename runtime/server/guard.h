/* guard.h -- who may ask: Host, Origin and key of a request, and what browsers are told. */
#ifndef RT_SERVER_GUARD_H
#define RT_SERVER_GUARD_H

#include "server/server.h"

/* 0, or the status to refuse with and the reason in err. A page of another origin is refused (403),
 * and so is a Host that is none of this server's (a name that was bound anew to this address). */
int rt_guard_origin(const rt_request *r, lb_err *err);

/* 0, or 401: no key, or none of those that are known. Takes equally long for all keys. */
int rt_guard_key(const rt_request *r, lb_err *err);

/* True if `host` (a Host header) names the loopback: localhost, 127.x.x.x, [::1]; any port. */
bool rt_guard_is_local(const char *host);

#endif
