/* gguf.c -- opens a model file and keeps sorted indexes of its keys and tensors; see gguf.h.
 *
 * The walking of bytes is in gguf_parse.c, the other parts of a split model in gguf_split.c. What
 * concerns the whole model is refused here: names that occur twice, tensors that overlap. */
#include "gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "gguf_bits.h"
#include "gguf_parse.h"

bool lg_gguf_err_file(lb_err *err, const char *path) {
    const char *slash = strrchr(path, '/');
    return lb_err_prefix(err, "%.80s", slash == NULL ? path : slash + 1);
}

bool lg_gguf_open_part(const char *path, lg_gguf_part *part, lb_err *err) {
    lg_gguf_part p = {.info.path = path, .owned = true};
    if (!lb_map_file(path, &p.map, err)) {
        return false;
    }
    if (!lg_gguf_scan(&p, err)) {
        lb_unmap(&p.map);
        return lg_gguf_err_file(err, path);
    }
    *part = p;
    return true;
}

static int by_key(const void *a, const void *b) {
    const lg_gguf_kv *const *x = a;
    const lg_gguf_kv *const *y = b;
    return lg_bits_compare((*x)->key, (*y)->key);
}

static int by_name(const void *a, const void *b) {
    const lg_gguf_tensor *const *x = a;
    const lg_gguf_tensor *const *y = b;
    return lg_bits_compare((*x)->name, (*y)->name);
}

static int by_place(const void *a, const void *b) {
    const lg_gguf_tensor *x = *(const lg_gguf_tensor *const *)a;
    const lg_gguf_tensor *y = *(const lg_gguf_tensor *const *)b;
    if (x->file_index != y->file_index) {
        return x->file_index < y->file_index ? -1 : 1;
    }
    return x->offset == y->offset ? 0 : x->offset < y->offset ? -1 : 1;
}

bool lg_gguf_load_keys(lg_gguf *g, const lg_gguf_part *part, lb_err *err) {
    uint64_t n = part->n_keys;
    lg_gguf_kv *keys = lb_alloc_n(g->arena, n, sizeof *keys, err);
    const lg_gguf_kv **sorted = lb_alloc_n(g->arena, n, sizeof *sorted, err);
    if (keys == NULL || sorted == NULL || !lg_gguf_read_keys(part, keys, err)) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        sorted[i] = &keys[i];
    }
    qsort(sorted, n, sizeof *sorted, by_key);
    for (uint64_t i = 1; i < n; i++) {
        if (by_key(&sorted[i - 1], &sorted[i]) == 0) {
            return lb_err_set(err, LB_DUPLICATE, "key '%.*s' occurs twice",
                              lg_bits_shown(sorted[i]->key), sorted[i]->key.data);
        }
    }
    g->keys = keys;
    g->keys_by_name = sorted;
    g->n_keys = n;
    return true;
}

static bool count_tensors(lg_gguf *g, lb_err *err) {
    g->n_tensors = 0;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        g->n_tensors += g->parts[i].info.n_tensors; /* at most 2^10 parts of 2^18 */
    }
    if (g->n_tensors > LG_GGUF_MAX_TENSORS) {
        return lb_err_set(err, LB_LIMIT, "%" PRIu64 " tensors in all parts; the limit is %d",
                          g->n_tensors, (int)LG_GGUF_MAX_TENSORS);
    }
    return true;
}

/* No tensor may overlap another: then their sizes sum up to no more than the files hold. */
static bool check_places(lg_gguf *g, const lg_gguf_tensor **sorted, lb_err *err) {
    qsort(sorted, g->n_tensors, sizeof *sorted, by_place);
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const lg_gguf_tensor *t = sorted[i];
        g->tensor_bytes += t->n_bytes;
        if (i == 0 || sorted[i - 1]->file_index != t->file_index) {
            continue;
        }
        const lg_gguf_tensor *before = sorted[i - 1];
        if (before->n_bytes > t->offset - before->offset) {
            return lb_err_set(err, LB_DUPLICATE,
                              "tensors '%.*s' and '%.*s' overlap at offset %" PRIu64,
                              lg_bits_shown(before->name), before->name.data,
                              lg_bits_shown(t->name), t->name.data, t->offset);
        }
    }
    return true;
}

static bool check_names(lg_gguf *g, const lg_gguf_tensor **sorted, lb_err *err) {
    qsort(sorted, g->n_tensors, sizeof *sorted, by_name);
    for (uint64_t i = 1; i < g->n_tensors; i++) {
        if (by_name(&sorted[i - 1], &sorted[i]) == 0) {
            return lb_err_set(err, LB_DUPLICATE, "tensor '%.*s' occurs twice",
                              lg_bits_shown(sorted[i]->name), sorted[i]->name.data);
        }
    }
    return true;
}

