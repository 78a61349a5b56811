/* descriptor.c -- see descriptor.h. */
#include "descriptor.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

typedef struct reader {
    lb_arena *arena;
    lb_err *err;
} reader;

static bool read_expr(reader *p, const lg_at *at, const char *key, const lg_expr **out) {
    const char *text = NULL;
    lb_err why = {0};
    if (!lg_at_string(at, key, &text, p->err)) {
        return false;
    }
    return lg_expr_parse(text, p->arena, out, &why) ||
           lg_at_fail(at, key, p->err, why.code, "%s", why.text);
}

/* What a request changes: T and L with its rows, ctx with its length; named as an axis is by it. */
static const char *kind_of(const lg_expr *e) {
    return lg_expr_uses(e, "ctx") ? "kv"
           : lg_expr_uses(e, "L") ? "logits"
           : lg_expr_uses(e, "T") ? "rows"
                                  : "dim";
}

static bool grows(const lg_expr *e) {
    return strcmp(kind_of(e), "dim") != 0;
}

static bool read_axis(reader *p, const lg_at *at, lg_axis *a) {
    static const char *const kinds[] = {"dim", "rows", "logits", "kv", NULL};
    static const char *const places[] = {"x", "y", "z", "loop", NULL};
    static const char *const folds[] = {"none", NULL};
    uint32_t kind = 0;
    uint32_t on = 0;
    uint32_t fold = 0;
    if (!lg_at_string(at, "name", &a->name, p->err) ||
        !lg_at_choice(at, "kind", kinds, &kind, p->err) || !read_expr(p, at, "bound", &a->bound) ||
        !lg_at_uint(at, "tile", &a->tile, p->err) || !lg_at_choice(at, "on", places, &on, p->err) ||
        !lg_at_choice(at, "fold", folds, &fold, p->err) ||
        !lg_at_string_or(at, "base", NULL, &a->base, p->err)) {
        return false;
    }
    a->kind = kinds[kind];
    a->on = places[on];
    bool fixed = strcmp(a->kind, "dim") == 0;
    if (fixed && grows(a->bound)) {
        return lg_at_fail(at, "bound", p->err, LB_BAD_VALUE,
                          "axis '%s' grows with the request, so its kind "
                          "is not dim",
                          a->name);
    }
    if (strcmp(a->kind, kind_of(a->bound)) != 0) {
        return lg_at_fail(at, "kind", p->err, LB_BAD_VALUE, "is '%s'; the bound of axis '%s' makes it '%s'",
                          a->kind, a->name, kind_of(a->bound));
    }
    bool capped = on == 1 || on == 2;
    if (a->base != NULL && (fixed || !capped)) {
        return lg_at_fail(at, "base", p->err, LB_BAD_VALUE,
                          "axis '%s' of kind '%s' on %s is never cut", a->name, a->kind, a->on);
    }
    if (a->tile == 0 || (!fixed && capped && a->base == NULL)) {
        return lg_at_fail(
            at, NULL, p->err, LB_BAD_VALUE,
            "axis '%s' of kind '%s' on %s with tile %" PRIu64
            ": its bound grows with the request, so it needs x, a loop or a static tile",
            a->name, a->kind, a->on, a->tile);
    }
    return true;
}

static bool read_smem(reader *p, const lg_at *at, lg_smem *s) {
    enum { ALIGN_MAX = 1024, WORD_BYTES = 4 };
    if (!lg_at_string(at, "name", &s->name, p->err) ||
        !lg_at_uint(at, "bytes", &s->bytes, p->err) ||
        !lg_at_uint(at, "align", &s->align, p->err)) {
        return false;
    }
    if (!lb_is_pow2(s->align) || s->align > ALIGN_MAX) {
        return lg_at_fail(at, "align", p->err, LB_BAD_VALUE, "is no power of two up to %d",
                          ALIGN_MAX);
    }
    return s->bytes % WORD_BYTES == 0 ||
           lg_at_fail(at, "bytes", p->err, LB_BAD_VALUE, "is %" PRIu64 ", not whole words of %d",
                      s->bytes, WORD_BYTES);
}

static bool read_param(reader *p, const lg_at *at, lg_param *out) {
    return lg_at_string(at, "name", &out->name, p->err) &&
           lg_at_string(at, "ctype", &out->ctype, p->err);
}

static bool read_operand(reader *p, const lg_at *at, lg_operand *o) {
    static const char *const names[] = {"read", "write", "both", NULL};
    uint32_t access = 0;
    if (!lg_at_string(at, "param", &o->param, p->err) ||
        !lg_at_choice(at, "access", names, &access, p->err) ||
        !read_expr(p, at, "bytes", &o->bytes) || !read_expr(p, at, "max_index", &o->max_index) ||
        !lg_at_uint(at, "align", &o->align, p->err) ||
        !lg_at_u32(at, "index_bits", &o->index_bits, p->err)) {
        return false;
    }
    o->access = (lg_access)access;
    if (!lg_at_uint_or(at, "below", 0, &o->below, p->err) ||
        !lg_at_string_or(at, "index_by", NULL, &o->index_by, p->err)) {
        return false;
    }
    o->has_window = lg_at_has(at, "window");
    if (o->has_window && !lg_at_uint(at, "window", &o->window, p->err)) {
        return false;
    }
    return lb_is_pow2(o->align) ||
           lg_at_fail(at, "align", p->err, LB_BAD_VALUE, "is no power of two");
}

