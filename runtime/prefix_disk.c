/* prefix_disk.c -- see prefix_disk.h: the folder, what binds it to the program, and writing. */
#define _GNU_SOURCE
#include "prefix_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "load.h"
#include "prefix_disk_int.h"

enum { RETRY_S = 30 };
static const char TEMP[] = "writing.tmp"; /* one process, one thread: one such file */
static const uint64_t DIGEST_ARENA_BYTES = UINT64_C(256) << 20;

void rt_disk_tell(const rt_disk *d, const char *event, const char *file, const char *reason) {
    if (d->o.say != NULL) {
        d->o.say(d->o.say_arg, event, file, reason);
    }
}

void rt_disk_name(const uint8_t digest[LB_DIGEST_BYTES], char out[RT_DISK_NAME_BYTES]) {
    char hex[LB_DIGEST_HEX_BYTES];
    lb_digest_hex(digest, hex);
    snprintf(out, RT_DISK_NAME_BYTES, "%s.page", hex);
}

bool rt_disk_digest(const uint8_t parent[LB_DIGEST_BYTES], const uint32_t *tokens, uint32_t n,
                    uint8_t out[LB_DIGEST_BYTES], lb_err *err) {
    struct {
        uint8_t parent[LB_DIGEST_BYTES];
        uint32_t n, tokens[RT_PAGE];
    } all = {.n = n};
    memcpy(all.parent, parent, sizeof all.parent);
    memcpy(all.tokens, tokens, n * sizeof *tokens);
    return lb_sha256(&all, sizeof all, out, err);
}

/* ---- identity: the running program's file, its caches, its weights */

static bool add_file(lb_text *t, const char *path, lb_err *err) {
    lb_map map;
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    if (!lb_map_file(path, &map, err)) {
        return false;
    }
    bool ok = lb_digest_tree(map.data, map.n_bytes, digest, err);
    lb_unmap(&map);
    if (ok) {
        lb_digest_hex(digest, hex);
        lb_text_printf(t, "program %s\n", hex);
    }
    return ok;
}

/* A packed image has its digest in the program; linked model files have none: what was loaded is
 * looked at. */
static bool add_weights(const rt_engine *e, lb_text *t, lb_arena *arena, lb_err *err) {
    const rt_model *m = e->model;
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    if (m->n_weights == 0) {
        return true;
    }
    if (!m->weights_linked) {
        lb_text_printf(t, "weights %s\n", m->files[m->image_file].sha256);
        return true;
    }
    if (!rt_memory_digest(m, &e->memory, RT_ARENA_WEIGHTS, arena, digest, err)) {
        return false;
    }
    lb_digest_hex(digest, hex);
    lb_text_printf(t, "weights %s\n", hex);
    return true;
}

static bool identify(rt_disk *d, lb_err *err) {
    const rt_engine *e = d->store->engine;
    const rt_model *m = e->model;
    lb_arena arena;
    lb_text t;
    lb_arena_init(&arena, "identity of the prefix store", DIGEST_ARENA_BYTES);
    lb_text_init(&t, &arena);
    lb_text_printf(&t, "%s%s %s %u %u\n", RT_DISK_MAGIC, m->name, m->arch_row, m->n_vocab,
                   m->cache_block);
    for (uint32_t i = 0; i < m->n_caches; i++) {
        const rt_cache *c = &m->caches[i];
        bool ring = c->window != 0 && c->positions < m->ctx;
        lb_text_printf(&t, "%u %u %u %u\n", c->heads, c->window, c->block_bytes, ring);
    }
    bool ok = add_file(&t, "/proc/self/exe", err) && add_weights(e, &t, &arena, err) &&
              lb_text_done(&t, err) && lb_sha256(t.data, strlen(t.data), d->identity, err);
    lb_arena_reset(&arena);
    return ok;
}

/* ---- the folder */

