/* load.c -- see load.h. */
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/num.h"

enum {
    ITEM_BYTES = 1024 * 1024,       /* linked: image bytes that a thread packs at a time */
    TABLE_LIMIT = 256 * 1024 * 1024 /* tables of one load; 66 GiB need a few hundred KiB */
};

/* What the threads of one load share. */
typedef struct shared {
    const rt_load_opts *opts;
    const rt_memory *mem;
    uint8_t *arena; /* where the host can write it, else NULL */
    uint64_t total_bytes;
    uint32_t n_items;
    _Atomic uint64_t done_bytes;
    _Atomic bool failed;  /* set once, by the thread that then owns err */
    lb_err err;
} shared;

/* Keeps the first error; later ones come from threads that had not seen it yet. */
static void fail(shared *s, const lb_err *e) {
    if (!atomic_exchange(&s->failed, true)) {
        s->err = *e;
    }
}

/* Where this worker prepares the bytes that belong at `offset` of the weights arena; NULL if it has
 * to stand aside. */
static uint8_t *room_for(const shared *s, uint32_t worker, uint64_t offset) {
    return s->mem->device == NULL ? s->arena + offset : s->mem->device->stage(s->mem, worker);
}

/* They are there now: brings them to the device, if there is one. */
static bool settle(const shared *s, uint32_t worker, uint64_t offset, uint64_t n_bytes,
                   lb_err *err) {
    return s->mem->device == NULL || s->mem->device->put(s->mem, worker, offset, n_bytes, err);
}

/* Workers without a place to prepare bytes in leave the work to the others (worker 0 has one). */
static bool stands_aside(const shared *s, uint32_t worker) {
    return s->mem->device != NULL && s->mem->device->stage(s->mem, worker) == NULL;
}

static void advance(shared *s, uint32_t worker, uint64_t n_bytes) {
    uint64_t done = atomic_fetch_add(&s->done_bytes, n_bytes) + n_bytes;
    if (worker == 0 && s->opts->progress != NULL) {
        s->opts->progress(s->opts->progress_arg, done, s->total_bytes);
    }
}

bool rt_program_dir(char *out, size_t size, lb_err *err) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) {
        return lb_err_set(err, LB_IO, "/proc/self/exe: cannot be read: %s", strerror(errno));
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t len = slash == NULL || slash == path ? 1 : (size_t)(slash - path);
    if (len >= size) {
        return lb_err_set(err, LB_LIMIT, "the program's folder has a name of %zu bytes", len);
    }
    memcpy(out, path, len);
    out[len] = '\0';
    return true;
}

static uint8_t *host_arena(const rt_memory *mem) {
    return mem->device == NULL ? mem->arenas[RT_ARENA_WEIGHTS] : NULL;
}

static bool full_path(const rt_load_opts *o, const char *name, char out[PATH_MAX], lb_err *err) {
    int n = name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name)
                           : snprintf(out, PATH_MAX, "%s/%s", o->dir, name);
    if (n < 0 || n >= PATH_MAX) {
        return lb_err_set(err, LB_LIMIT, "%s: path of more than %d bytes", name, PATH_MAX);
    }
    return true;
}

static bool size_is(const char *path, uint64_t have, uint64_t want, lb_err *err) {
    if (have != want) {
        return lb_err_set(err, LB_DAMAGED, "%s: %" PRIu64 " bytes; it had %" PRIu64
                          " when the program was made", path, have, want);
    }
    return true;
}

/* ---- packed ---- */

/* Whether the pages that files are read through take from what the arenas need: on a board whose
 * memory is the host's too. There they are given back as soon as they are read. */
static bool pages_count(const rt_memory *mem) {
    rt_device_memory d = {0};
    if (mem->device != NULL) {
        mem->device->measured(mem, &d);
    }
    return d.shared;
}

