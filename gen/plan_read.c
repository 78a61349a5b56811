/* plan_read.c -- the reading half of plan_json.h. What it reads is as untrusted as any file. */
#include <inttypes.h>
#include <string.h>

#include "descriptor.h"
#include "plan_json.h"

enum { ITEMS_MAX = 1 << 20 };

static const char *const ARENA_NAMES[] = {"weights", "kv", "scratch", "io", NULL};
static const char *const ROWS_NAMES[] = {"T", "L", "state", NULL};
static const char *const ELEM_NAMES[] = {"f32", "i8", "i16", "f16", NULL};
static const char *const ACCESS_NAMES[] = {"read", "write", "both", "state", "tensor", NULL};

static bool read_limits(const lg_at *root, lg_limits *l, lb_err *err) {
    lg_at at;
    return lg_at_key(root, "limits", &at, err) && lg_at_uint(&at, "ctx", &l->ctx, err) &&
           lg_at_uint(&at, "slots", &l->slots, err) && lg_at_uint(&at, "chunk", &l->chunk, err) &&
           lg_at_uint(&at, "t_max", &l->t_max, err) && lg_at_uint(&at, "logit_rows_max", &l->logit_rows_max, err);
}

/* A list of the file and room for its items. */
static void *room(const lg_at *root, const char *key, lg_at *list, uint32_t *n, size_t elem, lb_arena *arena, lb_err *err) {
    size_t count = 0;
    if (!lg_at_array(root, key, list, &count, err)) {
        return NULL;
    }
    if (count > ITEMS_MAX) {
        lg_at_fail(root, key, err, LB_LIMIT, "has %zu items", count);
        return NULL;
    }
    *n = (uint32_t)count;
    return lb_alloc_n(arena, count, elem, err);
}

static bool read_value(const lg_at *at, lg_gvalue *v, lg_place *p, lb_err *err) {
    uint32_t rows = 0;
    uint32_t elem = 0;
    uint32_t arena = 0;
    if (!lg_at_string(at, "name", &v->name, err) || !lg_at_choice(at, "rows", ROWS_NAMES, &rows, err) ||
        !lg_at_choice(at, "elem", ELEM_NAMES, &elem, err) || !lg_at_uint(at, "width", &v->width, err) ||
        !lg_at_uint(at, "state_bytes", &v->state_bytes, err) || !lg_at_choice(at, "arena", ARENA_NAMES, &arena, err) ||
        !lg_at_uint(at, "offset", &p->offset, err) || !lg_at_uint(at, "bytes", &p->bytes, err) ||
        !lg_at_u32(at, "first", &p->first, err) || !lg_at_u32(at, "last", &p->last, err)) {
        return false;
    }
    v->rows = (lg_rows)rows;
    v->elem = (lg_elem)elem;
    p->arena = (lg_arena_kind)arena;
    return true;
}

static bool read_weight(const lg_at *at, lb_arena *arena, lg_gtensor *t, lg_weight *w, lb_err *err) {
    static const char *const layouts[] = {"plain", "strips", NULL};
    const char *type = NULL;
    uint32_t layout = 0;
    lg_gguf_tensor *file = lb_alloc(arena, sizeof *file, err);
    lb_layout *l = lb_alloc(arena, sizeof *l, err);
    if (file == NULL || l == NULL || !lg_at_string(at, "name", &t->name, err) || !lg_at_string(at, "type", &type, err) ||
        !lg_at_choice(at, "layout", layouts, &layout, err) || !lg_at_uint(at, "cols", &t->n_cols, err) ||
        !lg_at_uint(at, "rows", &t->n_rows, err) || !lg_at_uint(at, "mats", &t->n_mats, err) ||
        !lg_at_uint(at, "offset", &w->offset, err) || !lg_at_uint(at, "bytes", &w->bytes, err) ||
        !lg_qtype_from_name(type, strlen(type), &file->type, err)) {
        return false;
    }
    l->type = type;
    t->file = file;
    w->layout = layout == 1 ? l : NULL;
    return true;
}

static bool read_memory(const lg_at *root, lb_arena *arena, lg_graph *g, lg_plan *plan, lb_err *err) {
    lg_at list;
    lg_at arenas;
    g->values = room(root, "values", &list, &g->n_values, sizeof *g->values, arena, err);
    plan->places = g->values == NULL ? NULL : lb_alloc_n(arena, g->n_values, sizeof *plan->places, err);
    if (plan->places == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_value(&at, &g->values[i], &plan->places[i], err)) {
            return false;
        }
    }
    g->tensors = room(root, "weights", &list, &g->n_tensors, sizeof *g->tensors, arena, err);
    plan->weights = g->tensors == NULL ? NULL : lb_alloc_n(arena, g->n_tensors, sizeof *plan->weights, err);
    if (plan->weights == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_weight(&at, arena, &g->tensors[i], &plan->weights[i], err)) {
            return false;
        }
    }
    if (!lg_at_key(root, "arenas", &arenas, err) || !lg_at_u32(root, "logits", &g->logits, err)) {
        return false;
    }
    for (int i = 0; i < LG_N_ARENAS; i++) {
        if (!lg_at_uint(&arenas, ARENA_NAMES[i], &plan->arena_bytes[i], err)) {
            return false;
        }
    }
    return g->logits < g->n_values || lg_at_fail(root, "logits", err, LB_BAD_VALUE, "is no value");
}

