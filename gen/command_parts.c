/* command_parts.c -- see command_parts.h. */
#include "command_parts.h"

#include <inttypes.h>
#include <string.h>

#include "pretok.h"

#include "kv.h"

bool lg_command_parse(lg_context *c, const lb_command *command, int argc, char *const *argv,
                      bool *done, lb_err *err) {
    *done = false;
    if (!lb_options_parse(command, argc, argv, done, err)) {
        return false;
    }
    if (*done) {
        lb_options_help(command, c->out);
    }
    return true;
}

/* 1 PiB: far beyond any machine, and every sum of such numbers is exact. 1 MiB: less than any
 * program needs, so that a forgotten unit is found out. */
#define POOL_MIN 1048576.0
#define POOL_MAX 1125899906842624.0

lg_model_args lg_model_args_default(void) {
    return (lg_model_args){.arch = "native", .kv = "f16", .slots = 1};
}

uint32_t lg_model_options(lg_model_args *a, lb_opt *options) {
    const lb_opt list[LG_MODEL_OPTIONS] = {
        {"--model", "-m", LB_OPT_NAME, (void *)&a->model, 0, 0, false, NULL, "FILE",
         "the GGUF file, or the first part of a split one"},
        {"--arch", NULL, LB_OPT_NAME, (void *)&a->arch, 0, 0, false, NULL, "ROW",
         "hardware row, see `lagen targets`; native (the default)\nresolves to the best row of "
         "this machine"},
        {"--ctx", NULL, LB_OPT_UINT, &a->ctx, 1, 16777216, false, NULL, "TOKENS",
         "context per slot; default: what the model file says"},
        {"--slots", NULL, LB_OPT_UINT, &a->slots, 1, 1024, false, NULL, "N",
         "sequences side by side; default 1"},
        {"--chunk", NULL, LB_OPT_UINT_AUTO, &a->chunk, 1, 131072, false, NULL, "TOKENS",
         "rows of one prefill step; auto (default): as many as suit\nmodel and row, or as --vram and "
         "--ram leave room for"},
        {"--kv", NULL, LB_OPT_WORD, (void *)&a->kv, 0, 0, false, NULL, lg_kv_words(),
         "type of cached keys and values: f16 (default), or q8_0,\nbytes with a scale for each 32"},
        {"--attn", NULL, LB_OPT_WORD, (void *)&a->attn, 0, 0, false, NULL, "f16|f32",
         "numbers that attention of prompts multiplies: f16, on tensor cores\n(default of GPU rows "
         "with --kv f16, unless all weights are\nF32), or f32, the bits of every row (default elsewhere)"},
        {"--pre", NULL, LB_OPT_NAME, (void *)&a->pre, 0, 0, false, NULL, "NAME",
         "how text is cut into words, where the model file does not\nsay it or says it wrongly; "
         "docs/tokenizers.md lists names"},
        {"--rope-mscale", NULL, LB_OPT_NAME, (void *)&a->rope_mscale, 0, 0, false, NULL, "WHICH",
         "magnitude of YaRN: formula (default), 1 + 0.1 ln factor times\nthe file's attn_factor; "
         "key, the file's factor alone; or a number"},
        {"--rope-beta", NULL, LB_OPT_NAME, (void *)&a->rope_beta, 0, 0, false, NULL, "WHICH",
         "bounds of YaRN's ramp, in turns: fixed (default), 32,1;\nkey, the file's; or FAST,SLOW"},
        {"--vram", NULL, LB_OPT_UINT, &a->vram, POOL_MIN, POOL_MAX, true, NULL, "BYTES",
         "memory of the GPU that the program may have, such as 16GiB:\nplan answers, build refuses "
         "what does not fit"},
        {"--ram", NULL, LB_OPT_UINT, &a->ram, POOL_MIN, POOL_MAX, true, NULL, "BYTES",
         "the same of the host's memory, which on some boards is\nthe GPU's too"},
    };
    memcpy(options, list, sizeof list);
    return LG_MODEL_OPTIONS;
}

