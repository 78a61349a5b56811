/* lex.h -- cuts a Jinja chat template into tokens.
 *
 * The rules are jinja2's with trim_blocks and lstrip_blocks on, as chat templates are written for:
 * the newline behind a block tag or comment is dropped (not behind `}}`), blanks before a block tag
 * at the start of a line are dropped, `-` strips all white space on its side, `+` keeps it; line
 * ends become \n and one newline at the very end is dropped. Comments vanish, raw blocks are
 * data. */
#ifndef LG_JINJA_LEX_H
#define LG_JINJA_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum {
    LG_JINJA_SOURCE_BYTES_MAX = 2 * 1024 * 1024,
    LG_JINJA_NAME_BYTES_MAX = 56 /* an emitted identifier stays unique in 63 characters */
};

typedef enum lg_jtok_kind {
    LG_JTOK_DATA,
    LG_JTOK_BLOCK_BEGIN,
    LG_JTOK_BLOCK_END,
    LG_JTOK_VAR_BEGIN,
    LG_JTOK_VAR_END,
    LG_JTOK_NAME,
    LG_JTOK_STRING,
    LG_JTOK_INT,
    LG_JTOK_FLOAT,
    LG_JTOK_OP, /* `op` says which */
    LG_JTOK_EOF
} lg_jtok_kind;

/* Operators: the character itself, or one of these for two characters. */
enum { LG_JOP_EQ = 256, LG_JOP_NE, LG_JOP_LE, LG_JOP_GE, LG_JOP_FLOORDIV, LG_JOP_POW };

typedef struct lg_jtok {
    lg_jtok_kind kind;
    int op;
    uint32_t line, col; /* from 1; columns count bytes */
    const char *text;   /* DATA, NAME, STRING (unescaped): any bytes of valid UTF-8, NUL included */
    size_t n_text;
    int64_t i;
    double f;
} lg_jtok;

/* Tokens of `src`, ended by one LG_JTOK_EOF, in the arena. Fails with LB_SYNTAX (the message has
 * line and column), LB_BAD_FORMAT for bytes that are not UTF-8, LB_LIMIT for a source, name or
 * number that is too large, LB_NO_MEMORY. */
bool lg_jinja_lex(const char *src, size_t n_bytes, lb_arena *arena, lg_jtok **out, size_t *n,
                  lb_err *err);

/* Sets `err` to "chat template line L, column C: ...". Returns false. */
bool lg_jinja_fail(lb_err *err, lb_code code, uint32_t line, uint32_t col, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
