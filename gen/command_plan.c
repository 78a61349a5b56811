/* command_plan.c -- `lagen plan`, `lagen inspect`, `lagen targets`: they read and answer, and write
 * no file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "command_parts.h"
#include "fit_text.h"
#include "inspect.h"
#include "value_text.h"

/* ---- plan */

static void chunk_line(const lg_result *r, lb_text *out) {
    if (r->chunk_why != NULL) {
        lb_text_printf(out, "  chunk          %" PRIu64 " by choice: %s\n", r->plan->limits.chunk,
                       r->chunk_why);
    }
}

static void plan_text(const lg_result *r, const lg_fit *fit, const lg_request *rq, lb_text *out) {
    const lg_plan *p = r->plan;
    const lg_limits *l = &p->limits;
    lb_text_printf(out, "%s for %s\n\n", rq->model, lg_hw_name(p->hw));
    lg_fit_verdict(fit, &rq->pools, p->hw, out);
    lb_text_printf(
        out, "  architecture   %s, %" PRIu64 " layers, width %" PRIu64 ", vocabulary %" PRIu64 "\n",
        p->graph->arch, p->graph->n_layers, p->graph->n_embd, p->graph->n_vocab);
    if (r->recipe.name != NULL) {
        lb_text_printf(out, "  recipe         %s (%s)\n", r->recipe.name, r->recipe.why);
    }
    lb_text_printf(out,
                   "  limits         ctx %" PRIu64 ", slots %" PRIu64 ", chunk %" PRIu64
                   ", logit rows %" PRIu64 "\n",
                   l->ctx, l->slots, l->chunk, l->logit_rows_max);
    chunk_line(r, out);
    lb_text_printf(out, "  step           %" PRIu32 " launches of %" PRIu32 " kernels\n\n",
                   p->n_launches, p->n_kernels);
    lg_fit_text(fit, p->hw, out);
    lb_text_printf(out,
                   "\n  proved         %" PRIu32 " facts for every T from 1 to %" PRIu64
                   " (launch limits, coverage, byte\n"
                   "                 ranges, index widths, lifetimes); --dump prove lists them\n",
                   r->proof.n_facts, l->t_max);
}

static const lg_value *unused(lg_builder *b, const lg_graph *g) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < g->n_unused; i++) {
        lg_build_push(b, list,
                      lg_build_bytes(b, g->unused[i]->name.data, g->unused[i]->name.n_bytes));
    }
    return list;
}

static bool plan_json(const lg_result *r, const lg_fit *fit, const lg_request *rq, lb_arena *arena,
                      lb_text *out, lb_err *err) {
    const lg_plan *p = r->plan;
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    lg_value *limits = lg_build_map(&b);
    lg_build_set_string(&b, root, "schema", "lagen.plan/1");
    lg_build_set_string(&b, root, "architecture", p->graph->arch);
    lg_build_set_string(&b, root, "target", lg_hw_name(p->hw));
    lg_build_set_uint(&b, limits, "ctx", p->limits.ctx);
    lg_build_set_uint(&b, limits, "slots", p->limits.slots);
    lg_build_set_uint(&b, limits, "chunk", p->limits.chunk);
    lg_build_set_uint(&b, limits, "t_max", p->limits.t_max);
    lg_build_set_uint(&b, limits, "logit_rows_max", p->limits.logit_rows_max);
    if (r->chunk_why != NULL) {
        lg_build_set_string(&b, limits, "chunk_why", r->chunk_why);
    }
    lg_build_set(&b, root, "limits", limits);
    if (r->recipe.name != NULL) {
        lg_build_set_string(&b, root, "recipe", r->recipe.name);
    }
    if (p->graph->notes != NULL) {
        lg_build_set(&b, root, "notes", p->graph->notes);
    }
    lg_fit_value(&b, root, fit, &rq->pools, p->hw);
    lg_build_set_uint(&b, root, "launches", p->n_launches);
    lg_build_set_uint(&b, root, "kernels", p->n_kernels);
    lg_build_set_uint(&b, root, "facts", r->proof.n_facts);
    lg_build_set(&b, root, "unused_tensors", unused(&b, r->arch_graph));
    return lg_build_done(&b, err) && lg_value_to_json(root, out, err);
}

