/* bend.c -- see bend.h. Plans are const to their readers only: all of them lie in an arena, so the
 * casts below write what may be written. */
#include "bend.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TABLE = 3 * 512 };

typedef struct bender {
    lg_plan *plan;
    lb_arena *arena;
    uint32_t left, stride;
    bend_fn bent;
    void *arg;
    bend_spot spot;
    size_t n_path;
    uint64_t table[TABLE]; /* values of the expression in hand */
} bender;

/* The plan is bent now. */
static void show(bender *b, const char *way) {
    if (b->left-- != 0) {
        return;
    }
    b->left = b->stride - 1;
    snprintf(b->spot.path + b->n_path, sizeof b->spot.path - b->n_path, " %s", way);
    b->bent(b->arg, &b->spot);
    b->spot.path[b->n_path] = '\0';
}

static void at(bender *b, const char *path, const char *field) {
    int n = snprintf(b->spot.path, sizeof b->spot.path, "%s.%s", path, field);
    assert_true(n > 0 && (size_t)n < sizeof b->spot.path);
    b->n_path = (size_t)n;
}

static void bend_u64(bender *b, const char *path, const char *field, const uint64_t *p) {
    uint64_t *v = (uint64_t *)(uintptr_t)p;
    const uint64_t was = *v;
    at(b, path, field);
    *v = was + 1;
    show(b, "+1");
    *v = was - 1;
    show(b, "-1");
    if (was != 0) {
        *v = 0;
        show(b, "0");
    }
    *v = UINT64_MAX;
    show(b, "max");
    *v = was;
}

static void bend_u32(bender *b, const char *path, const char *field, const uint32_t *p) {
    uint32_t *v = (uint32_t *)(uintptr_t)p;
    const uint32_t was = *v;
    at(b, path, field);
    *v = was + 1;
    show(b, "+1");
    *v = was - 1;
    show(b, "-1");
    *v = UINT32_MAX / 2;
    show(b, "max");
    *v = was;
}

/* Doubled and halved too: what is a number of whole cells can stay one. */
static void bend_factor(bender *b, const char *path, const char *field, const uint64_t *p) {
    uint64_t *v = (uint64_t *)(uintptr_t)p;
    const uint64_t was = *v;
    bend_u64(b, path, field, p);
    *v = was / 2;
    show(b, "/2");
    *v = was * 2;
    show(b, "*2");
    *v = was;
}

/* The length of a list, which can only be shortened. */
static void bend_count(bender *b, const char *path, const char *field, const uint32_t *p) {
    uint32_t *v = (uint32_t *)(uintptr_t)p;
    at(b, path, field);
    (*v)--;
    show(b, "-1");
    (*v)++;
}

/* A small enumeration, or a number with few values. */
static void bend_enum(bender *b, const char *path, const char *field, const void *p, uint32_t n) {
    uint32_t *v = (uint32_t *)(uintptr_t)p;
    const uint32_t was = *v;
    at(b, path, field);
    for (uint32_t i = 0; i < n; i++) {
        char way[16];
        if (i == was) {
            continue;
        }
        *v = i;
        snprintf(way, sizeof way, "=%" PRIu32, i);
        show(b, way);
    }
    *v = was;
}

static void bend_name(bender *b, const char *path, const char *field, const char *const *p,
                      const char *const *others) {
    const char **v = (const char **)(uintptr_t)p;
    const char *was = *v;
    at(b, path, field);
    for (; *others != NULL; others++) {
        if (was == NULL || strcmp(was, *others) != 0) {
            *v = *others;
            show(b, *others);
        }
    }
    if (was != NULL && strcmp(field, "axis") == 0) {
        *v = NULL;
        show(b, "NULL");
    }
    *v = was;
}

/* ---- expressions */