static bool read_cols(reader *p, const lg_at *at, lg_cover_cols *c) {
    return lg_at_string_or(at, "axis", NULL, &c->axis, p->err) &&
           lg_at_uint(at, "first", &c->first, p->err) && lg_at_uint(at, "tile", &c->tile, p->err) &&
           lg_at_uint(at, "begin", &c->begin, p->err) && lg_at_uint(at, "n", &c->n, p->err);
}

/* Room for the items of a descriptor's list. */
static bool list_of(reader *p, const lg_at *at, const char *key, size_t elem, lg_at *list,
                    uint32_t *n, void **out) {
    size_t count = 0;
    if (!lg_at_array(at, key, list, &count, p->err)) {
        return false;
    }
    if (count > 64) {
        return lg_at_fail(at, key, p->err, LB_LIMIT, "has %zu items; 64 are the limit", count);
    }
    *n = (uint32_t)count;
    *out = lb_alloc_n(p->arena, count, elem, p->err);
    return *out != NULL;
}

static bool read_sorted(reader *p, const lg_at *at, lg_sorted *s) {
    lg_at sorted;
    return !lg_at_has(at, "sorted") ||
           (lg_at_key(at, "sorted", &sorted, p->err) &&
            lg_at_string(&sorted, "pairs", &s->pairs, p->err) &&
            lg_at_string(&sorted, "map", &s->map, p->err) &&
            lg_at_uint(&sorted, "tile", &s->tile, p->err) &&
            lg_at_uint(&sorted, "groups", &s->groups, p->err));
}

static bool read_own(reader *p, const lg_at *at, lg_own *o) {
    lg_at own;
    return !lg_at_has(at, "own") || (lg_at_key(at, "own", &own, p->err) &&
                                     lg_at_string_or(&own, "axis", NULL, &o->axis, p->err) &&
                                     lg_at_string_or(&own, "of", NULL, &o->of, p->err) &&
                                     lg_at_uint(&own, "tile", &o->tile, p->err) &&
                                     lg_at_uint(&own, "splits", &o->splits, p->err));
}

static bool read_last(reader *p, const lg_at *at, lg_cover *c) {
    lg_at last;
    return !lg_at_has(at, "last") || (lg_at_key(at, "last", &last, p->err) &&
                                      lg_at_string(&last, "axis", &c->last_axis, p->err) &&
                                      lg_at_string(&last, "count", &c->last_count, p->err));
}

static bool read_cover(reader *p, const lg_at *at, lg_cover *c) {
    lg_at rows;
    lg_at list;
    void *mem = NULL;
    if (!lg_at_string(at, "param", &c->param, p->err) || !read_sorted(p, at, &c->sorted) ||
        !lg_at_string_or(at, "scattered", NULL, &c->scattered, p->err) ||
        !read_own(p, at, &c->own) || !read_last(p, at, c)) {
        return false;
    }
    if (c->scattered != NULL || c->own.splits != 0) {
        return true;
    }
    if (!lg_at_key(at, "rows", &rows, p->err) ||
        !lg_at_string_or(&rows, "axis", NULL, &c->rows_axis, p->err) ||
        !lg_at_uint(&rows, "tile", &c->rows_tile, p->err) ||
        !read_expr(p, &rows, "n", &c->rows_n) ||
        !list_of(p, at, "cols", sizeof *c->cols, &list, &c->n_cols, &mem)) {
        return false;
    }
    lg_cover_cols *cols = mem;
    for (uint32_t i = 0; i < c->n_cols; i++) {
        lg_at item = lg_at_item(&list, i);
        if (!read_cols(p, &item, &cols[i])) {
            return false;
        }
    }
    c->cols = cols;
    return lg_at_bool_or(at, "partial", false, &c->partial, p->err);
}

static bool read_axes(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    bool ok = list_of(p, at, "axes", sizeof *k->axes, &list, &k->n_axes, &mem);
    lg_axis *axes = mem;
    for (uint32_t i = 0; ok && i < k->n_axes; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = read_axis(p, &item, &axes[i]);
        for (uint32_t j = 0; ok && j < i; j++) { /* covers find axes by their names */
            ok = strcmp(axes[i].name, axes[j].name) != 0 ||
                 lg_at_fail(&item, "name", p->err, LB_DUPLICATE, "'%s' is axis %" PRIu32 " too",
                            axes[i].name, j);
        }
    }
    k->axes = axes;
    return ok;
}

static bool read_params(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    bool ok = list_of(p, at, "params", sizeof *k->params, &list, &k->n_params, &mem);
    lg_param *params = mem;
    for (uint32_t i = 0; ok && i < k->n_params; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = read_param(p, &item, &params[i]);
    }
    k->params = params;
    return ok;
}

