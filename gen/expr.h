/* expr.h -- launch expressions: grid sizes, byte ranges and bounds as functions of T, L, ctx,
 * slots, chunk or any other named number. Text in descriptors and launches.json, a tree in an
 * arena here.
 *
 *   expr   = term { ("+" | "-") term }
 *   term   = factor { ("*" | "/") factor }           "/" rounds down
 *   factor = integer | name | "(" expr ")" | function "(" expr { "," expr } ")"
 *   functions: ceil_div(a, b), round_up(a, b) to a multiple of b, min(a, ...), max(a, ...)
 *
 * Values are uint64_t and every operation is checked: overflow, division by zero and a difference
 * below zero are errors that name the expression, never a wrapped number. */
#ifndef LG_EXPR_H
#define LG_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

typedef enum lg_expr_kind {
    LG_EXPR_INT,
    LG_EXPR_VAR,
    LG_EXPR_ADD,
    LG_EXPR_SUB,
    LG_EXPR_MUL,
    LG_EXPR_DIV,
    LG_EXPR_CEIL_DIV,
    LG_EXPR_ROUND_UP,
    LG_EXPR_MIN,
    LG_EXPR_MAX
} lg_expr_kind;

typedef struct lg_expr {
    lg_expr_kind kind;
    uint64_t value;          /* of an INT */
    const char *name;        /* of a VAR */
    const struct lg_expr *a; /* both operands of all others; min and max of more nest to the left */
    const struct lg_expr *b;
} lg_expr;

typedef struct lg_expr_var {
    const char *name;
    uint64_t value;
} lg_expr_var;

/* Parses a whole text of at most 4096 bytes. LB_SYNTAX with the text and the column; LB_OVERFLOW
 * for an integer above 2^64 - 1; LB_LIMIT beyond 64 nested parentheses. */
bool lg_expr_parse(const char *text, lb_arena *arena, const lg_expr **out, lb_err *err);

/* New nodes, without folding. */
const lg_expr *lg_expr_int(uint64_t value, lb_arena *arena, lb_err *err);
const lg_expr *lg_expr_name(const char *name, lb_arena *arena, lb_err *err);
const lg_expr *lg_expr_binary(lg_expr_kind kind, const lg_expr *a, const lg_expr *b,
                              lb_arena *arena, lb_err *err);

/* The value for these variables. LB_MISSING (a name without a value), LB_OVERFLOW, LB_BAD_VALUE
 * (division by zero, negative difference). */
bool lg_expr_eval(const lg_expr *e, const lg_expr_var *vars, size_t n_vars, uint64_t *out,
                  lb_err *err);

/* Whether `name` occurs. */
bool lg_expr_uses(const lg_expr *e, const char *name);

/* Same tree: kinds, values, names. */
bool lg_expr_equal(const lg_expr *a, const lg_expr *b);

/* Puts values for names and folds what became constant, and x + 0, x - 0, x * 1, x / 1 and their
 * like; other names stay. Fails where a folded part fails to evaluate. */
bool lg_expr_fold(const lg_expr *e, const lg_expr_var *vars, size_t n_vars, lb_arena *arena,
                  const lg_expr **out, lb_err *err);

/* Canonical text: it parses to the same tree, and equal trees give equal text. */
void lg_expr_text(const lg_expr *e, lb_text *t);

/* C text of the expression, operators only. names[i] is written as c_names[i], other names as they
 * are; literals are unsigned long long, and so must be every name that meets another name. What an
 * evaluation would refuse wraps in C: prove the range first. */
void lg_expr_c(const lg_expr *e, const char *const *names, const char *const *c_names,
               size_t n_names, lb_text *t);

/* How the value moves while `name` grows and all else stands still, from structure alone.
 * RISING and FALLING include standing still; UNKNOWN promises nothing. */
typedef enum lg_expr_trend {
    LG_EXPR_CONSTANT,
    LG_EXPR_RISING,
    LG_EXPR_FALLING,
    LG_EXPR_UNKNOWN
} lg_expr_trend;

lg_expr_trend lg_expr_trend_in(const lg_expr *e, const char *name);

#endif
