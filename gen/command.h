/* command.h -- lagen's subcommands, one function each. */
#ifndef LG_COMMAND_H
#define LG_COMMAND_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

/* What every command is given. Commands write results to `out` (printed by main on success, or if
 * `answered`) and notes about long work through `note`; they never print. */
typedef struct lg_context {
    const char *root;                  /* lagen's own folder: templates/, runtime/, models/ */
    const volatile sig_atomic_t *stop; /* set by Ctrl-C */
    lb_arena *arena;
    lb_text *out;
    bool to_person; /* `out` goes to a terminal */
    bool answered;  /* set by a command that fails because its answer is no: `out` says why */
    void (*note)(const char *text);    /* a line for a person, on stderr; NULL: none */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
} lg_context;

typedef bool (*lg_command_fn)(lg_context *c, int argc, char *const *argv, lb_err *err);

bool lg_command_synth(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_inspect(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_targets(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_plan(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_emit(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_build(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_report(lg_context *c, int argc, char *const *argv, lb_err *err);
bool lg_command_verify(lg_context *c, int argc, char *const *argv, lb_err *err);

#endif