static bool value_at(const bender *b, const lg_expr *e, uint64_t T, uint64_t L, uint64_t *out) {
    const lg_limits *l = &b->plan->limits;
    const lg_expr_var vars[] = {
        {"T", T}, {"L", L}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    return lg_expr_eval(e, vars, 5, out, NULL);
}

/* T and L where the prover looks, at least: number i of them. */
static bool place(const bender *b, uint64_t i, uint64_t *T, uint64_t *L) {
    const lg_limits *l = &b->plan->limits;
    uint64_t most = i / 3 + 1 < l->logit_rows_max ? i / 3 + 1 : l->logit_rows_max;
    *T = i / 3 + 1;
    *L = i % 3 == 0 ? 1 : i % 3 == 1 ? most : (most + 1) / 2;
    return *T <= l->t_max;
}

/* Keeps what an expression gives, to see later whether a bent one gives the same. */
static void keep_values(bender *b, const lg_expr *e) {
    uint64_t T = 0;
    uint64_t L = 0;
    for (uint64_t i = 0; place(b, i, &T, &L); i++) {
        assert_true(i < TABLE && value_at(b, e, T, L, &b->table[i]));
    }
}

static bool still_the_same(const bender *b, const lg_expr *e) {
    uint64_t T = 0;
    uint64_t L = 0;
    for (uint64_t i = 0; place(b, i, &T, &L); i++) {
        uint64_t v = 0;
        if (!value_at(b, e, T, L, &v) || v != b->table[i]) {
            return false;
        }
    }
    return true;
}

/* The plan is bent now, if the expression at *root gives other values. */
static void show_expr(bender *b, const lg_expr *const *root, const char *way) {
    if (!still_the_same(b, *root)) {
        show(b, way);
    }
}

static const lg_expr *binary(bender *b, lg_expr_kind kind, const lg_expr *x, uint64_t y) {
    const lg_expr *one = lg_expr_int(y, b->arena, NULL);
    const lg_expr *e = lg_expr_binary(kind, x, one, b->arena, NULL);
    assert_non_null(e);
    return e;
}

static void bend_root(bender *b, const lg_expr **p, const lg_expr *other, const char *way) {
    const lg_expr *was = *p;
    *p = other;
    show_expr(b, p, way);
    *p = was;
}

/* Numbers and names inside the tree. */
static void bend_leaves(bender *b, const lg_expr **root, const lg_expr *e) {
    if (e->kind == LG_EXPR_INT) {
        lg_expr *leaf = (lg_expr *)(uintptr_t)e;
        const uint64_t was = leaf->value;
        for (int up = 0; up < 2; up++) {
            leaf->value = up == 1 ? was + 1 : was - 1;
            show_expr(b, root, up == 1 ? "leaf +1" : "leaf -1");
            leaf->value = was;
        }
        return;
    }
    if (e->kind == LG_EXPR_VAR) {
        lg_expr *leaf = (lg_expr *)(uintptr_t)e;
        const char *was = leaf->name;
        static const char *const names[] = {"T", "L", "slots", "nosuch"};
        for (size_t i = 0; i < 4; i++) {
            if (strcmp(was, names[i]) != 0) {
                leaf->name = names[i];
                show_expr(b, root, names[i]);
            }
        }
        leaf->name = was;
        return;
    }
    bend_leaves(b, root, e->a);
    bend_leaves(b, root, e->b);
}

static void bend_expr(bender *b, const char *path, const char *field, const lg_expr *const *p) {
    const lg_expr **root = (const lg_expr **)(uintptr_t)p;
    const lg_expr *e = *root;
    uint64_t most = 0;
    at(b, path, field);
    keep_values(b, e);
    assert_true(value_at(b, e, b->plan->limits.t_max, b->plan->limits.logit_rows_max, &most));
    bend_root(b, root, binary(b, LG_EXPR_ADD, e, 1), "+1");
    bend_root(b, root, binary(b, LG_EXPR_SUB, e, 1), "-1");
    bend_root(b, root, binary(b, LG_EXPR_MUL, e, 2), "*2");
    bend_root(b, root, binary(b, LG_EXPR_DIV, e, 2), "/2");
    bend_root(b, root, lg_expr_int(most, b->arena, NULL), "constant");
    bend_root(b, root, lg_expr_int(1, b->arena, NULL), "one");
    bend_root(b, root, lg_expr_int(0, b->arena, NULL), "zero");
    bend_root(b, root, lg_expr_int(UINT64_MAX, b->arena, NULL), "max");
    bend_leaves(b, root, e);
}

/* ---- kernels */

static void bend_axis(bender *b, const lg_axis *a) {
    static const char *const names[] = {"rows", "strips", "heads", "nosuch", NULL};
    static const char *const places[] = {"x", "y", "z", "loop", "w", NULL};
    const char *path = strcmp(a->on, "loop") == 0 ? "kernel.loop" : "kernel.axis";
    bend_name(b, path, "name", &a->name, names);
    bend_name(b, path, "on", &a->on, places);
    bend_u64(b, path, "tile", &a->tile);
    bend_expr(b, path, "bound", &a->bound);
}

/* "kernel.read", "kernel.write", ... by what the operand is. */
static void bend_operand(bender *b, const lg_operand *o, const char *path) {
    static const char *const names[] = {"x", "y", "w0", "nosuch", NULL};
    bend_name(b, path, "param", &o->param, names);
    bend_enum(b, path, "access", &o->access, 5);
    bend_expr(b, path, "bytes", &o->bytes);
    bend_expr(b, path, "max_index", &o->max_index);
    bend_factor(b, path, "align", &o->align);
    bend_u32(b, path, "index_bits", &o->index_bits);
    if (o->has_window) {
        bend_u64(b, path, "window", &o->window);
    }
    if (o->below != 0) {
        bend_u64(b, path, "below", &o->below);
    }
    if (o->index_by != NULL) {
        static const char *const by[] = {"ids", "weights", "map", "nosuch", NULL};
        bend_name(b, path, "index_by", &o->index_by, by);
    }
}

/* Names of pairs and map, pairs of a tile, experts. */
static void bend_sorted(bender *b, const lg_sorted *s, const char *path) {
    static const char *const names[] = {"pairs", "map", "ids", "nosuch", NULL};
    if (s->pairs != NULL) {
        bend_name(b, path, "pairs", &s->pairs, names);
        bend_name(b, path, "map", &s->map, names);
        bend_u64(b, path, "tile", &s->tile);
        bend_u64(b, path, "groups", &s->groups);
    }
}

/* Taken for a plain cover, or a plain one for it. */
static void bend_scattered(bender *b, const lg_cover *c) {
    lg_cover *cover = (lg_cover *)(uintptr_t)c;
    const char *was = cover->scattered;
    at(b, "kernel.cover", "scattered");
    cover->scattered = was == NULL ? "for no reason" : NULL;
    show(b, "turned");
    cover->scattered = was;
}

/* Memory that ctas share; where it is said to be none it has no rows to read either. */
static void bend_own(bender *b, const lg_own *o) {
    static const char *const names[] = {"rows", "heads", "k", "v", "nosuch", NULL};
    bend_name(b, "kernel.own", "axis", &o->axis, names);
    bend_name(b, "kernel.own", "of", &o->of, names);
    bend_u64(b, "kernel.own", "tile", &o->tile);
    uint64_t *splits = (uint64_t *)(uintptr_t)&o->splits;
    const uint64_t was = *splits;
    at(b, "kernel.own", "splits");
    *splits = was + 1;
    show(b, "+1");
    *splits = was == 1 ? UINT64_MAX : was - 1;
    show(b, "less");
    *splits = was;
}

static void bend_last(bender *b, const lg_cover *c) {
    static const char *const names[] = {"rows", "heads", "part", "count", "nosuch", NULL};
    if (c->last_axis != NULL) {
        bend_name(b, "kernel.last", "axis", &c->last_axis, names);
        bend_name(b, "kernel.last", "count", &c->last_count, names);
    }
}

static void bend_cover(bender *b, const lg_cover *c) {
    static const char *const names[] = {"x", "y", "nosuch", NULL};
    static const char *const axes[] = {"rows", "strips", "heads", "nosuch", NULL};
    bend_name(b, "kernel.cover", "param", &c->param, names);
    bend_sorted(b, &c->sorted, c->scattered != NULL ? "kernel.scattered" : "kernel.sorted");
    if (c->own.splits != 0) {
        bend_own(b, &c->own);
        return;
    }
    bend_scattered(b, c);
    if (c->scattered != NULL) {
        return;
    }
    bend_last(b, c);
    bend_name(b, "kernel.cover.rows", "axis", &c->rows_axis, axes);
    bend_u64(b, "kernel.cover.rows", "tile", &c->rows_tile);
    bend_expr(b, "kernel.cover.rows", "n", &c->rows_n);
    bend_count(b, "kernel.cover", "n_cols", &c->n_cols);
    at(b, "kernel.cover", "partial");
    lg_cover *cover = (lg_cover *)(uintptr_t)c;
    cover->partial = !cover->partial;
    show(b, "turned");
    cover->partial = !cover->partial;
    for (uint32_t i = 0; i < c->n_cols; i++) {
        const lg_cover_cols *s = &c->cols[i];
        const char *path = s->axis == NULL ? "kernel.cover.whole" : "kernel.cover.cols";
        bend_name(b, path, "axis", &s->axis, axes);
        bend_u64(b, path, "first", &s->first);
        bend_u64(b, path, "tile", &s->tile);
        bend_u64(b, path, "begin", &s->begin);
        bend_u64(b, path, "n", &s->n);
    }
}

/* The launch takes this kernel, for few rows or many. */
static bool takes(const lg_plan *plan, const lg_launch *l, const lg_kernel *k) {
    const lg_kernel *of = &plan->kernels[l->kernel];
    return of == k || (plan->hw->gpu && &plan->kernels[of->few] == k);
}

/* What the kernel's parameter is given in its first launch. */
static const char *operand_path(const bender *b, const lg_kernel *k, const lg_operand *o) {
    static const char *const paths[] = {"kernel.read", "kernel.write", "kernel.both",
                                        "kernel.state", "kernel.tensor"};
    for (uint32_t i = 0; i < b->plan->n_launches; i++) {
        const lg_launch *l = &b->plan->launches[i];
        for (uint32_t a = 0; takes(b->plan, l, k) && a < k->n_params; a++) {
            if (l->args[a] != NULL && strcmp(k->params[a].name, o->param) == 0) {
                return paths[l->args[a]->access];
            }
        }
    }
    return "kernel.none";
}

static void bend_kernel(bender *b, const lg_kernel *k) {
    static const char *const params[] = {"x", "y", "step", "nosuch", NULL};
    static const char *const types[] = {"const float *", "float *",  "const int8_t *",
                                        "uint8_t *",     "uint32_t", NULL};
    static const char *const dims[] = {"grid x", "grid y", "grid z"};
    for (uint32_t i = 0; i < k->n_axes; i++) {
        bend_axis(b, &k->axes[i]);
    }
    for (uint32_t i = 0; i < k->n_params; i++) {
        bend_name(b, "kernel.param", "name", &k->params[i].name, params);
        bend_name(b, "kernel.param", "ctype", &k->params[i].ctype, types);
    }
    for (uint32_t i = 0; i < k->n_operands; i++) {
        bend_operand(b, &k->operands[i], operand_path(b, k, &k->operands[i]));
    }
    for (uint32_t i = 0; i < k->n_covers; i++) {
        bend_cover(b, &k->covers[i]);
    }
    for (int d = 0; d < 3; d++) {
        bend_expr(b, "kernel", dims[d], &k->grid[d]);
    }
    bend_u64(b, "kernel", "block", &k->block);
    bend_u64(b, "kernel", "scratch", &k->scratch_bytes);
    for (int d = 0; d < 3; d++) {
        bend_u64(b, "kernel", "per_launch", &k->per_launch[d]);
    }
}

/* ---- launches, places, the graph */

static void bend_arg(bender *b, const lg_goperand *const *slot) {
    const lg_goperand **p = (const lg_goperand **)(uintptr_t)slot;
    const lg_goperand *was = *p;
    static const lg_goperand step = {"step", LG_READ, 0};
    at(b, "launch", "arg");
    *p = was == NULL ? &step : NULL;
    show(b, was == NULL ? "set" : "NULL");
    for (uint32_t i = 0; was != NULL && i < 5 + 3; i++) {
        static const char *const ways[] = {"read",   "write", "both",  "state",
                                           "tensor", "id +1", "id -1", "id max"};
        lg_goperand bent = *was;
        bent.access = i < 5 ? (lg_access)i : was->access;
        bent.id = i == 5 ? was->id + 1 : i == 6 ? was->id - 1 : i == 7 ? UINT32_MAX : was->id;
        if (bent.access != was->access || bent.id != was->id) {
            *p = &bent;
            show(b, ways[i]);
        }
    }
    *p = was;
}

static void bend_launch(bender *b, uint32_t i) {
    const lg_launch *l = &b->plan->launches[i];
    b->spot.launch = i;
    bend_enum(b, "launch", "kernel", &l->kernel, b->plan->n_kernels + 1);
    bend_enum(b, "launch", "when", &l->when, 3);
    bend_u32(b, "launch", "node", &l->node);
    bend_u32(b, "launch", "n_args", &l->n_args);
    bend_u32(b, "launch", "layer", (const uint32_t *)(const void *)&l->layer);
    for (uint32_t a = 0; a < b->plan->kernels[l->kernel].n_params; a++) {
        bend_arg(b, &l->args[a]);
    }
    b->spot.launch = UINT32_MAX;
}

static void bend_value(bender *b, uint32_t i) {
    const lg_gvalue *v = &b->plan->graph->values[i];
    const lg_place *p = &b->plan->places[i];
    const char *path = v->rows == LG_ROWS_STATE ? "state" : "value";
    bend_enum(b, path, "rows", &v->rows, 3);
    bend_enum(b, path, "elem", &v->elem, 4);
    bend_u64(b, path, "width", &v->width);
    if (v->elem == LG_ELEM_I32) {
        bend_u64(b, "list", "below", &v->below);
        bend_u64(b, "list", "extra", &v->extra);
    }
    if (v->rows == LG_ROWS_STATE) {
        bend_factor(b, path, "state_bytes", &v->state_bytes);
        bend_factor(b, path, "slots", &v->slots);
        bend_factor(b, path, "positions", &v->positions);
        bend_u64(b, path, "window", &v->window);
    }
    bend_enum(b, path, "arena", &p->arena, LG_N_ARENAS + 1);
    bend_u64(b, path, "offset", &p->offset);
    bend_u64(b, path, "bytes", &p->bytes);
    bend_u32(b, path, "first", &p->first);
    bend_u32(b, path, "last", &p->last);
}

static void bend_weight(bender *b, uint32_t i) {
    const lg_gtensor *t = &b->plan->graph->tensors[i];
    lg_weight *w = &b->plan->weights[i];
    static const lb_layout other = {.type = "q5_k"};
    const lb_layout *was = w->layout;
    bend_u64(b, "tensor", "n_cols", &t->n_cols);
    bend_u64(b, "tensor", "n_rows", &t->n_rows);
    bend_u64(b, "tensor", "n_mats", &t->n_mats);
    bend_u64(b, "weight", "offset", &w->offset);
    bend_u64(b, "weight", "bytes", &w->bytes);
    at(b, "weight", "layout");
    w->layout = &other;
    show(b, "other");
    if (was != NULL) {
        w->layout = NULL;
        show(b, "NULL");
    }
    w->layout = was;
    bend_enum(b, "tensor", "type", &t->file->type, 15);
}

static void bend_whole(bender *b) {
    lg_plan *p = b->plan;
    bend_u64(b, "limits", "ctx", &p->limits.ctx);
    bend_u64(b, "limits", "slots", &p->limits.slots);
    bend_u64(b, "limits", "chunk", &p->limits.chunk);
    bend_u64(b, "limits", "t_max", &p->limits.t_max);
    bend_u64(b, "limits", "logit_rows_max", &p->limits.logit_rows_max);
    for (int i = 0; i < LG_N_ARENAS; i++) {
        bend_u64(b, "arena", LG_ARENA_NAMES[i], &p->arena_bytes[i]);
    }
    bend_u32(b, "graph", "logits", &p->graph->logits);
    bend_count(b, "plan", "n_launches", &p->n_launches);
}

void bend_all(lg_plan *plan, lb_arena *arena, uint32_t first, uint32_t stride, bend_fn bent,
              void *arg) {
    bender *b = lb_alloc(arena, sizeof *b, NULL);
    assert_non_null(b);
    *b = (bender){.plan = plan,
                  .arena = arena,
                  .left = first,
                  .stride = stride,
                  .bent = bent,
                  .arg = arg,
                  .spot = {.kernel = UINT32_MAX, .launch = UINT32_MAX}};
    for (uint32_t i = 0; i < plan->n_kernels; i++) {
        b->spot.kernel = i;
        bend_kernel(b, &plan->kernels[i]);
    }
    b->spot.kernel = UINT32_MAX;
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        bend_launch(b, i);
    }
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        bend_value(b, i);
    }
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        bend_weight(b, i);
    }
    bend_whole(b);
}
