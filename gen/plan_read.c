/* plan_read.c -- the reading half of plan_json.h. What it reads is as untrusted as any file:
 * numbers that the reader itself uses are checked here, all others by the prover. */
#include <inttypes.h>
#include <string.h>

#include "descriptor.h"
#include "plan_json.h"

enum { ITEMS_MAX = 1 << 20 };

typedef struct reader {
    lg_plan *plan;
    lg_graph *graph;
    lb_arena *arena;
    lb_err *err;
} reader;

/* A list of the file and room for its items. */
static void *room(reader *r, const lg_at *root, const char *key, lg_at *list, uint32_t *n,
                  size_t elem) {
    size_t count = 0;
    if (!lg_at_array(root, key, list, &count, r->err)) {
        return NULL;
    }
    if (count > ITEMS_MAX) {
        lg_at_fail(root, key, r->err, LB_LIMIT, "has %zu items; %d are the limit", count,
                   ITEMS_MAX);
        return NULL;
    }
    *n = (uint32_t)count;
    return lb_alloc_n(r->arena, count, elem, r->err);
}

/* Items carry their number, for people and other readers; it must be true. */
static bool number_is(reader *r, const lg_at *at, uint32_t want) {
    uint32_t id = 0;
    return lg_at_u32(at, "id", &id, r->err) &&
           (id == want || lg_at_fail(at, "id", r->err, LB_BAD_VALUE,
                                     "is %" PRIu32 ", expected %" PRIu32, id, want));
}

/* ---- the head, which both files have */

static bool string_is(reader *r, const lg_at *root, const char *key, const char *want) {
    const char *got = NULL;
    return lg_at_string(root, key, &got, r->err) &&
           (strcmp(got, want) == 0 ||
            lg_at_fail(root, key, r->err, LB_BAD_VALUE, "is '%.80s', expected '%s'", got, want));
}

static bool read_limits(reader *r, const lg_at *root, lg_limits *l) {
    lg_at at;
    return lg_at_key(root, "limits", &at, r->err) && lg_at_uint(&at, "ctx", &l->ctx, r->err) &&
           lg_at_uint(&at, "slots", &l->slots, r->err) &&
           lg_at_uint(&at, "chunk", &l->chunk, r->err) &&
           lg_at_uint(&at, "t_max", &l->t_max, r->err) &&
           lg_at_uint(&at, "logit_rows_max", &l->logit_rows_max, r->err);
}

static bool read_head(reader *r, const lg_at *root) {
    const char *target = NULL;
    return string_is(r, root, "schema", "lagen.launches/1") &&
           lg_at_string(root, "target", &target, r->err) &&
           (strcmp(target, "native") != 0 ||
            lg_at_fail(root, "target", r->err, LB_BAD_VALUE, "is native, which names no row")) &&
           lg_hw_find(target, &r->plan->hw, r->err) && read_limits(r, root, &r->plan->limits) &&
           lg_at_string(root, "arch", &r->graph->arch, r->err);
}

/* memory.json belongs to the same program. */
static bool same_head(reader *r, const lg_at *root) {
    lg_limits l = {0};
    const lg_limits *want = &r->plan->limits;
    if (!string_is(r, root, "schema", "lagen.memory/1") ||
        !string_is(r, root, "target", lg_hw_name(r->plan->hw)) ||
        !string_is(r, root, "arch", r->graph->arch) || !read_limits(r, root, &l)) {
        return false;
    }
    return (l.ctx == want->ctx && l.slots == want->slots && l.chunk == want->chunk &&
            l.t_max == want->t_max && l.logit_rows_max == want->logit_rows_max) ||
           lg_at_fail(root, "limits", r->err, LB_BAD_VALUE, "differ from those of launches.json");
}

/* ---- memory.json */

static bool read_state(reader *r, const lg_at *at, lg_gvalue *v) {
    return lg_at_uint(at, "state_bytes", &v->state_bytes, r->err) &&
           lg_at_uint(at, "slots", &v->slots, r->err) &&
           lg_at_uint(at, "positions", &v->positions, r->err) &&
           lg_at_uint(at, "window", &v->window, r->err);
}

