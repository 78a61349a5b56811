/* prefix_disk_read.c -- see prefix_disk.h: what the folder holds, into an empty store.
 *
 * First the head of every file, so that the tree is known; then whole files, the latest first, each
 * after those of the tokens before it, as long as the store has room. A file is believed only if
 * its size, its own digest, the program's identity, its name (the digest of its tokens) and every
 * number in it are right. */
#define _GNU_SOURCE
#include "prefix_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prefix_disk_int.h"

static const char FOREIGN[] = "it is another program's";

typedef struct entry {
    uint8_t digest[LB_DIGEST_BYTES], parent[LB_DIGEST_BYTES];
    int64_t time_ns; /* when it was written */
    uint32_t begin;
    uint32_t page; /* in the store; 0: not yet */
    bool bad;
} entry;

typedef struct list {
    entry *at;
    uint32_t n, cap;
} list;

/* ---- one file */

static bool read_all(int fd, uint8_t *at, uint64_t n) {
    while (n > 0) {
        ssize_t done = read(fd, at, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        at += done;
        n -= (uint64_t)done;
    }
    return true;
}

/* Reads a regular file of at least a head and at most the room; NULL, or what is wrong. */
static const char *read_file(const rt_disk *d, const char *name, bool whole, uint64_t *n_bytes,
                             int64_t *time_ns) {
    struct stat st;
    int fd = openat(d->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return strerror(errno);
    }
    const char *wrong = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        wrong = "no regular file";
    } else if (st.st_size < (off_t)(sizeof(rt_disk_head) + LB_DIGEST_BYTES) ||
               (uint64_t)st.st_size > d->room_bytes) {
        wrong = "its size is wrong";
    } else {
        *n_bytes = (uint64_t)st.st_size;
        *time_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        wrong =
            read_all(fd, d->room, whole ? *n_bytes : sizeof(rt_disk_head)) ? NULL : "it ends early";
    }
    close(fd);
    return wrong;
}

/* What the head says, against the program, the name and the file's size. */
static const char *check_head(const rt_disk *d, const uint8_t *digest, uint64_t n_bytes,
                              rt_disk_head *h) {
    const rt_model *m = d->store->engine->model;
    const rt_pages *p = &d->store->pages;
    uint8_t want[LB_DIGEST_BYTES];
    uint64_t n = sizeof *h + LB_DIGEST_BYTES;
    memcpy(h, d->room, sizeof *h);
    if (memcmp(h->magic, RT_DISK_MAGIC, sizeof h->magic) != 0 ||
        memcmp(h->identity, d->identity, sizeof h->identity) != 0) {
        return FOREIGN;
    }
    if (h->n_tokens == 0 || h->n_tokens > RT_PAGE || h->begin % RT_PAGE != 0 ||
        h->begin >= m->ctx || h->n_tokens > m->ctx - h->begin) {
        return "its place is outside the context";
    }
    for (uint32_t k = 0; k < RT_N_PARTS; k++) {
        bool there = h->part_bytes[k] > 0;
        if (h->part_bytes[k] != (there ? p->part_bytes[k] : 0) || h->n_held[k] > h->n_tokens ||
            there != (h->n_held[k] > 0) || h->n_held[k] % m->cache_block != 0) {
            return "its parts are not the program's";
        }
        n += h->part_bytes[k];
    }
    if (n != n_bytes || h->n_tokens % m->cache_block != 0 || h->ring_from % m->cache_block != 0 ||
        h->ring_from > h->n_held[RT_RING]) {
        return "its size is wrong";
    }
    for (uint32_t i = 0; i < h->n_tokens; i++) {
        if (h->tokens[i] >= m->n_vocab) {
            return "a token outside the vocabulary";
        }
    }
    return rt_disk_digest(h->parent, h->tokens, h->n_tokens, want, NULL) &&
                   memcmp(want, digest, sizeof want) == 0
               ? NULL
               : "its name is not that of its tokens";
}

static const char *check_whole(const rt_disk *d, uint64_t n_bytes) {
    uint8_t want[LB_DIGEST_BYTES];
    uint64_t n = n_bytes - LB_DIGEST_BYTES;
    return lb_sha256(d->room, n, want, NULL) && memcmp(want, d->room + n, sizeof want) == 0
               ? NULL
               : "it is damaged";
}