/* Advice: where it is not taken, the system gives the pages back when it needs them. */
static void give_back(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

typedef struct packed {
    shared s;
    bool pages_count;
    int fd;
    const char *path;
    uint8_t *digests; /* [n_items][32] */
} packed;

static bool open_image(const char *path, uint64_t want, int *fd, lb_err *err) {
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (f < 0 || fstat(f, &st) != 0 || !S_ISREG(st.st_mode)) {
        int why = f < 0 ? errno : EINVAL;
        if (f >= 0) {
            close(f);
        }
        return lb_err_set(err, LB_DAMAGED, "%s: cannot be read: %s", path, strerror(why));
    }
    if (!size_is(path, (uint64_t)st.st_size, want, err)) {
        close(f);
        return false;
    }
    *fd = f;
    return true;
}

static bool read_piece(const packed *p, uint8_t *to, uint64_t from, uint64_t n, lb_err *err) {
    for (uint64_t done = 0; done < n;) {
        ssize_t got = pread(p->fd, to + done, n - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return lb_err_set(err, LB_DAMAGED, "%s: cannot read byte %" PRIu64 ": %s", p->path,
                              from + done, got == 0 ? "the file ended" : strerror(errno));
        }
        done += (uint64_t)got;
    }
    return true;
}

static void packed_work(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers) {
    packed *p = arg;
    uint32_t i = 0;
    uint32_t end = 0;
    (void)n_workers;
    while (!stands_aside(&p->s, worker) &&
           rt_pool_take(pool, worker, p->s.n_items, 1, &i, &end)) {
        lb_err e = {0};
        if (p->s.failed) {
            continue; /* all pieces must be taken before the grid closes */
        }
        uint64_t from = (uint64_t)i * LB_DIGEST_PIECE_BYTES;
        uint64_t left = p->s.total_bytes - from;
        uint64_t n = left < LB_DIGEST_PIECE_BYTES ? left : LB_DIGEST_PIECE_BYTES;
        uint8_t *to = room_for(&p->s, worker, from);
        if (!read_piece(p, to, from, n, &e) ||
            !lb_sha256(to, n, p->digests + (size_t)i * LB_DIGEST_BYTES, &e) ||
            !settle(&p->s, worker, from, n, &e)) {
            fail(&p->s, &e);
            continue;
        }
        if (p->pages_count) {
            (void)posix_fadvise(p->fd, (off_t)from, (off_t)n, POSIX_FADV_DONTNEED);
        }
        advance(&p->s, worker, n);
    }
    rt_pool_close(pool, worker, p->s.n_items);
}

static bool check_digest(const packed *p, const rt_file *file, lb_err *err) {
    uint8_t root[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    if (!lb_digest_root(p->digests, file->n_bytes, root, err)) {
        return false;
    }
    lb_digest_hex(root, hex);
    if (file->sha256 == NULL || strcmp(hex, file->sha256) != 0) {
        return lb_err_set(err, LB_DAMAGED, "%s: its content has changed since it was made (digest "
                          "%.16s..., expected %.16s...)", p->path, hex,
                          file->sha256 == NULL ? "none" : file->sha256);
    }
    return true;
}

static bool load_packed(const rt_model *m, const rt_load_opts *o, rt_pool *pool, rt_memory *mem,
                        lb_arena *tmp, lb_err *err) {
    if (m->image_file >= m->n_files) {
        return lb_err_set(err, LB_BAD_SHAPE, "image file %u of %u", m->image_file, m->n_files);
    }
    const rt_file *file = &m->files[m->image_file];
    packed p = {
        .pages_count = pages_count(mem),
        .s = {.opts = o, .mem = mem, .arena = host_arena(mem), .total_bytes = file->n_bytes}};
    char path[PATH_MAX];
    if (!full_path(o, file->name, path, err)) {
        return false;
    }
    p.path = path;
    if (file->n_bytes > m->arena_bytes[RT_ARENA_WEIGHTS] ||
        !lb_to_u32(lb_digest_n_pieces(file->n_bytes), &p.s.n_items)) {
        return lb_err_set(err, LB_BAD_SHAPE, "%s: %" PRIu64 " bytes for an arena of %" PRIu64,
                          path, file->n_bytes, m->arena_bytes[RT_ARENA_WEIGHTS]);
    }
    p.digests = lb_alloc_n(tmp, p.s.n_items, LB_DIGEST_BYTES, err);
    if (p.digests == NULL || !open_image(path, file->n_bytes, &p.fd, err)) {
        return false;
    }
    rt_pool_run(pool, packed_work, &p);
    close(p.fd);
    if (p.s.failed) {
        *err = p.s.err;
        return false;
    }
    return check_digest(&p, file, err);
}

/* ---- linked ---- */

/* One weight, cut into items of whole strips; items never span two matrices. */
typedef struct cut {
    uint32_t first_item;
    uint32_t items_per_mat;
    uint32_t strips_per_item;
    uint64_t n_strips;    /* of one matrix */
    uint64_t strip_bytes; /* in the image */
    uint64_t row_bytes;   /* in the file */
} cut;

typedef struct linked {
    shared s;
    const rt_model *model;
    const lb_map *maps; /* [n_files] */
    const cut *cuts;    /* [n_weights] */
} linked;

/* Fails with LB_BAD_SHAPE unless the weight's ranges lie in its file and in the arena. */
static bool check_ranges(const rt_model *m, const rt_weight *w, lb_err *err) {
    uint64_t arena = m->arena_bytes[RT_ARENA_WEIGHTS];
    bool ok = w->file < m->n_files && w->image_bytes <= arena &&
              w->offset_bytes <= arena - w->image_bytes;
    ok = ok && w->file_bytes <= m->files[w->file].n_bytes &&
         w->file_offset_bytes <= m->files[w->file].n_bytes - w->file_bytes;
    if (!ok) {
        return lb_err_set(err, LB_BAD_SHAPE, "weight '%s': outside its file or arena", w->name);
    }
    return true;
}

/* A weight without a layout is copied: one "strip" per ITEM_BYTES. */
static bool cut_plain(const rt_weight *w, cut *c, lb_err *err) {
    *c = (cut){.strips_per_item = 1, .n_strips = lb_ceil_div(w->file_bytes, ITEM_BYTES),
               .strip_bytes = ITEM_BYTES};
    if (w->image_bytes < w->file_bytes || !lb_to_u32(c->n_strips, &c->items_per_mat)) {
        return lb_err_set(err, LB_BAD_SHAPE, "weight '%s': %" PRIu64 " bytes into %" PRIu64,
                          w->name, w->file_bytes, w->image_bytes);
    }
    return true;
}

static bool cut_matrix(const rt_weight *w, cut *c, lb_err *err) {
    uint64_t mat_image = 0;
    uint64_t all = 0;
    if (!lb_image_bytes(w->layout, w->n_rows, w->n_cols, &mat_image, err)) {
        return lb_err_prefix(err, "weight '%s'", w->name);
    }
    *c = (cut){.n_strips = lb_ceil_div(w->n_rows, LB_STRIP_ROWS)};
    c->strip_bytes = mat_image / c->n_strips;
    c->row_bytes = w->n_cols / w->layout->qblock_elems * w->layout->qblock_bytes;
    c->strips_per_item = c->strip_bytes > ITEM_BYTES ? 1 : (uint32_t)(ITEM_BYTES / c->strip_bytes);
    if (!lb_mul(mat_image, w->n_mats, &all) || all != w->image_bytes ||
        !lb_mul(c->row_bytes, w->n_rows, &all) || !lb_mul(all, w->n_mats, &all) ||
        all != w->file_bytes ||
        !lb_to_u32(lb_ceil_div(c->n_strips, c->strips_per_item), &c->items_per_mat)) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "weight '%s': %" PRIu64 " x %" PRIu64 " x %" PRIu64
                          " is not %" PRIu64 " bytes",
                          w->name, w->n_mats, w->n_rows, w->n_cols, w->image_bytes);
    }
    return true;
}