static bool read_value(reader *r, const lg_at *at, lg_gvalue *v, lg_place *p) {
    uint32_t rows = 0;
    uint32_t elem = 0;
    uint32_t arena = 0;
    if (!lg_at_string(at, "name", &v->name, r->err) ||
        !lg_at_choice(at, "rows", LG_ROWS_NAMES, &rows, r->err) ||
        !lg_at_choice(at, "elem", LG_ELEM_NAMES, &elem, r->err) ||
        !lg_at_uint(at, "width", &v->width, r->err) ||
        (elem == LG_ELEM_I32 && (!lg_at_uint(at, "below", &v->below, r->err) ||
                                 !lg_at_uint(at, "extra", &v->extra, r->err))) ||
        !lg_at_choice(at, "arena", LG_ARENA_NAMES, &arena, r->err) ||
        !lg_at_uint(at, "offset", &p->offset, r->err) ||
        !lg_at_uint(at, "bytes", &p->bytes, r->err) || !lg_at_u32(at, "first", &p->first, r->err) ||
        !lg_at_u32(at, "last", &p->last, r->err)) {
        return false;
    }
    v->rows = (lg_rows)rows;
    v->elem = (lg_elem)elem;
    p->arena = (lg_arena_kind)arena;
    return v->rows != LG_ROWS_STATE || read_state(r, at, v);
}

static bool read_values(reader *r, const lg_at *root) {
    lg_graph *g = r->graph;
    lg_at list;
    g->values = room(r, root, "values", &list, &g->n_values, sizeof *g->values);
    r->plan->places = g->values == NULL
                          ? NULL
                          : lb_alloc_n(r->arena, g->n_values, sizeof *r->plan->places, r->err);
    for (uint32_t i = 0; r->plan->places != NULL && i < g->n_values; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!number_is(r, &at, i) || !read_value(r, &at, &g->values[i], &r->plan->places[i])) {
            return false;
        }
    }
    return r->plan->places != NULL;
}

/* The tensor has no bytes and the layout no planes: the prover needs neither. */
static bool read_weight(reader *r, const lg_at *at, lg_gtensor *t, lg_weight *w) {
    static const char *const layouts[] = {"plain", "strips", NULL};
    const char *type = NULL;
    uint32_t layout = 0;
    lg_gguf_tensor *file = lb_alloc(r->arena, sizeof *file, r->err);
    lb_layout *l = lb_alloc(r->arena, sizeof *l, r->err);
    if (file == NULL || l == NULL || !lg_at_string(at, "name", &t->name, r->err) ||
        !lg_at_string(at, "type", &type, r->err) ||
        !lg_at_choice(at, "layout", layouts, &layout, r->err) ||
        !lg_at_uint(at, "cols", &t->n_cols, r->err) ||
        !lg_at_uint(at, "rows", &t->n_rows, r->err) ||
        !lg_at_uint(at, "mats", &t->n_mats, r->err) ||
        !lg_at_uint(at, "offset", &w->offset, r->err) ||
        !lg_at_uint(at, "bytes", &w->bytes, r->err)) {
        return false;
    }
    lb_err why = {0};
    if (!lg_qtype_from_name(type, strlen(type), &file->type, &why)) {
        return lg_at_fail(at, "type", r->err, why.code, "%s", why.text);
    }
    l->type = lg_qtype_get(file->type)->name;
    t->file = file;
    w->layout = layout == 1 ? l : NULL;
    return true;
}

static bool read_weights(reader *r, const lg_at *root) {
    lg_graph *g = r->graph;
    lg_at list;
    g->tensors = room(r, root, "weights", &list, &g->n_tensors, sizeof *g->tensors);
    r->plan->weights = g->tensors == NULL
                           ? NULL
                           : lb_alloc_n(r->arena, g->n_tensors, sizeof *r->plan->weights, r->err);
    for (uint32_t i = 0; r->plan->weights != NULL && i < g->n_tensors; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!number_is(r, &at, i) || !read_weight(r, &at, &g->tensors[i], &r->plan->weights[i])) {
            return false;
        }
    }
    return r->plan->weights != NULL;
}

/* The step's block in the IO arena of a GPU program. */
static bool read_step(reader *r, const lg_at *root) {
    lg_at step;
    return !r->plan->hw->gpu || (lg_at_key(root, "step", &step, r->err) &&
                                 lg_at_uint(&step, "offset", &r->plan->step_offset, r->err) &&
                                 lg_at_uint(&step, "bytes", &r->plan->step_bytes, r->err));
}

