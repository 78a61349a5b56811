/* c_text.c -- see c_text.h. */
#include "jinja/c_text.h"

#include <stdbool.h>
#include <stdio.h>

enum { PIECE_COLUMNS = 70 };

/* One byte of a literal; returns the columns it took. */
static size_t add_byte(lb_text *out, unsigned char c) {
    if (c == '\n') {
        lb_text_add(out, "\\n");
        return 2;
    }
    if (c == '"' || c == '\\' || c == '?') {
        char escaped[3] = {'\\', (char)c, '\0'};
        lb_text_add(out, escaped);
        return 2;
    }
    if (c >= 0x20 && c < 0x7F) {
        char plain[2] = {(char)c, '\0'};
        lb_text_add(out, plain);
        return 1;
    }
    lb_text_printf(out, "\\%03o", c);
    return 4;
}

void lg_c_literal(lb_text *out, const char *s, size_t n) {
    size_t columns = 0;
    lb_text_add(out, "\"");
    for (size_t i = 0; i < n; i++) {
        bool after_line = i > 0 && s[i - 1] == '\n' && s[i] != '\n';
        bool at_word = columns >= PIECE_COLUMNS - 15 && s[i] != ' ' && s[i - 1] == ' ';
        if (after_line || at_word || columns >= PIECE_COLUMNS) {
            lb_text_add(out, "\" \"");
            columns = 0;
        }
        columns += add_byte(out, (unsigned char)s[i]);
    }
    lb_text_add(out, "\"");
}

/* Length of the unbreakable piece that begins at `s`: up to a space outside of a literal. */
static size_t piece_length(const char *s, size_t n) {
    bool quoted = false;
    size_t i = 0;
    while (i < n && (quoted || s[i] != ' ')) {
        if (s[i] == '\\' && quoted) {
            i++;
        } else if (s[i] == '"') {
            quoted = !quoted;
        }
        i++;
    }
    return i < n ? i : n;
}

static void spaces(lb_text *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        lb_text_add(out, " ");
    }
}

static void add_piece(lb_text *out, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        lb_text_add_n(out, s[i] == '\1' ? " " : s + i, 1); /* literals hold \1 only as \001 */
    }
}

void lg_c_wrap(lb_text *out, const char *line, size_t n, size_t indent) {
    size_t column = indent;
    spaces(out, indent);
    for (size_t i = 0; i < n;) {
        size_t len = piece_length(line + i, n - i);
        if (i > 0 && column + 1 + len > LG_C_COLUMNS) {
            lb_text_add(out, "\n");
            spaces(out, indent + 4);
            column = indent + 4;
        } else if (i > 0) {
            lb_text_add(out, " ");
            column++;
        }
        add_piece(out, line + i, len);
        column += len;
        i += len + 1;
    }
    lb_text_add(out, "\n");
}
