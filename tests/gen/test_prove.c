/* test_prove.c -- the prover must notice. Real plans pass; the same plans bent in every number,
 * name, expression and argument are refused with LB_PROOF, naming the launch (or the plan) and a
 * subject. What may be bent unnoticed stands in HARMLESS, with the reason. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bend.h"
#include "named.h"
#include "plans.h"

/* ---- what may be bent unnoticed */

typedef enum where {
    EVERYWHERE,
    ONE_ROW, /* only where steps have one row, and T and L are the same */
    NARROW   /* there, and on a GPU, whose ctas take all columns of a small model */
} where;

typedef struct harmless {
    const char *path; /* a path, or one that ends in * for all with that begin */
    const char *why;
    where where;
    uint32_t n; /* times seen: an entry that never occurs must go */
} harmless;

static harmless HARMLESS[] = {
    {"kernel.scratch *", "any size up to the limit is allowed", EVERYWHERE, 0},
    {"kernel.loop.*", "loops inside a cta are not launched; told for people and tuners",
     EVERYWHERE, 0},
    {"kernel.read.align /2", "a weaker demand on a place that meets the stronger one",
     EVERYWHERE, 0},
    {"kernel.write.align /2", "the same", EVERYWHERE, 0},
    {"kernel.both.align /2", "the same", EVERYWHERE, 0},
    {"kernel.state.align /2", "the same", EVERYWHERE, 0},
    {"kernel.tensor.align *", "the same, and biases may lie tighter than they do", EVERYWHERE, 0},
    {"kernel.cover.cols.tile +1", "covers as well, by as many ctas; kernels are run against it",
     EVERYWHERE, 0},
    {"limits.ctx -1", "a shorter context fits as well", EVERYWHERE, 0},
    {"launch.layer *", "groups launches in emitted text; checked where the graph is at hand",
     EVERYWHERE, 0},
    {"launch.node *", "the same", EVERYWHERE, 0},
    {"kernel.cover.cols.tile -1", "as many ctas too, where the last one is not full",
     EVERYWHERE, 0},
    {"launch.when *", "what only changes values in place is missed where the graph is at hand",
     EVERYWHERE, 0},
    {"kernel.read.below *", "a weaker demand on a list that meets the stronger one", EVERYWHERE, 0},
    {"kernel.write.below -1", "a list of smaller numbers than is asked for", EVERYWHERE, 0},
    {"launch.kernel *", "the twin over logit rows", ONE_ROW, 0},
    {"value.rows =0", "rows of the step are those of the logits", ONE_ROW, 0},
    {"value.rows =1", "the same", ONE_ROW, 0},
    {"kernel.axis.on z", "one position may lie on any axis, such as attention's of one key head",
     NARROW, 0},
    {"kernel.cover.cols.axis NULL", "the same: that cta writes every column", NARROW, 0},
    {"kernel.cover.cols.tile max", "the same", NARROW, 0},
};

typedef struct watch {
    const lg_plan *plan;
    lb_arena memory;
    uint32_t n, n_caught;
    uint32_t n_wrong;
} watch;

static bool matches(const char *pattern, const char *path) {
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0 : strcmp(pattern, path) == 0;
}

static bool is_harmless(const lg_plan *plan, const char *path) {
    bool only[] = {true, plan->limits.t_max == 1, plan->limits.t_max == 1 || plan->hw->gpu};
    for (size_t i = 0; i < sizeof HARMLESS / sizeof *HARMLESS; i++) {
        if (matches(HARMLESS[i].path, path) && only[HARMLESS[i].where]) {
            HARMLESS[i].n++;
            return true;
        }
    }
    return false;
}

/* The message begins with a launch that the bent thing belongs to, or with the plan, and quotes a
 * subject. */
static bool names_the_place(const watch *w, const bend_spot *spot, const char *text) {
    bool found = strncmp(text, "the plan: ", 10) == 0;
    for (uint32_t i = 0; i < w->plan->n_launches && !found; i++) {
        const lg_launch *l = &w->plan->launches[i];
        size_t n = strlen(l->label);
        found = strncmp(text, l->label, n) == 0 && text[n] == ':' &&
                (spot->kernel == UINT32_MAX || spot->kernel == l->kernel ||
                 (w->plan->hw->gpu && spot->kernel == w->plan->kernels[l->kernel].few));
    }
    return found && strstr(text, " of '") != NULL;
}

