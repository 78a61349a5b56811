/* emit.c -- statements of chat templates as C statements; see emit.h. */
#include "jinja/emit.h"

#include <inttypes.h>
#include <string.h>

#include "jinja/c_text.h"
#include "jinja/emit_int.h"

/* ---- lines ---- */

/* Ends the statement in e->flat: writes it wrapped and begins a new one. */
static void flush(lg_jemitter *e) {
    lg_c_wrap(e->out, e->flat.data, e->flat.n_bytes, e->indent);
    e->flat.n_bytes = 0;
    e->n_temps = 0;
}

static void put(lg_jemitter *e, const char *s) {
    lb_text_add(&e->flat, s);
}

static void line(lg_jemitter *e, const char *s) {
    put(e, s);
    flush(e);
}

static void open_block(lg_jemitter *e) {
    put(e, "{");
    flush(e);
    e->indent += 4;
}

/* Leaves a block; what c->line holds behind it depends on the way taken. */
static void close_block(lg_jemitter *e) {
    e->indent -= 4;
    line(e, "}");
    e->line = 0;
}

/* Tells the run-time where it is, once per line and block. */
static void at_line(lg_jemitter *e, const lg_jnode *n, const char *what) {
    if (e->line == n->line) {
        return;
    }
    e->line = n->line;
    lb_text_printf(&e->flat, "c->line = %u;%s%s%s", n->line, what[0] != '\0' ? " /* " : "", what,
                   what[0] != '\0' ? " */" : "");
    flush(e);
}

/* ---- variables ---- */

/* Declares those variables of a scope that are not declared by their first set. */
static void declare_vars(lg_jemitter *e, const lg_jscope *scope) {
    for (const lg_jvar *v = scope->vars; v != NULL; v = v->next) {
        if (!v->stored || v->parameter || v->decl != NULL || v->n_loads == 0) {
            continue;
        }
        lb_text_printf(&e->flat, "rt_val %s = ", v->c_name);
        if (v->outer != NULL) {
            lg_je_var(e, v->outer);
        } else {
            put(e, "rt_undefined()");
        }
        line(e, ";");
    }
}

/* "rt_unpack(c, <value>, n, (rt_val *[]){&a, &b});" with the value on e->flat from `open` on. */
static void unpack_targets(lg_jemitter *e, const lg_jnode *tuple) {
    size_t n = 0;
    for (const lg_jnode *item = tuple->list; item != NULL; item = item->next) {
        n++;
    }
    lb_text_printf(&e->flat, ", %zu, (rt_val *[]){", n);
    for (const lg_jnode *item = tuple->list; item != NULL; item = item->next) {
        put(e, item == tuple->list ? "&" : ", &");
        lg_je_var(e, item->var);
    }
    line(e, "});");
}

static void statements(lg_jemitter *e, const lg_jnode *first);

/* A scope's variables and statements. */
static void scope_body(lg_jemitter *e, const lg_jscope *scope, const lg_jnode *first) {
    declare_vars(e, scope);
    statements(e, first);
}

/* ---- statements ---- */

static void text(lg_jemitter *e, const lg_jnode *n, const lg_jnode *literal) {
    put(e, "rt_out(c, RT_LIT(");
    lg_c_literal(&e->flat, literal->text, literal->n_text);
    lb_text_printf(&e->flat, ")); /* %u */", n->line);
    flush(e);
}

static void print(lg_jemitter *e, const lg_jnode *n) {
    if (n->a->kind == LG_J_STR) {
        text(e, n, n->a);
        return;
    }
    at_line(e, n, "");
    put(e, "rt_out(c, ");
    lg_je_value(e, n->a);
    line(e, ");");
}

static void if_statement(lg_jemitter *e, const lg_jnode *n) {
    at_line(e, n, "");
    for (const lg_jnode *arm = n->list; arm != NULL; arm = arm->next) {
        if (arm == n->list) {
            put(e, "if (");
            lg_je_bool(e, arm->a);
            put(e, ") ");
        } else if (arm->a != NULL) {
            lb_text_printf(&e->flat, "} else if (rt_at(c, %u) && (", arm->line);
            lg_je_bool(e, arm->a);
            put(e, ")) ");
        } else {
            put(e, "} else ");
        }
        open_block(e);
        statements(e, arm->body);
        e->indent -= 4;
        e->line = 0;
    }
    line(e, "}");
    e->line = 0;
}

