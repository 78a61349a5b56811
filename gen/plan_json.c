/* plan_json.c -- the writing half of plan_json.h; plan_read.c reads. */
#include "plan_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "value_text.h"

static void put_limits(lg_builder *b, lg_value *root, const lg_limits *l) {
    lg_value *m = lg_build_map(b);
    lg_build_set_uint(b, m, "ctx", l->ctx);
    lg_build_set_uint(b, m, "slots", l->slots);
    lg_build_set_uint(b, m, "chunk", l->chunk);
    lg_build_set_uint(b, m, "t_max", l->t_max);
    lg_build_set_uint(b, m, "logit_rows_max", l->logit_rows_max);
    lg_build_set(b, root, "limits", m);
}

static void put_head(lg_builder *b, lg_value *root, const char *schema, const lg_plan *plan) {
    lg_build_set_string(b, root, "schema", schema);
    lg_build_set_string(b, root, "arch", plan->graph->arch);
    lg_build_set_string(b, root, "target", lg_hw_name(plan->hw));
    put_limits(b, root, &plan->limits);
}

/* The largest grid of one launch, the row's limits, what is left, and how many launches it takes at
 * the largest T and L. */
static bool put_grid(lg_builder *b, lg_value *l, const lg_plan *plan, const lg_kernel *k,
                     lb_err *err) {
    const lg_limits *lim = &plan->limits;
    const lg_expr_var vars[] = {{"T", lim->t_max},
                                {"L", lim->logit_rows_max},
                                {"ctx", lim->ctx},
                                {"slots", lim->slots},
                                {"chunk", lim->chunk}};
    uint64_t limit[3];
    lg_hw_grid_max(plan->hw, limit);
    lg_value *max = lg_build_array(b);
    lg_value *limits = lg_build_array(b);
    lg_value *margin = lg_build_array(b);
    uint64_t tiles = 1;
    for (int d = 0; d < 3; d++) {
        uint64_t n = 0;
        if (!lg_expr_eval(k->grid[d], vars, sizeof vars / sizeof *vars, &n, err)) {
            return false;
        }
        uint64_t most = k->per_launch[d] != 0 && n > k->per_launch[d] ? k->per_launch[d] : n;
        tiles *= most == 0 ? 1 : lb_ceil_div(n, most);
        n = most;
        lg_build_push(b, max, lg_build_uint(b, n));
        lg_build_push(b, limits, lg_build_uint(b, limit[d]));
        lg_build_push(b, margin, lg_build_uint(b, limit[d] - n));
    }
    lg_build_set(b, l, "grid", lg_value_find(k->descriptor, "grid"));
    lg_build_set(b, l, "grid_max", max);
    lg_build_set(b, l, "limit", limits);
    lg_build_set(b, l, "margin", margin);
    lg_build_set_uint(b, l, "tiles", tiles);
    return true;
}

static const lg_value *args_value(lg_builder *b, const lg_plan *plan, const lg_launch *l) {
    const lg_kernel *k = &plan->kernels[l->kernel];
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < k->n_params; i++) {
        lg_value *a = lg_build_map(b);
        lg_build_set_string(b, a, "param", k->params[i].name);
        if (l->args[i] != NULL) {
            lg_build_set_string(b, a, "access", LG_ACCESS_NAMES[l->args[i]->access]);
            lg_build_set_uint(b, a, "id", l->args[i]->id);
        }
        lg_build_push(b, list, a);
    }
    return list;
}

static const lg_value *fact_value(lg_builder *b, const lg_fact *f) {
    lg_value *m = lg_build_map(b);
    lg_build_set_string(b, m, "kind", f->kind);
    lg_build_set_string(b, m, "subject", f->subject);
    lg_build_set_uint(b, m, "value", f->value);
    lg_build_set_uint(b, m, "limit", f->limit);
    return m;
}

/* The facts of one launch (UINT32_MAX: of the plan). *at moves through the proof, which has the
 * launches' facts in launch order; NULL for a search from its begin. */
static const lg_value *facts_value(lg_builder *b, const lg_proof *proof, uint32_t launch,
                                   uint32_t *at) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = at == NULL ? 0 : *at; i < proof->n_facts; i++) {
        uint32_t of = proof->facts[i].launch;
        if (at != NULL && of != UINT32_MAX && of > launch) {
            *at = i;
            break;
        }
        if (of == launch) {
            lg_build_push(b, list, fact_value(b, &proof->facts[i]));
        }
    }
    return list;
}

static const lg_value *launch_value(lg_builder *b, const lg_plan *plan, const lg_proof *proof,
                                    uint32_t i, uint32_t *fact, lb_err *err) {
    const lg_launch *l = &plan->launches[i];
    const lg_kernel *k = &plan->kernels[l->kernel];
    lg_value *m = lg_build_map(b);
    lg_build_set_string(b, m, "name", l->label);
    lg_build_set_string(b, m, "kernel", k->name);
    lg_build_set_int(b, m, "layer", l->layer);
    if (l->when != LG_WHEN_ANY) {
        lg_build_set_string(b, m, "when", LG_WHEN_NAMES[l->when]);
    }
    if (!put_grid(b, m, plan, k, err)) {
        return NULL;
    }
    lg_build_set_uint(b, m, "block", k->block);
    lg_build_set_uint(b, m, "shared_bytes", k->smem_bytes);
    if (plan->hw->gpu) {
        lg_build_set_bool(b, m, "overlaps", k->waits && lg_hw_has(plan->hw, LG_HW_PDL));
    }
    lg_build_set(b, m, "args", args_value(b, plan, l));
    lg_build_set(b, m, "facts", facts_value(b, proof, i, fact));
    return m;
}