/* Few rows are one tile of a router's parts: whatever gives 1 for them is right there. */
static bool is_one_tile(const watch *w, const bend_spot *spot) {
    return strncmp(spot->path, "kernel.grid x ", 14) == 0 && spot->kernel != UINT32_MAX &&
           strcmp(w->plan->kernels[spot->kernel].family, "router_parts") == 0;
}

/* The axis of a kernel that sorts is the only one, and nothing names it. */
static bool is_unnamed(const watch *w, const bend_spot *spot) {
    return strncmp(spot->path, "kernel.axis.name ", 17) == 0 && spot->kernel != UINT32_MAX &&
           strcmp(w->plan->kernels[spot->kernel].family, "moe_sort") == 0;
}

/* The kernel for few rows is proved for any number of them: a launch may as well name it. */
static bool is_for_few(const watch *w, const bend_spot *spot) {
    uint32_t n = 0;
    bool found = false;
    bool is = w->plan->hw->gpu && sscanf(spot->path, "launch.kernel =%" SCNu32, &n) == 1;
    for (uint32_t i = 0; is && i < w->plan->n_kernels; i++) {
        found = found || (i != n && w->plan->kernels[i].few == n);
    }
    return found;
}

static void wrong(watch *w, const bend_spot *spot, const char *what, const char *text) {
    if (w->n_wrong++ < 40) {
        print_message("# %s: %s %s\n", spot->path, what, text);
    }
}

static const char *place_of(const watch *w, const bend_spot *spot) {
    if (spot->launch != UINT32_MAX) {
        return w->plan->launches[spot->launch].label;
    }
    return spot->kernel == UINT32_MAX ? "" : w->plan->kernels[spot->kernel].name;
}

static void bent(void *arg, const bend_spot *spot) {
    watch *w = arg;
    lg_proof proof = {0};
    lb_err e = {0};
    w->n++;
    if (lg_prove(w->plan, &w->memory, &proof, &e)) {
        if (!is_harmless(w->plan, spot->path) && !is_one_tile(w, spot) &&
            !is_unnamed(w, spot) && !is_for_few(w, spot)) {
            wrong(w, spot, "not noticed", place_of(w, spot));
        }
    } else if (e.code != LB_PROOF || !names_the_place(w, spot, e.text)) {
        wrong(w, spot, "refused badly:", e.text);
    } else {
        w->n_caught++;
    }
    lb_arena_reset(&w->memory);
}

/* Bends every `stride`-th spot of a model's plan; without nodes as a plan from JSON has it. */
static void bend_model(const plans_request *rq, bool nodes, uint32_t stride) {
    plans p;
    watch w = {0};
    plans_open(&p, rq);
    lg_graph *g = (lg_graph *)(uintptr_t)p.r.plan->graph;
    g->n_nodes = nodes ? g->n_nodes : 0;
    w.plan = p.r.plan;
    lb_arena_init(&w.memory, "proof", UINT64_C(1) << 28);
    bend_all(p.r.plan, &p.arena, stride / 2, stride, bent, &w);
    print_message("# %s: bent %" PRIu32 " times, noticed %" PRIu32 "\n", rq->recipe, w.n,
                  w.n_caught);
    assert_true(w.n_caught > w.n * 3 / 4);
    assert_int_equal(w.n_wrong, 0);
    plans_close(&p);
}

static void tiny_bent_everywhere(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7}, true, 1);
}

static void tiny_from_json_bent_everywhere(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7}, false, 1);
}

static void biases_and_three_slots_bent(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/llama-spm", .ctx = 256, .slots = 3, .chunk = 5},
               true, 3);
}

static void one_row_steps_bent(void **state) {
    (void)state;
    bend_model(
        &(plans_request){
            .recipe = "synth/llama-freqs", .types = "f16", .ctx = 256, .chunk = 1, .weights = true},
        true, 1);
}

/* A layer that sees all and one with a window: two rings, norms of heads, gates. */
static void windows_and_gates_bent(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/laguna-odd", .layers = 2, .ctx = 512, .chunk = 5},
               true, 3);
}

/* Experts: launches of few rows and of many, lists and what they choose. */
static void experts_bent(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/llama-moe", .layers = 1, .ctx = 256, .chunk = 11},
               true, 1);
}

static void experts_from_json_bent(void **state) {
    (void)state;
    bend_model(&(plans_request){.recipe = "synth/llama-moe", .layers = 2, .ctx = 256, .chunk = 11},
               false, 3);
}

