/* report_step.c -- see report.h: what a step's launches move and how long that takes at least.
 *
 * A launch takes the longest of: its bytes at the board's bandwidth, its operations at the
 * board's int8 rate, and LAUNCH_NS, what the shortest launches of a graph took on an H200
 * (docs/performance.md: 1.8 to 2.0 us). Caches and what kernels lose against the data sheet are
 * left out, so the sum is a bound from below. Attention is counted at the full context. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "report.h"

enum { LAUNCH_NS = 2000 };

typedef struct stepper {
    lg_builder *b;
    const lg_plan *plan;
    const lg_hw_device *board;
    uint64_t n_rows;
    lb_arena *arena;
    lb_err *err;
} stepper;

typedef struct span {
    uint64_t bytes, ops, ns, width;
    const char *bound;
} span;

/* Sums by family, in the order of first launches. */
typedef struct family {
    const char *name;
    uint64_t n, width, bytes;
} family;

static bool takes_place(lg_when when, uint64_t rows) {
    return when == LG_WHEN_ANY || (when == LG_WHEN_FEW) == (rows <= LG_FEW_ROWS);
}

static bool measure(const stepper *s, const lg_kernel *k, span *out) {
    const lg_limits *l = &s->plan->limits;
    const lg_expr_var vars[] = {
        {"T", s->n_rows}, {"L", 1}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    size_t n = sizeof vars / sizeof *vars;
    span v = {.bound = "bytes"};
    if (!lg_expr_eval(k->bytes, vars, n, &v.bytes, s->err) ||
        !lg_expr_eval(k->flops, vars, n, &v.ops, s->err)) {
        return false;
    }
    v.width = v.bytes == 0 ? 1 : v.bytes;
    if (s->board != NULL) {
        uint64_t memory = v.bytes / (s->board->bandwidth_bytes / 1000000000);
        uint64_t compute = v.ops / (s->board->int8_ops / 1000000000);
        v.ns = memory > compute ? memory : compute;
        v.bound = memory > compute ? "memory" : "compute";
        if (v.ns < LAUNCH_NS) {
            v.ns = LAUNCH_NS;
            v.bound = "launch";
        }
        v.width = v.ns;
    }
    *out = v;
    return true;
}

static void put_time(lg_builder *b, lg_value *map, const char *key, uint64_t ns, lb_arena *arena) {
    lb_err why = {0};
    const char *text =
        ns < 1000000 ? lb_format(arena, &why, "%" PRIu64 ".%" PRIu64 " µs", ns / 1000,
                                 ns / 100 % 10)
                     : lb_format(arena, &why, "%" PRIu64 ".%02" PRIu64 " ms", ns / 1000000,
                                 ns / 10000 % 100);
    if (text == NULL) {
        lg_build_fail(b, &why);
        return;
    }
    lg_build_set_string(b, map, key, text);
}

static const lg_value *span_value(const stepper *s, const lg_launch *l, const lg_kernel *k,
                                  const span *v, uint64_t at, uint64_t total) {
    lg_value *m = lg_build_map(s->b);
    lg_build_set_string(s->b, m, "label", l->label);
    lg_build_set_string(s->b, m, "kernel", k->name);
    lg_build_set_string(s->b, m, "family", k->family);
    lg_build_set_int(s->b, m, "layer", l->layer);
    lg_draw(s->b, m, "at", "width", at, v->width, total);
    lg_build_set_string(s->b, m, "bound", v->bound);
    lg_build_set_uint(s->b, m, "ops", v->ops);
    lg_report_size(s->b, m, "bytes", v->bytes);
    put_time(s->b, m, "time", v->ns, s->arena);
    return m;
}

static bool add_to_family(const stepper *s, family *list, uint32_t *n, const char *name,
                          const span *v) {
    uint32_t i = 0;
    while (i < *n && strcmp(list[i].name, name) != 0) {
        i++;
    }
    if (i == *n) {
        list[(*n)++].name = name;
    }
    list[i].n++;
    return (lb_add(list[i].width, v->width, &list[i].width) &&
            lb_add(list[i].bytes, v->bytes, &list[i].bytes)) ||
           lb_err_set(s->err, LB_OVERFLOW, "a step's bytes pass 64 bits");
}

static const lg_value *families_value(const stepper *s, const family *list, uint32_t n,
                                      uint64_t total) {
    lg_value *out = lg_build_array(s->b);
    for (uint32_t i = 0; i < n; i++) {
        lg_value *m = lg_build_map(s->b);
        lg_build_set_string(s->b, m, "family", list[i].name);
        lg_build_set_uint(s->b, m, "launches", list[i].n);
        lg_build_set_uint(s->b, m, "permille", lg_permille(list[i].width, total));
        lg_report_size(s->b, m, "bytes", list[i].bytes);
        put_time(s->b, m, "time", s->board == NULL ? 0 : list[i].width, s->arena);
        lg_build_push(s->b, out, m);
    }
    return out;
}

/* The kernel with which launch i takes place in this step; NULL if it does not. */
static const lg_kernel *kernel_at(const stepper *s, uint32_t i) {
    const lg_plan *p = s->plan;
    const lg_launch *l = &p->launches[i];
    bool few = p->hw->gpu && s->n_rows <= LG_FEW_ROWS;
    if (!takes_place(l->when, s->n_rows)) {
        return NULL;
    }
    return &p->kernels[few ? p->kernels[l->kernel].few : l->kernel];
}

static bool measure_all(const stepper *s, span *spans, family *families, uint32_t *n_families,
                        span *sum) {
    for (uint32_t i = 0; i < s->plan->n_launches; i++) {
        const lg_kernel *k = kernel_at(s, i);
        if (k == NULL) {
            continue;
        }
        if (!measure(s, k, &spans[i]) ||
            !add_to_family(s, families, n_families, k->family, &spans[i])) {
            return false;
        }
        if (!lb_add(sum->width, spans[i].width, &sum->width) ||
            !lb_add(sum->bytes, spans[i].bytes, &sum->bytes)) {
            return lb_err_set(s->err, LB_OVERFLOW, "a step's bytes pass 64 bits");
        }
    }
    return true;
}

static const lg_value *step_value(const stepper *s, const span *spans, const span *sum,
                                  const lg_value *families) {
    lg_value *m = lg_build_map(s->b);
    lg_value *list = lg_build_array(s->b);
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->plan->n_launches; i++) {
        const lg_kernel *k = kernel_at(s, i);
        if (k != NULL) {
            lg_build_push(s->b, list,
                          span_value(s, &s->plan->launches[i], k, &spans[i], at, sum->width));
            at += spans[i].width; /* at most the sum */
        }
    }
    lg_build_set_uint(s->b, m, "rows", s->n_rows);
    lg_report_size(s->b, m, "bytes", sum->bytes);
    put_time(s->b, m, "time", s->board == NULL ? 0 : sum->width, s->arena);
    lg_build_set(s->b, m, "families", families);
    lg_build_set(s->b, m, "spans", list);
    return m;
}

const lg_value *lg_report_step(lg_builder *b, const lg_plan *plan, const lg_hw_device *board,
                               uint64_t n_rows, lb_arena *arena, lb_err *err) {
    const stepper s = {b, plan, board, n_rows, arena, err};
    family *families = lb_alloc_n(arena, (uint64_t)plan->n_kernels + 1, sizeof *families, err);
    span *spans = lb_alloc_n(arena, (uint64_t)plan->n_launches + 1, sizeof *spans, err);
    span sum = {0};
    uint32_t n = 0;
    if (families == NULL || spans == NULL || !measure_all(&s, spans, families, &n, &sum)) {
        return NULL;
    }
    return step_value(&s, spans, &sum, families_value(&s, families, n, sum.width));
}
