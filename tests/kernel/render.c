/* render.c -- test tool: renders kernels through the real host and templates.
 *
 *   render TEMPLATES OPS.json OUT
 * OPS.json is { "ops": [op tables (docs/kernels.md)], "types": [tensor types], "language": "c" or "cu" }.
 * Writes OUT/<name>.<language> for each op, OUT/index.json: the descriptors in order, OUT/layouts.json:
 * the types' layouts in order. Exit 1 with one line on an error. */
#include <stdio.h>
#include <string.h>

#include "at.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "host.h"
#include "value_text.h"

enum { MAX_OPS_BYTES = 1 << 20 };

typedef struct job {
    lg_host *host;
    lb_arena *arena;
    const char *out_dir;
    const char *language;
    lb_text list; /* the descriptors, as JSON items */
} job;

static bool write_text(const job *j, const char *name, lb_text *text, lb_err *err) {
    char *path = lb_format(j->arena, err, "%s/%s", j->out_dir, name);
    if (path == NULL || !lb_text_done(text, err)) {
        return false;
    }
    return lb_write_file(path, text->data, text->n_bytes, true, NULL, err);
}

static bool render_op(job *j, const lg_at *op, lb_err *err) {
    const char *family, *name;
    if (!lg_at_string(op, "family", &family, err)) {
        return false;
    }
    char *file = lb_format(j->arena, err, "kernel/%s.%s.lua", family, j->language);
    lg_value *descriptor;
    if (file == NULL ||
        !lg_host_call(j->host, file, "describe", op->value, j->arena, &descriptor, err)) {
        return false;
    }
    lg_at d = lg_at_root(file, descriptor);
    lb_text text;
    lb_text_init(&text, j->arena);
    if (!lg_at_string(&d, "name", &name, err) ||
        !lg_host_render(j->host, file, op->value, &text, err) ||
        !lg_value_to_json(descriptor, &j->list, err)) {
        return false;
    }
    char *c_name = lb_format(j->arena, err, "%s.%s", name, j->language);
    return c_name != NULL && write_text(j, c_name, &text, err);
}

static bool layout_of(job *j, const lg_at *type, lb_err *err) {
    lg_builder b;
    lg_value *layout;
    lg_build_init(&b, j->arena);
    lg_value *arg = lg_build_map(&b);
    lg_build_set(&b, arg, "type", type->value);
    return lg_build_done(&b, err) &&
           lg_host_call(j->host, "lib/descr.lua", "layout", arg, j->arena, &layout, err) &&
           lg_value_to_json(layout, &j->list, err);
}

/* Writes the JSON array that `one` makes of each item under `key`. */
static bool each(job *j, const lg_at *root, const char *key, const char *file,
                 bool (*one)(job *, const lg_at *, lb_err *), lb_err *err) {
    lg_at items;
    size_t n;
    if (!lg_at_array(root, key, &items, &n, err)) {
        return false;
    }
    lb_text_init(&j->list, j->arena);
    lb_text_add(&j->list, "[\n");
    for (size_t i = 0; i < n; i++) {
        lg_at item = lg_at_item(&items, i);
        if (!one(j, &item, err)) {
            return lb_err_prefix(err, "%s %zu", key, i);
        }
        lb_text_add(&j->list, i + 1 < n ? ",\n" : "");
    }
    lb_text_add(&j->list, "]\n");
    return write_text(j, file, &j->list, err);
}

static bool run(job *j, const char *ops_file, lb_err *err) {
    char *text;
    size_t n_bytes;
    lg_value *tree;
    if (!lb_read_file(ops_file, MAX_OPS_BYTES, j->arena, &text, &n_bytes, err) ||
        !lg_value_from_json(ops_file, text, n_bytes, j->arena, &tree, err)) {
        return false;
    }
    lg_at root = lg_at_root("ops", tree);
    return lg_at_string(&root, "language", &j->language, err) && each(j, &root, "ops", "index.json", render_op, err) &&
           each(j, &root, "types", "layouts.json", layout_of, err);
}

int main(int argc, char **argv) {
    lb_err err = {0};
    lb_arena arena;
    if (argc != 4) {
        fprintf(stderr, "usage: render TEMPLATES OPS.json OUT\n");
        return 2;
    }
    lb_arena_init(&arena, "render", UINT64_C(1) << 30);
    job j = {.arena = &arena, .out_dir = argv[3]};
    bool ok = lg_host_open(argv[1], NULL, &arena, &j.host, &err);
    if (ok) {
        ok = run(&j, argv[2], &err);
        lg_host_close(j.host);
    }
    if (!ok) {
        fprintf(stderr, "render: %s\n", err.text);
    }
    lb_arena_reset(&arena);
    return ok ? 0 : 1;
}