bool lg_row_option(const char *option, const char *name, lb_err *err) {
    const lg_hw_row *row = NULL;
    lb_err why = {0};
    if (strcmp(name, "native") == 0 || lg_hw_find(name, &row, &why)) {
        return true;
    }
    return lb_err_set(err, LB_USAGE, "%s: %s", option, why.text);
}

/* Parses the line of a command whose model stands behind -m. Whoever forgot that is told, with what
 * they wrote. */
static bool parse_line(lg_context *c, const lb_command *command, const lg_model_args *a, int argc,
                       char *const *argv, bool *done, lb_err *err) {
    const char *stray = NULL;
    const lb_positional pos[] = {{"FILE", &stray, false, ""}};
    lb_command taking = *command;
    taking.positionals = pos;
    taking.n_positionals = 1;
    *done = false;
    if (!lb_options_parse(&taking, argc, argv, done, err)) {
        return false;
    }
    if (*done) {
        lb_options_help(command, c->out);
        return true;
    }
    if (stray != NULL && a->model == NULL) {
        return lb_err_set(err, LB_USAGE,
                          "unexpected argument '%.80s'; the model file stands behind -m: %s -m %.80s",
                          stray, command->name, stray);
    }
    return stray == NULL || lb_err_set(err, LB_USAGE,
                                       "unexpected argument '%.80s'; %s --help shows the usage",
                                       stray, command->name);
}

bool lg_model_parse(lg_context *c, const lb_command *command, const lg_model_args *a, int argc,
                    char *const *argv, lg_request *rq, bool *done, lb_err *err) {
    if (!parse_line(c, command, a, argc, argv, done, err) || *done) {
        return *done;
    }
    if (a->model == NULL) {
        return lb_err_set(err, LB_USAGE, "%s needs --model FILE; see %s --help", command->name,
                          command->name);
    }
    if (a->pre != NULL && lg_pretok_find(a->pre, strlen(a->pre)) == NULL) {
        return lb_err_set(err, LB_USAGE,
                          "--pre: '%.40s' is not known; docs/tokenizers.md lists names", a->pre);
    }
    if (!lg_row_option("--arch", a->arch, err)) {
        return false;
    }
    if (a->ctx != 0 && a->chunk > a->ctx) {
        return lb_err_set(err, LB_USAGE, "--chunk is %" PRIu64 ", more than --ctx %" PRIu64,
                          a->chunk, a->ctx);
    }
    *rq = (lg_request){.root = c->root,
                       .model = a->model,
                       .target = a->arch,
                       .ctx = a->ctx,
                       .slots = a->slots,
                       .chunk = a->chunk,
                       .pools = {a->vram, a->ram},
                       .kv = a->kv,
                       .attn = a->attn,
                       .rope_mscale = a->rope_mscale,
                       .rope_beta = a->rope_beta};
    return true;
}

void lg_note_unused(lg_context *c, const lg_result *r) {
    enum { NAMED = 5 };
    const lg_graph *g = r->arch_graph;
    lb_text t;
    lb_text_init(&t, c->arena);
    if (g == NULL || g->n_unused == 0) {
        return;
    }
    lb_text_printf(&t, "warning: %" PRIu32 " tensor%s of the model file %s not used:", g->n_unused,
                   g->n_unused == 1 ? "" : "s", g->n_unused == 1 ? "is" : "are");
    for (uint32_t i = 0; i < g->n_unused && i < NAMED; i++) {
        lb_text_add(&t, i == 0 ? " " : ", ");
        lb_text_add_n(&t, g->unused[i]->name.data, g->unused[i]->name.n_bytes);
    }
    lb_text_add(&t, g->n_unused > NAMED ? ", ..." : "");
    c->note(lb_text_done(&t, NULL) ? t.data : NULL);
}
