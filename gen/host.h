/* host.h -- the embedded Lua: runs architecture files, recipes and kernel templates, and shows
 * nothing of Lua to its callers.
 *
 * A host reads files below one folder only. What they see is a fixed list of helpers (host_lib.c,
 * templates/README.md); no files, clocks, addresses or random numbers, so the same call gives the
 * same bytes in every process. Memory and instructions are bounded. A Lua error never crosses a C
 * frame of the caller: it becomes an lb_err whose text starts with the template's own file:line.
 *   LB_SYNTAX     the file does not parse          LB_BAD_VALUE  it failed while running
 *   LB_MISSING    no such function in it           LB_IO         it cannot be read
 *   LB_LIMIT      instructions, nesting, size      LB_NO_MEMORY  the bound on memory
 *   LB_BAD_TYPE   its result cannot leave Lua */
#ifndef LG_HOST_H
#define LG_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "value.h"

typedef struct lg_host lg_host;

/* 0 = the default. */
typedef struct lg_host_limits {
    uint64_t memory_bytes; /* of all Lua data of the host; default 128 MiB */
    uint64_t instructions; /* Lua VM instructions of one call; default 200 million */
    uint64_t fail_at;      /* tests: the n-th growing allocation and all later ones fail */
} lg_host_limits;

/* Opens a host over the folder `root`; `limits` may be NULL. The host's own data lies in `arena`,
 * which must not be reset before lg_host_close; that gives Lua's own memory back. Files are not
 * opened yet. */
bool lg_host_open(const char *root, const lg_host_limits *limits, lb_arena *arena, lg_host **out,
                  lb_err *err);
void lg_host_close(lg_host *h); /* NULL is fine */

/* Loads and runs a file (once per host): "kernel/matmul.c.lua", relative to the root; other names,
 * among them absolute ones and those with "..", are LB_BAD_VALUE. Calls below load on demand. */
bool lg_host_load(lg_host *h, const char *file, lb_err *err);

/* Whether the file's module has a function of this name. */
bool lg_host_has(lg_host *h, const char *file, const char *function, bool *out, lb_err *err);

/* Calls `function` of the file's module with `arg` (NULL = nil) as a read-only table, and turns its
 * one result into a tree in `arena`. With function NULL the module itself is called if it is a
 * function, and is the result if it is a table. Tables with keys 1..n become arrays, tables with
 * string keys maps in sorted key order, an empty table an empty array; functions, cycles, mixed or
 * gapped keys and more than LG_VALUE_DEPTH_MAX levels are refused with their path. */
bool lg_host_call(lg_host *h, const char *file, const char *function, const lg_value *arg,
                  lb_arena *arena, lg_value **out, lb_err *err);

/* Appends the text of a template's plain %%template section, with `params` (a map) as its
 * parameters. On failure nothing is appended. */
bool lg_host_render(lg_host *h, const char *file, const lg_value *params, lb_text *out,
                    lb_err *err);

/* The files opened so far, relative to the root, sorted; valid until the next load. */
const char *const *lg_host_files(const lg_host *h, size_t *n);

/* Bytes that Lua holds now. */
uint64_t lg_host_memory(const lg_host *h);

#endif
