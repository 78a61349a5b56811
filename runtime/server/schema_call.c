/* schema_call.c -- calls of tools as grammars, in the spelling of the model's format; see schema.h.
 */
#include <string.h>

#include "server/schema.h"

enum { KEY_BYTES_MAX = 64 }; /* of an argument that no schema names */

static const char *tool_name(const json_t *tool) {
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static const json_t *parameters(const json_t *tool) {
    return json_object_get(json_object_get(tool, "function"), "parameters");
}

/* The rule of a tool's arguments. */
static uint32_t arguments(rt_grammar *g, const json_t *tool, lb_err *err) {
    rt_schema s;
    const json_t *schema = parameters(tool);
    if (!rt_schema_init(&s, g, schema, err)) {
        return 0;
    }
    if (json_object_size(schema) == 0) {
        return rt_schema_object(&s);
    }
    return rt_schema_build(&s, schema, "tools", err);
}

/* ---- {"name": "f", "arguments": {...}} */

static uint32_t json_call(rt_grammar *g, const rt_output_format *f, const json_t *tool,
                          uint32_t space, uint32_t next, lb_err *err) {
    const char *key = f->arguments_key != NULL ? f->arguments_key : "arguments";
    const char *name = tool_name(tool);
    uint32_t rule = arguments(g, tool, err);
    if (rule == 0) {
        return 0;
    }
    uint32_t n = rt_g_call(g, space, rt_g_range(g, '}', '}', next));
    n = rt_g_call(g, space, rt_g_call(g, rule, n));
    n = rt_g_word(g, "\"", rt_g_word(g, key, rt_g_word(g, "\":", n)));
    n = rt_g_range(g, ',', ',', rt_g_call(g, space, n));
    n = rt_g_word(g, "\"", rt_g_word(g, name, rt_g_word(g, "\"", n)));
    n = rt_g_word(g, "\"name\":", rt_g_call(g, space, n));
    return rt_g_range(g, '{', '{', rt_g_call(g, space, n));
}

/* ---- name <key>k</key><value>v</value> ... */

/* Any text up to `end`, which it does not hold, then `next`; or any text (may_end). One node for
 * each length of a beginning of `end` that was just read (Knuth, Morris, Pratt: SIAM J. Comput. 6
 * (1977)). */
static uint32_t raw_until(rt_grammar *g, const char *end, bool may_end, uint32_t next) {
    uint32_t at[RT_MARKER_BYTES_MAX + 1];
    size_t fall[RT_MARKER_BYTES_MAX + 1] = {0};
    size_t n = strlen(end);
    for (size_t i = 0; i < n; i++) {
        at[i] = rt_g_place(g);
    }
    at[n] = next;
    for (size_t i = 1; i < n; i++) {
        size_t k = fall[i];
        while (k > 0 && end[k] != end[i]) {
            k = fall[k];
        }
        fall[i + 1] = end[k] == end[i] ? k + 1 : 0;
    }
    for (size_t i = 0; i < n; i++) {
        rt_gset other = {{0, 0, 0, 0}};
        uint32_t ways = 0;
        rt_gset_add(&other, 0, 255);
        for (size_t k = i;; k = fall[k]) { /* bytes that go on with some beginning, longest first */
            uint8_t b = (uint8_t)end[k];
            if (rt_gset_has(&other, b)) {
                uint32_t to = rt_g_range(g, b, b, at[k + 1]);
                ways = ways == 0 ? to : rt_g_either(g, to, ways);
                other.bits[b >> 6] &= ~(UINT64_C(1) << (b & 63U));
            }
            if (k == 0) {
                break;
            }
        }
        ways = may_end ? rt_g_either(g, ways, 0) : ways;
        rt_g_set_place(g, at[i], ways, rt_g_set(g, &other, at[0]));
    }
    return at[0];
}

/* Texts stand there as they are, without quotes: what a schema may say of their length is not
 * counted. */
static bool is_plain(rt_schema *s, const json_t *schema, lb_err *err) {
    static const char *const counted[] = {"minLength", "maxLength"};
    for (size_t i = 0; i < 2; i++) {
        if (json_object_get(schema, counted[i]) != NULL) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "tools: the schema's '%s' cannot be guaranteed in this model's calls",
                              counted[i]);
        }
    }
    return rt_schema_build(s, schema, "tools", err) != 0; /* refuses what no schema here may say */
}

