/* memory.c -- see memory.h. Linux. */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/num.h"

enum {
    HUGE_BYTES = 2 * 1024 * 1024, /* the huge page of x86-64 and of aarch64 with 4 KiB pages */
    PIECE_BYTES = 16 * 1024 * 1024,
    PAGE_BYTES = 4096
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

const char *rt_arena_name(rt_arena_kind kind) {
    static const char *const NAMES[RT_N_ARENAS] = {"weights", "KV cache", "scratch", "logits"};
    return NAMES[kind];
}

/* The first number after `key` in a small text file of the system. */
static bool read_number(const char *path, const char *key, uint64_t *out) {
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, f) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0 &&
                sscanf(line + strlen(key), "%" SCNu64, out) == 1;
    }
    fclose(f);
    return found;
}

/* The limit of this process's control group, version 2 or 1, or of the group that a container shows
 * as the root. "max" is not a number: no limit. */
static bool group_limit(uint64_t *out) {
    char line[512];
    char path[600] = "";
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *v1 = strstr(line, ":memory:");
        if (v1 != NULL) {
            snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", v1 + 8);
        } else if (path[0] == '\0' && strncmp(line, "0::", 3) == 0) {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return (path[0] != '\0' && read_number(path, "", out)) ||
           read_number("/sys/fs/cgroup/memory.max", "", out) ||
           read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", out);
}

uint64_t rt_memory_available(void) {
    uint64_t least = UINT64_MAX;
    uint64_t n = 0;
    if (read_number("/proc/meminfo", "MemAvailable:", &n)) {
        least = n * 1024;
    }
    if (group_limit(&n) && n < least) {
        least = n;
    }
    return least;
}

/* Fails unless the sum of all arenas fits what is there. */
static bool check_sum(const rt_model *m, lb_err *err) {
    uint64_t sum = 0;
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (!lb_add(sum, m->arena_bytes[k], &sum)) {
            return lb_err_set(err, LB_RESOURCES, "the sum of the arenas passes 64 bits");
        }
    }
    uint64_t have = rt_memory_available();
    if (sum > have) {
        return lb_err_set(
            err, LB_RESOURCES,
            "the program needs %" PRIu64 " bytes of memory; %" PRIu64 " are available", sum, have);
    }
    return true;
}

/* One arena: reserved unreadable with a margin on both sides, then opened in the middle, so that a
 * step outside is a fault and not another arena. */
static bool map_one(rt_arena_kind kind, uint64_t n_bytes, rt_memory *out, lb_err *err) {
    uint64_t open = 0;
    uint64_t total = 0;
    if (!lb_round_up(n_bytes, PAGE_BYTES, &open) || !lb_add(open, 3ULL * HUGE_BYTES, &total)) {
        return lb_err_set(err, LB_RESOURCES, "%s: %" PRIu64 " bytes", rt_arena_name(kind), n_bytes);
    }
    void *map = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return lb_err_set(err, LB_RESOURCES, "%s: cannot map %" PRIu64 " bytes: %s",
                          rt_arena_name(kind), n_bytes, strerror(errno));
    }
    out->maps[kind] = map;
    out->map_bytes[kind] = total;
    uintptr_t at = ((uintptr_t)map + 2ULL * HUGE_BYTES - 1) & ~((uintptr_t)HUGE_BYTES - 1);
    if (mprotect((void *)at, open, PROT_READ | PROT_WRITE) != 0) {
        return lb_err_set(err, LB_RESOURCES, "%s: cannot have %" PRIu64 " bytes: %s",
                          rt_arena_name(kind), n_bytes, strerror(errno));
    }
    madvise((void *)at, open, MADV_HUGEPAGE); /* advice: a kernel without it is slower, not wrong */
    out->arenas[kind] = (uint8_t *)at;
    return true;
}

bool rt_memory_map_on(const rt_model *m, const char *wanted, rt_memory *out, lb_err *err) {
    if (m->device == NULL) {
        return wanted == NULL
                   ? rt_memory_map(m, out, err)
                   : lb_err_set(err, LB_USAGE, "--device '%s': this program runs on the CPU (%s)",
                                wanted, m->arch_row);
    }
    rt_memory mem = {.device = m->device};
    if (!m->device->map(m, wanted, &mem, err)) {
        return false;
    }
    *out = mem;
    return true;
}

bool rt_memory_map(const rt_model *m, rt_memory *out, lb_err *err) {
    if (m->device != NULL) {
        return rt_memory_map_on(m, NULL, out, err);
    }
    if (!check_sum(m, err)) {
        return false;
    }
    rt_memory mem = {0};
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (m->arena_bytes[k] > 0 && !map_one((rt_arena_kind)k, m->arena_bytes[k], &mem, err)) {
            rt_memory_unmap(&mem);
            return false;
        }
    }
    *out = mem;
    return true;
}

void rt_memory_unmap(rt_memory *m) {
    if (m->device != NULL) {
        m->device->unmap(m);
    }
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (m->maps[k] != NULL) {
            munmap(m->maps[k], m->map_bytes[k]);
        }
    }
    *m = (rt_memory){0};
}

