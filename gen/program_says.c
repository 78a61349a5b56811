/* program_says.c -- what a manifest says of the plan beside it, derived again from the plan. */
#include <inttypes.h>
#include <string.h>

#include "at.h"
#include "base/num.h"
#include "kv.h"
#include "program.h"

/* Bytes and elements as the model file has them, of one tensor type or (LG_QTYPE_LIMIT) of all. */
typedef struct sum {
    uint64_t tensors, bytes, elems;
} sum;

static bool number_is(const lg_at *at, const char *key, uint64_t want, lb_err *err) {
    uint64_t got = 0;
    return lg_at_uint(at, key, &got, err) &&
           (got == want || lg_at_fail(at, key, err, LB_DAMAGED,
                                      "is %" PRIu64 "; launches.json and memory.json say %" PRIu64,
                                      got, want));
}

static bool text_is(const lg_at *at, const char *key, const char *want, lb_err *err) {
    const char *got = NULL;
    return lg_at_string(at, key, &got, err) &&
           (strcmp(got, want) == 0 || lg_at_fail(at, key, err, LB_DAMAGED,
                                                 "is '%.80s', and not '%s'", got, want));
}

static bool limits_are(const lg_at *root, const lg_plan *plan, lb_err *err) {
    const lg_limits *l = &plan->limits;
    uint64_t ring = 0;
    uint64_t spare = 0;
    lg_at at;
    lg_plan_ring(plan, &ring, &spare);
    return lg_at_key(root, "limits", &at, err) && number_is(&at, "ctx", l->ctx, err) &&
           number_is(&at, "slots", l->slots, err) && number_is(&at, "chunk", l->chunk, err) &&
           number_is(&at, "t_max", l->t_max, err) &&
           number_is(&at, "logit_rows_max", l->logit_rows_max, err) &&
           number_is(&at, "ring", ring, err) && number_is(&at, "ring_spare", spare, err);
}

static bool arenas_are(const lg_at *root, const lg_plan *plan, lb_err *err) {
    lg_at at;
    bool ok = lg_at_key(root, "arenas", &at, err);
    for (int i = 0; ok && i < LG_N_ARENAS; i++) {
        ok = number_is(&at, LG_ARENA_NAMES[i], plan->arena_bytes[i], err);
    }
    return ok;
}

/* ---- weights */

static bool add_tensor(sum *s, const lg_gtensor *t, lb_err *err) {
    uint64_t row = 0;
    uint64_t rows = 0;
    uint64_t bytes = 0;
    uint64_t elems = 0;
    if (!lg_qtype_row_bytes(t->file->type, t->n_cols, &row, err)) {
        return false;
    }
    s->tensors++;
    return (lb_mul(t->n_rows, t->n_mats, &rows) && lb_mul(rows, row, &bytes) &&
            lb_mul(rows, t->n_cols, &elems) && lb_add(s->bytes, bytes, &s->bytes) &&
            lb_add(s->elems, elems, &s->elems)) ||
           lb_err_set(err, LB_OVERFLOW, "memory.json: tensor '%s' is larger than 2^64 bytes",
                      t->name);
}

/* Those of one type; `first` is its first. */
static bool sum_type(const lg_graph *g, uint32_t first, sum *s, lb_err *err) {
    *s = (sum){0};
    for (uint32_t i = first; i < g->n_tensors; i++) {
        if (g->tensors[i].file->type == g->tensors[first].file->type &&
            !add_tensor(s, &g->tensors[i], err)) {
            return false;
        }
    }
    return true;
}

static bool is_first(const lg_graph *g, uint32_t i) {
    uint32_t before = 0;
    while (g->tensors[before].file->type != g->tensors[i].file->type) {
        before++;
    }
    return before == i;
}

