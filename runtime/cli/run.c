/* run.c -- `run`: one prompt, one answer. */
#include <stdio.h>

#include "cli/answer.h"
#include "cli/talk.h"

typedef struct options {
    rt_cli_team team;
    rt_cli_text text;
    rt_cli_sampling sampling;
    const char *system, *thinking;
    rt_thinking think;
    bool raw, special, stats;
} options;

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    const lb_opt rows[] = {
        RT_CLI_TEXT_ROWS(o->text),
        RT_CLI_TEXT("--system", NULL, &o->system, "TEXT", "the system message"),
        RT_CLI_THINKING_ROW(&o->thinking),
        RT_CLI_FLAG("--raw", &o->raw, "no chat template: the model continues the text"),
        RT_CLI_FLAG("--special", &o->special,
                    "with --raw: names of special tokens in the text stand\nfor the tokens"),
        RT_CLI_SAMPLING_ROWS(c, o->sampling),
        RT_CLI_TEAM_ROWS(c, o->team),
        RT_CLI_FLAG("--stats", &o->stats, "seed, threads, memory and times, on stderr"),
    };
    const rt_cli_line line = {
        .name = "run", .summary = rt_cmd_run.summary,
        .details = "Prints the answer as it comes, then tokens per second on stderr.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    if (!rt_cli_parse(c, &line, argc, argv, go, err)) {
        return false;
    }
    if (o->raw && (o->system != NULL || o->thinking != NULL)) {
        return lb_err_set(err, LB_USAGE, "--raw and %s exclude each other",
                          o->system != NULL ? "--system" : "--thinking");
    }
    if (o->special && !o->raw) {
        return lb_err_set(err, LB_USAGE, "--special needs --raw");
    }
    o->think = rt_cli_thinking(o->thinking);
    return true;
}

static bool get_prompt(rt_cli *c, const options *o, rt_cli_talk *talk, uint32_t **ids, size_t *n,
                       lb_err *err) {
    const char *text = NULL;
    size_t n_bytes = 0;
    if (!rt_cli_read(c, &o->text, &text, &n_bytes, err)) {
        return false;
    }
    if (o->raw) {
        rt_token_input in = {.text = text, .n_bytes = n_bytes, .add_special = true,
                             .parse_special = o->special};
        return rt_cli_encode(c, &in, &c->arena, ids, n, err);
    }
    return rt_cli_talk_new(c, o->system, o->think, talk, err) &&
           rt_cli_talk_add(talk, RT_ROLE_USER, text, n_bytes, err) &&
           rt_cli_talk_prompt(talk, ids, n, err);
}

static bool answer(rt_cli *c, const options *o, rt_cli_talk *talk, lb_err *err) {
    rt_cli_answerer a;
    uint32_t *ids = NULL;
    size_t n = 0;
    if (!rt_cli_answerer_new(c, &o->sampling, !o->raw, &a, err) ||
        !get_prompt(c, o, talk, &ids, &n, err) ||
        (!o->raw && !rt_cli_talk_opening(talk, &a.opening, &a.n_opening, err)) ||
        !rt_cli_start(c, &o->team, err) ||
        !rt_cli_answer(c, &a, ids, n, err)) {
        return false;
    }
    rt_cli_print_rates(&a);
    if (o->stats) {
        rt_cli_print_stats(c, &a);
    }
    return true;
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    options o = {0};
    rt_cli_talk talk = {0};
    bool go = false;
    bool ok = parse(c, argc, argv, &o, &go, err);
    if (ok && go) {
        ok = answer(c, &o, &talk, err);
        rt_cli_talk_free(&talk);
    }
    return ok;
}

const rt_cli_command rt_cmd_run = {"run", "answer one prompt", run};
