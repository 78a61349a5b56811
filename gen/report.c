/* report.c -- see report.h: the page's memory and tensors, and the call of its template. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "fit_text.h"
#include "need.h"
#include "size_text.h"

enum { LAYERS_MAX = 1024 };

void lg_report_size(lg_builder *b, lg_value *map, const char *key, uint64_t bytes) {
    char name[64];
    char size[32];
    snprintf(name, sizeof name, "%s_text", key);
    lg_build_set_uint(b, map, key, bytes);
    lg_build_set_string(b, map, name, lg_size_text(bytes, size));
}

uint64_t lg_drawn(uint64_t value, uint64_t total) {
    while (total > UINT64_MAX / LG_DRAWN) {
        total >>= 1;
        value >>= 1;
    }
    return total == 0 ? 0 : value * LG_DRAWN / total;
}

void lg_draw(lg_builder *b, lg_value *map, const char *x, const char *w, uint64_t at, uint64_t n,
             uint64_t total) {
    uint64_t begin = lg_drawn(at, total);
    lg_build_set_uint(b, map, x, begin);
    lg_build_set_uint(b, map, w, lg_drawn(at + n, total) - begin);
}

/* ---- tensors */

/* "blk.12.ffn_up.weight": layer 12, role "ffn_up.weight"; -1 and the whole name outside layers. */
static const char *role_of(const char *name, int32_t *layer) {
    *layer = -1;
    if (strncmp(name, "blk.", 4) != 0) {
        return name;
    }
    char *end = NULL;
    unsigned long n = strtoul(name + 4, &end, 10);
    if (end == name + 4 || *end != '.' || n >= LAYERS_MAX) {
        return name;
    }
    *layer = (int32_t)n;
    return end + 1;
}

/* Tensor types in the order of their first tensor, with bytes in the image. */
typedef struct types {
    lg_qtype type[LG_QTYPE_LIMIT];
    uint64_t bytes[LG_QTYPE_LIMIT], tensors[LG_QTYPE_LIMIT];
    uint32_t n;
} types;

static uint32_t type_index(const types *t, lg_qtype type) {
    uint32_t i = 0;
    while (i < t->n && t->type[i] != type) {
        i++;
    }
    return i;
}

static void sum_types(const lg_plan *plan, types *t) {
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        lg_qtype type = plan->graph->tensors[i].file->type;
        uint32_t k = type_index(t, type);
        if (k == t->n) {
            t->type[t->n++] = type;
        }
        t->tensors[k]++;
        t->bytes[k] += plan->weights[i].bytes; /* at most the arena's: proved */
    }
}

static const lg_value *types_value(lg_builder *b, const types *t) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < t->n; i++) {
        lg_value *m = lg_build_map(b);
        lg_build_set_string(b, m, "type", lg_qtype_get(t->type[i])->name);
        lg_build_set_uint(b, m, "tensors", t->tensors[i]);
        lg_report_size(b, m, "bytes", t->bytes[i]);
        lg_build_push(b, list, m);
    }
    return list;
}

/* One row of the table of tensors: its role and, for each layer, 1 + the type's index, or 0. */
typedef struct role {
    const char *name;
    uint8_t *of_layer;
    bool in_layers;
} role;

static bool add_role(role *roles, uint32_t *n, const char *name, int32_t layer, uint32_t type,
                     lb_arena *arena, lb_err *err) {
    uint32_t i = 0;
    while (i < *n && (strcmp(roles[i].name, name) != 0 || roles[i].in_layers != (layer >= 0))) {
        i++;
    }
    if (i == *n) {
        roles[(*n)++] = (role){name, lb_alloc(arena, LAYERS_MAX, err), layer >= 0};
    }
    if (roles[i].of_layer == NULL) {
        return false;
    }
    roles[i].of_layer[layer < 0 ? 0 : layer] = (uint8_t)(type + 1);
    return true;
}

static const lg_value *roles_value(lg_builder *b, const lg_plan *plan, const types *t,
                                   uint64_t *n_layers, lb_arena *arena, lb_err *err) {
    const lg_graph *g = plan->graph;
    role *roles = lb_alloc_n(arena, (uint64_t)g->n_tensors + 1, sizeof *roles, err);
    lg_value *list = lg_build_array(b);
    uint32_t n = 0;
    *n_layers = 0;
    for (uint32_t i = 0; roles != NULL && i < g->n_tensors; i++) {
        int32_t layer = -1;
        const char *name = role_of(g->tensors[i].name, &layer);
        *n_layers = layer >= 0 && (uint64_t)layer + 1 > *n_layers ? (uint64_t)layer + 1 : *n_layers;
        if (!add_role(roles, &n, name, layer, type_index(t, g->tensors[i].file->type), arena,
                      err)) {
            return NULL;
        }
    }
    for (uint32_t i = 0; roles != NULL && i < n; i++) {
        lg_value *m = lg_build_map(b);
        lg_value *cells = lg_build_array(b);
        for (uint64_t k = 0; k < (roles[i].in_layers ? *n_layers : 1); k++) {
            lg_build_push(b, cells, lg_build_uint(b, roles[i].of_layer[k]));
        }
        lg_build_set_string(b, m, "name", roles[i].name);
        lg_build_set_bool(b, m, "in_layers", roles[i].in_layers);
        lg_build_set(b, m, "cells", cells);
        lg_build_push(b, list, m);
    }
    return roles == NULL ? NULL : list;
}