/* The static tile: most positions of one launch on x, y, z; 0 where a launch has all. */
static const lg_value *per_launch_value(lg_builder *b, const lg_kernel *k) {
    lg_value *list = lg_build_array(b);
    for (int d = 0; d < 3; d++) {
        lg_build_push(b, list, lg_build_uint(b, k->per_launch[d]));
    }
    return list;
}

bool lg_launches_json(const lg_plan *plan, const lg_proof *proof, lb_arena *arena, lb_text *out,
                      lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    put_head(&b, root, "lagen.launches/1", plan);
    lg_value *kernels = lg_build_array(&b);
    for (uint32_t i = 0; i < plan->n_kernels; i++) {
        lg_value *k = lg_build_map(&b);
        lg_build_set_string(&b, k, "name", plan->kernels[i].name);
        lg_build_set_string(&b, k, "family", plan->kernels[i].family);
        lg_build_set(&b, k, "descriptor", plan->kernels[i].descriptor);
        if (plan->hw->gpu) {
            lg_build_set(&b, k, "per_launch", per_launch_value(&b, &plan->kernels[i]));
            lg_build_set_string(&b, k, "few", plan->kernels[plan->kernels[i].few].name);
        }
        lg_build_push(&b, kernels, k);
    }
    lg_build_set(&b, root, "kernels", kernels);
    lg_value *launches = lg_build_array(&b);
    uint32_t fact = 0;
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        const lg_value *l = launch_value(&b, plan, proof, i, &fact, err);
        if (l == NULL && !b.failed) {
            return false;
        }
        lg_build_push(&b, launches, l);
    }
    lg_build_set(&b, root, "launches", launches);
    lg_build_set(&b, root, "facts", facts_value(&b, proof, UINT32_MAX, NULL));
    return lg_build_done(&b, err) && lg_value_to_json(root, out, err);
}

static const lg_value *value_entry(lg_builder *b, const lg_plan *plan, uint32_t i) {
    const lg_gvalue *v = &plan->graph->values[i];
    const lg_place *p = &plan->places[i];
    lg_value *m = lg_build_map(b);
    lg_build_set_uint(b, m, "id", i);
    lg_build_set_string(b, m, "name", v->name);
    lg_build_set_string(b, m, "rows", LG_ROWS_NAMES[v->rows]);
    lg_build_set_string(b, m, "elem", LG_ELEM_NAMES[v->elem]);
    lg_build_set_uint(b, m, "width", v->width);
    if (v->rows == LG_ROWS_STATE) {
        lg_build_set_uint(b, m, "state_bytes", v->state_bytes);
        lg_build_set_uint(b, m, "slots", v->slots);
        lg_build_set_uint(b, m, "positions", v->positions);
        lg_build_set_uint(b, m, "window", v->window);
    }
    if (v->elem == LG_ELEM_I32) {
        lg_build_set_uint(b, m, "below", v->below);
        lg_build_set_uint(b, m, "extra", v->extra);
    }
    lg_build_set_string(b, m, "arena", LG_ARENA_NAMES[p->arena]);
    lg_build_set_uint(b, m, "offset", p->offset);
    lg_build_set_uint(b, m, "bytes", p->bytes);
    lg_build_set_uint(b, m, "first", p->first);
    lg_build_set_uint(b, m, "last", p->last);
    return m;
}

static const lg_value *weight_entry(lg_builder *b, const lg_plan *plan, uint32_t i) {
    const lg_gtensor *t = &plan->graph->tensors[i];
    const lg_weight *w = &plan->weights[i];
    lg_value *m = lg_build_map(b);
    lg_build_set_uint(b, m, "id", i);
    lg_build_set_string(b, m, "name", t->name);
    lg_build_set_string(b, m, "type", lg_qtype_get(t->file->type)->name);
    lg_build_set_uint(b, m, "cols", t->n_cols);
    lg_build_set_uint(b, m, "rows", t->n_rows);
    lg_build_set_uint(b, m, "mats", t->n_mats);
    lg_build_set_string(b, m, "layout", w->layout == NULL ? "plain" : "strips");
    lg_build_set_uint(b, m, "offset", w->offset);
    lg_build_set_uint(b, m, "bytes", w->bytes);
    return m;
}

bool lg_memory_json(const lg_plan *plan, lb_arena *arena, lb_text *out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    put_head(&b, root, "lagen.memory/1", plan);
    lg_value *arenas = lg_build_map(&b);
    for (int i = 0; i < LG_N_ARENAS; i++) {
        lg_build_set_uint(&b, arenas, LG_ARENA_NAMES[i], plan->arena_bytes[i]);
    }
    lg_build_set(&b, root, "arenas", arenas);
    lg_build_set_uint(&b, root, "logits", plan->graph->logits);
    if (plan->graph->samples) {
        lg_build_set_uint(&b, root, "choices", plan->graph->choices);
    }
    if (plan->hw->gpu) {
        lg_value *step = lg_build_map(&b);
        lg_build_set_uint(&b, step, "offset", plan->step_offset);
        lg_build_set_uint(&b, step, "bytes", plan->step_bytes);
        lg_build_set(&b, root, "step", step);
    }
    lg_value *values = lg_build_array(&b);
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        lg_build_push(&b, values, value_entry(&b, plan, i));
    }
    lg_build_set(&b, root, "values", values);
    lg_value *weights = lg_build_array(&b);
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        lg_build_push(&b, weights, weight_entry(&b, plan, i));
    }
    lg_build_set(&b, root, "weights", weights);
    return lg_build_done(&b, err) && lg_value_to_json(root, out, err);
}