/* A GPU's plan, from JSON: two kernels for one op, cut grids, a step of its own. */
static void gpu_bent(void **state) {
    (void)state;
    bend_model(
        &(plans_request){
            .recipe = "synth/llama-moe", .target = "sm_90a", .layers = 2, .ctx = 256, .chunk = 11},
        false, 3);
}

static void odd_sizes_bent(void **state) {
    (void)state;
    bend_model(
        &(plans_request){
            .recipe = "synth/llama-576", .ctx = 4096, .slots = 3, .chunk = 70, .layers = 1},
        true, 17);
}

static void mixed_types_bent(void **state) {
    (void)state;
    bend_model(
        &(plans_request){.recipe = "synth/llama-wide", .ctx = 1024, .chunk = 512, .layers = 2},
        true, 101);
}

/* Runs last: an entry that excuses nothing is wrong or out of date. */
static void every_excuse_is_used(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof HARMLESS / sizeof *HARMLESS; i++) {
        if (HARMLESS[i].n == 0) {
            fail_msg("nothing was excused by '%s'", HARMLESS[i].path);
        }
    }
}

/* ---- plans as they are */

static void real_plans_are_proved(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *types, *target;
        uint32_t layers;
    } models[] = {
        {"synth/llama-tiny", NULL, "x86-64-v2", 1},
        {"synth/llama-tiny", "f32", "x86-64-v4", 1},
        {"synth/llama-tiny", "q5_1", "aarch64-v8.2", 1},
        {"synth/llama-576", NULL, "x86-64-v3", 1},
        {"synth/llama-wide", NULL, "x86-64-v4-vnni", 1},
        {"synth/llama-spm", NULL, "x86-64-v3", 1},
        {"synth/llama-nvfp4", NULL, "x86-64-v3", 1},
        {"synth/llama-moe-nvfp4", NULL, "x86-64-v3", 1},
        {"synth/laguna-dense", NULL, "x86-64-v3", 2},
    };
    static const struct {
        uint64_t slots, chunk;
    } limits[] = {{1, 1}, {3, 1}, {1, 7}, {3, 7}, {1, 64}, {3, 64}, {100, 64}, {1, 512}, {3, 512}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            plans p;
            plans_open(&p, &(plans_request){.recipe = models[m].recipe,
                                            .types = models[m].types,
                                            .target = models[m].target,
                                            .layers = models[m].layers,
                                            .ctx = 600,
                                            .slots = limits[i].slots,
                                            .chunk = limits[i].chunk});
            assert_true(p.r.proof.n_facts > 100);
            plans_close(&p);
        }
    }
}

/* Facts say what was found: kinds are all there, no value passes its limit. */
static void facts_have_numbers(void **state) {
    (void)state;
    static const char *const kinds[] = {"limits",   "grid",  "ctas",   "block",  "scratch",
                                        "coverage", "range", "index",  "align",  "place",
                                        "ring",     "arena", "weight", "overlap"};
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 64});
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p.r.proof.n_facts; i++) {
            const lg_fact *f = &p.r.proof.facts[i];
            n += strcmp(f->kind, kinds[k]) == 0;
            assert_true(f->value <= f->limit && f->subject != NULL);
            assert_true(f->launch == UINT32_MAX || f->launch < p.r.plan->n_launches);
        }
        if (n == 0) {
            fail_msg("no fact of kind '%s'", kinds[k]);
        }
    }
    plans_close(&p);
}

/* ---- bends that need more than one change */

/* The number of a value by name and occurrence. */
static uint32_t value_named(const lg_plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        if (strcmp(plan->graph->values[i].name, name) == 0) {
            return i;
        }
    }
    fail_msg("no value '%s'", name);
    return 0;
}

/* Two values that live together put on one place, the arena shortened to fit: only the overlap
 * tells. */
static void live_values_must_be_apart(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_place *x = &p.r.plan->places[value_named(p.r.plan, "x")];
    lg_place *q = &p.r.plan->places[value_named(p.r.plan, "qkv")];
    q->offset = x->offset;
    plans_refused(p.r.plan, "shared");
    plans_close(&p);
}

static void caches_must_be_apart(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    p.r.plan->places[value_named(p.r.plan, "kv.1.k")].offset =
        p.r.plan->places[value_named(p.r.plan, "kv.0.v")].offset;
    plans_refused(p.r.plan, "of 'kv.0.v' is shared");
    plans_close(&p);
}

static void weights_must_be_apart(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    p.r.plan->weights[3].offset = p.r.plan->weights[2].offset + 64;
    plans_refused(p.r.plan, "end of the weight before");
    plans_close(&p);
}

