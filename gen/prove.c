/* prove.c -- see prove.h. The walk over launches, T and L; prove_grid.c, prove_operand.c and
 * prove_memory.c hold the facts. */
#include "prove_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- failing and recording */

static const char *label(const lg_prover *p) {
    return p->launch == UINT32_MAX ? "the plan" : p->plan->launches[p->launch].label;
}

/* Says at which T and L, where these matter. */
static bool failed(lg_prover *p, const char *text) {
    if (p->launch == UINT32_MAX) {
        return lb_err_set(p->err, LB_PROOF, "%s: %s", label(p), text);
    }
    return lb_err_set(p->err, LB_PROOF, "%s: %s (T=%" PRIu64 ", L=%" PRIu64 ")", label(p), text,
                      p->T, p->L);
}

bool lg_prove_fail(lg_prover *p, const char *what, const char *subject, uint64_t value,
                   uint64_t limit) {
    lb_err text = {0};
    lb_err_set(&text, LB_PROOF, "%s of '%s' is %" PRIu64 ", the limit is %" PRIu64, what, subject,
               value, limit);
    return failed(p, text.text);
}

bool lg_prove_fail_text(lg_prover *p, const char *what, const char *subject, const char *got,
                        const char *want) {
    lb_err text = {0};
    lb_err_set(&text, LB_PROOF, "%s of '%s' is %s, it must be %s", what, subject, got, want);
    return failed(p, text.text);
}

bool lg_prove_fact(lg_prover *p, const char *kind, const char *subject, uint64_t value,
                   uint64_t limit) {
    if (value > limit) {
        return lg_prove_fail(p, kind, subject, value, limit);
    }
    if (p->n_facts == p->cap_facts) {
        return lb_err_set(p->err, LB_LIMIT, "prover: more than %" PRIu32 " facts", p->cap_facts);
    }
    p->facts[p->n_facts++] = (lg_fact){kind, p->launch, subject, value, limit, p->kernel_id};
    return true;
}

bool lg_prove_eval(lg_prover *p, const lg_expr *e, const char *what, const char *subject,
                   uint64_t *out) {
    const lg_limits *l = &p->plan->limits;
    const lg_expr_var vars[] = {
        {"T", p->T}, {"L", p->L}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    lb_err why = {0};
    return lg_expr_eval(e, vars, sizeof vars / sizeof *vars, out, &why) ||
           lg_prove_fail_text(p, what, subject, why.text, "a number");
}

/* ---- limits */

/* The largest T is what chunk and slots say, and small enough to be tried one by one. */
static bool limits(lg_prover *p) {
    const lg_limits *l = &p->plan->limits;
    uint64_t t_max = l->chunk >= l->slots ? l->chunk : l->slots;
    uint64_t rows = l->slots > LG_LOGIT_ROWS ? l->slots : LG_LOGIT_ROWS;
    rows = rows > t_max ? t_max : rows;
    if (l->ctx == 0 || l->slots == 0 || l->chunk == 0) {
        return lg_prove_fail(p, "limits: product", "ctx, slots, chunk", 0, 1);
    }
    if (l->t_max != t_max || l->logit_rows_max != rows) {
        return l->t_max != t_max ? lg_prove_fail(p, "limits: largest T", "t_max", l->t_max, t_max)
                                 : lg_prove_fail(p, "limits: largest L", "logit_rows_max",
                                                 l->logit_rows_max, rows);
    }
    return lg_prove_fact(p, "limits", "ctx", l->ctx, LG_CTX_MAX) &&
           lg_prove_fact(p, "limits", "slots", l->slots, LG_SLOTS_MAX) &&
           lg_prove_fact(p, "limits", "chunk", l->chunk, LG_CHUNK_MAX) &&
           lg_prove_fact(p, "limits", "chunk in ctx", l->chunk, l->ctx);
}

/* ---- one launch */

/* All that depends on T and L, for the launch in hand at the current ones. */
static bool launch_at(lg_prover *p, bool record) {
    if (!lg_prove_grid(p, record)) {
        return false;
    }
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_bound *b = &p->bound[i];
        if (b->arg != NULL && (!lg_prove_operand(p, b, record) ||
                               (b->cover != NULL && !lg_prove_cover(p, b, record)))) {
            return false;
        }
    }
    return true;
}

