/* jinja.c -- see jinja.h: the steps in order. */
#include "jinja/jinja.h"

#include "jinja/emit.h"
#include "jinja/lex.h"
#include "jinja/parse.h"
#include "jinja/resolve.h"

bool lg_jinja_compile(const char *src, size_t n, lb_arena *arena, lb_text *c_out, lb_err *err) {
    lg_jtok *toks = NULL;
    size_t n_toks = 0;
    lg_jnode *root = NULL;
    lg_jtemplate t = {0};
    return lg_jinja_lex(src, n, arena, &toks, &n_toks, err) &&
           lg_jinja_parse(toks, n_toks, arena, &root, err) &&
           lg_jinja_resolve(root, arena, &t, err) && lg_jinja_emit(&t, arena, c_out, err);
}