/* "No" is an answer, printed whole, and a failure: `lagen plan ... && lagen build ...`. */
static bool say_no(lg_context *c, const lg_fit *fit, const lg_request *rq, lb_err *err) {
    const char *why = lg_fit_refusal(fit, &rq->pools, c->arena, err);
    c->answered = why != NULL;
    return why != NULL && lb_err_set(err, LB_LIMIT, "does not fit: %s", why);
}

bool lg_command_plan(lg_context *c, int argc, char *const *argv, lb_err *err) {
    lg_model_args a = lg_model_args_default();
    bool json = false;
    const char *dump = NULL;
    lb_opt options[LG_MODEL_OPTIONS + 2];
    uint32_t n = lg_model_options(&a, options);
    options[n++] =
        (lb_opt){"--json", NULL,  LB_OPT_FLAG, &json, 0,
                 0,        false, NULL,        NULL,  "print JSON (schema lagen.plan/1)"};
    options[n++] =
        (lb_opt){"--dump",
                 NULL,
                 LB_OPT_WORD,
                 &dump,
                 0,
                 0,
                 false,
                 NULL,
                 LG_DUMP_STEPS,
                 "print one step's result as stable text"};
    const lb_command command = {
        "lagen plan",
        "Shows launches, bytes and proof of a program without writing anything.",
        "Reads the model file's directory only; no weight is touched. With --vram or --ram it says\n"
        "first whether the program fits. Exit status: 0 planned, and it fits if that was asked; 1\n"
        "refused, or it does not fit, and then all the same is printed; 2 usage.",
        options,
        n,
        NULL,
        0};
    lg_request rq;
    bool done = false;
    if (!lg_model_parse(c, &command, &a, argc, argv, &rq, &done, err) || done) {
        return done;
    }
    if (json && dump != NULL) {
        return lb_err_set(err, LB_USAGE, "--json and --dump exclude each other");
    }
    rq.dump = dump;
    rq.dump_out = c->out;
    lg_result r;
    lg_fit fit;
    bool ok = lg_run(&rq, c->arena, &r, err);
    if (ok && dump == NULL) {
        lg_note_unused(c, &r);
        ok = lg_fit_find(&r, &rq.pools, c->arena, &fit, err) &&
             (json ? plan_json(&r, &fit, &rq, c->arena, c->out, err)
                   : (plan_text(&r, &fit, &rq, c->out), true)) &&
             (!fit.asked || fit.fits || say_no(c, &fit, &rq, err));
    }
    lg_result_close(&r);
    return ok;
}

/* ---- inspect, targets */

bool lg_command_inspect(lg_context *c, int argc, char *const *argv, lb_err *err) {
    const char *path = NULL;
    bool json = false;
    bool done = false;
    const lb_opt options[] = {{"--json", NULL, LB_OPT_FLAG, &json, 0, 0, false, NULL, NULL,
                               "print JSON (schema lagen.inspect/1)"}};
    const lb_positional pos[] = {
        {"FILE", &path, true, "a GGUF file, or the first part of a split one"}};
    const lb_command command = {"lagen inspect",
                                "Shows what a model file really holds, whatever its name says.",
                                NULL,
                                options,
                                1,
                                pos,
                                1};
    if (!lg_command_parse(c, &command, argc, argv, &done, err) || done) {
        return done;
    }
    lg_gguf *file = NULL;
    bool ok = lg_gguf_open(path, c->arena, &file, err) && lg_inspect(file, path, json, c->out, err);
    lg_gguf_close(file);
    return ok;
}

bool lg_command_targets(lg_context *c, int argc, char *const *argv, lb_err *err) {
    bool json = false;
    bool done = false;
    const lb_opt options[] = {{"--json", NULL, LB_OPT_FLAG, &json, 0, 0, false, NULL, NULL,
                               "print a list of objects with every number of each row"}};
    const lb_command command = {
        "lagen targets", "Lists the hardware rows that --arch takes.", NULL, options, 1, NULL, 0};
    if (!lg_command_parse(c, &command, argc, argv, &done, err) || done) {
        return done;
    }
    return lg_targets(json, c->out, err);
}
