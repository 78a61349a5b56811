/* ask_form.c -- what form an answer must have: a schema, any JSON, a call; see ask.h. */
#include <string.h>

#include "server/ask.h"
#include "server/fields.h"
#include "server/schema.h"

static uint32_t content_rule(rt_ask *a, rt_grammar *g, lb_err *err) {
    rt_schema s;
    if (!rt_schema_init(&s, g, a->form.schema, err)) {
        return 0;
    }
    return a->form.schema != NULL ? rt_schema_build(&s, a->form.schema, a->form.where, err)
                                  : rt_schema_object(&s);
}

/* One call, or several with space between them. */
static uint32_t calls_rule(rt_ask *a, rt_grammar *g, lb_err *err) {
    const rt_output_format *f = a->r->server->model->chat->output;
    rt_schema s;
    bool single = a->one_call || a->form.name != NULL || f->form == RT_CALLS_BARE;
    if (single) {
        return rt_schema_call(g, f, a->tools, a->form.name, 0, err);
    }
    if (!rt_schema_init(&s, g, NULL, err)) {
        return 0;
    }
    uint32_t more = rt_g_place(g);
    uint32_t one = rt_schema_call(g, f, a->tools, NULL, more, err);
    rt_g_set_place(g, more, rt_g_call(g, rt_schema_space(&s), one), 0);
    return one;
}

/* ---- tools that are strict, where the model may choose */

static bool is_strict(const json_t *tool) {
    return json_is_true(json_object_get(json_object_get(tool, "function"), "strict"));
}

static bool any_strict(const json_t *tools) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        if (is_strict(json_array_get(tools, i))) {
            return true;
        }
    }
    return false;
}

/* The tools; of those that are not strict, the names alone: any arguments will do. The list lives
 * as long as the body. */
static json_t *loosened(rt_ask *a) {
    json_t *out = json_array();
    if (json_object_set_new(a->root, "lagen.loose", out) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(a->tools); i++) {
        json_t *tool = json_array_get(a->tools, i);
        json_t *name = json_object_get(json_object_get(tool, "function"), "name");
        json_t *one = is_strict(tool) ? json_incref(tool)
                                      : json_pack("{s:{s:O}}", "function", "name", name);
        if (one == NULL || json_array_append_new(out, one) != 0) {
            return NULL;
        }
    }
    return out;
}

static uint32_t strict_rule(rt_ask *a, rt_grammar *g, lb_err *err) {
    const json_t *tools = loosened(a);
    if (tools == NULL) {
        lb_err_set(err, LB_NO_MEMORY, "no memory for the tools");
        return 0;
    }
    return rt_schema_text(g, a->r->server->model->chat->output, tools, err);
}

/* Whether a machine can begin to walk it: loops without a byte show here, and too many ways. */
static bool try_form(const rt_grammar *g, const char *where, lb_err *err) {
    lb_arena work;
    rt_gmachine *m = NULL;
    lb_arena_init(&work, "form", 64 << 20);
    bool ok = (rt_gmachine_new(g, &work, &m, err) && rt_gmachine_check(m, err)) ||
              lb_err_prefix(err, "%s", where);
    lb_arena_reset(&work);
    return ok;
}

bool rt_ask_form(rt_ask *a, lb_err *err) {
    bool is_free = !a->form.json && !a->form.call;
    if (is_free && !any_strict(a->tools)) {
        return true;
    }
    if (!a->form.json && a->r->server->model->chat->output == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "%s: this model's calls are not known",
                          is_free ? "tools" : "tool_choice");
    }
    rt_grammar *g = lb_alloc(&a->r->arena, sizeof *g, err);
    if (g == NULL) {
        return false;
    }
    rt_grammar_init(g, &a->r->arena);
    uint32_t root = is_free        ? strict_rule(a, g, err)
                    : a->form.call ? calls_rule(a, g, err)
                                   : content_rule(a, g, err);
    if (root == 0) {
        return g->failed ? rt_grammar_done(g, 0, err) : false;
    }
    if (a->form.json && a->tools != NULL && json_array_size(a->tools) > 0) {
        uint32_t calls = calls_rule(a, g, err); /* a call in place of the answer */
        if (calls == 0) {
            return false;
        }
        root = rt_g_either(g, root, calls);
    }
    a->grammar = g;
    const char *otherwise = is_free ? "tools" : "tool_choice";
    return rt_grammar_done(g, root, err) &&
           try_form(g, a->form.where != NULL ? a->form.where : otherwise, err);
}

/* {"type": "json_schema", "json_schema": {"schema": ...}} or Anthropic's, with "schema" beside it.
 */
bool rt_ask_format(rt_ask *a, const json_t *format, const char *where, lb_err *err) {
    static const char *const types[] = {"text", "json_object", "json_schema", NULL};
    int type = -1;
    const json_t *inner = NULL;
    if (format == NULL) {
        return true;
    }
    if (!rt_field_word(format, "type", types, &type, err) ||
        !rt_field_object(format, "json_schema", &inner, err)) {
        return lb_err_prefix(err, "%s", where);
    }
    if (type < 0) {
        return lb_err_set(err, LB_MISSING, "%s: it has no type", where);
    }
    a->form.json = type > 0;
    a->form.where = where;
    if (type == 2) {
        a->form.schema = rt_field(inner != NULL ? inner : format, "schema");
        if (a->form.schema == NULL) {
            return lb_err_set(err, LB_MISSING, "%s: it has no schema", where);
        }
    }
    return true;
}
