/* input.h -- lines from whoever talks: edited, with history, on a terminal; plain otherwise. */
#ifndef RT_CLI_INPUT_H
#define RT_CLI_INPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct rt_cli_input rt_cli_input;

typedef enum rt_cli_got { RT_CLI_LINE, RT_CLI_INTERRUPTED, RT_CLI_END } rt_cli_got;

/* `prompt` is shown on terminals; `interrupt` is set by the program's signal handler. Release with
 * rt_cli_input_free, which allows NULL. */
bool rt_cli_input_new(const char *prog, const char *prompt, const volatile sig_atomic_t *interrupt,
                      lb_arena *arena, rt_cli_input **out, lb_err *err);
void rt_cli_input_free(rt_cli_input *in);

/* The next line, without its newline; valid until the next call. */
rt_cli_got rt_cli_input_next(rt_cli_input *in, const char **line, size_t *n_bytes);

/* True if lines come from a terminal. */
bool rt_cli_input_is_terminal(const rt_cli_input *in);

#endif