/* ---- memory */

/* Parts of a pool, in its order. */
typedef struct pool {
    const char *name;
    struct part {
        const char *name, *kind;
        uint64_t bytes;
    } parts[LG_QTYPE_LIMIT + 16];
    uint32_t n;
    uint64_t used; /* a sum that was checked */
} pool;

static void part(pool *p, const char *name, const char *kind, uint64_t bytes) {
    if (bytes > 0) {
        p->parts[p->n++] = (struct part){name, kind, bytes};
        p->used += bytes;
    }
}

/* To the board's memory if that is known and larger. */
static lg_value *pool_value(lg_builder *b, const pool *p, const lg_hw_device *board) {
    uint64_t have = board != NULL && board->memory_bytes > p->used ? board->memory_bytes : p->used;
    lg_value *m = lg_build_map(b);
    lg_value *list = lg_build_array(b);
    uint64_t at = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        lg_value *s = lg_build_map(b);
        lg_build_set_string(b, s, "name", p->parts[i].name);
        lg_build_set_string(b, s, "kind", p->parts[i].kind);
        lg_draw(b, s, "at", "size", at, p->parts[i].bytes, have);
        lg_report_size(b, s, "bytes", p->parts[i].bytes);
        lg_build_push(b, list, s);
        at += p->parts[i].bytes;
    }
    lg_build_set_string(b, m, "name", p->name);
    lg_report_size(b, m, "used", p->used);
    lg_report_size(b, m, "have", have);
    lg_report_size(b, m, "spare", have - p->used);
    lg_build_set_bool(b, m, "too_small", board != NULL && board->memory_bytes < p->used);
    lg_build_set(b, m, "segments", list);
    return m;
}

/* The pool that holds the arenas. *scratch_at: where the scratch begins in it. */
static bool device_pool(const lg_plan *plan, const lg_need *n, const types *t, lb_arena *arena,
                        pool *out, uint64_t *scratch_at, lb_err *err) {
    bool one = lg_one_pool(plan->hw);
    uint64_t weights = 0;
    const char *gpu = one ? "Memory, one pool" : "GPU memory";
    *out = (pool){.name = plan->hw->gpu ? gpu : "Memory"};
    for (uint32_t i = 0; i < t->n; i++) {
        const char *name = lb_format(arena, err, "weights, %s", lg_qtype_get(t->type[i])->name);
        const char *kind = lb_format(arena, err, "t%" PRIu32, i + 1);
        if (name == NULL || kind == NULL) {
            return false;
        }
        part(out, name, kind, t->bytes[i]);
        weights += t->bytes[i];
    }
    part(out, "weights, padding", "rest", n->arenas[LG_ARENA_WEIGHTS] - weights);
    part(out, "keys and values, layers that see all", "kv", n->kv_full);
    part(out, "keys and values, sliding windows", "window", n->kv_window);
    part(out, "keys and values, padding", "rest",
         n->arenas[LG_ARENA_KV] - n->kv_full - n->kv_window);
    *scratch_at = out->used;
    part(out, "scratch", "scratch", n->arenas[LG_ARENA_SCRATCH]);
    part(out, "logits and step", "io", n->arenas[LG_ARENA_IO]);
    part(out, "driver, at most", "driver", n->driver);
    part(out, "host memory, at most", "host", one ? n->mirror + n->stages + n->heap : 0);
    return true;
}

static pool host_pool(const lg_need *n) {
    pool p = {.name = "Host memory"};
    part(&p, "pinned, for good", "io", n->mirror);
    part(&p, "pinned, to load weights", "scratch", n->stages);
    part(&p, "all else, at most", "host", n->heap);
    return p;
}

/* The scratch arena over the launches of a step: each value where it lies while it lives, within
 * the arena (y, h) and within the pool (pool_y, pool_h). */
static const lg_value *scratch_value(lg_builder *b, const lg_plan *plan, uint64_t at,
                                     uint64_t have) {
    uint64_t n = plan->arena_bytes[LG_ARENA_SCRATCH];
    lg_value *m = lg_build_map(b);
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        const lg_place *p = &plan->places[i];
        if (p->arena != LG_ARENA_SCRATCH || p->bytes == 0) {
            continue;
        }
        lg_value *v = lg_build_map(b);
        lg_build_set_string(b, v, "name", plan->graph->values[i].name);
        lg_build_set_uint(b, v, "first", p->first);
        lg_build_set_uint(b, v, "n", (uint64_t)p->last - p->first + 1);
        lg_build_set_uint(b, v, "offset", p->offset);
        lg_draw(b, v, "y", "h", p->offset, p->bytes, n);
        lg_draw(b, v, "pool_y", "pool_h", at + p->offset, p->bytes, have);
        lg_report_size(b, v, "bytes", p->bytes);
        lg_build_set_uint(b, v, "id", i);
        lg_build_push(b, list, v);
    }
    lg_report_size(b, m, "bytes", n);
    lg_build_set_uint(b, m, "launches", plan->n_launches);
    lg_build_set(b, m, "values", list);
    return m;
}