static bool read_operands(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    bool ok = list_of(p, at, "operands", sizeof *k->operands, &list, &k->n_operands, &mem);
    lg_operand *operands = mem;
    for (uint32_t i = 0; ok && i < k->n_operands; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = read_operand(p, &item, &operands[i]);
    }
    k->operands = operands;
    return ok;
}

static bool read_covers(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    bool ok = list_of(p, at, "covers", sizeof *k->covers, &list, &k->n_covers, &mem);
    lg_cover *covers = mem;
    for (uint32_t i = 0; ok && i < k->n_covers; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = read_cover(p, &item, &covers[i]);
    }
    k->covers = covers;
    return ok;
}

/* The carve list, and where it ends. */
static bool read_shared(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    if (!lg_at_has(at, "smem")) {
        return true;
    }
    bool ok = list_of(p, at, "smem", sizeof *k->smem, &list, &k->n_smem, &mem);
    lg_smem *smem = mem;
    for (uint32_t i = 0; ok && i < k->n_smem; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = read_smem(p, &item, &smem[i]);
        if (ok && (!lb_round_up(k->smem_bytes, smem[i].align, &k->smem_bytes) ||
                   !lb_add(k->smem_bytes, smem[i].bytes, &k->smem_bytes))) {
            return lg_at_fail(at, "smem", p->err, LB_OVERFLOW, "its end passes 64 bits");
        }
    }
    k->smem = smem;
    return ok;
}

/* A kernel that names what it reads early, be it nothing, waits itself for the launch in front. */
static bool read_early(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at list;
    void *mem = NULL;
    k->waits = lg_at_has(at, "early");
    bool ok = !k->waits || list_of(p, at, "early", sizeof *k->early, &list, &k->n_early, &mem);
    const char **early = mem;
    for (uint32_t i = 0; ok && i < k->n_early; i++) {
        lg_at item = lg_at_item(&list, i);
        ok = lg_at_string(&item, NULL, &early[i], p->err);
    }
    k->early = early;
    return ok;
}

static bool read_lists(reader *p, const lg_at *at, lg_kernel *k) {
    return read_axes(p, at, k) && read_params(p, at, k) && read_operands(p, at, k) &&
           read_covers(p, at, k) && read_shared(p, at, k) && read_early(p, at, k);
}

/* y and z hold 65,535 positions on a GPU: what grows with a request needs an axis that is cut. */
static bool grid_is_cut(const lg_at *at, const lg_kernel *k, lb_err *err) {
    static const char *const places[] = {"x", "y", "z"};
    for (int d = 1; d < 3; d++) {
        bool ok = !grows(k->grid[d]);
        for (uint32_t i = 0; i < k->n_axes; i++) {
            ok = ok || (strcmp(k->axes[i].on, places[d]) == 0 && k->axes[i].base != NULL);
        }
        if (!ok) {
            return lg_at_fail(at, "grid", err, LB_BAD_VALUE,
                              "%s grows with the request, and no axis there is cut", places[d]);
        }
    }
    return true;
}

/* An axis that is cut names a parameter for its base, of the one type that the launch writes. */
static bool bases_exist(reader *p, const lg_at *at, const lg_kernel *k) {
    for (uint32_t i = 0; i < k->n_axes; i++) {
        const char *base = k->axes[i].base;
        bool found = base == NULL;
        for (uint32_t j = 0; j < k->n_params && !found; j++) {
            found =
                strcmp(k->params[j].name, base) == 0 && strcmp(k->params[j].ctype, "uint32_t") == 0;
        }
        if (!found) {
            return lg_at_fail(at, "axes", p->err, LB_MISSING,
                              "axis '%s' has no uint32_t parameter '%s'", k->axes[i].name, base);
        }
    }
    return true;
}

static bool read_kernel(reader *p, const lg_at *at, lg_kernel *k) {
    lg_at grid;
    size_t n = 0;
    if (!lg_at_string(at, "name", &k->name, p->err) ||
        !lg_at_array(at, "grid", &grid, &n, p->err)) {
        return false;
    }
    if (n != 3) {
        return lg_at_fail(at, "grid", p->err, LB_BAD_SHAPE, "has %zu expressions, expected 3", n);
    }
    for (size_t i = 0; i < 3; i++) {
        lg_at item = lg_at_item(&grid, i);
        if (!read_expr(p, &item, NULL, &k->grid[i])) {
            return false;
        }
    }
    return read_lists(p, at, k) && bases_exist(p, at, k) && grid_is_cut(at, k, p->err) &&
           lg_at_uint(at, "block", &k->block, p->err) &&
           lg_at_uint_or(at, "ctas_per_sm", 0, &k->ctas_per_sm, p->err) &&
           lg_at_uint(at, "scratch", &k->scratch_bytes, p->err) &&
           read_expr(p, at, "bytes", &k->bytes) && read_expr(p, at, "flops", &k->flops);
}

bool lg_descriptor_read(const lg_at *at, lb_arena *arena, lg_kernel *k, lb_err *err) {
    reader r = {arena, err};
    return read_kernel(&r, at, k);
}