/* ---- the folder */

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_name(const char *name, uint8_t digest[LB_DIGEST_BYTES]) {
    if (strlen(name) != RT_DISK_NAME_BYTES - 1 ||
        strcmp(name + LB_DIGEST_HEX_BYTES - 1, ".page") != 0) {
        return false;
    }
    for (uint32_t i = 0; i < LB_DIGEST_BYTES; i++) {
        int high = digit(name[2 * i]);
        int low = digit(name[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        digest[i] = (uint8_t)(16 * high + low);
    }
    return true;
}

static bool push(list *l, const entry *e, lb_err *err) {
    if (l->n == l->cap) {
        uint32_t cap = l->cap == 0 ? 256 : 2 * l->cap;
        entry *more = l->cap > UINT32_MAX / 4 ? NULL : realloc(l->at, cap * sizeof *more);
        if (more == NULL) {
            return lb_err_set(err, LB_NO_MEMORY, "no memory for %u files", l->n);
        }
        l->at = more;
        l->cap = cap;
    }
    l->at[l->n++] = *e;
    return true;
}

/* Ours, and of no use: it goes. What was not written here stays. */
static void drop(const rt_disk *d, const char *name, const char *why) {
    struct stat st;
    bool file = why != FOREIGN && fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(st.st_mode);
    if (file) {
        unlinkat(d->dir, name, 0);
    }
    rt_disk_tell(d, file ? "prefix file removed" : "prefix file ignored", name, why);
}

static bool look_at(rt_disk *d, const char *name, list *l, lb_err *err) {
    entry e = {.page = 0};
    rt_disk_head h;
    uint64_t n_bytes = 0;
    if (!parse_name(name, e.digest)) {
        if (strcmp(name, "lock") != 0) {
            rt_disk_tell(d, "prefix file ignored", name, "its name is none of ours");
        }
        return true;
    }
    const char *wrong = read_file(d, name, false, &n_bytes, &e.time_ns);
    wrong = wrong == NULL ? check_head(d, e.digest, n_bytes, &h) : wrong;
    if (wrong != NULL) {
        drop(d, name, wrong);
        return true;
    }
    memcpy(e.parent, h.parent, sizeof e.parent);
    e.begin = h.begin;
    return push(l, &e, err);
}

static bool look_at_all(rt_disk *d, list *l, lb_err *err) {
    int fd = openat(d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return lb_err_set(err, LB_IO, "%s: cannot be read: %s", d->o.dir, strerror(errno));
    }
    bool ok = true;
    for (struct dirent *e = readdir(dir); ok && e != NULL; e = readdir(dir)) {
        ok = e->d_name[0] == '.' || look_at(d, e->d_name, l, err);
    }
    closedir(dir);
    return ok;
}

/* ---- into the store */

static int by_digest(const void *a, const void *b) {
    return memcmp(((const entry *)a)->digest, ((const entry *)b)->digest, LB_DIGEST_BYTES);
}

static int by_age(const void *a, const void *b) { /* the latest first */
    const entry *x = *(entry *const *)a;
    const entry *y = *(entry *const *)b;
    return x->time_ns != y->time_ns ? (x->time_ns > y->time_ns ? -1 : 1) : by_digest(x, y);
}

static entry *find(const list *l, const uint8_t *digest) {
    entry key;
    memcpy(key.digest, digest, sizeof key.digest);
    return bsearch(&key, l->at, l->n, sizeof key, by_digest);
}

static bool is_root(const uint8_t *digest) {
    static const uint8_t none[LB_DIGEST_BYTES] = {0};
    return memcmp(digest, none, sizeof none) == 0;
}

/* The file in d->room becomes a page; false: there is no room. */
static bool add_page(rt_disk *d, const rt_disk_head *h, uint32_t parent, entry *e) {
    rt_pages *p = &d->store->pages;
    uint32_t page = rt_pages_add(p, parent, h->tokens, h->n_tokens);
    uint64_t at = sizeof *h;
    if (page == 0) {
        return false;
    }
    rt_page *g = &p->page[page];
    for (uint32_t k = 0; k < RT_N_PARTS; k++) {
        if (h->n_held[k] > 0) {
            if (!rt_pages_add_part(p, page, k)) {
                rt_pages_remove(p, page);
                return false;
            }
            rt_pages_put(p, g->cell[k], 0, d->room + at, p->part_bytes[k]);
            g->n_held[k] = h->n_held[k];
            at += p->part_bytes[k];
        }
    }
    g->ring_from = h->ring_from;
    memcpy(g->digest, e->digest, sizeof g->digest);
    g->has_file = true;
    g->dirty = false;
    p->n_dirty--;
    e->page = page;
    return true;
}

/* NULL, or why not; "" if the store is full. */
static const char *read_page(rt_disk *d, entry *e, const entry *parent) {
    char name[RT_DISK_NAME_BYTES];
    rt_disk_head h;
    uint64_t n = 0;
    int64_t t = 0;
    rt_disk_name(e->digest, name);
    const char *wrong = read_file(d, name, true, &n, &t);
    wrong = wrong == NULL ? check_head(d, e->digest, n, &h) : wrong;
    wrong = wrong == NULL ? check_whole(d, n) : wrong;
    if (wrong == NULL &&
        (h.begin != (parent == NULL ? 0 : parent->begin + RT_PAGE) ||
         (parent != NULL && d->store->pages.page[parent->page].n_tokens != RT_PAGE))) {
        wrong = "its place is not behind the tokens before it";
    }
    if (wrong != NULL) {
        return wrong;
    }
    return add_page(d, &h, parent == NULL ? 0 : parent->page, e) ? NULL : "";
}

/* The file, and before it those of the tokens before it. `way` has room for all of them. */
static void read_chain(rt_disk *d, const list *l, entry *e, entry **way, uint32_t n_most,
                       bool *full) {
    uint32_t n = 0;
    entry *parent = NULL;
    const char *wrong = NULL;
    for (; e != NULL && e->page == 0 && !e->bad && n < n_most; n++) {
        way[n] = e;
        parent = is_root(e->parent) ? NULL : find(l, e->parent);
        wrong = parent == NULL && !is_root(e->parent) ? "the tokens before it are not there" : NULL;
        e = parent;
    }
    if (e != NULL && (e->bad || n == n_most)) {
        wrong = "the tokens before it are not there";
    }
    for (; n > 0 && !*full; n--) {
        char name[RT_DISK_NAME_BYTES];
        rt_disk_name(way[n - 1]->digest, name);
        wrong = wrong == NULL ? read_page(d, way[n - 1], parent) : wrong;
        *full = wrong != NULL && wrong[0] == '\0';
        if (wrong != NULL && !*full) {
            way[n - 1]->bad = true;
            drop(d, name, wrong);
            wrong = "the tokens before it are not there";
        }
        d->stats.n_read += wrong == NULL;
        parent = way[n - 1];
    }
}

/* What the store has no room for goes, as it would have if the program had gone on. */
static void drop_rest(rt_disk *d, const list *l) {
    char name[RT_DISK_NAME_BYTES];
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->at[i].page == 0 && !l->at[i].bad) {
            rt_disk_name(l->at[i].digest, name);
            drop(d, name, "the store is full");
        }
    }
}