/* The loop's targets from its item. */
static void loop_targets(lg_jemitter *e, const lg_jnode *n) {
    const char *loop = n->scope->loop;
    if (n->a->kind == LG_J_NAME) {
        if (n->a->var->n_loads > 0) {
            lb_text_printf(&e->flat, "rt_val %s = %s.item;", n->a->var->c_name, loop);
            flush(e);
            /* perhaps one of the two loops needs none */
            if (n->c != NULL && n->scope->looks_ahead) {
                lb_text_printf(&e->flat, "(void)%s;", n->a->var->c_name);
                flush(e);
            }
        }
        return;
    }
    put(e, "rt_val ");
    for (const lg_jnode *item = n->a->list; item != NULL; item = item->next) {
        lb_text_printf(&e->flat, "%s%s = rt_undefined()", item == n->a->list ? "" : ", ",
                       item->var->c_name);
    }
    line(e, ";");
    lb_text_printf(&e->flat, "rt_unpack(c, %s.item", loop);
    unpack_targets(e, n->a);
}

/* "for (rt_loop NAME = rt_loop_over(c, ...); rt_loop_next(c, &NAME);) {" */
static void open_loop(lg_jemitter *e, const lg_jnode *n, const char *sequence, const char *next) {
    const char *loop = n->scope->loop;
    lb_text_printf(&e->flat, "for (rt_loop %s = rt_loop_over(c, ", loop);
    if (sequence != NULL) {
        put(e, sequence);
    } else {
        lg_je_value(e, n->b);
    }
    lb_text_printf(&e->flat, "); %s(c, &%s);) ", next, loop);
    open_block(e);
    e->line = 0;
}

/* The items that pass a condition, where the loop looks ahead: they must be known first. */
static void filter_first(lg_jemitter *e, const lg_jnode *n, uint32_t number) {
    lb_text_printf(&e->flat, "rt_val items%u = rt_list_of(c, 0, NULL);", number);
    flush(e);
    open_loop(e, n, NULL, "rt_loop_next");
    loop_targets(e, n);
    put(e, "if (");
    lg_je_bool(e, n->c);
    put(e, ") ");
    open_block(e);
    lb_text_printf(&e->flat, "rt_push(c, items%u, %s.item);", number, n->scope->loop);
    flush(e);
    close_block(e);
    close_block(e);
}

/* Where the loop does not look ahead, an item is tried when its turn comes, as in jinja2. */
static void filter_inline(lg_jemitter *e, const lg_jnode *n) {
    put(e, "if (!(");
    lg_je_bool(e, n->c);
    put(e, ")) ");
    open_block(e);
    line(e, "continue;");
    close_block(e);
    lb_text_printf(&e->flat, "rt_loop_take(&%s);", n->scope->loop);
    flush(e);
}

static void for_statement(lg_jemitter *e, const lg_jnode *n) {
    uint32_t number = ++e->loops; /* names what is declared around the loop */
    bool first = n->c != NULL && n->scope->looks_ahead;
    bool inline_filter = n->c != NULL && !first;
    at_line(e, n, "for");
    if (n->alt != NULL || first) {
        open_block(e);
    }
    if (n->alt != NULL) {
        lb_text_printf(&e->flat, "bool ran%u = false;", number);
        flush(e);
    }
    char *items = NULL;
    if (first) {
        filter_first(e, n, number);
        items = lb_format(e->arena, e->err, "items%u", number);
        e->failed = e->failed || items == NULL;
    }
    open_loop(e, n, items, inline_filter ? "rt_loop_try" : "rt_loop_next");
    loop_targets(e, n);
    if (inline_filter) {
        filter_inline(e, n);
    }
    scope_body(e, n->scope, n->body);
    if (n->alt != NULL) {
        lb_text_printf(&e->flat, "ran%u = true;", number);
        flush(e);
    }
    close_block(e);
    if (n->alt != NULL) {
        lb_text_printf(&e->flat, "if (!ran%u) ", number);
        open_block(e);
        scope_body(e, n->alt_scope, n->alt);
        close_block(e);
    }
    if (n->alt != NULL || first) {
        close_block(e);
    }
}

/* "target = " up to the value, and what stands behind the value. */
static const char *begin_set(lg_jemitter *e, const lg_jnode *n) {
    const lg_jnode *target = n->a;
    if (target->kind == LG_J_NSREF) {
        put(e, "rt_ns_set(c, ");
        lg_je_var(e, target->a->var);
        put(e, ", ");
        lg_c_literal(&e->flat, target->text, target->n_text);
        put(e, ", ");
        return ");";
    }
    const lg_jvar *v = target->var;
    if (!v->global && v->n_loads == 0) {
        put(e, "(void)(");
        return ");";
    }
    put(e, !v->global && v->decl == n ? "rt_val " : "");
    lg_je_var(e, v);
    put(e, " = ");
    return ";";
}