static bool cut_all(const rt_model *m, cut *cuts, shared *s, lb_err *err) {
    uint64_t n_items = 0;
    for (uint32_t i = 0; i < m->n_weights; i++) {
        const rt_weight *w = &m->weights[i];
        bool plain = w->layout == NULL;
        uint64_t more = 0;
        if (!check_ranges(m, w, err) || !(plain ? cut_plain : cut_matrix)(w, &cuts[i], err)) {
            return false;
        }
        cuts[i].first_item = (uint32_t)n_items;
        if (!lb_mul(cuts[i].items_per_mat, plain ? 1 : w->n_mats, &more) ||
            !lb_add(n_items, more, &n_items) || n_items > UINT32_MAX) {
            return lb_err_set(err, LB_BAD_SHAPE, "weight '%s': too many pieces", w->name);
        }
        s->total_bytes += w->file_bytes;
    }
    s->n_items = (uint32_t)n_items;
    return true;
}

/* The weight that item i belongs to: the last one whose first item is <= i. */
static uint32_t weight_of_item(const linked *l, uint32_t i) {
    uint32_t lo = 0;
    uint32_t hi = l->model->n_weights;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->cuts[mid].first_item <= i) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool link_item(linked *l, uint32_t i, uint32_t worker, uint64_t *n_bytes, lb_err *err) {
    uint32_t k = weight_of_item(l, i);
    const rt_weight *w = &l->model->weights[k];
    const cut *c = &l->cuts[k];
    uint64_t mat = (i - c->first_item) / c->items_per_mat;
    uint64_t begin = (uint64_t)((i - c->first_item) % c->items_per_mat) * c->strips_per_item;
    uint64_t left = c->n_strips - begin;
    uint64_t end = begin + (left < c->strips_per_item ? left : c->strips_per_item);
    const uint8_t *src = l->maps[w->file].data + w->file_offset_bytes;
    if (w->layout == NULL) {
        uint64_t at = begin * c->strip_bytes;
        *n_bytes = w->file_bytes - at < c->strip_bytes ? w->file_bytes - at : c->strip_bytes;
        memcpy(room_for(&l->s, worker, w->offset_bytes + at), src + at, *n_bytes);
        return settle(&l->s, worker, w->offset_bytes + at, *n_bytes, err);
    }
    uint64_t to = w->offset_bytes + (mat * c->n_strips + begin) * c->strip_bytes;
    if (l->s.arena == NULL && (end - begin) * c->strip_bytes > RT_STAGE_BYTES) {
        return lb_err_set(err, LB_LIMIT,
                          "weight '%s': 16 rows are %" PRIu64
                          " bytes; %d go to the device at a time",
                          w->name, c->strip_bytes, RT_STAGE_BYTES);
    }
    uint64_t row = begin * LB_STRIP_ROWS;
    uint64_t row_end = end * LB_STRIP_ROWS < w->n_rows ? end * LB_STRIP_ROWS : w->n_rows;
    *n_bytes = (row_end - row) * c->row_bytes;
    if (!lb_image_pack(w->layout, src + (mat * w->n_rows + row) * c->row_bytes, w->n_rows,
                       w->n_cols, begin, end, room_for(&l->s, worker, to), err)) {
        return w->n_mats == 1 ? lb_err_prefix(err, "weight '%s'", w->name)
                              : lb_err_prefix(err, "weight '%s', expert %" PRIu64, w->name, mat);
    }
    return settle(&l->s, worker, to, (end - begin) * c->strip_bytes, err);
}

