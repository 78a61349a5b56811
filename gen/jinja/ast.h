/* ast.h -- the syntax tree of a chat template, as parse.c builds it and resolve.c completes it.
 *
 * One node type for expressions and statements; the legend below says which fields a kind uses.
 * Nodes live in the arena of the compilation. No node is nested deeper than LG_JINJA_DEPTH_MAX, so
 * that walks may recurse. */
#ifndef LG_JINJA_AST_H
#define LG_JINJA_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LG_JINJA_DEPTH_MAX = 120 }; /* clang takes 256 nested brackets; one node emits up to two */

typedef enum lg_jkind {
    /* expressions */
    LG_J_STR,     /* text */
    LG_J_INT,     /* i */
    LG_J_FLOAT,   /* f */
    LG_J_BOOL,    /* i */
    LG_J_NONE,    /* */
    LG_J_NAME,    /* text; var after resolve, NULL for a built-in function */
    LG_J_LIST,    /* list */
    LG_J_TUPLE,   /* list */
    LG_J_DICT,    /* list: key, value, key, value, ... */
    LG_J_ATTR,    /* a.text */
    LG_J_ITEM,    /* a[b] */
    LG_J_SLICE,   /* a[b:c:d], each of b c d may be NULL */
    LG_J_CALL,    /* a(list): positional nodes, then LG_J_KWARG; call after resolve */
    LG_J_KWARG,   /* text=a */
    LG_J_FILTER,  /* a | text(list); a is NULL for the text of a block */
    LG_J_TEST,    /* a is text(list) */
    LG_J_NOT, LG_J_NEG, LG_J_POS,             /* a */
    LG_J_AND, LG_J_OR,                        /* a, b */
    LG_J_IF_EXPR,                             /* b if a else c; c may be NULL */
    LG_J_ADD, LG_J_SUB, LG_J_MUL, LG_J_DIV,   /* a, b */
    LG_J_FLOORDIV, LG_J_MOD,                  /* a, b */
    LG_J_TILDE,   /* list, at least two */
    LG_J_COMPARE, /* a, list of LG_J_OPERAND */
    LG_J_OPERAND, /* op, a */
    /* statements */
    LG_J_TEXT,         /* text */
    LG_J_PRINT,        /* a */
    LG_J_IF,           /* list of LG_J_ARM */
    LG_J_ARM,          /* a (NULL for else), body */
    LG_J_FOR,          /* a target, b sequence, c condition or NULL, body, alt (else) */
    LG_J_SET,          /* a target, b value */
    LG_J_SET_BLOCK,    /* a target, b filter chain or NULL, body */
    LG_J_FILTER_BLOCK, /* b filter chain, body */
    LG_J_MACRO,        /* text, list of LG_J_PARAM, body */
    LG_J_PARAM,        /* text, a default or NULL; var */
    LG_J_GENERATION,   /* body */
    LG_J_BREAK, LG_J_CONTINUE,
    LG_J_NSREF,        /* a.text as the target of a set; a is a LG_J_NAME */
    LG_J_TEMPLATE      /* body */
} lg_jkind;

typedef enum lg_jcompare {
    LG_JCMP_EQ, LG_JCMP_NE, LG_JCMP_LT, LG_JCMP_LE, LG_JCMP_GT, LG_JCMP_GE, LG_JCMP_IN,
        LG_JCMP_NOT_IN
} lg_jcompare;

/* What a LG_J_CALL turned out to be (resolve.c). */
typedef enum lg_jcall {
    LG_JCALL_UNKNOWN, /* a name that no template can define: fails when reached, as in jinja2 */
    LG_JCALL_MACRO,   /* macro, bound */
    LG_JCALL_METHOD,  /* fn, bound */
    LG_JCALL_FORMAT,  /* str.format: list as it stands */
    LG_JCALL_NAMESPACE, LG_JCALL_DICT, /* list of LG_J_KWARG */
    LG_JCALL_RANGE, LG_JCALL_RAISE, LG_JCALL_STRFTIME,
    LG_JCALL_CYCLE, LG_JCALL_CHANGED
} lg_jcall;

typedef struct lg_jnode lg_jnode;
struct lg_jvar;      /* resolve.h */
struct lg_jscope;    /* resolve.h */
struct lg_jbuiltin;  /* builtin.h */

struct lg_jnode {
    lg_jkind kind;
    lg_jcompare op;
    uint32_t line, col;
    uint32_t depth;     /* 1 + the depth of the deepest child */
    const char *text;   /* not NUL-terminated */
    size_t n_text;
    int64_t i;
    double f;
    lg_jnode *a, *b, *c, *d;
    lg_jnode *list, *body, *alt; /* first of a chain over `next` */
    lg_jnode *next;
    /* set by resolve.c */
    bool effect;               /* its value depends on when it is evaluated, or changes something */
    lg_jcall call;
    struct lg_jvar *var;
    struct lg_jscope *scope;   /* of body */
    struct lg_jscope *alt_scope;
    const struct lg_jbuiltin *fn;
    lg_jnode *macro;
    lg_jnode **bound;          /* one per parameter of fn or macro; NULL where absent */
    size_t n_bound;
};

#endif