/* Only where tokens are chosen on the device. */
static bool read_choices(reader *r, const lg_at *root) {
    lg_graph *g = r->graph;
    g->samples = lg_at_has(root, "choices");
    if (!g->samples) {
        return true;
    }
    return lg_at_u32(root, "choices", &g->choices, r->err) &&
           (g->choices < g->n_values ||
            lg_at_fail(root, "choices", r->err, LB_BAD_VALUE, "is no value"));
}

static bool read_memory(reader *r, const lg_at *root) {
    lg_at arenas;
    if (!same_head(r, root) || !read_values(r, root) || !read_weights(r, root) ||
        !read_step(r, root) || !lg_at_key(root, "arenas", &arenas, r->err) ||
        !lg_at_u32(root, "logits", &r->graph->logits, r->err) || !read_choices(r, root)) {
        return false;
    }
    for (int i = 0; i < LG_N_ARENAS; i++) {
        if (!lg_at_uint(&arenas, LG_ARENA_NAMES[i], &r->plan->arena_bytes[i], r->err)) {
            return false;
        }
    }
    return r->graph->logits < r->graph->n_values ||
           lg_at_fail(root, "logits", r->err, LB_BAD_VALUE, "is no value");
}

/* ---- launches.json */

static bool find_kernel(const lg_plan *plan, const char *name, uint32_t n, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(plan->kernels[i].name, name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_per_launch(reader *r, const lg_at *at, lg_kernel *k) {
    lg_at list;
    size_t n = 0;
    if (!r->plan->hw->gpu) {
        return true;
    }
    bool ok = lg_at_array(at, "per_launch", &list, &n, r->err) &&
              (n == 3 ||
               lg_at_fail(at, "per_launch", r->err, LB_BAD_SHAPE, "has %zu items, expected 3", n));
    for (size_t d = 0; ok && d < 3; d++) {
        lg_at item = lg_at_item(&list, d);
        ok = lg_at_uint(&item, NULL, &k->per_launch[d], r->err);
    }
    return ok;
}

static bool read_kernel(reader *r, const lg_at *at, uint32_t i) {
    lg_kernel *k = &r->plan->kernels[i];
    lg_at descriptor;
    uint32_t twin = 0;
    if (!lg_at_key(at, "descriptor", &descriptor, r->err) ||
        !lg_descriptor_read(&descriptor, r->arena, k, r->err) ||
        !lg_at_string(at, "family", &k->family, r->err) || !string_is(r, at, "name", k->name) ||
        !read_per_launch(r, at, k)) {
        return false;
    }
    k->descriptor = descriptor.value;
    return !find_kernel(r->plan, k->name, i, &twin) ||
           lg_at_fail(at, "name", r->err, LB_DUPLICATE, "'%s' is kernel %" PRIu32 " too", k->name,
                      twin);
}

static bool read_kernels(reader *r, const lg_at *root) {
    lg_at list;
    lg_plan *plan = r->plan;
    plan->kernels = room(r, root, "kernels", &list, &plan->n_kernels, sizeof *plan->kernels);
    for (uint32_t i = 0; plan->kernels != NULL && i < plan->n_kernels; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_kernel(r, &at, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; plan->kernels != NULL && plan->hw->gpu && i < plan->n_kernels; i++) {
        lg_at at = lg_at_item(&list, i);
        const char *few = NULL;
        if (!lg_at_string(&at, "few", &few, r->err)) {
            return false;
        }
        if (!find_kernel(plan, few, plan->n_kernels, &plan->kernels[i].few)) {
            return lg_at_fail(&at, "few", r->err, LB_MISSING, "'%.80s' is no kernel of this file",
                              few);
        }
    }
    return plan->kernels != NULL;
}

static bool read_arg(reader *r, const lg_at *at, const lg_param *param, const lg_goperand **out) {
    const lg_graph *g = r->graph;
    lg_goperand *o = lb_alloc(r->arena, sizeof *o, r->err);
    uint32_t access = 0;
    *out = NULL;
    if (o == NULL || !string_is(r, at, "param", param->name)) {
        return false;
    }
    if (!lg_at_has(at, "id")) {
        return true;
    }
    if (!lg_at_choice(at, "access", LG_ACCESS_NAMES, &access, r->err) ||
        !lg_at_u32(at, "id", &o->id, r->err)) {
        return false;
    }
    o->role = param->name;
    o->access = (lg_access)access;
    *out = o;
    return o->id < (o->access == LG_TENSOR ? g->n_tensors : g->n_values) ||
           lg_at_fail(at, "id", r->err, LB_BAD_VALUE, "%" PRIu32 " is out of range", o->id);
}

static bool read_args(reader *r, const lg_at *at, lg_launch *l) {
    const lg_kernel *k = &r->plan->kernels[l->kernel];
    lg_at args;
    size_t n = 0;
    if (!lg_at_array(at, "args", &args, &n, r->err)) {
        return false;
    }
    if (n != k->n_params) {
        return lg_at_fail(at, "args", r->err, LB_BAD_SHAPE,
                          "has %zu items, kernel '%s' %" PRIu32 " parameters", n, k->name,
                          k->n_params);
    }
    const lg_goperand **list = lb_alloc_n(r->arena, n, sizeof *list, r->err);
    for (size_t i = 0; list != NULL && i < n; i++) {
        lg_at item = lg_at_item(&args, i);
        if (!read_arg(r, &item, &k->params[i], &list[i])) {
            return false;
        }
    }
    l->args = list;
    l->n_args = k->n_params;
    return list != NULL;
}

/* What other readers take from the launch itself is what its kernel declares. */
static bool same_as_kernel(reader *r, const lg_at *at, const lg_kernel *k) {
    lg_at grid;
    uint64_t block = 0;
    if (!lg_at_key(at, "grid", &grid, r->err) || !lg_at_uint(at, "block", &block, r->err)) {
        return false;
    }
    if (!lg_value_equal(grid.value, lg_value_find(k->descriptor, "grid"))) {
        return lg_at_fail(at, "grid", r->err, LB_BAD_VALUE, "differs from that of kernel '%s'",
                          k->name);
    }
    return block == k->block ||
           lg_at_fail(at, "block", r->err, LB_BAD_VALUE, "is %" PRIu64 ", kernel '%s' has %" PRIu64,
                      block, k->name, k->block);
}

static bool read_launch(reader *r, const lg_at *at, uint32_t i) {
    lg_launch *l = &r->plan->launches[i];
    const char *kernel = NULL;
    int64_t layer = 0;
    uint32_t when = LG_WHEN_ANY;
    if (!lg_at_string(at, "name", &l->label, r->err) ||
        !lg_at_string(at, "kernel", &kernel, r->err) || !lg_at_int(at, "layer", &layer, r->err)) {
        return false;
    }
    if (lg_at_has(at, "when") && !lg_at_choice(at, "when", LG_WHEN_NAMES, &when, r->err)) {
        return false;
    }
    if (layer < -1 || layer > INT32_MAX) {
        return lg_at_fail(at, "layer", r->err, LB_BAD_VALUE, "is %" PRId64, layer);
    }
    if (!find_kernel(r->plan, kernel, r->plan->n_kernels, &l->kernel)) {
        return lg_at_fail(at, "kernel", r->err, LB_BAD_VALUE, "'%.80s' is no kernel of this file",
                          kernel);
    }
    l->node = i;
    l->layer = (int32_t)layer;
    l->when = (lg_when)when;
    return same_as_kernel(r, at, &r->plan->kernels[l->kernel]) && read_args(r, at, l);
}

static bool read_launches(reader *r, const lg_at *root) {
    lg_at list;
    lg_plan *plan = r->plan;
    plan->launches = room(r, root, "launches", &list, &plan->n_launches, sizeof *plan->launches);
    for (uint32_t i = 0; plan->launches != NULL && i < plan->n_launches; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_launch(r, &at, i)) {
            return false;
        }
    }
    return plan->launches != NULL;
}

bool lg_plan_from_json(const lg_value *launches, const lg_value *memory, lb_arena *arena,
                       lg_plan **out, lb_err *err) {
    lg_at lroot = lg_at_root("launches.json", launches);
    lg_at mroot = lg_at_root("memory.json", memory);
    reader r = {.arena = arena, .err = err};
    r.plan = lb_alloc(arena, sizeof *r.plan, err);
    r.graph = r.plan == NULL ? NULL : lb_alloc(arena, sizeof *r.graph, err);
    if (r.graph == NULL || !read_head(&r, &lroot) || !read_memory(&r, &mroot) ||
        !read_kernels(&r, &lroot) || !read_launches(&r, &lroot)) {
        return false;
    }
    r.graph->level = LG_LEVEL_LAUNCH;
    r.plan->graph = r.graph;
    *out = r.plan;
    return true;
}