static bool read_arg(const lg_at *at, const lg_graph *g, lb_arena *arena, const lg_goperand **out, lb_err *err) {
    if (!lg_at_has(at, "id")) {
        *out = NULL;
        return true;
    }
    lg_goperand *o = lb_alloc(arena, sizeof *o, err);
    uint32_t access = 0;
    if (o == NULL || !lg_at_string(at, "param", &o->role, err) || !lg_at_choice(at, "access", ACCESS_NAMES, &access, err) ||
        !lg_at_u32(at, "id", &o->id, err)) {
        return false;
    }
    o->access = (lg_access)access;
    *out = o;
    return o->id < (o->access == LG_TENSOR ? g->n_tensors : g->n_values) ||
           lg_at_fail(at, "id", err, LB_BAD_VALUE, "%" PRIu32 " is out of range", o->id);
}

static bool read_launch(const lg_at *at, const lg_graph *g, const lg_plan *plan, lb_arena *arena, lg_launch *l, lb_err *err) {
    const char *kernel = NULL;
    int64_t layer = 0;
    lg_at args;
    size_t n = 0;
    if (!lg_at_string(at, "name", &l->label, err) || !lg_at_string(at, "kernel", &kernel, err) ||
        !lg_at_int(at, "layer", &layer, err) || !lg_at_array(at, "args", &args, &n, err)) {
        return false;
    }
    for (l->kernel = 0; l->kernel < plan->n_kernels; l->kernel++) {
        if (strcmp(plan->kernels[l->kernel].name, kernel) == 0) {
            break;
        }
    }
    if (l->kernel == plan->n_kernels || n != plan->kernels[l->kernel].n_params) {
        return lg_at_fail(at, "kernel", err, LB_BAD_VALUE, "'%s' is no kernel of this file with %zu parameters", kernel, n);
    }
    l->layer = (int32_t)layer;
    const lg_goperand **list = lb_alloc_n(arena, n, sizeof *list, err);
    for (size_t i = 0; list != NULL && i < n; i++) {
        lg_at item = lg_at_item(&args, i);
        if (!read_arg(&item, g, arena, &list[i], err)) {
            return false;
        }
    }
    l->args = list;
    return list != NULL;
}

static bool read_per_launch(const lg_at *at, lg_kernel *k, lb_err *err) {
    lg_at list;
    size_t n = 0;
    if (!lg_at_has(at, "per_launch")) {
        return true;
    }
    if (!lg_at_array(at, "per_launch", &list, &n, err)) {
        return false;
    }
    bool ok = n == 3 || lg_at_fail(at, "per_launch", err, LB_BAD_SHAPE, "has %zu items, expected 3", n);
    for (size_t d = 0; ok && d < 3; d++) {
        lg_at item = lg_at_item(&list, d);
        ok = lg_at_uint(&item, NULL, &k->per_launch[d], err);
    }
    return ok;
}

/* The step's block in the IO arena of a GPU program. */
static bool read_step(const lg_at *root, lg_plan *plan, lb_err *err) {
    lg_at step;
    return !lg_at_has(root, "step") ||
           (lg_at_key(root, "step", &step, err) && lg_at_uint(&step, "offset", &plan->step_offset, err) &&
            lg_at_uint(&step, "bytes", &plan->step_bytes, err));
}

static bool read_kernels(const lg_at *root, lb_arena *arena, lg_plan *plan, lb_err *err) {
    lg_at list;
    plan->kernels = room(root, "kernels", &list, &plan->n_kernels, sizeof *plan->kernels, arena, err);
    for (uint32_t i = 0; plan->kernels != NULL && i < plan->n_kernels; i++) {
        lg_kernel *k = &plan->kernels[i];
        lg_at at = lg_at_item(&list, i);
        lg_at descriptor;
        if (!lg_at_key(&at, "descriptor", &descriptor, err) || !lg_descriptor_read(&descriptor, arena, k, err) ||
            !lg_at_string(&at, "family", &k->family, err) || !read_per_launch(&at, k, err)) {
            return false;
        }
        k->descriptor = descriptor.value;
    }
    return plan->kernels != NULL;
}

bool lg_plan_from_json(const lg_value *launches, const lg_value *memory, lb_arena *arena, lg_plan **out, lb_err *err) {
    lg_at lroot = lg_at_root("launches.json", launches);
    lg_at mroot = lg_at_root("memory.json", memory);
    lg_plan *plan = lb_alloc(arena, sizeof *plan, err);
    lg_graph *g = lb_alloc(arena, sizeof *g, err);
    const char *target = NULL;
    lg_at list;
    if (plan == NULL || g == NULL || !lg_at_string(&lroot, "target", &target, err) ||
        !lg_hw_find(target, &plan->hw, err) || !read_limits(&lroot, &plan->limits, err) ||
        !lg_at_string(&lroot, "arch", &g->arch, err) || !read_memory(&mroot, arena, g, plan, err) ||
        !read_step(&mroot, plan, err) || !read_kernels(&lroot, arena, plan, err)) {
        return false;
    }
    plan->graph = g;
    plan->launches = room(&lroot, "launches", &list, &plan->n_launches, sizeof *plan->launches, arena, err);
    for (uint32_t i = 0; plan->launches != NULL && i < plan->n_launches; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_launch(&at, g, plan, arena, &plan->launches[i], err)) {
            return false;
        }
    }
    *out = plan;
    return plan->launches != NULL;
}
