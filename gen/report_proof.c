/* report_proof.c -- see report.h: facts as margins and by kind. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "report.h"

/* Facts that say how near a launch comes to a limit of the hardware; the others are equalities by
 * design (a range ends where its buffer does) or have limits of the arithmetic. A launch beyond
 * one of the first LAUNCH_MARGINS is refused; of what an SM holds a kernel takes as much as it
 * likes. */
enum { LAUNCH_MARGINS = 7 };
static const char *const MARGINS[] = {"grid",
                                      "ctas",
                                      "block",
                                      "threads of a cta",
                                      "shared bytes of a cta",
                                      "parameter bytes",
                                      "scratch",
                                      "ctas of an SM",
                                      "threads of an SM",
                                      "shared bytes of an SM",
                                      "registers of a cta",
                                      "warps that an SM's registers hold",
                                      NULL};

uint64_t lg_permille(uint64_t value, uint64_t limit) {
    if (limit == 0) {
        return 0;
    }
    if (value >= limit) {
        return 1000;
    }
    return value <= UINT64_MAX / 1000 ? value * 1000 / limit : value / (limit / 1000);
}

static bool is_margin(const lg_fact *f, int n) {
    for (int i = 0; i < n && MARGINS[i] != NULL; i++) {
        if (strcmp(f->kind, MARGINS[i]) == 0) {
            return f->launch != UINT32_MAX && f->limit > 0;
        }
    }
    return false;
}

/* What a margin is called: "grid y", or its kind. */
static const char *margin_name(const lg_fact *f) {
    return strcmp(f->kind, "grid") == 0 ? f->subject : f->kind;
}

/* The largest value of each margin of one kernel, in the order of its facts. */
static uint32_t worst_of(const lg_program *p, uint32_t kernel, const lg_fact **out,
                         uint32_t *launches) {
    uint32_t n = 0;
    *launches = 0;
    for (uint32_t i = 0; i < p->proof.n_facts; i++) {
        const lg_fact *f = &p->proof.facts[i];
        uint32_t k = 0;
        if (f->launch == UINT32_MAX || f->kernel != kernel) {
            continue;
        }
        *launches += strcmp(f->kind, "ctas") == 0;
        if (!is_margin(f, INT_MAX)) {
            continue;
        }
        while (k < n && strcmp(margin_name(out[k]), margin_name(f)) != 0) {
            k++;
        }
        if (k == n && n < 32) {
            out[n++] = f;
        } else if (k < n && f->value > out[k]->value) {
            out[k] = f;
        }
    }
    return n;
}

static const lg_value *margin_value(lg_builder *b, const lg_fact *f) {
    lg_value *m = lg_build_map(b);
    lg_build_set_string(b, m, "name", margin_name(f));
    lg_build_set_uint(b, m, "value", f->value);
    lg_build_set_uint(b, m, "limit", f->limit);
    lg_build_set_uint(b, m, "permille", lg_permille(f->value, f->limit));
    return m;
}

const lg_value *lg_report_margins(lg_builder *b, const lg_program *p) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < p->plan->n_kernels; i++) {
        const lg_fact *worst[32];
        const lg_fact *top = NULL;
        uint32_t launches = 0;
        uint32_t n = worst_of(p, i, worst, &launches);
        lg_value *m = lg_build_map(b);
        lg_value *all = lg_build_array(b);
        for (uint32_t k = 0; k < n; k++) {
            bool more = is_margin(worst[k], LAUNCH_MARGINS) &&
                        (top == NULL || lg_permille(worst[k]->value, worst[k]->limit) >
                                            lg_permille(top->value, top->limit));
            top = more ? worst[k] : top;
            lg_build_push(b, all, margin_value(b, worst[k]));
        }
        lg_build_set_string(b, m, "kernel", p->plan->kernels[i].name);
        lg_build_set_uint(b, m, "launches", launches);
        lg_build_set_uint(b, m, "block", p->plan->kernels[i].block);
        lg_build_set(b, m, "margins", all);
        if (top != NULL) {
            lg_build_set(b, m, "tightest", margin_value(b, top));
        }
        lg_build_push(b, list, m);
    }
    return list;
}

typedef struct kind_sum {
    const char *kind;
    uint64_t n;
    const lg_fact *tightest;
} kind_sum;

static void add_fact(kind_sum *sums, uint32_t *n, const lg_fact *f) {
    uint32_t k = 0;
    while (k < *n && strcmp(sums[k].kind, f->kind) != 0) {
        k++;
    }
    if (k == *n) {
        sums[(*n)++] = (kind_sum){f->kind, 0, f};
    }
    kind_sum *s = &sums[k];
    s->n++;
    s->tightest = lg_permille(f->value, f->limit) > lg_permille(s->tightest->value,
                                                                 s->tightest->limit)
                      ? f
                      : s->tightest;
}

const lg_value *lg_report_facts(lg_builder *b, const lg_program *p, lb_arena *arena, lb_err *err) {
    lg_value *list = lg_build_array(b);
    kind_sum *sums = lb_alloc_n(arena, (uint64_t)p->proof.n_facts + 1, sizeof *sums, err);
    uint32_t n = 0;
    if (sums == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < p->proof.n_facts; i++) {
        add_fact(sums, &n, &p->proof.facts[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const lg_fact *f = sums[i].tightest;
        lg_value *m = lg_build_map(b);
        lg_build_set_string(b, m, "kind", sums[i].kind);
        lg_build_set_uint(b, m, "facts", sums[i].n);
        bool of_plan = f->launch == UINT32_MAX;
        lg_build_set_string(b, m, "of", of_plan ? "the plan" : p->plan->launches[f->launch].label);
        lg_build_set_string(b, m, "subject", f->subject);
        const char *value = lb_format(arena, err, "%" PRIu64, f->value);
        const char *limit = lb_format(arena, err, "%" PRIu64, f->limit);
        if (value == NULL || limit == NULL) {
            return NULL;
        }
        lg_build_set_string(b, m, "value", value); /* texts: they may pass 2^63 */
        lg_build_set_string(b, m, "limit", limit);
        lg_build_push(b, list, m);
    }
    return list;
}
