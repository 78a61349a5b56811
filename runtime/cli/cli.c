/* cli.c -- finds the command, reports errors; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/console.h"
#include "base/stop.h"

enum { NAME_WIDTH = 12 };

static const rt_cli_command *const COMMANDS[] = {
    &rt_cmd_run,  &rt_cmd_chat,  &rt_cmd_tokenize, &rt_cmd_logits,
    &rt_cmd_eval, &rt_cmd_bench, &rt_cmd_info,     &rt_cmd_selftest};
enum { N_COMMANDS = sizeof COMMANDS / sizeof COMMANDS[0] };

static const rt_cli_command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(COMMANDS[i]->name, name) == 0) {
            return COMMANDS[i];
        }
    }
    return NULL;
}

static void print_help(const rt_cli *c) {
    printf("%s runs the model %s, made for %s.\n\nusage: %s COMMAND [options]\n\ncommands:\n",
           c->prog, c->model->name, c->model->arch_row, c->prog);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("  %-*s%s\n", NAME_WIDTH, COMMANDS[i]->name, COMMANDS[i]->summary);
    }
    printf("\n%s COMMAND --help lists a command's options.\n"
           "exit status: 0 done, 1 refused, 2 usage, 3 damaged files, 4 wrong machine,\n"
           "5 out of planned resources, 70 the GPU was lost; 130 Ctrl-C\n",
           c->prog);
}

static bool run_command(rt_cli *c, const rt_cli_command *cmd, int argc, char **argv, lb_err *err) {
    lb_arena_init(&c->arena, "command", LB_HEAP_BYTES);
    bool ok = cmd->run(c, argc, argv, err);
    rt_engine_stop(c->engine);
    lb_arena_reset(&c->arena);
    return ok;
}

static bool dispatch(rt_cli *c, int argc, char **argv, lb_err *err) {
    static char help_flag[] = "--help";
    char *help_argv[] = {help_flag, NULL};
    if (argc < 2) {
        return lb_err_set(err, LB_USAGE, "no command; %s --help lists them", c->prog);
    }
    bool help = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (help && argc == 2)) {
        print_help(c);
        return true;
    }
    const char *name = argv[help ? 2 : 1];
    const rt_cli_command *cmd = find_command(name);
    if (cmd == NULL) {
        return lb_err_set(err, LB_USAGE, "unknown command '%s'; %s --help lists them", name,
                          c->prog);
    }
    return help ? run_command(c, cmd, 1, help_argv, err)
                : run_command(c, cmd, argc - 2, argv + 2, err);
}

int rt_cli_main(const rt_model *model, int argc, char **argv) {
    rt_cli c = {.model = model, .prog = model->name};
    lb_err err = {0};
    if (argc > 0 && argv[0][0] != '\0') {
        const char *slash = strrchr(argv[0], '/');
        c.prog = slash == NULL ? argv[0] : slash + 1;
    }
    bool ok = lb_console_init(&err) && dispatch(&c, argc, argv, &err);
    rt_cli_progress_end();
    ok = ok && lb_console_flush(&err);
    if (!ok && err.code != LB_CLOSED) {
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", c.prog, err.text);
    }
    if (!ok && err.code == LB_CANCELLED) {
        return lb_stop_raise();
    }
    return ok ? 0 : lb_err_exit_status(err.code);
}