/* Launches exchanged: the second needs what the first makes. */
static void order_matters(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_graph *g = (lg_graph *)(uintptr_t)p.r.plan->graph;
    lg_launch *l = p.r.plan->launches;
    lg_launch first = l[2];
    l[2] = l[3];
    l[3] = first;
    plans_refused(p.r.plan, "order: node");
    g->n_nodes = 0;
    plans_refused(p.r.plan, "order: writes before the first read of 'attn_norm.q'");
    plans_close(&p);
}

/* Without the graph: a launch that reads the cache of a layer whose keys are not stored yet, or
 * reads one again while nobody reads its own. */
static void a_layer_reads_its_own_cache(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_graph *g = (lg_graph *)(uintptr_t)p.r.plan->graph;
    uint32_t k[2] = {value_named(p.r.plan, "kv.0.k"), value_named(p.r.plan, "kv.1.k")};
    const char *says[2] = {"order: writes before the first read of 'kv.1.k'",
                           "order: reads in every step of 'kv.1.k'"};
    uint32_t n = 0;
    g->n_nodes = 0;
    for (uint32_t i = 0; i < p.r.plan->n_launches; i++) {
        const lg_launch *l = &p.r.plan->launches[i];
        for (uint32_t a = 0; a < l->n_args; a++) {
            lg_goperand *o = (lg_goperand *)(uintptr_t)l->args[a];
            if (strncmp(l->label, "attn (", 6) == 0 && o != NULL &&
                (o->id == k[0] || o->id == k[1])) {
                const uint32_t was = o->id;
                o->id = was == k[0] ? k[1] : k[0];
                plans_refused(p.r.plan, says[n++]);
                o->id = was;
            }
        }
    }
    assert_int_equal(n, 2);
    plans_close(&p);
}

/* One launch left out, with its node: its output is missed. */
static void no_launch_may_be_missing(void **state) {
    (void)state;
    plans p;
    plans_open(&p,
               &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7, .layers = 1});
    lg_graph *g = (lg_graph *)(uintptr_t)p.r.plan->graph;
    g->n_nodes = 0;
    uint32_t n = p.r.plan->n_launches;
    for (uint32_t i = 0; i < n; i++) {
        lg_launch all[64];
        memcpy(all, p.r.plan->launches, n * sizeof *all);
        memmove(&p.r.plan->launches[i], &p.r.plan->launches[i + 1], (n - 1 - i) * sizeof *all);
        p.r.plan->n_launches--;
        plans_refused(p.r.plan, " of '");
        p.r.plan->n_launches++;
        memcpy(p.r.plan->launches, all, n * sizeof *all);
    }
    plans_close(&p);
}

/* Grid, tile and bound bent together, so that they agree with each other: rows are missed, or
 * written twice. */
static void coverage_is_of_the_value(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    const lg_expr *half = NULL;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 64});
    lg_kernel *k = &p.r.plan->kernels[0];
    lg_axis *rows = (lg_axis *)(uintptr_t)&k->axes[0];
    lg_cover *cover = (lg_cover *)(uintptr_t)&k->covers[0];
    assert_true(lg_expr_parse("ceil_div(T, 2)", &p.arena, &half, &e));
    k->grid[0] = half;
    rows->tile = 2;
    plans_refused(p.r.plan, "coverage: row tile of 'y' is 1");
    cover->rows_tile = 2;
    assert_true(lg_expr_parse("ceil_div(T, 2)", &p.arena, &rows->bound, &e));
    rows->tile = 1;
    cover->rows_tile = 1;
    plans_refused(p.r.plan, "bound of axis of 'rows' is 1, the limit is 2 (T=2");
    assert_true(lg_expr_parse("2 * T", &p.arena, &rows->bound, &e));
    k->grid[0] = rows->bound;
    plans_refused(p.r.plan, "bound of axis of 'rows' is 2, the limit is 1 (T=1");
    plans_close(&p);
}

/* A second grid dimension that tells no elements apart. */
static void no_element_is_written_twice(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_kernel *k = &p.r.plan->kernels[0];
    lg_axis *axes = lb_alloc_n(&p.arena, 2, sizeof *axes, &e);
    axes[0] = k->axes[0];
    axes[1] = (lg_axis){.name = "again", .kind = "dim", .tile = 1, .on = "y"};
    assert_true(lg_expr_parse("2", &p.arena, &axes[1].bound, &e));
    k->axes = axes;
    k->n_axes = 2;
    k->grid[1] = axes[1].bound;
    plans_refused(p.r.plan, "coverage: ctas that write one element of 'y' is 2");
    plans_close(&p);
}

