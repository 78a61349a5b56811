/* options.h -- command lines from a table: one table serves parsing, checking and --help.
 *
 * A command has options (`--name VALUE` or `--name=VALUE`, flags without a value; `-n VALUE`, `-nVALUE`
 * or `-n=VALUE` where there is a short name, unless that is the beginning of a long one) and positional
 * arguments, which are names too. Each value is checked against the type and range in its row;
 * nothing is clamped, nothing is read from the environment, and no option but a repeated one is
 * taken twice. Errors are LB_USAGE, one line, naming the option, the value and what would do.
 *
 * What is wrong with a command line whatever files and machines hold is LB_USAGE, found here or by
 * who knows the words (rows, cutters of text, types); what only the input shows is another code. */
#ifndef LB_OPTIONS_H
#define LB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

typedef enum lb_opt_kind {
    LB_OPT_FLAG,   /* bool */
    LB_OPT_NAME,   /* const char *, not empty: a path, or a name that others give */
    LB_OPT_WORD,   /* const char *, one of those that `value` names: "f16|q8_0" */
    LB_OPT_TEXT,   /* const char *, free text: may be empty */
    LB_OPT_UINT,   /* uint64_t in [min, max]; suffixes KiB MiB GiB are taken where `bytes` */
    LB_OPT_UINT_AUTO, /* the same, or the word auto: 0 */
    LB_OPT_DOUBLE, /* double in [min, max] */
    LB_OPT_REPEAT  /* lb_opt_list: the option may be given several times */
} lb_opt_kind;

enum { LB_OPT_LIST_MAX = 64, LB_OPT_ROWS_MAX = 64 };

typedef struct lb_opt_list {
    const char *items[LB_OPT_LIST_MAX];
    uint32_t n;
} lb_opt_list;

typedef struct lb_opt {
    const char *name;  /* "--ctx" */
    const char *brief; /* "-p", or NULL */
    lb_opt_kind kind;
    void *out;       /* set when the option is given; holds the default before */
    double min, max; /* LB_OPT_UINT, LB_OPT_DOUBLE */
    bool bytes;
    bool *given;       /* may be NULL */
    const char *value; /* what --help calls the value: "TOKENS" */
    const char *help;  /* one or more lines, separated by \n */
} lb_opt;

typedef struct lb_positional {
    const char *name; /* "FILE" */
    const char **out;
    bool required;
    const char *help;
} lb_positional;

typedef struct lb_command {
    const char *name;    /* "lagen plan" */
    const char *summary; /* one line */
    const char *details; /* paragraphs for --help, or NULL */
    const lb_opt *options;
    uint32_t n_options;
    const lb_positional *positionals;
    uint32_t n_positionals;
} lb_command;

/* Parses argv[0..argc) (without program and command names). `*help` is set, and nothing else is
 * checked, if --help or -h stands where an option may, before "--". */
bool lb_options_parse(const lb_command *c, int argc, char *const *argv, bool *help, lb_err *err);

/* The text of --help: usage, summary, every option with its default range. */
void lb_options_help(const lb_command *c, lb_text *out);

#endif
