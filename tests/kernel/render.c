/* render.c -- test tool: renders kernels through the real host and templates.
 *
 *   render TEMPLATES OPS.json OUT
 * OPS.json is an array of op tables (docs/kernels.md). For op i writes OUT/<name>.c and, for all of
 * them, OUT/index.json: the array of descriptors, in order. Exit 1 with one line on an error. */
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
    char *file = lb_format(j->arena, err, "kernel/%s.c.lua", family);
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
    char *c_name = lb_format(j->arena, err, "%s.c", name);
    return c_name != NULL && write_text(j, c_name, &text, err);
}

static bool run(job *j, const char *ops_file, lb_err *err) {
    char *text;
    size_t n_bytes;
    lg_value *tree;
    if (!lb_read_file(ops_file, MAX_OPS_BYTES, j->arena, &text, &n_bytes, err) ||
        !lg_value_from_json(ops_file, text, n_bytes, j->arena, &tree, err)) {
        return false;
    }
    lg_at root = lg_at_root("ops", tree), ops;
    size_t n;
    if (!lg_at_array(&root, NULL, &ops, &n, err)) {
        return false;
    }
    lb_text_add(&j->list, "[\n");
    for (size_t i = 0; i < n; i++) {
        lg_at op = lg_at_item(&ops, i);
        if (!render_op(j, &op, err)) {
            return lb_err_prefix(err, "op %zu", i);
        }
        lb_text_add(&j->list, i + 1 < n ? ",\n" : "");
    }
    lb_text_add(&j->list, "]\n");
    return write_text(j, "index.json", &j->list, err);
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
    lb_text_init(&j.list, &arena);
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