static bool load_tensors(lg_gguf *g, lb_err *err) {
    if (!count_tensors(g, err)) {
        return lg_gguf_err_file(err, g->parts[0].info.path);
    }
    g->tensors = lb_alloc_n(g->arena, g->n_tensors, sizeof *g->tensors, err);
    g->tensors_by_name = lb_alloc_n(g->arena, g->n_tensors, sizeof *g->tensors_by_name, err);
    if (g->tensors == NULL || g->tensors_by_name == NULL) {
        return false;
    }
    lg_gguf_tensor *to = g->tensors;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const lg_gguf_part *part = &g->parts[i];
        if (!lg_gguf_read_tensors(part, i, to, err)) {
            return lg_gguf_err_file(err, part->info.path);
        }
        to += part->info.n_tensors;
    }
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        g->tensors_by_name[i] = &g->tensors[i];
    }
    return (check_places(g, g->tensors_by_name, err) && check_names(g, g->tensors_by_name, err)) ||
           lg_gguf_err_file(err, g->parts[0].info.path);
}

/* With the first part in place: keys, other parts, tensors. */
static bool load(lg_gguf *g, lb_err *err) {
    const char *path = g->parts[0].info.path;
    if (!lg_gguf_load_keys(g, &g->parts[0], err)) {
        return lg_gguf_err_file(err, path);
    }
    return lg_gguf_open_split(g, err) && load_tensors(g, err);
}

static lg_gguf *new_gguf(lb_arena *arena, lb_err *err) {
    lg_gguf *g = lb_alloc(arena, sizeof *g, err);
    if (g == NULL) {
        return NULL;
    }
    g->arena = arena;
    g->parts = lb_alloc(arena, sizeof *g->parts, err);
    return g->parts == NULL ? NULL : g;
}

bool lg_gguf_open(const char *path, lb_arena *arena, lg_gguf **out, lb_err *err) {
    lg_gguf *g = new_gguf(arena, err);
    const char *kept = g == NULL ? NULL : lb_strndup(arena, path, strlen(path), err);
    if (kept == NULL || !lg_gguf_open_part(kept, &g->parts[0], err)) {
        return false;
    }
    g->n_parts = 1;
    if (!load(g, err)) {
        lg_gguf_close(g);
        return false;
    }
    *out = g;
    return true;
}

bool lg_gguf_open_memory(const lb_map *map, const char *path, lb_arena *arena, lg_gguf **out,
                         lb_err *err) {
    lg_gguf *g = new_gguf(arena, err);
    const char *kept = g == NULL ? NULL : lb_strndup(arena, path, strlen(path), err);
    if (kept == NULL) {
        return false;
    }
    g->parts[0] = (lg_gguf_part){.info.path = kept, .map = *map};
    if (!lg_gguf_scan(&g->parts[0], err)) {
        return lg_gguf_err_file(err, path);
    }
    g->n_parts = 1;
    if (!load(g, err)) {
        return false;
    }
    *out = g;
    return true;
}

void lg_gguf_close(lg_gguf *g) {
    for (uint32_t i = 0; g != NULL && i < g->n_parts; i++) {
        if (g->parts[i].owned) {
            lb_unmap(&g->parts[i].map);
        }
    }
    if (g != NULL) {
        g->n_parts = 0;
    }
}

uint64_t lg_gguf_n_keys(const lg_gguf *g) {
    return g->n_keys;
}

const lg_gguf_kv *lg_gguf_key_at(const lg_gguf *g, uint64_t i) {
    return i < g->n_keys ? &g->keys[i] : NULL;
}

const lg_gguf_kv *lg_gguf_find(const lg_gguf *g, const char *key) {
    lg_gguf_kv wanted = {.key = {.data = key, .n_bytes = strlen(key)}};
    const lg_gguf_kv *at = &wanted;
    const lg_gguf_kv **hit =
        g->n_keys == 0 ? NULL : bsearch(&at, g->keys_by_name, g->n_keys, sizeof at, by_key);
    return hit == NULL ? NULL : *hit;
}

uint64_t lg_gguf_n_tensors(const lg_gguf *g) {
    return g->n_tensors;
}

const lg_gguf_tensor *lg_gguf_tensor_at(const lg_gguf *g, uint64_t i) {
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const lg_gguf_tensor *lg_gguf_tensor_find(const lg_gguf *g, const char *name) {
    lg_gguf_tensor wanted = {.name = {.data = name, .n_bytes = strlen(name)}};
    const lg_gguf_tensor *at = &wanted;
    const lg_gguf_tensor **hit =
        g->n_tensors == 0
            ? NULL
            : bsearch(&at, g->tensors_by_name, g->n_tensors, sizeof at, by_name);
    return hit == NULL ? NULL : *hit;
}

uint32_t lg_gguf_n_files(const lg_gguf *g) {
    return g->n_parts;
}

const lg_gguf_file *lg_gguf_file_at(const lg_gguf *g, uint32_t i) {
    return i < g->n_parts ? &g->parts[i].info : NULL;
}

uint64_t lg_gguf_tensor_bytes(const lg_gguf *g) {
    return g->tensor_bytes;
}
