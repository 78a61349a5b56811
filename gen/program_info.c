/* program_info.c -- what an emitted program says of itself, and its manifest: src/model.c has the manifest as
 * text (all but the list of files and its own digest), which `info` prints; the two must be equal. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "manifest.h"
#include "program.h"
#include "value_text.h"

enum { MODEL_BYTES_MAX = 256 << 20, SHOWN = 70 };

static const char PATH[] = "src/model.c";

static bool is_octal(char c) {
    return c >= '0' && c <= '7';
}

/* The character behind a backslash, which *p stands on, as c_string (host_text.c) writes them: three octal
 * digits, or itself. Moves *p to the next one. */
static char escaped(const char **p) {
    unsigned value = 0;
    if (!is_octal(**p)) {
        return *(*p)++;
    }
    for (int i = 0; i < 3 && is_octal(**p); i++) {
        value = 8 * value + (unsigned)(*(*p)++ - '0');
    }
    return (char)(unsigned char)value;
}

/* Adjacent C string literals from `p` to the first ';' outside them, as the one text that they are. */
static bool read_literals(const char *p, lb_text *out) {
    bool inside = false;
    for (; *p != '\0' && (inside || *p != ';');) {
        const char c = *p++;
        if (c == '"') {
            inside = !inside;
        } else if (inside && c == '\\' && *p != '\0') {
            const char e = escaped(&p);
            lb_text_add_n(out, &e, 1);
        } else if (inside) {
            lb_text_add_n(out, &c, 1);
        }
    }
    return *p == ';';
}

static bool info_of(const char *dir, lb_arena *arena, lb_text *out, lb_err *err) {
    static const char begin[] = "static const char INFO[] =";
    char *text = NULL;
    size_t n = 0;
    const char *path = lb_format(arena, err, "%s/%s", dir, PATH);
    if (path == NULL || !lb_read_file(path, MODEL_BYTES_MAX, arena, &text, &n, err)) {
        return false;
    }
    const char *at = strstr(text, begin);
    lb_text_init(out, arena);
    if (at == NULL || !read_literals(at + strlen(begin), out)) {
        return lb_err_set(err, LB_DAMAGED, "%s: does not say what program it is of", PATH);
    }
    return lb_text_done(out, err);
}

/* Both texts from the begin of the first line in which they differ, without its indentation. */
static void to_difference(const char **a, const char **b) {
    size_t line = 0;
    for (size_t i = 0; (*a)[i] != '\0' && (*a)[i] == (*b)[i]; i++) {
        line = (*a)[i] == '\n' ? i + 1 : line;
    }
    *a += line + strspn(*a + line, " ");
    *b += line + strspn(*b + line, " ");
}

static int shown(const char *line) {
    const size_t n = strcspn(line, "\n");
    return n < SHOWN ? (int)n : SHOWN;
}

bool lg_program_info(const char *dir, const lg_program *p, lb_arena *arena, lb_err *err) {
    lb_text info;
    lb_text want;
    lb_text_init(&want, arena);
    if (!info_of(dir, arena, &info, err) ||
        !lg_manifest_info(p->manifest, arena, &want, err)) {
        return false;
    }
    const char *one = want.data;
    const char *other = info.data;
    if (strcmp(one, other) == 0) {
        return true;
    }
    to_difference(&one, &other);
    return lb_err_set(err, LB_DAMAGED, "manifest.json: says '%.*s'; %s says '%.*s'", shown(one), one,
                      PATH, shown(other), other);
}
