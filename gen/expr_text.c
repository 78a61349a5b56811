/* expr_text.c -- parsing and writing launch expressions; see expr.h. */
#include "expr_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4096, DEPTH_MAX = 64, NAME_BYTES_MAX = 64 };

typedef struct parser {
    const char *text;
    size_t at;
    int depth;
    lb_arena *arena;
    lb_err *err;
} parser;

static const lg_expr *fail(const parser *p, lb_code code, const char *what) {
    lb_err_set(p->err, code, "expression '%.120s', column %zu: %s", p->text, p->at + 1, what);
    return NULL;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The next character that is not a blank; '\0' at the end. */
static char peek(parser *p) {
    while (p->text[p->at] == ' ') {
        p->at++;
    }
    return p->text[p->at];
}

static bool take(parser *p, char c) {
    if (peek(p) != c) {
        return false;
    }
    p->at++;
    return true;
}

static const lg_expr *parse_sum(parser *p);

static const lg_expr *parse_int(parser *p) {
    uint64_t v = 0;
    for (; is_digit(p->text[p->at]); p->at++) {
        uint64_t digit = (uint64_t)(p->text[p->at] - '0');
        if (__builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, digit, &v)) {
            return fail(p, LB_OVERFLOW, "an integer above 2^64 - 1");
        }
    }
    if (is_letter(p->text[p->at])) {
        return fail(p, LB_SYNTAX, "a letter inside a number");
    }
    return lg_expr_int(v, p->arena, p->err);
}

/* Which function a name is, and whether it takes more than two arguments. */
static bool find_function(const char *name, lg_expr_kind *kind, bool *any_number) {
    static const struct {
        const char *name;
        lg_expr_kind kind;
        bool any_number;
    } functions[] = {{"ceil_div", LG_EXPR_CEIL_DIV, false},
                     {"round_up", LG_EXPR_ROUND_UP, false},
                     {"min", LG_EXPR_MIN, true},
                     {"max", LG_EXPR_MAX, true}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            *kind = functions[i].kind;
            *any_number = functions[i].any_number;
            return true;
        }
    }
    return false;
}

/* The arguments of a function, behind its '('. */
static const lg_expr *parse_call(parser *p, const char *name) {
    lg_expr_kind kind = LG_EXPR_MIN;
    bool any_number = false;
    if (!find_function(name, &kind, &any_number)) {
        return fail(p, LB_SYNTAX, "unknown function; there are ceil_div, round_up, min, max");
    }
    const lg_expr *all = parse_sum(p);
    int n = 1;
    while (all != NULL && take(p, ',')) {
        const lg_expr *next = parse_sum(p);
        all = next == NULL ? NULL : lg_expr_binary(kind, all, next, p->arena, p->err);
        n++;
    }
    if (all == NULL) {
        return NULL;
    }
    if (!take(p, ')')) {
        return fail(p, LB_SYNTAX, "expected ',' or ')'");
    }
    if (n < 2 || (n > 2 && !any_number)) {
        return fail(p, LB_SYNTAX, "wrong number of arguments");
    }
    return all;
}

static const lg_expr *parse_name(parser *p) {
    char name[NAME_BYTES_MAX + 1];
    size_t n = 0;
    for (; is_letter(p->text[p->at]) || is_digit(p->text[p->at]); p->at++) {
        if (n == NAME_BYTES_MAX) {
            return fail(p, LB_LIMIT, "a name of more than 64 bytes");
        }
        name[n++] = p->text[p->at];
    }
    name[n] = '\0';
    return take(p, '(') ? parse_call(p, name) : lg_expr_name(name, p->arena, p->err);
}

static const lg_expr *parse_bracket(parser *p) {
    const lg_expr *e = parse_sum(p);
    if (e != NULL && !take(p, ')')) {
        return fail(p, LB_SYNTAX, "expected ')'");
    }
    return e;
}

static const lg_expr *parse_factor(parser *p) {
    char c = peek(p);
    if (is_digit(c)) {
        return parse_int(p);
    }
    if (is_letter(c)) {
        return parse_name(p);
    }
    if (take(p, '(')) {
        return parse_bracket(p);
    }
    return fail(p, LB_SYNTAX, "expected a number, a name or '('");
}

static const lg_expr *parse_product(parser *p) {
    const lg_expr *e = parse_factor(p);
    while (e != NULL && (peek(p) == '*' || peek(p) == '/')) {
        lg_expr_kind kind = p->text[p->at++] == '*' ? LG_EXPR_MUL : LG_EXPR_DIV;
        const lg_expr *right = parse_factor(p);
        e = right == NULL ? NULL : lg_expr_binary(kind, e, right, p->arena, p->err);
    }
    return e;
}

static const lg_expr *parse_sum(parser *p) {
    if (p->depth == DEPTH_MAX) {
        return fail(p, LB_LIMIT, "more than 64 nested parentheses");
    }
    p->depth++;
    const lg_expr *e = parse_product(p);
    while (e != NULL && (peek(p) == '+' || peek(p) == '-')) {
        lg_expr_kind kind = p->text[p->at++] == '+' ? LG_EXPR_ADD : LG_EXPR_SUB;
        const lg_expr *right = parse_product(p);
        e = right == NULL ? NULL : lg_expr_binary(kind, e, right, p->arena, p->err);
    }
    p->depth--;
    return e;
}