static void set_statement(lg_jemitter *e, const lg_jnode *n) {
    if (n->a->kind == LG_J_NAME && n->b->kind == LG_J_NAME && n->a->var == n->b->var) {
        return; /* x = x: compilers warn */
    }
    at_line(e, n, "");
    if (n->a->kind == LG_J_TUPLE) {
        put(e, "rt_unpack(c, ");
        lg_je_value(e, n->b);
        unpack_targets(e, n->a);
        return;
    }
    const char *end = begin_set(e, n);
    lg_je_value(e, n->b);
    line(e, end);
}

/* Runs a body into a text of its own; the statement that takes it follows. */
static void open_capture(lg_jemitter *e, const lg_jnode *n, const char *what) {
    at_line(e, n, what);
    open_block(e);
    e->captures++;
    lb_text_printf(&e->flat, "size_t start%u = rt_capture(c);", e->captures);
    flush(e);
    put(e, "");
    scope_body(e, n->scope, n->body);
    at_line(e, n, "");
}

static void captured(lg_jemitter *e, const lg_jnode *chain) {
    if (chain == NULL) {
        lb_text_printf(&e->flat, "rt_captured(c, start%u)", e->captures);
    } else {
        lg_je_value(e, chain);
    }
}

static void set_block(lg_jemitter *e, const lg_jnode *n) {
    open_capture(e, n, "set");
    const char *end = begin_set(e, n);
    captured(e, n->b);
    line(e, end);
    e->captures--;
    close_block(e);
}

static void filter_block(lg_jemitter *e, const lg_jnode *n) {
    open_capture(e, n, "filter");
    put(e, "rt_out_filtered(c, ");
    captured(e, n->b);
    line(e, ");");
    e->captures--;
    close_block(e);
}

static void statement(lg_jemitter *e, const lg_jnode *n) {
    switch (n->kind) {
    case LG_J_TEXT: text(e, n, n); break;
    case LG_J_PRINT: print(e, n); break;
    case LG_J_IF: if_statement(e, n); break;
    case LG_J_FOR: for_statement(e, n); break;
    case LG_J_SET: set_statement(e, n); break;
    case LG_J_SET_BLOCK: set_block(e, n); break;
    case LG_J_FILTER_BLOCK: filter_block(e, n); break;
    case LG_J_GENERATION:
        open_block(e);
        scope_body(e, n->scope, n->body);
        close_block(e);
        break;
    case LG_J_BREAK: line(e, "break;"); break;
    case LG_J_CONTINUE: line(e, "continue;"); break;
    default: break; /* macros are functions of their own */
    }
}

static void statements(lg_jemitter *e, const lg_jnode *first) {
    for (const lg_jnode *n = first; n != NULL; n = n->next) {
        statement(e, n);
    }
}

/* ---- functions ---- */

/* Begins a function body in a buffer: its head depends on what the body uses. */
static void begin_function(lg_jemitter *e, lb_text *body) {
    lb_text_init(body, e->arena);
    e->out = body;
    e->indent = 4;
    e->line = 0;
    e->captures = 0;
    e->loops = 0;
    e->max_temps = 0;
    e->uses_globals = false;
}

static void macro_head(lb_text *out, const lg_jnode *m) {
    lb_text_printf(out, "static rt_val macro_%.*s(rt_chat_ctx *c, struct globals *g",
                   (int)m->n_text, m->text);
    for (const lg_jnode *p = m->list; p != NULL; p = p->next) {
        lb_text_printf(out, ", rt_val\1%s", p->var->c_name);
    }
    lb_text_add(out, ")");
}

/* Gives parameters that the call left out their default. */
static void defaults(lg_jemitter *e, const lg_jnode *m) {
    for (const lg_jnode *p = m->list; p != NULL; p = p->next) {
        if (p->a == NULL && p->var->n_loads == 0) {
            lb_text_printf(&e->flat, "(void)%s;", p->var->c_name);
            flush(e);
            continue;
        }
        lb_text_printf(&e->flat, "if (rt_is_missing(%s)) ", p->var->c_name);
        open_block(e);
        lb_text_printf(&e->flat, "%s = ", p->var->c_name);
        if (p->a == NULL) {
            put(e, "rt_undefined()");
        } else {
            lg_je_value(e, p->a);
        }
        line(e, ";");
        close_block(e);
    }
}