static bool open_dir(rt_disk *d, lb_err *err) {
    char hex[LB_DIGEST_HEX_BYTES];
    char path[PATH_MAX];
    lb_digest_hex(d->identity, hex);
    int n =
        snprintf(path, sizeof path, "%s/%s-%.16s", d->o.dir, d->store->engine->model->name, hex);
    if (n < 0 || (size_t)n >= sizeof path) {
        return lb_err_set(err, LB_LIMIT, "%s: the path is too long", d->o.dir);
    }
    if (!lb_make_dirs(d->o.dir, err)) {
        return false;
    }
    if ((mkdir(path, 0700) != 0 && errno != EEXIST) ||
        (d->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
        (d->lock = openat(d->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be used: %s", path, strerror(errno));
    }
    if (flock(d->lock, LOCK_EX | LOCK_NB) != 0) {
        return lb_err_set(err, errno == EWOULDBLOCK ? LB_RESOURCES : LB_IO,
                          "%s: cannot be locked: %s", path,
                          errno == EWOULDBLOCK ? "another process uses it" : strerror(errno));
    }
    unlinkat(d->dir, TEMP, 0); /* of a process that was killed */
    return true;
}

static void gone(void *arg, const rt_page *page) {
    rt_disk *d = arg;
    char name[RT_DISK_NAME_BYTES];
    rt_disk_name(page->digest, name);
    unlinkat(d->dir, name, 0);
}

bool rt_disk_open(rt_prefix *p, const rt_disk_opts *o, rt_disk **out, lb_err *err) {
    rt_disk *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for files of the prefix store");
    }
    *d = (rt_disk){.store = p, .o = *o, .dir = -1, .lock = -1, .look = 1};
    d->room_bytes =
        sizeof(rt_disk_head) + p->pages.part_bytes[0] + p->pages.part_bytes[1] + LB_DIGEST_BYTES;
    d->room = malloc(d->room_bytes);
    if (d->room == NULL) {
        rt_disk_close(d);
        return lb_err_set(err, LB_RESOURCES, "no memory for files of the prefix store");
    }
    if (!identify(d, err) || !open_dir(d, err) || !rt_disk_read(d, err)) {
        rt_disk_close(d);
        return false;
    }
    p->pages.gone = gone;
    p->pages.gone_arg = d;
    *out = d;
    return true;
}

void rt_disk_close(rt_disk *d) {
    if (d == NULL) {
        return;
    }
    d->store->pages.gone = NULL;
    if (d->lock >= 0) {
        close(d->lock);
    }
    if (d->dir >= 0) {
        close(d->dir);
    }
    free(d->room);
    free(d);
}

void rt_disk_stats_of(const rt_disk *d, rt_disk_stats *out) {
    *out = d->stats;
}

/* ---- writing */

static bool write_all(int fd, const uint8_t *at, uint64_t n) {
    while (n > 0) {
        ssize_t done = write(fd, at, n < INT_MAX ? n : INT_MAX);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            errno = done == 0 ? ENOSPC : errno;
            return false;
        }
        at += done;
        n -= (uint64_t)done;
    }
    return true;
}

/* Whole under its name, or not there. */
static bool write_file(const rt_disk *d, const char *name, uint64_t n, lb_err *err) {
    unlinkat(d->dir, TEMP, 0);
    int fd = openat(d->dir, TEMP, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, d->room, n) && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && renameat(d->dir, TEMP, d->dir, name) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok) {
        unlinkat(d->dir, TEMP, 0);
        return lb_err_set(err, LB_IO, "%s", strerror(why));
    }
    return true; /* the folder is not flushed: a name lost with the machine costs a page, no more */
}

/* The page's file in d->room; its bytes, 0 on failure. */
static uint64_t compose(rt_disk *d, const rt_page *g, const uint8_t *parent, lb_err *err) {
    const rt_pages *p = &d->store->pages;
    rt_disk_head h = {.magic = RT_DISK_MAGIC,
                      .begin = g->begin,
                      .n_tokens = g->n_tokens,
                      .ring_from = g->n_held[RT_RING] > 0 ? g->ring_from : 0};
    uint64_t n = sizeof h;
    memcpy(h.identity, d->identity, sizeof h.identity);
    memcpy(h.parent, parent, sizeof h.parent);
    memcpy(h.tokens, g->tokens, g->n_tokens * sizeof g->tokens[0]);
    for (uint32_t k = 0; k < RT_N_PARTS; k++) {
        if (g->n_held[k] > 0) {
            h.n_held[k] = g->n_held[k];
            h.part_bytes[k] = p->part_bytes[k];
            rt_pages_get(p, g->cell[k], 0, d->room + n, p->part_bytes[k]);
            n += p->part_bytes[k];
        }
    }
    memcpy(d->room, &h, sizeof h);
    return lb_sha256(d->room, n, d->room + n, err) ? n + LB_DIGEST_BYTES : 0;
}

static bool write_page(rt_disk *d, uint32_t page, lb_err *err) {
    static const uint8_t none[LB_DIGEST_BYTES] = {0};
    rt_pages *p = &d->store->pages;
    rt_page *g = &p->page[page];
    uint8_t digest[LB_DIGEST_BYTES];
    char name[RT_DISK_NAME_BYTES];
    const uint8_t *parent = g->parent == 0 ? none : p->page[g->parent].digest;
    uint64_t n = compose(d, g, parent, err);
    if (n == 0 || !rt_disk_digest(parent, g->tokens, g->n_tokens, digest, err)) {
        return false;
    }
    rt_disk_name(digest, name);
    if (!write_file(d, name, n, err)) {
        return false;
    }
    memcpy(g->digest, digest, sizeof digest);
    g->has_file = true;
    g->dirty = false;
    p->n_dirty--;
    return true;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A changed page whose parents all have their files. 0: there is none. */
static uint32_t next_dirty(rt_disk *d) {
    const rt_pages *p = &d->store->pages;
    uint32_t page = 0;
    for (uint32_t i = 0; i < p->n_pages && p->n_dirty > 0 && page == 0; i++) {
        d->look = d->look + 1 < p->n_pages ? d->look + 1 : 1;
        page = p->page[d->look].dirty ? d->look : 0;
    }
    for (uint32_t i = page; i != 0; i = p->page[i].parent) {
        page = p->page[i].has_file ? page : i;
    }
    if (page != d->look && page != 0) {
        d->look--; /* it comes again, when its parents have theirs */
    }
    return page;
}

bool rt_disk_work(rt_disk *d) {
    lb_err err = {0};
    if (d->retry_s > seconds()) {
        return false;
    }
    uint32_t page = next_dirty(d);
    if (page == 0) {
        return false;
    }
    if (!write_page(d, page, &err)) {
        d->stats.n_failed++;
        d->retry_s = seconds() + RETRY_S;
        rt_disk_tell(d, "prefix not written", NULL, err.text);
        return false;
    }
    d->stats.n_written++;
    return true;
}
