/* recipe.c -- see recipe.h. */
#define _POSIX_C_SOURCE 200809L
#include "recipe.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "at.h"
#include "gguf_value.h"
#include "graph.h"
#include "host.h"

enum { RECIPES_MAX = 4096 };

/* ---- which files there are */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_recipe(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".lua") == 0;
}

/* Names of the folder's Lua files, sorted. */
static bool list(const char *folder, lb_arena *arena, const char ***out, uint32_t *n, lb_err *err) {
    *n = 0;
    *out = lb_alloc_n(arena, RECIPES_MAX, sizeof **out, err);
    DIR *d = *out == NULL ? NULL : opendir(folder);
    if (d == NULL) {
        return *out != NULL &&
               (errno == ENOENT || lb_err_set(err, LB_IO, "%s: cannot be read: %s", folder, strerror(errno)));
    }
    bool ok = true;
    for (struct dirent *e = readdir(d); ok && e != NULL; e = readdir(d)) {
        if (!is_recipe(e->d_name)) {
            continue;
        }
        ok = *n < RECIPES_MAX ||
             lb_err_set(err, LB_LIMIT, "%s: more than %d recipes", folder, RECIPES_MAX);
        (*out)[ok ? *n : 0] = lb_strndup(arena, e->d_name, strlen(e->d_name), err);
        ok = ok && (*out)[(*n)++] != NULL;
    }
    closedir(d);
    if (ok && *n > 1) {
        qsort(*out, *n, sizeof **out, by_name);
    }
    return ok;
}

/* ---- what one says */

/* A number in a range: the file's own key, else the recipe's, else what stands in *out. */
typedef struct number {
    const char *field, *key;
    double low, high;
    double *out;
} number;

static bool in_range(double v, const number *n, const char *where, lb_err *err) {
    return (v >= n->low && v <= n->high) ||
           lb_err_set(err, LB_BAD_VALUE, "%s is %g; it may be %g to %g", where, v, n->low, n->high);
}

static bool read_number(const lg_at *recipe, const lg_gguf *file, const number *n, lb_err *err) {
    char where[96];
    float f = 0;
    if (recipe != NULL && lg_at_has(recipe, n->field)) {
        snprintf(where, sizeof where, "sampling.%s", n->field);
        if (!lg_at_double(recipe, n->field, n->out, err) || !in_range(*n->out, n, where, err)) {
            return false;
        }
    }
    if (lg_gguf_find(file, n->key) == NULL) {
        return true;
    }
    snprintf(where, sizeof where, "key '%s'", n->key);
    if (!lg_gguf_f32(file, n->key, NULL, &f, err)) {
        return false;
    }
    *n->out = (double)f;
    return in_range(*n->out, n, where, err);
}

/* The same for a whole number. */
static bool read_whole(const lg_at *recipe, const lg_gguf *file, const char *field, const char *key,
                       int64_t *out, lb_err *err) {
    enum { WHOLE_MAX = 1 << 24 };
    if ((recipe != NULL && !lg_at_int_or(recipe, field, *out, out, err)) ||
        !lg_gguf_i64(file, key, out, out, err)) {
        return false;
    }
    return (*out >= -1 && *out <= WHOLE_MAX) ||
           lb_err_set(err, LB_BAD_VALUE, "sampling: %s is %" PRId64 "; it may be -1 to %d", field,
                      *out, WHOLE_MAX);
}

/* Defaults where neither recipe nor file names any: docs/sampling.md. */
static bool read_sampling(const lg_at *recipe, const lg_gguf *file, lg_sampling *s, lb_err *err) {
    *s = (lg_sampling){0.8, 0.95, 0.05, 1.0, 40, 64};
    const number numbers[] = {
        {"temperature", "general.sampling.temp", 0, 1000, &s->temperature},
        {"top_p", "general.sampling.top_p", 0, 1, &s->top_p},
        {"min_p", "general.sampling.min_p", 0, 1, &s->min_p},
        {"repeat_penalty", "general.sampling.penalty_repeat", 0.01, 100, &s->repeat_penalty},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!read_number(recipe, file, &numbers[i], err)) {
            return false;
        }
    }
    return read_whole(recipe, file, "top_k", "general.sampling.top_k", &s->top_k, err) &&
           read_whole(recipe, file, "repeat_last_n", "general.sampling.penalty_last_n",
                      &s->repeat_last_n, err);
}