bool lg_expr_parse(const char *text, lb_arena *arena, const lg_expr **out, lb_err *err) {
    if (strlen(text) > TEXT_BYTES_MAX) {
        return lb_err_set(err, LB_LIMIT, "expression '%.60s...' of more than %d bytes", text,
                          TEXT_BYTES_MAX);
    }
    parser p = {.text = text, .arena = arena, .err = err};
    const lg_expr *e = parse_sum(&p);
    if (e != NULL && peek(&p) != '\0') {
        e = fail(&p, LB_SYNTAX, "expected an operator");
    }
    if (e == NULL) {
        return false;
    }
    *out = e;
    return true;
}

/* Where text goes: a growing buffer, or a fixed one that cuts. */
typedef struct sink {
    lb_text *text;
    char *to;
    size_t size;
    size_t n;
} sink;

static void put(sink *s, const char *text) {
    if (s->text != NULL) {
        lb_text_add(s->text, text);
        return;
    }
    int n = snprintf(s->to + s->n, s->size - s->n, "%s", text);
    size_t end = s->n + (n < 0 ? 0 : (size_t)n);
    s->n = end < s->size ? end : s->size - 1;
}

static void put_int(sink *s, uint64_t v, const char *suffix) {
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64 "%s", v, suffix);
    put(s, number);
}

/* Binding strength: sums 1, products 2, all else 3. */
static int strength(lg_expr_kind kind) {
    switch (kind) {
    case LG_EXPR_ADD:
    case LG_EXPR_SUB: return 1;
    case LG_EXPR_MUL:
    case LG_EXPR_DIV: return 2;
    default: return 3;
    }
}

static const char *operator_text(lg_expr_kind kind) {
    switch (kind) {
    case LG_EXPR_ADD: return " + ";
    case LG_EXPR_SUB: return " - ";
    case LG_EXPR_MUL: return " * ";
    case LG_EXPR_DIV: return " / ";
    case LG_EXPR_CEIL_DIV: return "ceil_div";
    case LG_EXPR_ROUND_UP: return "round_up";
    case LG_EXPR_MIN: return "min";
    case LG_EXPR_MAX: return "max";
    default: return "";
    }
}

/* In parentheses if e binds weaker than `least`. */
static void put_expr(sink *s, const lg_expr *e, int least) {
    int own = strength(e->kind);
    if (e->kind == LG_EXPR_INT) {
        put_int(s, e->value, "");
        return;
    }
    if (e->kind == LG_EXPR_VAR) {
        put(s, e->name);
        return;
    }
    bool call = own == 3;
    put(s, call ? operator_text(e->kind) : "");
    put(s, call || own < least ? "(" : "");
    put_expr(s, e->a, call ? 0 : own);
    put(s, call ? ", " : operator_text(e->kind));
    put_expr(s, e->b, call ? 0 : own + 1);
    put(s, call || own < least ? ")" : "");
}

void lg_expr_text(const lg_expr *e, lb_text *t) {
    sink s = {.text = t};
    put_expr(&s, e, 0);
}

void lg_expr_short_text(const lg_expr *e, char *to, size_t size) {
    sink s = {.to = to, .size = size};
    to[0] = '\0';
    put_expr(&s, e, 0);
}

typedef struct c_names {
    const char *const *names;
    const char *const *c_names;
    size_t n;
} c_names;

static void put_c_name(sink *s, const char *name, const c_names *map) {
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->names[i], name) == 0) {
            put(s, map->c_names[i]);
            return;
        }
    }
    put(s, name);
}

static void put_c(sink *s, const lg_expr *e, const c_names *map);

/* a <op> b; every operand of C text is an atom or in parentheses. */
static void put_c_pair(sink *s, const lg_expr *e, const char *op, const c_names *map) {
    put_c(s, e->a, map);
    put(s, op);
    put_c(s, e->b, map);
}

/* ceil_div as quotient and remainder, so that it cannot overflow; a round_up multiplies that. */
static void put_c_ceil(sink *s, const lg_expr *e, const c_names *map) {
    put_c_pair(s, e, " / ", map);
    put(s, " + (");
    put_c_pair(s, e, " % ", map);
    put(s, " != 0)");
}

static void put_c_choice(sink *s, const lg_expr *e, const char *op, const c_names *map) {
    put_c_pair(s, e, op, map);
    put(s, " ? ");
    put_c_pair(s, e, " : ", map);
}

static void put_c(sink *s, const lg_expr *e, const c_names *map) {
    if (e->kind == LG_EXPR_INT) {
        put_int(s, e->value, "ull");
        return;
    }
    if (e->kind == LG_EXPR_VAR) {
        put_c_name(s, e->name, map);
        return;
    }
    put(s, "(");
    switch (e->kind) {
    case LG_EXPR_CEIL_DIV: put_c_ceil(s, e, map); break;
    case LG_EXPR_ROUND_UP:
        put(s, "(");
        put_c_ceil(s, e, map);
        put(s, ") * ");
        put_c(s, e->b, map);
        break;
    case LG_EXPR_MIN: put_c_choice(s, e, " < ", map); break;
    case LG_EXPR_MAX: put_c_choice(s, e, " > ", map); break;
    default: put_c_pair(s, e, operator_text(e->kind), map); break;
    }
    put(s, ")");
}

void lg_expr_c(const lg_expr *e, const char *const *names, const char *const *c_names_of,
               size_t n_names, lb_text *t) {
    sink s = {.text = t};
    c_names map = {.names = names, .c_names = c_names_of, .n = n_names};
    put_c(&s, e, &map);
}