bool rt_memory_twin(const rt_model *model, const rt_memory *device, rt_memory *out, lb_err *err) {
    rt_model host = *model;
    rt_memory mem = {0};
    host.device = NULL;
    if (!rt_memory_map(&host, &mem, err)) {
        return false;
    }
    uint64_t n = model->arena_bytes[RT_ARENA_WEIGHTS];
    for (uint64_t at = 0; at < n; at += PIECE_BYTES) {
        uint64_t len = n - at < PIECE_BYTES ? n - at : PIECE_BYTES;
        if (!device->device->get(device, RT_ARENA_WEIGHTS, at, mem.arenas[RT_ARENA_WEIGHTS] + at,
                                 len, err)) {
            rt_memory_unmap(&mem);
            return false;
        }
    }
    *out = mem;
    return true;
}

const uint8_t *rt_memory_read(const rt_memory *m, rt_arena_kind kind, uint64_t offset, void *room,
                              uint64_t n_bytes, lb_err *err) {
    if (m->device == NULL) {
        return m->arenas[kind] + offset;
    }
    return m->device->get(m, kind, offset, room, n_bytes, err) ? room : NULL;
}

uint8_t *rt_memory_room(const rt_memory *m, rt_arena_kind kind, uint64_t offset, void *room) {
    return m->device == NULL ? m->arenas[kind] + offset : room;
}

bool rt_memory_write(const rt_memory *m, rt_arena_kind kind, uint64_t offset, const void *room,
                     uint64_t n_bytes, lb_err *err) {
    return m->device == NULL || m->device->set(m, kind, offset, room, n_bytes, err);
}

bool rt_memory_clear(const rt_model *model, const rt_memory *m, rt_arena_kind kind, lb_err *err) {
    if (m->device != NULL) {
        return m->device->clear(m, kind, err);
    }
    if (m->arenas[kind] != NULL) {
        memset(m->arenas[kind], 0, model->arena_bytes[kind]);
    }
    return true;
}

bool rt_memory_digest(const rt_model *model, const rt_memory *m, rt_arena_kind kind, lb_arena *tmp,
                      uint8_t out[LB_DIGEST_BYTES], lb_err *err) {
    uint64_t n = model->arena_bytes[kind];
    if (m->device == NULL) {
        return lb_digest_tree(m->arenas[kind], n, out, err);
    }
    uint64_t n_pieces = lb_digest_n_pieces(n);
    uint8_t *digests = lb_alloc_n(tmp, n_pieces, LB_DIGEST_BYTES, err);
    uint8_t *piece = lb_alloc(tmp, LB_DIGEST_PIECE_BYTES, err);
    for (uint64_t i = 0; i < n_pieces && digests != NULL && piece != NULL; i++) {
        uint64_t at = i * LB_DIGEST_PIECE_BYTES;
        uint64_t len = n - at < LB_DIGEST_PIECE_BYTES ? n - at : LB_DIGEST_PIECE_BYTES;
        if (!m->device->get(m, kind, at, piece, len, err) ||
            !lb_sha256(piece, len, digests + i * LB_DIGEST_BYTES, err)) {
            return false;
        }
    }
    return digests != NULL && piece != NULL && lb_digest_root(digests, n, out, err);
}

typedef struct touch_job {
    uint8_t *arena;
    uint64_t n_bytes; /* whole pages */
    uint32_t n_pieces;
    _Atomic int why; /* errno of a refusal */
} touch_job;

/* MADV_POPULATE_WRITE reports a refusal where a plain store would be killed; older kernels lack
 * it. */
static void touch_piece(touch_job *j, uint8_t *at, uint64_t n) {
    if (madvise(at, n, MADV_POPULATE_WRITE) == 0) {
        return;
    }
    if (errno != EINVAL) {
        atomic_store(&j->why, errno);
        return;
    }
    for (uint64_t i = 0; i < n; i += PAGE_BYTES) {
        *(volatile uint8_t *)(at + i) = 0;
    }
}

static void touch_work(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers) {
    touch_job *j = arg;
    uint32_t begin = 0;
    uint32_t end = 0;
    (void)n_workers;
    while (rt_pool_take(pool, worker, j->n_pieces, 1, &begin, &end)) {
        uint64_t from = (uint64_t)begin * PIECE_BYTES;
        uint64_t left = j->n_bytes - from;
        touch_piece(j, j->arena + from, left < PIECE_BYTES ? left : PIECE_BYTES);
    }
    rt_pool_close(pool, worker, j->n_pieces);
}

bool rt_memory_touch(const rt_model *model, rt_memory *m, rt_pool *pool, lb_err *err) {
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (m->arenas[k] == NULL || m->device != NULL) {
            continue; /* a device's memory is there once it is allocated */
        }
        touch_job j = {.arena = m->arenas[k]};
        if (!lb_round_up(model->arena_bytes[k], PAGE_BYTES, &j.n_bytes) ||
            !lb_to_u32(lb_ceil_div(j.n_bytes, PIECE_BYTES), &j.n_pieces)) {
            return lb_err_set(err, LB_RESOURCES, "%s: too large", rt_arena_name((rt_arena_kind)k));
        }
        rt_pool_run(pool, touch_work, &j);
        if (j.why != 0) {
            return lb_err_set(err, LB_RESOURCES, "%s: cannot have %" PRIu64 " bytes: %s",
                              rt_arena_name((rt_arena_kind)k), model->arena_bytes[k],
                              strerror(j.why));
        }
    }
    return true;
}
