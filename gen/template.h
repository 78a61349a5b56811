/* template.h -- turns a template file into Lua source, line for line: line n of the template is
 * line n of the Lua, so that every Lua error carries the template's own file and line.
 *
 * The form (templates/README.md has an example):
 *   - A file is Lua until a line "%%template"; from there on it is text, until a line "%%lua" or
 *     the next "%%template" or the end. A file without such a line is plain Lua and stays as it is.
 *   - In text, a line whose first non-blank is % is Lua. All other lines are output; ${expr}
 *     inserts a value. A line of blanks and one ${expr} inserts any number of lines at its own
 *     indentation.
 *   - "%%template" makes module.render(params), in whose text parameters are plain names;
 *     "%%template name(a, b)" makes module.name(a, b). Both return the text as a string.
 * This file knows the text only; what the Lua may do is decided by the host. */
#ifndef LG_TEMPLATE_H
#define LG_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Appends the Lua source of `text` to `out`.
 *   name         for messages, as in "templates/kernel/x.c.lua"
 *   is_template  receives whether a %%template line was found; if so, the chunk takes the arguments
 *                module, lg_line, lg_insert, lg_join, lg_env (see host_lib.c) and returns nothing
 * Fails with LB_SYNTAX and "<name>:<line>: ...": unknown %% line, unclosed or empty ${}, a bad
 * template head, a carriage return, a NUL byte, control characters; LB_NO_MEMORY. */
bool lg_template_to_lua(const char *name, const char *text, size_t n_bytes, lb_text *out,
                        bool *is_template, lb_err *err);

#endif