static bool read_ends(const lg_at *at, lb_arena *arena, lg_recipe *r, lb_err *err) {
    lg_at ends;
    size_t n = 0;
    if (!lg_at_has(at, "ends")) {
        return true;
    }
    if (!lg_at_array(at, "ends", &ends, &n, err)) {
        return false;
    }
    r->ends = lb_alloc_n(arena, n, sizeof *r->ends, err);
    r->n_ends = (uint32_t)n;
    for (size_t i = 0; r->ends != NULL && i < n; i++) {
        lg_at item = lg_at_item(&ends, i);
        if (!lg_at_string(&item, NULL, &r->ends[i], err)) {
            return false;
        }
    }
    return r->ends != NULL;
}

static bool read_recipe(const lg_at *at, const lg_gguf *file, lb_arena *arena, lg_recipe *r,
                        lb_err *err) {
    static const char *const keys[] = {"why", "sampling", "thinking", "ends", "output", NULL};
    static const char *const fields[] = {"temperature", "top_p",         "min_p", "repeat_penalty",
                                         "top_k",       "repeat_last_n", NULL};
    static const char *const modes[] = {"on", "off", NULL};
    lg_at sampling;
    size_t n = 0;
    uint32_t mode = 0;
    bool samples = lg_at_has(at, "sampling");
    if (!lg_at_only(at, keys, err) || !lg_at_string(at, "why", &r->why, err) ||
        (samples &&
         (!lg_at_map(at, "sampling", &sampling, &n, err) || !lg_at_only(&sampling, fields, err))) ||
        !read_sampling(samples ? &sampling : NULL, file, &r->sampling, err)) {
        return false;
    }
    if (lg_at_has(at, "thinking")) {
        if (!lg_at_choice(at, "thinking", modes, &mode, err)) {
            return false;
        }
        r->thinking = modes[mode];
    }
    r->output = lg_value_find(at->value, "output");
    return read_ends(at, arena, r, err);
}

/* ---- which one knows the file */

static bool input(const lg_gguf *file, lb_arena *arena, const lg_value **out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *map = lg_build_map(&b);
    lg_build_set(&b, map, "meta", lg_graph_meta(&b, file));
    *out = map;
    return lg_build_done(&b, err);
}

static bool ask(lg_host *host, const char *name, const lg_value *in, lb_arena *arena,
                const lg_value **out, lb_err *err) {
    lg_value *v = NULL;
    if (!lg_host_call(host, name, "recipe", in, arena, &v, err)) {
        return false;
    }
    *out = v->kind == LG_VALUE_BOOL && !v->u.boolean ? NULL : v;
    return true;
}

/* The answer of the only recipe that knows the file, and that recipe's name. */
static bool ask_all(const char *models, const char **names, uint32_t n, const lg_gguf *file,
                    lb_arena *arena, const char **name, const lg_value **answer, lb_err *err) {
    lg_host *host = NULL;
    const lg_value *in = NULL;
    bool ok = lg_host_open(models, NULL, arena, &host, err) && input(file, arena, &in, err);
    *name = NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        const lg_value *said = NULL;
        ok = ask(host, names[i], in, arena, &said, err);
        if (ok && said != NULL && *name != NULL) {
            ok = lb_err_set(err, LB_DUPLICATE, "recipes %s and %s both know this model", *name,
                            names[i]);
        }
        if (said != NULL) {
            *name = names[i];
            *answer = said;
        }
    }
    lg_host_close(host);
    return ok;
}

bool lg_recipe_find(const char *models, const lg_gguf *file, lb_arena *arena, lg_recipe *out,
                    lb_err *err) {
    const char **names = NULL;
    const char *name = NULL;
    const lg_value *answer = NULL;
    uint32_t n = 0;
    *out = (lg_recipe){0};
    if (!list(models, arena, &names, &n, err) ||
        (n > 0 && !ask_all(models, names, n, file, arena, &name, &answer, err))) {
        return false;
    }
    if (name == NULL) {
        return read_sampling(NULL, file, &out->sampling, err);
    }
    lg_at at = lg_at_root(name, answer);
    out->name = lb_strndup(arena, name, strlen(name) - strlen(".lua"), err);
    return out->name != NULL && read_recipe(&at, file, arena, out, err);
}