/* y and z hold 65,535 positions on a GPU: what grows with a request has no place there uncut. */
static void rows_on_y_are_refused(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_kernel *k = &p.r.plan->kernels[0];
    lg_axis *rows = (lg_axis *)(uintptr_t)&k->axes[0];
    k->grid[1] = k->grid[0];
    rows->on = "y";
    assert_true(lg_expr_parse("1", &p.arena, &k->grid[0], &e));
    plans_refused(p.r.plan, "axis of 'rows' is one that grows with the request");
    k->per_launch[1] = 4;
    rows->base = "row_base";
    plans_refused(p.r.plan, "bases of a cut dimension of 'grid y' is 0");
    plans_close(&p);
}

/* A cut dimension with its base: proved; with a piece above the row's limit: not. */
static void cut_grids(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    lb_arena memory;
    lg_proof proof;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_plan *plan = p.r.plan;
    lg_kernel *k = &plan->kernels[0];
    lg_axis *rows = (lg_axis *)(uintptr_t)&k->axes[0];
    lg_param *params = lb_alloc_n(&p.arena, k->n_params + 1, sizeof *params, &e);
    const lg_goperand **args = lb_alloc_n(&p.arena, k->n_params + 1, sizeof *args, &e);
    memcpy(params, k->params, k->n_params * sizeof *params);
    memcpy(args, plan->launches[0].args, k->n_params * sizeof *args);
    params[k->n_params] = (lg_param){"row_base", "uint32_t"};
    k->params = params;
    k->n_params++;
    plan->launches[0].args = args;
    plan->launches[0].n_args++;
    k->grid[1] = k->grid[0];
    assert_true(lg_expr_parse("1", &p.arena, &k->grid[0], &e));
    rows->on = "y";
    rows->base = "row_base";
    k->per_launch[1] = 4;
    lb_arena_init(&memory, "proof", UINT64_C(1) << 28);
    if (!lg_prove(plan, &memory, &proof, &e)) {
        fail_msg("%s", e.text);
    }
    lb_arena_reset(&memory);
    lg_hw_row hw = *plan->hw;
    hw.grid_y_max = 3;
    plan->hw = &hw;
    plans_refused(plan, "grid of 'grid y' is 4, the limit is 3 (T=4");
    params[k->n_params - 1].ctype = "uint64_t";
    plans_refused(plan, "row_base");
    plans_close(&p);
}

/* A hardware row with small limits refuses at the first T that passes them. */
static void limits_of_the_row(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 64});
    lg_hw_row hw = *p.r.plan->hw;
    p.r.plan->hw = &hw;
    hw.grid_x_max = 40;
    plans_refused(p.r.plan, "grid of 'grid x' is 41, the limit is 40 (T=41, L=41)");
    hw.grid_x_max = 1 << 20;
    hw.grid_y_max = 7;
    plans_refused(p.r.plan, "grid of 'grid y' is 8, the limit is 7 (T=1, L=1)");
    hw.grid_y_max = 1 << 20;
    hw.cta_threads_max = 0;
    plans_refused(p.r.plan, "block of 'k_embed");
    plans_close(&p);
}

/* 17 caches of 131,072 positions hold 2,281,701,376 numbers: a 32-bit index would wrap. */
static void wide_indexes(void **state) {
    (void)state;
    plans p;
    plans_open(
        &p, &(plans_request){
                .recipe = "synth/llama-70b", .layers = 1, .slots = 17, .ctx = 131072, .chunk = 7});
    for (uint32_t i = 0; i < p.r.plan->n_kernels; i++) {
        lg_operand *o = (lg_operand *)(uintptr_t)p.r.plan->kernels[i].operands;
        for (uint32_t j = 0; j < p.r.plan->kernels[i].n_operands; j++) {
            o[j].index_bits = 32;
        }
    }
    plans_refused(p.r.plan,
            "rope_kv (layer 0): largest index of 'k' is 2281701375, the limit is 2147483647 (T=1");
    plans_close(&p);
}

/* Every state and every kernel that reads one says this window. */
static void set_windows(lg_plan *plan, uint64_t window) {
    for (uint32_t i = 0; i < plan->graph->n_values; i++) {
        lg_gvalue *v = (lg_gvalue *)(uintptr_t)&plan->graph->values[i];
        v->window = v->rows == LG_ROWS_STATE ? window : v->window;
    }
    for (uint32_t i = 0; i < plan->n_kernels; i++) {
        lg_operand *o = (lg_operand *)(uintptr_t)plan->kernels[i].operands;
        for (uint32_t j = 0; j < plan->kernels[i].n_operands; j++) {
            o[j].window = o[j].has_window ? window : 0;
        }
    }
}

