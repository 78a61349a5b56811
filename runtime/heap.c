/* heap.c -- see heap.h. */
#define _GNU_SOURCE
#include "heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"

bool rt_heap_status(const char *key, uint64_t *out) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t kib = 0;
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0 &&
                sscanf(line + strlen(key), "%" SCNu64, &kib) == 1;
    }
    if (f != NULL) {
        fclose(f);
    }
    return found && lb_mul(kib, 1024, out);
}

#if defined(__SANITIZE_ADDRESS__)

bool rt_heap_limit(uint64_t n_bytes, uint64_t *limit, lb_err *err) {
    (void)n_bytes;
    (void)err;
    *limit = 0;
    return true;
}

#else

bool rt_heap_limit(uint64_t n_bytes, uint64_t *limit, lb_err *err) {
    uint64_t now = 0;
    uint64_t most = 0;
    struct rlimit r;
    if (!rt_heap_status("VmData:", &now) || !lb_add(now, n_bytes, &most)) {
        return lb_err_set(err, LB_IO, "/proc/self/status does not tell this process's memory");
    }
    if (getrlimit(RLIMIT_DATA, &r) != 0) {
        return lb_err_set(err, LB_IO, "cannot ask for RLIMIT_DATA: %s", strerror(errno));
    }
    if (r.rlim_max == RLIM_INFINITY || most < r.rlim_max) {
        r.rlim_cur = (rlim_t)most;
        if (setrlimit(RLIMIT_DATA, &r) != 0) {
            return lb_err_set(err, LB_IO, "cannot set RLIMIT_DATA to %" PRIu64 " bytes: %s", most,
                              strerror(errno));
        }
    }
    *limit = (uint64_t)r.rlim_cur;
    return true;
}

#endif