bool rt_disk_read(rt_disk *d, lb_err *err) {
    list l = {0};
    bool full = false;
    if (!look_at_all(d, &l, err)) {
        free(l.at);
        return false;
    }
    uint32_t n_most = d->store->engine->model->ctx / RT_PAGE + 1;
    entry **order = calloc((size_t)l.n + 1, sizeof *order);
    entry **way = calloc(n_most, sizeof *way);
    bool ok = order != NULL && way != NULL;
    if (ok && l.n > 0) {
        qsort(l.at, l.n, sizeof l.at[0], by_digest);
        for (uint32_t i = 0; i < l.n; i++) {
            order[i] = &l.at[i];
        }
        qsort(order, l.n, sizeof *order, by_age);
        for (uint32_t i = 0; i < l.n && !full; i++) {
            read_chain(d, &l, order[i], way, n_most, &full);
        }
        drop_rest(d, &l);
    }
    for (uint32_t i = l.n; ok && i > 0; i--) { /* the latest were used last */
        for (uint32_t g = order[i - 1]->page; g != 0; g = d->store->pages.page[g].parent) {
            rt_pages_touch(&d->store->pages, g, RT_WHOLE);
            rt_pages_touch(&d->store->pages, g, RT_RING);
        }
    }
    free(order);
    free(way);
    free(l.at);
    return ok || lb_err_set(err, LB_NO_MEMORY, "no memory for the names of files");
}