static bool same_shape(const lg_shape *a, const lg_shape *b) {
    return a->sized == b->sized && a->rows == b->rows && a->width == b->width &&
           a->extra == b->extra && a->below == b->below &&
           a->elem_bytes == b->elem_bytes && a->bytes == b->bytes;
}

static bool same_launch(const lg_prover *p, const lg_proved *a) {
    if (a->kernel != p->kernel_id || a->when != p->plan->launches[p->launch].when) {
        return false;
    }
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_bound *x = &p->bound[i];
        const lg_bound *y = &a->bound[i];
        if (x->arg != NULL &&
            (x->arg->access != y->arg->access || !same_shape(&x->shape, &y->shape))) {
            return false;
        }
    }
    return true;
}

/* Layers differ in offsets only, and those are checked for every launch: one of equal shapes stands
 * for all. */
static bool proved_before(const lg_prover *p) {
    for (uint32_t i = 0; i < p->n_proved; i++) {
        if (same_launch(p, &p->proved[i])) {
            return true;
        }
    }
    return false;
}

static bool remember(lg_prover *p) {
    lg_bound *copy = lb_alloc_n(p->arena, p->n_bound, sizeof *copy, p->err);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, p->bound, p->n_bound * sizeof *copy);
    p->proved[p->n_proved++] = (lg_proved){p->kernel_id, p->plan->launches[p->launch].when, copy};
    return true;
}

/* Whether the launch depends on the number of logit rows. */
static bool meets_L(const lg_prover *p) {
    const lg_kernel *k = p->kernel;
    bool yes = false;
    for (int d = 0; d < 3; d++) {
        yes = yes || lg_expr_uses(k->grid[d], "L");
    }
    for (uint32_t i = 0; i < k->n_axes; i++) {
        yes = yes || lg_expr_uses(k->axes[i].bound, "L");
    }
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_bound *b = &p->bound[i];
        yes = yes || (b->arg != NULL && !b->shape.sized && b->shape.rows == LG_ROWS_L) ||
              (b->operand != NULL && (lg_expr_uses(b->operand->bytes, "L") ||
                                      lg_expr_uses(b->operand->max_index, "L"))) ||
              (b->cover != NULL && b->cover->rows_n != NULL &&
               lg_expr_uses(b->cover->rows_n, "L"));
    }
    return yes;
}

/* The largest step that the launch in hand takes part in. */
static uint64_t most_rows(const lg_prover *p) {
    uint64_t t_max = p->plan->limits.t_max;
    bool few = p->plan->launches[p->launch].when == LG_WHEN_FEW;
    return few && t_max > LG_FEW_ROWS ? LG_FEW_ROWS : t_max;
}

static uint64_t most_logits(const lg_prover *p) {
    uint64_t rows = p->plan->limits.logit_rows_max;
    return rows < most_rows(p) ? rows : most_rows(p);
}

static bool every_T_and_L(lg_prover *p) {
    const lg_limits *l = &p->plan->limits;
    bool both = meets_L(p);
    for (p->T = 1; p->T <= most_rows(p); p->T++) {
        p->L = p->T < l->logit_rows_max ? p->T : l->logit_rows_max;
        if (!launch_at(p, false)) {
            return false;
        }
        p->L = 1;
        if (both && !launch_at(p, false)) {
            return false;
        }
    }
    p->T = most_rows(p);
    for (p->L = 1; both && p->L <= most_logits(p); p->L++) {
        if (!launch_at(p, false)) {
            return false;
        }
    }
    return true;
}

/* What holds at any T: threads of a cta, stack. */
static bool kernel_fits(lg_prover *p) {
    const lg_kernel *k = p->kernel;
    return (k->block > 0 || lg_prove_fail(p, "block", k->name, 0, 1)) &&
           lg_prove_fact(p, "block", k->name, k->block, p->plan->hw->cta_threads_max) &&
           lg_prove_fact(p, "scratch", k->name, k->scratch_bytes, LG_SCRATCH_MAX);
}