static void kernels_read_the_window_that_is_kept(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    const uint32_t k = value_named(p.r.plan, "kv.0.k");
    ((lg_gvalue *)(uintptr_t)&p.r.plan->graph->values[k])->window = 300; /* in the same ring */
    plans_refused(p.r.plan, "attn (layer 0): window of 'k' is 0, the limit is 300");
    set_windows(p.r.plan, 300);
    lg_proof proof = {0};
    lb_err e = {0};
    assert_true(lg_prove(p.r.plan, &p.arena, &proof, &e));
    set_windows(p.r.plan, 1);
    plans_refused(p.r.plan, "positions of the ring of 'kv.0.k' is 512, the limit is 256");
    plans_close(&p);
}

static void rings_hold_window_and_step(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    lg_gvalue *v =
        (lg_gvalue *)(uintptr_t)&p.r.plan->graph->values[value_named(p.r.plan, "kv.0.k")];
    v->positions = 256;
    plans_refused(p.r.plan, "ring of 'kv.0.k' is 512, the limit is 256");
    v->positions = 1024; /* as many bytes, in cells of half the size */
    plans_refused(p.r.plan, "positions of the ring of 'kv.0.k' is 1024, the limit is 512");
    v->positions = 512;
    set_windows(p.r.plan, 249); /* 248 and the 7 of a step are 255 */
    plans_refused(p.r.plan, "positions of the ring of 'kv.0.k' is 512, the limit is 256");
    v->positions = 256;
    set_windows(p.r.plan, 251);
    plans_refused(p.r.plan, "ring of 'kv.0.k' is 257, the limit is 256");
    plans_close(&p);
}

static void steps_too_large_to_try(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    p.r.plan->limits.ctx = LG_CTX_MAX;
    p.r.plan->limits.chunk = LG_CHUNK_MAX + 1;
    p.r.plan->limits.t_max = LG_CHUNK_MAX + 1;
    p.r.plan->limits.logit_rows_max = LG_LOGIT_ROWS;
    plans_refused(p.r.plan, "limits of 'chunk' is 131073, the limit is 131072");
    plans_close(&p);
}

static void memory_may_run_out(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 512, .chunk = 7});
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        lb_arena memory;
        lb_err e = {0};
        lg_proof proof = {0};
        lb_arena_init(&memory, "proof", UINT64_C(1) << 28);
        memory.fail_after = n;
        done = lg_prove(p.r.plan, &memory, &proof, &e);
        assert_true(done || (e.code == LB_NO_MEMORY && proof.facts == NULL));
        lb_arena_reset(&memory);
    }
    plans_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_plans_are_proved),
        cmocka_unit_test(facts_have_numbers),
        cmocka_unit_test(tiny_bent_everywhere),
        cmocka_unit_test(tiny_from_json_bent_everywhere),
        cmocka_unit_test(biases_and_three_slots_bent),
        cmocka_unit_test(one_row_steps_bent),
        cmocka_unit_test(windows_and_gates_bent),
        cmocka_unit_test(experts_bent),
        cmocka_unit_test(experts_from_json_bent),
        cmocka_unit_test(gpu_bent),
        cmocka_unit_test(odd_sizes_bent),
        cmocka_unit_test(mixed_types_bent),
        cmocka_unit_test(every_excuse_is_used),
        cmocka_unit_test(live_values_must_be_apart),
        cmocka_unit_test(caches_must_be_apart),
        cmocka_unit_test(weights_must_be_apart),
        cmocka_unit_test(order_matters),
        cmocka_unit_test(a_layer_reads_its_own_cache),
        cmocka_unit_test(no_launch_may_be_missing),
        cmocka_unit_test(coverage_is_of_the_value),
        cmocka_unit_test(no_element_is_written_twice),
        cmocka_unit_test(rows_on_y_are_refused),
        cmocka_unit_test(cut_grids),
        cmocka_unit_test(limits_of_the_row),
        named_test("A13 A15 indexes beyond 2^31 need 64 bits", wide_indexes),
        cmocka_unit_test(kernels_read_the_window_that_is_kept),
        cmocka_unit_test(rings_hold_window_and_step),
        cmocka_unit_test(steps_too_large_to_try),
        cmocka_unit_test(memory_may_run_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prove", tests, NULL, NULL);
}
