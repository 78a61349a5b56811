/* pipeline.c -- see pipeline.h. */
#include "pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "fuse.h"
#include "gguf_value.h"
#include "plan_json.h"
#include "sampling.h"

const char *const LG_DUMP_STEPS[] = {"graph", "fuse", "launch", "memory", "prove", NULL};

static bool dumps(const lg_request *rq, const char *step) {
    return rq->dump != NULL && strcmp(rq->dump, step) == 0;
}

static void dump_proof(const lg_plan *plan, const lg_proof *proof, lb_text *out) {
    for (uint32_t i = 0; i < proof->n_facts; i++) {
        const lg_fact *f = &proof->facts[i];
        lb_text_printf(out, "fact %s %s '%s' %" PRIu64 " <= %" PRIu64 "\n",
                       f->launch == UINT32_MAX ? "plan" : plan->launches[f->launch].label, f->kind,
                       f->subject, f->value, f->limit);
    }
}

/* The context, slots and chunk in force: what was asked, else what the file says. Nothing is cut: a
 * value that is too large is refused with the largest that would do. */
static bool choose_limits(const lg_request *rq, const lg_gguf *file, lb_arena *arena,
                          lg_build_options *o, lg_limits *limits, lb_err *err) {
    const char *arch_name = NULL;
    uint64_t trained = 0;
    const char *key = lg_gguf_arch(file, arena, &arch_name, err)
                          ? lb_format(arena, err, "%s.context_length", arch_name)
                          : NULL;
    if (key == NULL || !lg_gguf_u64(file, key, NULL, &trained, err)) {
        return false;
    }
    if (trained == 0) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key '%s.context_length' is 0; a model needs at least 1", arch_name);
    }
    uint64_t ctx = rq->ctx == 0 ? trained : rq->ctx;
    uint64_t chunk = rq->chunk != 0 ? rq->chunk : (ctx < 512 ? ctx : 512);
    if (rq->ctx > trained) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "--ctx is %" PRIu64 "; the model file says context_length %" PRIu64
                          ", the largest that would do",
                          rq->ctx, trained);
    }
    *o = (lg_build_options){ctx, rq->slots, chunk, rq->kv, rq->rope_mscale, rq->rope_beta};
    return lg_limits_make(ctx, rq->slots, chunk, limits, err);
}

bool lg_run(const lg_request *rq, lb_arena *arena, lg_result *r, lb_err *err) {
    lg_build_options o;
    lg_limits limits;
    *r = (lg_result){0};
    const char *templates = lb_format(arena, err, "%s/templates", rq->root);
    const char *models = lb_format(arena, err, "%s/models", rq->root);
    if (templates == NULL || models == NULL ||
        !lg_gguf_open(rq->model, arena, &r->file, err) ||           /* 1 read */
        !lg_recipe_find(models, r->file, arena, &r->recipe, err) || /* 2 recipe */
        !(lg_hw_find(rq->target, &r->hw, err) || lb_err_prefix(err, "--arch")) ||
        !choose_limits(rq, r->file, arena, &o, &limits, err) ||
        !lg_host_open(templates, NULL, arena, &r->host, err) ||
        !lg_graph_build(r->file, r->host, &o, arena, &r->arch_graph, err) || /* 3 graph */
        !lg_graph_check(r->arch_graph, "graph", err)) {                      /* 4 check */
        return false;
    }
    if (dumps(rq, "graph")) {
        lg_graph_dump(r->arch_graph, rq->dump_out);
        return true;
    }
    if (!lg_fuse(r->arch_graph, arena, &r->graph, err) ||
        (r->hw->gpu && !lg_add_sampling(r->graph, r->host, arena, err)) ||
        !lg_graph_check(r->graph, "fuse", err)) { /* 5 fuse */
        return false;
    }
    if (dumps(rq, "fuse")) {
        lg_graph_dump(r->graph, rq->dump_out);
        return true;
    }
    if (!lg_plan_launches(r->graph, r->hw, &limits, r->host, arena, &r->plan, err) || /* 7 launch */
        !lg_plan_memory(r->plan, r->host, arena, err) ||                              /* 8 memory */
        !lg_prove(r->plan, arena, &r->proof, err)) {                                  /* 9 prove */
        return false;
    }
    if (dumps(rq, "launch")) {
        return lg_launches_json(r->plan, &r->proof, arena, rq->dump_out, err);
    }
    if (dumps(rq, "memory")) {
        return lg_memory_json(r->plan, arena, rq->dump_out, err);
    }
    if (dumps(rq, "prove")) {
        dump_proof(r->plan, &r->proof, rq->dump_out);
    }
    return true;
}

void lg_result_close(lg_result *r) {
    lg_host_close(r->host);
    lg_gguf_close(r->file);
    *r = (lg_result){0};
}