static bool prove_with(lg_prover *p, uint32_t i, uint32_t kernel) {
    p->launch = i;
    p->T = most_rows(p);
    p->L = most_logits(p);
    if (!lg_prove_take(p, i, kernel) ||
        (!proved_before(p) && (!every_T_and_L(p) || !remember(p)))) {
        return false;
    }
    p->T = most_rows(p);
    p->L = most_logits(p);
    return launch_at(p, true) && kernel_fits(p) && lg_prove_alignment(p) && lg_prove_order(p) &&
           lg_prove_indexed(p) &&
           (!p->plan->hw->gpu || lg_prove_gpu(p));
}

/* The kernel for few rows must take the same parameters. It is proved for every T and L as well, so
 * it does not matter which of the two a step takes. */
static bool prove_launch(lg_prover *p, uint32_t i) {
    uint32_t kernel = p->plan->launches[i].kernel;
    const lg_kernel *k = &p->plan->kernels[kernel];
    if (!prove_with(p, i, kernel)) {
        return false;
    }
    if (!p->plan->hw->gpu || k->few == kernel) {
        return true;
    }
    const lg_kernel *few = &p->plan->kernels[k->few];
    for (uint32_t a = 0; a < k->n_params; a++) {
        bool same = k->n_params == few->n_params &&
                    strcmp(k->params[a].name, few->params[a].name) == 0 &&
                    strcmp(k->params[a].ctype, few->params[a].ctype) == 0;
        if (!same) {
            return lg_prove_fail_text(p, "parameter of the kernel for few rows", few->name,
                                      "another", k->params[a].name);
        }
    }
    return prove_with(p, i, k->few);
}

/* Facts that can come: 20 of a launch, for its grid, cta and SM, five of each parameter; those of
 * the plan. Launches look at each other: kernels and numbers of arguments are right from here on. */
static bool room(lg_prover *p) {
    const lg_plan *plan = p->plan;
    uint64_t n = 16 + 2 * (uint64_t)plan->graph->n_values + plan->graph->n_tensors;
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        if (plan->launches[i].kernel >= plan->n_kernels) {
            return lg_prove_fail(p, "number", "kernel", plan->launches[i].kernel, plan->n_kernels);
        }
        const lg_kernel *k = &plan->kernels[plan->launches[i].kernel];
        if (plan->hw->gpu && k->few >= plan->n_kernels) {
            return lg_prove_fail(p, "number", "kernel for few rows", k->few, plan->n_kernels);
        }
        if (plan->launches[i].n_args != k->n_params) {
            p->launch = i;
            p->T = p->L = 1;
            return lg_prove_fail(p, "arguments", k->name, plan->launches[i].n_args, k->n_params);
        }
        n += 2 * (20 + 5 * (uint64_t)k->n_params);
    }
    if (n > UINT32_MAX) {
        return lb_err_set(p->err, LB_LIMIT, "prover: %" PRIu64 " facts", n);
    }
    p->cap_facts = (uint32_t)n;
    p->facts = lb_alloc_n(p->arena, n, sizeof *p->facts, p->err);
    p->proved = lb_alloc_n(p->arena, 2 * (uint64_t)plan->n_launches, sizeof *p->proved, p->err);
    return p->facts != NULL && p->proved != NULL;
}

bool lg_prove(const lg_plan *plan, lb_arena *arena, lg_proof *out, lb_err *err) {
    lg_prover p = {.plan = plan, .err = err, .arena = arena, .launch = UINT32_MAX};
    bool ok = room(&p) && limits(&p);
    for (uint32_t i = 0; ok && i < plan->n_launches; i++) {
        ok = prove_launch(&p, i);
    }
    p.launch = UINT32_MAX;
    if (!ok || !lg_prove_memory(&p)) {
        return false;
    }
    *out = (lg_proof){p.facts, p.n_facts};
    return true;
}
