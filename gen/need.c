/* need.c -- see need.h. */
#include "need.h"

#include "base/budget.h"
#include "base/num.h"
#include "rewrite.h"

bool lg_one_pool(const lg_hw_row *hw) {
    return !hw->gpu || lg_hw_has(hw, LG_HW_UNIFIED);
}

bool lg_pools_check(const lg_pools *pools, const lg_hw_row *hw, lb_err *err) {
    if (pools->vram == 0 || !lg_one_pool(hw)) {
        return true;
    }
    return lb_err_set(err, LB_USAGE, "--vram: %s has one memory%s; --ram names it", lg_hw_name(hw),
                      hw->gpu ? " for CPU and GPU" : "");
}

/* States by what their rows see. */
static bool sum_states(const lg_plan *plan, lg_need *n, lb_err *err) {
    const lg_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        uint64_t *to = v->window == 0 ? &n->kv_full : &n->kv_window;
        if (v->rows == LG_ROWS_STATE && !lb_add(*to, plan->places[i].bytes, to)) {
            return lb_err_set(err, LB_OVERFLOW, "the sum of all caches passes 64 bits");
        }
    }
    return true;
}

bool lg_need_sum(const lg_plan *plan, lg_need *out, lb_err *err) {
    lg_need n = {.limits = plan->limits, .heap = LB_HEAP_BYTES};
    uint64_t arenas = 0;
    bool fits = true;
    for (int i = 0; i < LG_N_ARENAS; i++) {
        n.arenas[i] = plan->arena_bytes[i];
        fits = fits && lb_add(arenas, n.arenas[i], &arenas);
    }
    if (plan->hw->gpu) {
        n.driver = LB_DRIVER_BYTES;
        n.mirror = n.arenas[LG_ARENA_IO];
        n.stages = (uint64_t)LB_STAGES * LB_STAGE_BYTES;
    }
    uint64_t device = 0;
    uint64_t host = 0;
    fits = fits && lb_add(arenas, n.driver, &device) && lb_add(n.mirror, n.stages, &host) &&
           lb_add(host, n.heap, &host);
    bool one = lg_one_pool(plan->hw);
    n.vram = one ? 0 : device;
    n.ram = host;
    if (!fits || (one && !lb_add(host, device, &n.ram))) {
        return lb_err_set(err, LB_OVERFLOW, "the sum of all memory passes 64 bits");
    }
    *out = n;
    return sum_states(plan, out, err);
}

lg_build_options lg_options_of(const lg_subject *s, const lg_limits *l) {
    return (lg_build_options){l->ctx, l->slots, l->chunk, s->kv, s->rope_mscale, s->rope_beta,
                              s->attn};
}

static bool plan_sizes(const lg_subject *s, const lg_limits *l, lb_arena *tmp, lg_need *out,
                       lb_err *err) {
    const lg_build_options o = lg_options_of(s, l);
    lg_graph *arch = NULL;
    lg_graph *graph = NULL;
    lg_plan *plan = NULL;
    return lg_graph_build(s->file, s->host, &o, tmp, &arch, err) &&
           lg_rewrite(arch, s->hw, s->host, tmp, &graph, err) &&
           lg_plan_sizes(graph, s->hw, l, s->host, tmp, &plan, err) && lg_need_sum(plan, out, err);
}

bool lg_need_of(const lg_subject *s, const lg_limits *limits, lb_arena *tmp, lg_need *out,
                lb_err *err) {
    lb_arena_reset(tmp);
    bool ok = plan_sizes(s, limits, tmp, out, err);
    lb_arena_reset(tmp);
    return ok;
}

bool lg_need_fits(const lg_need *n, const lg_pools *pools) {
    return (pools->vram == 0 || n->vram <= pools->vram) &&
           (pools->ram == 0 || n->ram <= pools->ram);
}