static bool put_memory(lg_builder *b, lg_value *root, const lg_program *p, const types *t,
                       const lg_hw_device *board, lb_arena *arena, lb_err *err) {
    lg_need need;
    pool device;
    uint64_t at = 0;
    lg_value *pools = lg_build_array(b);
    if (!lg_need_sum(p->plan, &need, err) ||
        !device_pool(p->plan, &need, t, arena, &device, &at, err)) {
        return false;
    }
    const lg_value *first = pool_value(b, &device, board);
    uint64_t have =
        board != NULL && board->memory_bytes > device.used ? board->memory_bytes : device.used;
    lg_build_push(b, pools, first);
    if (!lg_one_pool(p->plan->hw)) {
        pool host = host_pool(&need);
        lg_build_push(b, pools, pool_value(b, &host, NULL));
    }
    lg_build_set(b, root, "pools", pools);
    lg_build_set(b, root, "scratch", scratch_value(b, p->plan, at, have));
    return true;
}

/* ---- the page */

static const char *manifest_text(const lg_program *p, const char *key) {
    const lg_value *v = lg_value_find(p->manifest, key);
    return v != NULL && v->kind == LG_VALUE_STRING ? v->u.string.bytes : "";
}

static void put_head(lg_builder *b, lg_value *root, const lg_program *p,
                     const lg_hw_device *board) {
    static const char *const keys[] = {"model", "compiler", "kv", "cuda_compiler"};
    const lg_value *limits = lg_value_find(p->manifest, "limits");
    const lg_value *why = lg_value_find(limits, "chunk_why");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        lg_build_set_string(b, root, keys[i], manifest_text(p, keys[i]));
    }
    lg_build_set_string(b, root, "architecture", p->plan->graph->arch);
    lg_build_set_string(b, root, "target", lg_hw_name(p->plan->hw));
    lg_build_set_bool(b, root, "gpu", p->plan->hw->gpu);
    lg_build_set_string(b, root, "board", board == NULL ? "" : board->name);
    lg_build_set_string(b, root, "chunk_why",
                        why != NULL && why->kind == LG_VALUE_STRING ? why->u.string.bytes : "");
    lg_build_set_uint(b, root, "ctx", p->plan->limits.ctx);
    lg_build_set_uint(b, root, "slots", p->plan->limits.slots);
    lg_build_set_uint(b, root, "chunk", p->plan->limits.chunk);
    lg_build_set_uint(b, root, "t_max", p->plan->limits.t_max);
    lg_build_set_uint(b, root, "n_launches", p->plan->n_launches);
    lg_build_set_uint(b, root, "n_kernels", p->plan->n_kernels);
    lg_build_set_uint(b, root, "n_facts", p->proof.n_facts);
}

static bool put_steps(lg_builder *b, lg_value *root, const lg_program *p,
                      const lg_hw_device *board, lb_arena *arena, lb_err *err) {
    const uint64_t rows[] = {1, p->plan->limits.t_max};
    lg_value *steps = lg_build_array(b);
    for (int i = 0; i < (rows[1] > 1 ? 2 : 1); i++) {
        const lg_value *step = lg_report_step(b, p->plan, board, rows[i], arena, err);
        if (step == NULL) {
            return b->failed ? lg_build_done(b, err) : false;
        }
        lg_build_push(b, steps, step);
    }
    lg_build_set(b, root, "steps", steps);
    return true;
}

bool lg_report(const lg_program *p, const lg_hw_device *board, lg_host *host, lb_arena *arena,
               lb_text *out, lb_err *err) {
    lg_builder b;
    types t = {.n = 0};
    uint64_t n_layers = 0;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    sum_types(p->plan, &t);
    put_head(&b, root, p, board);
    const lg_value *roles = roles_value(&b, p->plan, &t, &n_layers, arena, err);
    if (roles == NULL) {
        return b.failed ? lg_build_done(&b, err) : false;
    }
    if (!put_memory(&b, root, p, &t, board, arena, err) ||
        !put_steps(&b, root, p, board, arena, err)) {
        return false;
    }
    lg_build_set(&b, root, "types", types_value(&b, &t));
    lg_build_set(&b, root, "roles", roles);
    lg_build_set_uint(&b, root, "n_layers", n_layers);
    lg_build_set(&b, root, "margins", lg_report_margins(&b, p));
    const lg_value *facts = lg_report_facts(&b, p, arena, err);
    if (facts == NULL) {
        return b.failed ? lg_build_done(&b, err) : false;
    }
    lg_build_set(&b, root, "facts", facts);
    return lg_build_done(&b, err) &&
           lg_host_render(host, "report/page.html.lua", root, out, err);
}