static uint32_t raw_value(rt_schema *s, const rt_output_format *f, const json_t *schema,
                          uint32_t next, lb_err *err) {
    rt_grammar *g = s->g;
    const json_t *only = json_object_get(schema, "const");
    const json_t *list = json_object_get(schema, "enum");
    size_t n = json_array_size(list);
    if (!is_plain(s, schema, err)) {
        return 0;
    }
    if (json_is_string(only)) {
        return rt_g_text(g, json_string_value(only), json_string_length(only),
                         rt_g_word(g, f->value_end, next));
    }
    if (n == 0) {
        return raw_until(g, f->value_end, false, next);
    }
    rt_string *words = lb_alloc_n(g->arena, n, sizeof *words, err);
    if (words == NULL) {
        return 0;
    }
    uint32_t end = rt_g_word(g, f->value_end, next);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_string(v)) {
            lb_err_set(err, LB_UNSUPPORTED, "tools: an enum of type string holds something else");
            return 0;
        }
        words[i] = (rt_string){.s = json_string_value(v), .n = json_string_length(v)};
    }
    return rt_schema_words(g, words, n, end);
}

/* The argument `key`, then `next`. */
static uint32_t argument(rt_grammar *g, const rt_output_format *f, rt_schema *s, const char *key,
                         uint32_t next, lb_err *err) {
    const json_t *schema = json_object_get(json_object_get(s->root, "properties"), key);
    const char *type = json_string_value(json_object_get(schema, "type"));
    uint32_t space = rt_schema_space(s);
    uint32_t value = 0;
    next = rt_g_call(g, space, next);
    if (type != NULL && strcmp(type, "string") == 0) {
        value = raw_value(s, f, schema, next, err);
    } else {
        uint32_t rule = rt_schema_build(s, schema, "tools", err);
        value = rule == 0 ? 0 : rt_g_call(g, rule, rt_g_word(g, f->value_end, next));
    }
    if (value == 0) {
        return 0;
    }
    uint32_t n = rt_g_call(g, space, rt_g_word(g, f->value_begin, value));
    return rt_g_word(g, f->key_begin, rt_g_word(g, key, rt_g_word(g, f->key_end, n)));
}

/* A name of an argument, then `next`: no control characters, and nothing that may begin `end`. */
static uint32_t any_key(rt_grammar *g, const char *end, uint32_t next) {
    rt_gset set = {{0, 0, 0, 0}};
    uint8_t first = (uint8_t)end[0];
    rt_gset_add(&set, ' ', 255);
    set.bits[first >> 6] &= ~(UINT64_C(1) << (first & 63U));
    return rt_g_repeat(g, rt_g_set(g, &set, 0), 1, KEY_BYTES_MAX, rt_g_word(g, end, next));
}

/* Any arguments, of a tool that does not name its own. */
static uint32_t any_arguments(rt_grammar *g, const rt_output_format *f, uint32_t space,
                              uint32_t next) {
    uint32_t more = rt_g_place(g);
    uint32_t n = raw_until(g, f->value_end, false, rt_g_call(g, space, more));
    n = rt_g_call(g, space, rt_g_word(g, f->value_begin, n));
    n = rt_g_word(g, f->key_begin, any_key(g, f->key_end, n));
    rt_g_set_place(g, more, n, next);
    return more;
}

/* The arguments that a schema names, in its order. */
static uint32_t arguments_in_order(rt_grammar *g, const rt_output_format *f, rt_schema *s,
                                   const json_t *required, uint32_t next, lb_err *err) {
    const json_t *map = json_object_get(s->root, "properties");
    size_t n = json_object_size(map);
    const char **keys = lb_alloc_n(g->arena, n, sizeof *keys, err);
    const char *key = NULL;
    json_t *v = NULL;
    size_t i = 0;
    if (keys == NULL) {
        return 0;
    }
    json_object_foreach((json_t *)(uintptr_t)map, key, v) {
        keys[i++] = key;
    }
    uint32_t n_optional = 0;
    for (; i > 0; i--) {
        bool needed = json_object_get(required, keys[i - 1]) != NULL;
        uint32_t one = argument(g, f, s, keys[i - 1], next, err);
        n_optional = needed ? 0 : n_optional + 1;
        if (n_optional > RT_SCHEMA_OPTIONAL_MAX) {
            lb_err_set(err, LB_UNSUPPORTED,
                       "tools: the schema has more than %d optional properties in a row",
                       (int)RT_SCHEMA_OPTIONAL_MAX);
            return 0;
        }
        if (one == 0) {
            return 0;
        }
        next = needed ? one : rt_g_either(g, one, next);
    }
    return next;
}

