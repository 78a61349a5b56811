/* command_plan.c -- `lagen plan`, `lagen inspect`, `lagen targets`: they read and answer, and write
 * no file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "command_parts.h"
#include "inspect.h"
#include "value_text.h"

/* ---- plan */

static const char *size_text(uint64_t bytes, char buffer[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;
    while (v >= 1024.0 && u < 4) {
        v /= 1024.0;
        u++;
    }
    snprintf(buffer, 32, u == 0 ? "%.0f %s" : "%.2f %s", v, units[u]);
    return buffer;
}

static uint64_t arena_total(const lg_plan *p) {
    uint64_t n = 0;
    for (int i = 0; i < LG_N_ARENAS; i++) {
        n += p->arena_bytes[i];
    }
    return n;
}

static void plan_text(const lg_result *r, const char *model, lb_text *out) {
    static const char *const names[] = {"weights", "KV cache", "scratch", "logits"};
    const lg_plan *p = r->plan;
    const lg_limits *l = &p->limits;
    char size[32];
    lb_text_printf(out, "%s for %s\n\n", model, lg_hw_name(p->hw));
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
    lb_text_printf(out,
                   "  step           %" PRIu32 " launches of %" PRIu32 " kernels\n\n  memory\n",
                   p->n_launches, p->n_kernels);
    for (int i = 0; i < LG_N_ARENAS; i++) {
        lb_text_printf(out, "    %-10s %15" PRIu64 "  %s\n", names[i], p->arena_bytes[i],
                       size_text(p->arena_bytes[i], size));
    }
    lb_text_printf(out, "    %-10s %15" PRIu64 "  %s\n\n", "total", arena_total(p),
                   size_text(arena_total(p), size));
    lb_text_printf(out,
                   "  proved         %" PRIu32 " facts for every T from 1 to %" PRIu64
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

static bool plan_json(const lg_result *r, lb_arena *arena, lb_text *out, lb_err *err) {
    const lg_plan *p = r->plan;
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    lg_value *memory = lg_build_map(&b);
    lg_value *limits = lg_build_map(&b);
    lg_build_set_string(&b, root, "schema", "lagen.plan/1");
    lg_build_set_string(&b, root, "architecture", p->graph->arch);
    lg_build_set_string(&b, root, "target", lg_hw_name(p->hw));
    lg_build_set_uint(&b, limits, "ctx", p->limits.ctx);
    lg_build_set_uint(&b, limits, "slots", p->limits.slots);
    lg_build_set_uint(&b, limits, "chunk", p->limits.chunk);
    lg_build_set_uint(&b, limits, "t_max", p->limits.t_max);
    lg_build_set_uint(&b, limits, "logit_rows_max", p->limits.logit_rows_max);
    lg_build_set(&b, root, "limits", limits);
    if (r->recipe.name != NULL) {
        lg_build_set_string(&b, root, "recipe", r->recipe.name);
    }
    if (p->graph->notes != NULL) {
        lg_build_set(&b, root, "notes", p->graph->notes);
    }
    for (int i = 0; i < LG_N_ARENAS; i++) {
        lg_build_set_uint(&b, memory, LG_ARENA_NAMES[i], p->arena_bytes[i]);
    }
    lg_build_set_uint(&b, memory, "total", arena_total(p));
    lg_build_set(&b, root, "memory", memory);
    lg_build_set_uint(&b, root, "launches", p->n_launches);
    lg_build_set_uint(&b, root, "kernels", p->n_kernels);
    lg_build_set_uint(&b, root, "facts", r->proof.n_facts);
    lg_build_set(&b, root, "unused_tensors", unused(&b, r->arch_graph));
    return lg_build_done(&b, err) && lg_value_to_json(root, out, err);
}

static bool known_dump(const char *step, lb_err *err) {
    for (int i = 0; step != NULL && LG_DUMP_STEPS[i] != NULL; i++) {
        if (strcmp(step, LG_DUMP_STEPS[i]) == 0) {
            return true;
        }
    }
    return step == NULL ||
           lb_err_set(err, LB_USAGE,
                      "--dump: '%s' is no step; there are graph, fuse, launch, memory, prove",
                      step);
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
                 LB_OPT_NAME,
                 &dump,
                 0,
                 0,
                 false,
                 NULL,
                 "STEP",
                 "print one step's result as stable text:\ngraph, fuse, launch, memory or prove"};
    const lb_command command = {
        "lagen plan",
        "Shows launches, bytes and proof of a program without writing anything.",
        "Reads the model file's directory only; no weight is touched.",
        options,
        n,
        NULL,
        0};
    lg_request rq;
    bool done = false;
    if (!lg_model_parse(c, &command, &a, argc, argv, &rq, &done, err) || done ||
        !known_dump(dump, err)) {
        return done;
    }
    rq.dump = dump;
    rq.dump_out = c->out;
    lg_result r;
    bool ok = lg_run(&rq, c->arena, &r, err);
    if (ok && dump == NULL) {
        lg_note_unused(c, &r);
        ok = json ? plan_json(&r, c->arena, c->out, err) : (plan_text(&r, a.model, c->out), true);
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