static void write_wrapped(lb_text *out, lb_text *flat) {
    lg_c_wrap(out, flat->data, flat->n_bytes, 0);
    flat->n_bytes = 0;
}

static void macro_function(lg_jemitter *e, lb_text *file, const lg_jnode *m) {
    lb_text body;
    begin_function(e, &body);
    defaults(e, m);
    scope_body(e, m->scope, m->body);
    lb_text_printf(file, "/* line %u: macro %.*s */\n", m->line, (int)m->n_text, m->text);
    macro_head(&e->flat, m);
    put(e, " {");
    write_wrapped(file, &e->flat);
    lb_text_add(file, e->uses_globals ? "" : "    (void)g;\n");
    if (e->max_temps > 0) {
        lb_text_printf(file, "    rt_val t[%u];\n", e->max_temps);
    }
    lb_text_add(file, "    if (!rt_macro_enter(c)) {\n        return rt_undefined();\n    }\n");
    lb_text_add(file, "    size_t start = rt_capture(c);\n");
    lb_text_add_n(file, body.data, body.n_bytes);
    lb_text_add(file, "    return rt_macro_leave(c, start);\n}\n\n");
    e->failed = e->failed || body.failed;
}

static void main_function(lg_jemitter *e, lb_text *file, const lg_jtemplate *t) {
    lb_text body;
    begin_function(e, &body);
    for (const lg_jvar *v = t->globals->vars; v != NULL; v = v->next) {
        if (v->read_first) {
            lb_text_printf(&e->flat, "g->%s = rt_var(c, ", v->c_name);
            lg_c_literal(&e->flat, v->name, v->n_name);
            line(e, ");");
            e->uses_globals = true;
        }
    }
    statements(e, t->root->body);
    lb_text_add(file, "bool lagen_chat_render(rt_chat_ctx *c) {\n");
    if (e->max_temps > 0) {
        lb_text_printf(file, "    rt_val t[%u];\n", e->max_temps);
    }
    if (e->uses_globals) {
        lb_text_add(file, "    struct globals globals = {0};\n    struct globals *g = &globals;\n");
    }
    lb_text_add_n(file, body.data, body.n_bytes);
    lb_text_add(file, "    return rt_finished(c);\n}\n");
    e->failed = e->failed || body.failed;
}

static void file_head(lb_text *file) {
    lb_text_add(file,
                "/* chat.c -- generated by lagen from the model file's chat template; do not edit\n"
                " * does    writes a conversation as the prompt that the model was trained on,\n"
                " *         statement by statement as the template has it\n"
                " * lines   c->line and the numbers in comments are lines of the template\n"
                " * names   v_x is the template's x; macro_x its macro x */\n"
                "#include \"chat/filters.h\"\n"
                "#include \"chat/loop.h\"\n"
                "#include \"chat/methods.h\"\n"
                "#include \"chat/ops.h\"\n"
                "#include \"chat/tests.h\"\n\n");
}

static void globals_struct(lb_text *file, const lg_jtemplate *t) {
    if (t->globals->vars == NULL && t->macros == NULL) {
        return;
    }
    lb_text_add(file, "struct globals {\n");
    for (const lg_jvar *v = t->globals->vars; v != NULL; v = v->next) {
        lb_text_printf(file, "    rt_val %s;\n", v->c_name);
    }
    lb_text_add(file, t->globals->vars == NULL ? "    rt_val unused;\n};\n\n" : "};\n\n");
}

bool lg_jinja_emit(const lg_jtemplate *t, lb_arena *arena, lb_text *out, lb_err *err) {
    lb_err why = {0};
    lg_jemitter e = {.arena = arena, .err = &why};
    lb_text_init(&e.flat, arena);
    file_head(out);
    globals_struct(out, t);
    for (const lg_jmacro_list *m = t->macros; m != NULL; m = m->next) {
        if (m->called) {
            macro_head(&e.flat, m->macro);
            put(&e, ";");
            write_wrapped(out, &e.flat);
        }
    }
    lb_text_add(out, t->macros == NULL ? "" : "\n");
    for (const lg_jmacro_list *m = t->macros; m != NULL; m = m->next) {
        if (m->called) {
            macro_function(&e, out, m->macro);
        }
    }
    main_function(&e, out, t);
    if (e.failed || e.flat.failed || out->failed) {
        lb_err memory = {.code = LB_NO_MEMORY};
        *err = why.code != LB_OK ? why : out->failed ? out->err : e.flat.failed ? e.flat.err
            : memory;
        return false;
    }
    return true;
}
