/* jinja_tool.c -- compiles one chat template to C, for tests: jinja_tool TEMPLATE OUT.c
 * Exit status 1 and one line on stderr if the template is refused. */
#include <stdio.h>

#include "base/file.h"
#include "jinja/jinja.h"

static bool compile(const char *from, const char *to, lb_arena *arena, lb_err *err) {
    char *src = NULL;
    size_t n = 0;
    lb_text out;
    lb_text_init(&out, arena);
    return lb_read_file(from, 64 * 1024 * 1024, arena, &src, &n, err) &&
           lg_jinja_compile(src, n, arena, &out, err) && lb_text_done(&out, err) &&
           lb_write_file(to, out.data, out.n_bytes, true, NULL, err);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: jinja_tool TEMPLATE OUT.c\n");
        return 2;
    }
    lb_arena arena;
    lb_err err = {0};
    lb_arena_init(&arena, "jinja", UINT64_C(1) << 30);
    bool ok = compile(argv[1], argv[2], &arena, &err);
    if (!ok) {
        fprintf(stderr, "%s\n", err.text);
    }
    lb_arena_reset(&arena);
    return ok ? 0 : 1;
}
