/* recipe.h -- step 2: what is known about a model beyond its file: models/<name>.lua.
 *
 * A recipe is a Lua file directly in models/ whose module has a function recipe(file); `file` is
 * { meta = the file's keys, long arrays as { long_array = n } }. It answers false where the file is
 * no model that it knows, by its keys and never by its name, or a table:
 *   why       text: where its facts come from (required)
 *   sampling  defaults that it knows: temperature, top_p, min_p, repeat_penalty, top_k,
 *             repeat_last_n; keys general.sampling.* of the file win over them
 *   thinking  "on" or "off": what a conversation gets that does not say; absent: what the chat
 *             template can do
 *   ends      texts of tokens that end an answer, beside those of gen/eog.def
 *   output    how answers spell reasoning and calls: a format of lib/output.lua or a table like them
 * Two recipes that both know a file are an error. */
#ifndef LG_RECIPE_H
#define LG_RECIPE_H

#include "gguf.h"
#include "value.h"

typedef struct lg_sampling {
    double temperature, top_p, min_p, repeat_penalty;
    int64_t top_k, repeat_last_n;
} lg_sampling;

typedef struct lg_recipe {
    const char *name; /* of its file, without .lua; NULL: no recipe knows the model */
    const char *why;
    lg_sampling sampling;
    const char *thinking; /* "on", "off" or NULL */
    const char **ends;
    uint32_t n_ends;
    const lg_value *output; /* a string or a map, or NULL */
} lg_recipe;

/* The recipe of a file among those of the folder `models` (which may be absent: then there is
 * none), or defaults alone. Fails with LB_DUPLICATE where two know it, LB_BAD_VALUE for numbers out
 * of range, and what a recipe file itself does wrong, with its name and path. All in `arena`. */
bool lg_recipe_find(const char *models, const lg_gguf *file, lb_arena *arena, lg_recipe *out,
                    lb_err *err);

#endif
