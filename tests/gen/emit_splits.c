/* emit_splits.c -- writes all pre-tokenizers of pretok.def as one C file, for test_split.c, through
 * the template that programs get theirs from. Called by ninja: emit_splits OUT. */
#include <stdio.h>

#include "base/file.h"
#include "host.h"
#include "pretok.h"
#include "splitter.h"

static bool render(lg_host *host, const lg_split *split, lb_arena *arena, lb_text *t,
                   lb_err *err) {
    lg_splitter compiled;
    lg_builder b;
    lg_value *v = NULL;
    lg_build_init(&b, arena);
    if (!lg_splitter_compile(split->stages, split->n_stages, arena, &compiled, err) ||
        !lg_splitter_value(&compiled, split->id, &b, &v)) {
        return false;
    }
    const char *prefix = lb_format(arena, err, "%s_", split->id);
    lg_build_set_string(&b, v, "prefix", prefix);
    if (!lg_build_done(&b, err) ||
        !lg_host_render(host, "program/splitter.c.lua", v, t, err)) {
        return lb_err_prefix(err, "%s", split->id);
    }
    return true;
}

static bool emit(const char *path, lb_arena *arena, lb_err *err) {
    lg_host *host;
    size_t n;
    const lg_split *splits = lg_split_rows(&n);
    if (!lg_host_open("templates", NULL, arena, &host, err)) {
        return false;
    }
    lb_text t;
    lb_text_init(&t, arena);
    lb_text_add(&t, "#include \"gen/splits.h\"\n\n");
    bool done = true;
    for (size_t i = 0; done && i < n; i++) {
        done = render(host, &splits[i], arena, &t, err);
        lb_text_add(&t, "\n");
    }
    lb_text_add(&t, "const split_row splits[] = {\n");
    for (size_t i = 0; i < n; i++) {
        lb_text_printf(&t, "    {\"%s\", %s_split},\n", splits[i].id, splits[i].id);
    }
    lb_text_add(&t, "    {NULL, NULL},\n};\n");
    lg_host_close(host);
    return done && lb_text_done(&t, err) && lb_write_file(path, t.data, t.n_bytes, true, NULL, err);
}

int main(int argc, char **argv) {
    lb_arena arena;
    lb_err err = {0};
    lb_arena_init(&arena, "splits", UINT64_C(1) << 28);
    bool done = argc == 2 && emit(argv[1], &arena, &err);
    if (!done) {
        fprintf(stderr, "emit_splits: %s\n", err.text);
    }
    lb_arena_reset(&arena);
    return done ? 0 : 1;
}