static void linked_work(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers) {
    linked *l = arg;
    uint32_t i = 0;
    uint32_t end = 0;
    (void)n_workers;
    while (!stands_aside(&l->s, worker) &&
           rt_pool_take(pool, worker, l->s.n_items, 1, &i, &end)) {
        lb_err e = {0};
        uint64_t n = 0;
        if (l->s.failed) {
            continue;
        }
        if (!link_item(l, i, worker, &n, &e)) {
            fail(&l->s, &e);
            continue;
        }
        advance(&l->s, worker, n);
    }
    rt_pool_close(pool, worker, l->s.n_items);
}

static bool map_files(const rt_model *m, const rt_load_opts *o, lb_map *maps, lb_err *err) {
    for (uint32_t i = 0; i < m->n_files; i++) {
        char path[PATH_MAX];
        if (!full_path(o, m->files[i].name, path, err)) {
            return false;
        }
        if (!lb_map_file(path, &maps[i], err)) {
            err->code = LB_DAMAGED;
            return false;
        }
        if (!size_is(path, maps[i].n_bytes, m->files[i].n_bytes, err)) {
            return false;
        }
    }
    return true;
}

/* The files hold the weights that the program was made with: of equal size they may be others. */
static bool check_samples(const rt_model *m, const lb_map *maps, lb_err *err) {
    uint8_t chain[LB_DIGEST_BYTES] = {0};
    char hex[LB_DIGEST_HEX_BYTES];
    if (m->linked_sha256 == NULL) {
        return true;
    }
    for (uint32_t i = 0; i < m->n_weights; i++) {
        const rt_weight *w = &m->weights[i]; /* inside its file: cut_all has seen it */
        if (!lb_digest_sample(chain, maps[w->file].data + w->file_offset_bytes, w->file_bytes,
                              err)) {
            return false;
        }
    }
    lb_digest_hex(chain, hex);
    return strcmp(hex, m->linked_sha256) == 0 ||
           lb_err_set(err, LB_DAMAGED,
                      "%s: its weights are others than the program was made with (digest %.16s..., "
                      "expected %.16s...)",
                      m->files[0].name, hex, m->linked_sha256);
}

static bool load_linked(const rt_model *m, const rt_load_opts *o, rt_pool *pool, rt_memory *mem,
                        lb_arena *tmp, lb_err *err) {
    lb_map *maps = lb_alloc_n(tmp, m->n_files, sizeof *maps, err);
    cut *cuts = lb_alloc_n(tmp, m->n_weights, sizeof *cuts, err);
    if (maps == NULL || cuts == NULL) {
        return false;
    }
    linked l = {.s = {.opts = o, .mem = mem, .arena = host_arena(mem)},
                .model = m, .maps = maps, .cuts = cuts};
    bool ok = map_files(m, o, maps, err) && cut_all(m, cuts, &l.s, err) &&
              check_samples(m, maps, err);
    if (ok) {
        rt_pool_run(pool, linked_work, &l);
        ok = !l.s.failed;
        if (!ok) {
            *err = l.s.err;
        }
    }
    for (uint32_t i = 0; i < m->n_files; i++) {
        char path[PATH_MAX];
        lb_unmap(&maps[i]);
        if (pages_count(mem) && full_path(o, m->files[i].name, path, NULL)) {
            give_back(path);
        }
    }
    return ok;
}

bool rt_weights_load(const rt_model *m, const rt_load_opts *o, rt_pool *pool, rt_memory *mem,
                     lb_err *err) {
    lb_err own = {0};
    lb_arena tmp;
    lb_arena_init(&tmp, "loading", TABLE_LIMIT);
    bool ok = (m->weights_linked ? load_linked : load_packed)(m, o, pool, mem, &tmp, &own);
    lb_arena_reset(&tmp);
    ok = ok && (mem->device == NULL || mem->device->ready(m, mem, &own));
    if (!ok && err != NULL) {
        *err = own;
    }
    return ok;
}
