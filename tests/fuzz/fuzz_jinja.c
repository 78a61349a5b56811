/* fuzz_jinja.c -- libFuzzer target: any bytes as a chat template. Whatever the bytes, the outcome
 * is an error of one line, or a C file in which nothing but literals came from the template. Built
 * and run by run.sh. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void must(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

/* Literals and comments are closed, and all is printable ASCII. */
static void check_c(const char *s, size_t n) {
    bool quoted = false;
    bool comment = false;
    for (size_t i = 0; i < n; i++) {
        must(s[i] == '\n' || (s[i] >= 0x20 && s[i] < 0x7F));
        if (quoted) {
            must(s[i] != '\n');
            quoted = s[i] != '"';
            i += s[i] == '\\';
        } else if (comment) {
            comment = !(s[i] == '*' && i + 1 < n && s[i + 1] == '/');
        } else if (s[i] == '/' && i + 1 < n && s[i + 1] == '*') {
            comment = true;
            i++;
        } else {
            quoted = s[i] == '"';
            must(s[i] != '\\' && s[i] != '\'' && s[i] != '$' && s[i] != '@' && s[i] != '`');
        }
    }
    must(!quoted && !comment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    lb_arena arena;
    lb_text out;
    lb_err err = {0};
    lb_arena_init(&arena, "jinja", 64 << 20);
    lb_text_init(&out, &arena);
    if (lg_jinja_compile((const char *)data, n_bytes, &arena, &out, &err)) {
        must(lb_text_done(&out, &err));
        check_c(out.data, out.n_bytes);
    } else {
        must(err.code != LB_OK && err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
    }
    lb_arena_reset(&arena);
    return 0;
}
