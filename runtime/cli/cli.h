/* cli.h -- what the commands of an emitted `-cli` program share.
 *
 * Results go to stdout, everything else to stderr; progress only to a terminal. The environment
 * is not read (the line editor of `chat` looks at TERM). Exit statuses: 0 done; 1 refused; 2
 * usage; 3 damaged; 4 wrong machine; 5 out of planned resources (runtime/base/err.h). A command
 * ends at the first write that fails: with 1, and without a word where nobody reads any more. */
#ifndef RT_CLI_CLI_H
#define RT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/options.h"
#include "session.h"
#include "token/token.h"

typedef struct rt_cli {
    const rt_model *model;
    const char *prog;  /* as called, without folders */
    lb_arena arena;    /* what a command allocates beside the engine */
    rt_engine *engine; /* started by rt_cli_start; stopped when the command returns */
    double load_seconds;
} rt_cli;

typedef struct rt_cli_command {
    const char *name;
    const char *summary; /* one line, for the list of commands */
    /* argv[0..argc) stands after the command's name; fails with LB_USAGE before anything is
     * loaded. */
    bool (*run)(rt_cli *c, int argc, char **argv, lb_err *err);
} rt_cli_command;

/* The program. Returns its exit status. */
int rt_cli_main(const rt_model *model, int argc, char **argv);

/* Commands, one a file (cli/<name>.c). */
extern const rt_cli_command rt_cmd_run, rt_cmd_chat, rt_cmd_tokenize, rt_cmd_logits, rt_cmd_eval,
    rt_cmd_bench, rt_cmd_info, rt_cmd_selftest;

/* ---- common.c ---- */

/* One command line: its table, parsed into what the rows point to. `name` is the command's; with
 * --help the text is printed and *go is false. */
typedef struct rt_cli_line {
    const char *name, *summary, *details;
    const lb_opt *options;
    uint32_t n_options;
    const lb_positional *positionals;
    uint32_t n_positionals;
} rt_cli_line;
bool rt_cli_parse(rt_cli *c, const rt_cli_line *line, int argc, char **argv, bool *go, lb_err *err);

/* Rows of a table. */
#define RT_CLI_FLAG(name, out, help) {name, NULL, LB_OPT_FLAG, out, 0, 0, false, NULL, NULL, help}
#define RT_CLI_TEXT(name, brief, out, value, help)                                                \
    {name, brief, LB_OPT_TEXT, out, 0, 0, false, NULL, value, help}
#define RT_CLI_NAME(name, brief, out, value, help)                                                \
    {name, brief, LB_OPT_NAME, out, 0, 0, false, NULL, value, help}
#define RT_CLI_WORD(name, out, words, help)                                                       \
    {name, NULL, LB_OPT_WORD, out, 0, 0, false, NULL, words, help}
#define RT_CLI_UINT(name, brief, out, least, most, value, help)                                   \
    {name, brief, LB_OPT_UINT, out, least, most, false, NULL, value, help}
#define RT_CLI_REAL(name, out, least, most, given, help)                                          \
    {name, NULL, LB_OPT_DOUBLE, out, least, most, false, given, "X", help}

/* Options that several commands have. 0: all there are. */
typedef struct rt_cli_team {
    uint64_t n_threads, chunk;
    const char *device;
} rt_cli_team;
#define RT_CLI_TEAM_ROWS(c, team)                                                                 \
    RT_CLI_UINT("--threads", "-t", &(team).n_threads, 1, RT_POOL_MAX_THREADS, "N",                \
                "threads (default: the CPUs this process may run on)"),                           \
    RT_CLI_UINT("--chunk", NULL, &(team).chunk, 1, (c)->model->chunk, "N",                        \
                "rows of a prompt in one step (default: the most, as\nthe program was made); "    \
                "results do not depend on it"),                                                   \
    RT_CLI_NAME("--device", NULL, &(team).device, "NAME",                                         \
                "the GPU, where several would do: index, UUID or PCI\naddress (`info` lists them)")

/* Starts the engine, with progress on a terminal. */
bool rt_cli_start(rt_cli *c, const rt_cli_team *team, lb_err *err);

/* Where a text comes from: -p TEXT or -f FILE ("-" is standard input), exactly one of them. */
typedef struct rt_cli_text {
    const char *prompt, *file;
} rt_cli_text;
#define RT_CLI_TEXT_ROWS(text)                                                                    \
    RT_CLI_TEXT("--prompt", "-p", &(text).prompt, "TEXT", "the text"),                            \
    RT_CLI_NAME("--file", "-f", &(text).file, "FILE",                                             \
                "a file with the text; - is standard input")

/* The text and its length; LB_USAGE if neither or both are given. At most 256 MiB. */
bool rt_cli_read(rt_cli *c, const rt_cli_text *t, const char **text, size_t *n_bytes, lb_err *err);

/* The tokenizer, or LB_UNSUPPORTED if the model has none. */
bool rt_cli_tokenizer(const rt_cli *c, const rt_tokenizer **out, lb_err *err);

/* Encodes into `arena`; *n may be 0. */
bool rt_cli_encode(const rt_cli *c, const rt_token_input *in, lb_arena *arena, uint32_t **ids,
                   size_t *n, lb_err *err);

/* Prints text in quotes and on one line; control characters and what is no UTF-8 as escapes. */
void rt_cli_print_quoted(const char *text, size_t n_bytes);

/* A line about work under way, and its end. Nothing unless stderr is a terminal. */
void rt_cli_progress(const char *what, uint64_t done, uint64_t total);
void rt_cli_progress_end(void);

double rt_cli_seconds(void);

#endif
