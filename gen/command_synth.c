/* command_synth.c -- `lagen synth`: a model file with random weights, for tests and for planning
 * without a model. */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "command_parts.h"
#include "synth.h"

typedef struct progress_of {
    const lg_context *c;
    unsigned last;
} progress_of;

static void progress(void *arg, uint64_t done, uint64_t total) {
    progress_of *p = arg;
    p->c->progress(&p->last, "writing model", done, total);
}

bool lg_command_synth(lg_context *c, int argc, char *const *argv, lb_err *err) {
    lg_synth_options o = {.stop = c->stop, .progress = progress};
    progress_of p = {c, 0};
    uint64_t layers = 0;
    bool done = false;
    const lb_opt options[] = {
        {"--out", "-o", LB_OPT_NAME, (void *)&o.out_path, 0, 0, false, NULL, "FILE",
         "the GGUF file to write"},
        {"--types", NULL, LB_OPT_NAME, (void *)&o.types, 0, 0, false, NULL, "T",
         "tensor type of all matrices, or a mix that the\nrecipe knows"},
        {"--layers", NULL, LB_OPT_UINT, &layers, 1, 512, false, NULL, "N",
         "layers; default: the recipe's"},
        {"--seed", NULL, LB_OPT_UINT, &o.seed, 0, 4294967295.0, false, NULL, "S",
         "seed of the weights; default 0"},
        {"--distinct-rows", NULL, LB_OPT_UINT, &o.distinct_rows, 1, 4294967295.0, false, NULL, "N",
         "each tensor repeats its first N rows: a big model in\nthe time it takes to write; default: all rows differ"},
        {"--header-only", NULL, LB_OPT_FLAG, &o.header_only, 0, 0, false, NULL, NULL,
         "only the directory is written; the weights are a hole of\nthe right length, enough for `lagen plan`"},
    };
    const lb_positional pos[] = {
        {"RECIPE", &o.recipe, true, "a file below models/, as in synth/llama-tiny"}};
    const lb_command command = {"lagen synth",
                                "Makes a model file with random weights from a recipe.",
                                NULL,
                                options,
                                6,
                                pos,
                                1};
    if (!lg_command_parse(c, &command, argc, argv, &done, err) || done) {
        return done;
    }
    if (o.out_path == NULL) {
        return lb_err_set(err, LB_USAGE, "lagen synth needs --out FILE; see lagen synth --help");
    }
    lg_synth_report report = {0};
    o.models_dir = lb_format(c->arena, err, "%s/models", c->root);
    o.layers = (uint32_t)layers;
    o.progress_arg = &p;
    if (o.models_dir == NULL || !lg_synth_run(&o, &report, c->arena, err)) {
        return false;
    }
    lb_text_printf(c->out, "%s: %" PRIu64 " tensors, %" PRIu64 " weights, %" PRIu64 " bytes\n",
                   o.out_path, report.n_tensors, report.n_params, report.n_bytes);
    return true;
}
