/* info.c -- `info`: what the program is made of and for. Loads no weights. */
#include <inttypes.h>
#include <stdio.h>

#include "base/budget.h"
#include "cli/cli.h"
#include "heap.h"

static void print_bytes(const char *what, uint64_t bytes) {
    printf("  %-24s %15" PRIu64 " bytes\n", what, bytes);
}

static void print_memory(const rt_model *m) {
    uint64_t sum = 0;
    for (int k = 0; k < RT_N_ARENAS; k++) {
        print_bytes(rt_arena_name((rt_arena_kind)k), m->arena_bytes[k]);
        sum += m->arena_bytes[k];
    }
    print_bytes("total", sum); /* as `lagen plan` calls it: the arenas */
    if (m->device != NULL) {
        print_bytes("driver, at most", LB_DRIVER_BYTES);
        print_bytes("pinned in the host", m->arena_bytes[RT_ARENA_IO]);
        print_bytes("pinned to load", (uint64_t)LB_STAGES * LB_STAGE_BYTES);
    }
    print_bytes("all else, at most", LB_HEAP_BYTES);
}

/* Takes the program's memory, without weights, and says what it was. */
static bool measure(rt_cli *c, const char *device, lb_err *err) {
    const rt_model *m = c->model;
    const rt_engine_opts o = {.device = device, .bare = true};
    uint64_t sum = 0;
    uint64_t n = 0;
    if (!rt_engine_start(m, &o, &c->engine, err)) {
        return false;
    }
    for (int k = 0; k < RT_N_ARENAS; k++) {
        sum += m->arena_bytes[k]; /* they are there: no overflow */
    }
    printf("measured, without weights\n");
    if (m->device != NULL) {
        rt_device_memory d;
        m->device->measured(&c->engine->memory, &d);
        uint64_t taken = d.before > d.after ? d.before - d.after : 0;
        print_bytes("device", d.total);
        print_bytes("context, and others'", d.total - d.before);
        print_bytes("taken since", taken);
        print_bytes("of it arenas", sum);
        print_bytes("of it code, graphs", taken > sum ? taken - sum : 0);
        print_bytes("left", d.after);
        printf("%s", d.shared ? "  the device's memory is the host's\n" : "");
    }
    if (rt_heap_status("VmRSS:", &n)) {
        print_bytes("host, resident", n);
    }
    if (rt_heap_status("VmLck:", &n)) {
        print_bytes("host, locked", n);
    }
    return true;
}

static void print_sampling(const rt_sampling *s) {
    printf("sampling    temperature %g, top_k %d, top_p %g, min_p %g, repeat_penalty %g over %d, "
           "frequency_penalty %g, presence_penalty %g (defaults of `run` and `chat`)\n",
           (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p,
           (double)s->repeat_penalty, s->repeat_last_n, (double)s->frequency_penalty,
           (double)s->presence_penalty);
}

/* The devices of this machine, for a program that runs on one. */
static bool print_devices(rt_cli *c, lb_err *err) {
    lb_text t;
    lb_text_init(&t, &c->arena);
    if (c->model->device == NULL) {
        return true;
    }
    c->model->device->describe(c->model, &t);
    if (!lb_text_done(&t, err)) {
        return false;
    }
    fwrite(t.data, 1, t.n_bytes, stdout);
    return true;
}

/* Where prompts are computed with less precision, which keys and values came from what shows. */
static void print_attention(const rt_model *m) {
    printf("attention   %s\n",
           rt_prompts_in_f16(m)
               ? "of prompts in f16 on tensor cores, of generated tokens in f32: keys and values of "
                 "an\n            answer differ in low bits from those that a prompt of its tokens "
                 "makes"
               : "in f32: keys and values are the same bits whether a prompt or an answer made "
                 "them");
}

static void print_text(const rt_model *m) {
    printf("model       %s\nmade for    %s; needs", m->name, m->arch_row);
    for (size_t i = 0; m->cpu_features != NULL && m->cpu_features[i] != NULL; i++) {
        printf(" %s", m->cpu_features[i]);
    }
    printf("\nweights     %" PRIu64 " in %u matrices and vectors, %s\n", m->n_params, m->n_weights,
           m->weights_linked ? "linked to the model file" : "packed into an image");
    for (uint32_t i = 0; i < m->n_files; i++) {
        printf("  %s, %" PRIu64 " bytes%s%s\n", m->files[i].name, m->files[i].n_bytes,
               m->files[i].sha256 == NULL ? "" : ", digest ",
               m->files[i].sha256 == NULL ? "" : m->files[i].sha256);
    }
    printf("layers      %u, %u wide; vocabulary %u\n", m->n_layers, m->n_embd, m->n_vocab);
    printf("context     %u tokens in each of %u slots, KV cache in %s\n", m->ctx, m->slots,
           m->kv_type);
    print_attention(m);
    printf("a step      up to %u rows, %u of a prompt (%s), %u with logits\n", m->t_max, m->chunk,
           m->chunk_why, m->logit_rows_max);
    printf("memory\n");
    print_memory(m);
    printf("tokenizer   %s\nchat        %s\n", m->tokenizer == NULL ? "none" : "yes",
           m->chat == NULL ? "no template" : "template of the model");
    print_sampling(&m->sampling);
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    bool json = false;
    bool go = false;
    bool measured = false;
    const char *device = NULL;
    const lb_opt rows[] = {
        RT_CLI_FLAG("--json", &json, "the program's manifest"),
        RT_CLI_FLAG("--measure", &measured,
                    "take the program's memory, without weights, and show what\nit was beside what was "
                    "planned"),
        {"--device", NULL, LB_OPT_NAME, (void *)&device, 0, 0, false, NULL, "NAME",
         "with --measure: index, UUID or PCI address of a GPU"},
    };
    const rt_cli_line line = {.name = "info", .summary = rt_cmd_info.summary,
                              .details = "Loads no weights.",
                              .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    if (!rt_cli_parse(c, &line, argc, argv, &go, err)) {
        return false;
    }
    if (go && ((json && measured) || (device != NULL && !measured))) {
        return lb_err_set(err, LB_USAGE, json ? "--json and --measure exclude each other"
                                              : "--device is for --measure");
    }
    if (go && json) {
        printf("%s\n", c->model->info_json);
    } else if (go) {
        print_text(c->model);
        return print_devices(c, err) && (!measured || measure(c, device, err));
    }
    return true;
}

const rt_cli_command rt_cmd_info = {"info", "show what the program is made of", run};
