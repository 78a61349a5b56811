/* pipeline.c -- see pipeline.h. */
#include "pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "attn_type.h"
#include "chunk.h"
#include "gguf_value.h"
#include "plan_json.h"
#include "rewrite.h"

enum { AGAIN_BYTES = 1 << 29 }; /* of one plan made for its sizes */


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

/* The context in force: what was asked, else what the file says. Nothing is cut: a value that is
 * too large is refused with the largest that would do. */
static bool choose_ctx(const lg_request *rq, const lg_gguf *file, lb_arena *arena, uint64_t *ctx,
                       uint64_t *trained, lb_err *err) {
    const char *arch_name = NULL;
    const char *key = lg_gguf_arch(file, arena, &arch_name, err)
                          ? lb_format(arena, err, "%s.context_length", arch_name)
                          : NULL;
    if (key == NULL || !lg_gguf_u64(file, key, NULL, trained, err)) {
        return false;
    }
    if (*trained == 0) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key '%s.context_length' is 0; a model needs at least 1", arch_name);
    }
    *ctx = rq->ctx == 0 ? *trained : rq->ctx;
    return rq->ctx <= *trained ||
           lb_err_set(err, LB_BAD_VALUE,
                      "--ctx is %" PRIu64 "; the model file says context_length %" PRIu64
                      ", the largest that would do",
                      rq->ctx, *trained);
}

/* Context, slots and chunk in force. */
static bool choose_limits(const lg_request *rq, lg_result *r, lb_arena *arena, lg_limits *limits,
                          lb_err *err) {
    uint64_t ctx = 0;
    uint64_t chunk = rq->chunk;
    if (!choose_ctx(rq, r->file, arena, &ctx, &r->ctx_train, err)) {
        return false;
    }
    const char *attn = NULL;
    if (!lg_attn_choose(rq->attn, r->hw, rq->kv, lg_attn_weights_exact(r->file), &attn, err)) {
        return lb_err_prefix(err, "--attn");
    }
    r->subject =
        (lg_subject){r->file, r->host, r->hw, rq->kv, rq->rope_mscale, rq->rope_beta, attn};
    if (chunk == 0) {
        lb_arena tmp;
        lb_arena_init(&tmp, "choosing a chunk", AGAIN_BYTES);
        /* a context that is out of range is refused below */
        bool ok = ctx > LG_CTX_MAX || lg_chunk_choose(&r->subject, ctx, rq->slots, &rq->pools, arena,
                                                      &tmp, &chunk, &r->chunk_why, err);
        lb_arena_reset(&tmp);
        if (!ok) {
            return false;
        }
    }
    return lg_limits_make(ctx, rq->slots, chunk == 0 ? 1 : chunk, limits, err);
}

bool lg_run(const lg_request *rq, lb_arena *arena, lg_result *r, lb_err *err) {
    lg_build_options o = {0};
    lg_limits limits;
    *r = (lg_result){0};
    const char *templates = lb_format(arena, err, "%s/templates", rq->root);
    const char *models = lb_format(arena, err, "%s/models", rq->root);
    if (templates == NULL || models == NULL ||
        !lg_gguf_open(rq->model, arena, &r->file, err) ||           /* 1 read */
        !lg_recipe_find(models, r->file, arena, &r->recipe, err) || /* 2 recipe */
        !(lg_hw_find(rq->target, &r->hw, err) || lb_err_prefix(err, "--arch")) ||
        !lg_pools_check(&rq->pools, r->hw, err) ||
        !lg_host_open(templates, NULL, arena, &r->host, err) ||
        !choose_limits(rq, r, arena, &limits, err)) {
        return false;
    }
    o = lg_options_of(&r->subject, &limits);
    if (!lg_graph_build(r->file, r->host, &o, arena, &r->arch_graph, err) || /* 3 graph */
        !lg_graph_check(r->arch_graph, "graph", err)) {                     /* 4 check */
        return false;
    }
    if (dumps(rq, "graph")) {
        lg_graph_dump(r->arch_graph, rq->dump_out);
        return true;
    }
    if (!lg_rewrite(r->arch_graph, r->hw, r->host, arena, &r->graph, err) ||
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

bool lg_run_again(const lg_subject *s, const lg_limits *limits, lb_arena *arena, lg_plan **out,
                  lb_err *err) {
    const lg_build_options o = lg_options_of(s, limits);
    lg_graph *arch = NULL;
    lg_graph *graph = NULL;
    lg_proof proof;
    return lg_graph_build(s->file, s->host, &o, arena, &arch, err) &&
           lg_graph_check(arch, "graph", err) &&
           lg_rewrite(arch, s->hw, s->host, arena, &graph, err) &&
           lg_graph_check(graph, "fuse", err) &&
           lg_plan_launches(graph, s->hw, limits, s->host, arena, out, err) &&
           lg_plan_memory(*out, s->host, arena, err) && lg_prove(*out, arena, &proof, err);
}

void lg_result_close(lg_result *r) {
    lg_host_close(r->host);
    lg_gguf_close(r->file);
    *r = (lg_result){0};
}