static uint32_t keys_call(rt_grammar *g, const rt_output_format *f, const json_t *tool,
                          uint32_t next, lb_err *err) {
    rt_schema s;
    const json_t *schema = parameters(tool);
    bool any = json_object_size(json_object_get(schema, "properties")) == 0 &&
               !json_is_false(json_object_get(schema, "additionalProperties"));
    if (!rt_schema_init(&s, g, schema, err)) {
        return 0;
    }
    json_t *required = rt_schema_required(schema, "tools", err);
    if (required == NULL) {
        return 0;
    }
    next = any ? any_arguments(g, f, rt_schema_space(&s), next)
               : arguments_in_order(g, f, &s, required, next, err);
    json_decref(required);
    return next == 0 ? 0 : rt_g_word(g, tool_name(tool), rt_g_call(g, rt_schema_space(&s), next));
}

/* ---- all of them */

static uint32_t one_tool(rt_grammar *g, const rt_output_format *f, const json_t *tool,
                         uint32_t space, uint32_t next, lb_err *err) {
    return f->form == RT_CALLS_KEYS ? keys_call(g, f, tool, next, err)
                                    : json_call(g, f, tool, space, next, err);
}

static bool is_marked(const rt_output_format *f) {
    return f->form == RT_CALLS_JSON || f->form == RT_CALLS_KEYS;
}

/* What stands behind the marker that opens a call. */
static uint32_t call_body(rt_grammar *g, const rt_output_format *f, const json_t *tools,
                          const char *name, uint32_t next, lb_err *err) {
    rt_schema s;
    uint32_t all = 0;
    if (!rt_schema_init(&s, g, NULL, err)) {
        return 0;
    }
    uint32_t space = rt_schema_space(&s);
    if (f->call_end != NULL) {
        next = rt_g_word(g, f->call_end, next);
        next = f->form == RT_CALLS_KEYS ? next : rt_g_call(g, space, next);
    }
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *called = tool_name(tool);
        if (called == NULL || (name != NULL && strcmp(name, called) != 0)) {
            continue;
        }
        uint32_t one = one_tool(g, f, tool, space, next, err);
        if (one == 0) {
            return 0;
        }
        all = all == 0 ? one : rt_g_either(g, one, all);
    }
    if (all == 0) {
        lb_err_set(err, LB_BAD_VALUE, "tool_choice: there is no tool '%.60s'",
                   name == NULL ? "" : name);
        return 0;
    }
    return is_marked(f) ? rt_g_call(g, space, all) : all;
}

uint32_t rt_schema_call(rt_grammar *g, const rt_output_format *f, const json_t *tools,
                        const char *name, uint32_t next, lb_err *err) {
    if (!is_marked(f) && f->form != RT_CALLS_BARE) {
        lb_err_set(err, LB_UNSUPPORTED,
                   "tool_choice: this model's calls (%s) cannot be demanded; "
                   "auto and none are supported",
                   f->name);
        return 0;
    }
    uint32_t body = call_body(g, f, tools, name, next, err);
    return body != 0 && f->call_begin != NULL && is_marked(f) ? rt_g_word(g, f->call_begin, body)
                                                              : body;
}

uint32_t rt_schema_text(rt_grammar *g, const rt_output_format *f, const json_t *tools,
                        lb_err *err) {
    if (!is_marked(f) || f->call_begin == NULL) {
        lb_err_set(err, LB_UNSUPPORTED,
                   "tools: strict cannot be guaranteed with this model's calls (%s)", f->name);
        return 0;
    }
    uint32_t text = rt_g_place(g);
    uint32_t body = call_body(g, f, tools, NULL, text, err);
    if (body != 0) {
        rt_g_set_place(g, text, raw_until(g, f->call_begin, true, body), 0);
    }
    return body == 0 ? 0 : text;
}