/* The list of types, in the order of their first tensors; counts all elements. */
static bool types_are(const lg_at *root, const lg_graph *g, uint64_t *n_params, lb_err *err) {
    lg_at list;
    size_t n = 0;
    size_t seen = 0;
    bool ok = lg_at_array(root, "types", &list, &n, err);
    *n_params = 0;
    for (uint32_t i = 0; ok && i < g->n_tensors; i++) {
        sum s;
        if (!is_first(g, i)) {
            continue;
        }
        if (seen == n) {
            return lg_at_fail(root, "types", err, LB_DAMAGED, "has no '%s', which memory.json has",
                              lg_qtype_get(g->tensors[i].file->type)->name);
        }
        const lg_at at = lg_at_item(&list, seen++);
        ok = sum_type(g, i, &s, err) &&
             text_is(&at, "type", lg_qtype_get(g->tensors[i].file->type)->name, err) &&
             number_is(&at, "tensors", s.tensors, err) && number_is(&at, "bytes", s.bytes, err);
        if (ok && !lb_add(*n_params, s.elems, n_params)) {
            return lb_err_set(err, LB_OVERFLOW, "memory.json: more than 2^64 weights");
        }
    }
    return ok && (seen == n || lg_at_fail(root, "types", err, LB_DAMAGED,
                                          "has %zu items; memory.json has tensors of %zu types", n,
                                          seen));
}

/* ---- the model */

static uint64_t layers_of(const lg_plan *plan) {
    int32_t last = -1;
    for (uint32_t i = 0; i < plan->n_launches; i++) {
        last = plan->launches[i].layer > last ? plan->launches[i].layer : last;
    }
    return (uint64_t)(last + 1);
}

/* Of the value that the first launch writes: what the tokens are looked up into. */
static uint64_t width_of(const lg_plan *plan) {
    const lg_launch *l = &plan->launches[0];
    for (uint32_t i = 0; plan->n_launches > 0 && i < l->n_args; i++) {
        if (l->args[i] != NULL && l->args[i]->access == LG_WRITE) {
            return plan->graph->values[l->args[i]->id].width;
        }
    }
    return 0;
}

static bool dims_are(const lg_at *root, const lg_plan *plan, uint64_t n_params, lb_err *err) {
    const lg_graph *g = plan->graph;
    lg_at at;
    return lg_at_key(root, "dims", &at, err) &&
           number_is(&at, "n_vocab", g->values[g->logits].width, err) &&
           number_is(&at, "n_embd", width_of(plan), err) &&
           number_is(&at, "n_layers", layers_of(plan), err) &&
           number_is(&at, "n_params", n_params, err);
}

/* The type of the caches, by their element. */
static bool kv_is(const lg_at *root, const lg_graph *g, lb_err *err) {
    const char *name = NULL;
    const lg_kv_row *row = NULL;
    if (!lg_at_string(root, "kv", &name, err) || !lg_kv_find(name, &row, err)) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].rows == LG_ROWS_STATE && g->values[i].elem != row->elem) {
            return lg_at_fail(root, "kv", err, LB_DAMAGED, "is %s; %s of memory.json is of %s", name,
                              g->values[i].name, LG_ELEM_NAMES[g->values[i].elem]);
        }
    }
    return true;
}

/* A GPU program's other half is for a CPU. */
static bool host_is(const lg_at *root, const lg_plan *plan, lb_err *err) {
    const char *name = NULL;
    const lg_hw_row *row = NULL;
    if (!plan->hw->gpu) {
        return !lg_at_has(root, "host") ||
               lg_at_fail(root, "host", err, LB_DAMAGED, "is there; %s needs none",
                          lg_hw_name(plan->hw));
    }
    return lg_at_string(root, "host", &name, err) &&
           (strcmp(name, "native") != 0 ||
            lg_at_fail(root, "host", err, LB_DAMAGED, "is native, which names no row")) &&
           lg_hw_find(name, &row, err) &&
           (!row->gpu || lg_at_fail(root, "host", err, LB_DAMAGED, "is %s, which is no CPU", name));
}

bool lg_program_says(const lg_program *p, lb_err *err) {
    const lg_at root = lg_at_root("manifest.json", p->manifest);
    uint64_t n_params = 0;
    return text_is(&root, "schema", "lagen.manifest/1", err) &&
           text_is(&root, "architecture", p->plan->graph->arch, err) &&
           text_is(&root, "target", lg_hw_name(p->plan->hw), err) &&
           limits_are(&root, p->plan, err) && arenas_are(&root, p->plan, err) &&
           number_is(&root, "launches", p->plan->n_launches, err) &&
           number_is(&root, "kernels", p->plan->n_kernels, err) &&
           types_are(&root, p->plan->graph, &n_params, err) &&
           dims_are(&root, p->plan, n_params, err) && kv_is(&root, p->plan->graph, err) &&
           host_is(&root, p->plan, err);
}
