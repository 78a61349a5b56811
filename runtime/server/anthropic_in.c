/* anthropic_in.c -- Anthropic's request: messages of blocks, system and tools become OpenAI's form,
 * which templates know. No block is dropped: what cannot be told to the model is refused. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/anthropic.h"

static const char BILLING[] = "x-anthropic-billing-header";

static const rt_refused REFUSED[] = {
    {"mcp_servers", "the client must call tools itself"},
    {"container", "there is none"},
    {"compaction", "nothing is taken out of a conversation"},
    {"thread", "the client sends the conversation"},
    {"fallbacks", "there is one model"},
};

/* ---- blocks */

static bool bad_block(const char *where, size_t i, size_t k, const char *what, lb_err *err) {
    return lb_err_set(err, LB_BAD_VALUE, "%s[%zu].content[%zu]: %s", where, i, k, what);
}

static bool push_text(json_t *texts, const json_t *text) {
    return json_array_append(texts, (json_t *)(uintptr_t)text) == 0;
}

static bool no_memory(lb_err *err) {
    return lb_err_set(err, LB_NO_MEMORY, "no memory for the messages");
}

/* A tool that was found: its description as templates show them, which is how the model comes to
 * know of one that was not loaded at first. NULL: there is no such tool. */
static json_t *found_tool(const json_t *tools, const json_t *name) {
    const json_t *tool =
        json_is_string(name) ? json_object_get(tools, json_string_value(name)) : NULL;
    char *text = tool == NULL ? NULL : json_dumps(tool, 0);
    json_t *out = text == NULL ? NULL : json_string(text);
    free(text);
    return out;
}

/* One block of a tool's result. */
static bool add_result(json_t *texts, const json_t *tools, const json_t *block) {
    const json_t *type = json_object_get(block, "type");
    const json_t *text = json_object_get(block, "text");
    if (rt_is_word(type, "tool_reference")) {
        json_t *found = found_tool(tools, json_object_get(block, "tool_name"));
        return found != NULL && json_array_append_new(texts, found) == 0;
    }
    return rt_is_word(type, "text") && json_is_string(text) && push_text(texts, text);
}

/* The text of a tool's result: a text, or blocks. Into a new value. */
static json_t *result_text(const json_t *content, const json_t *tools, size_t i, size_t k,
                           lb_err *err) {
    if (content == NULL || json_is_null(content)) {
        return json_string("");
    }
    if (json_is_string(content)) {
        return json_incref((json_t *)(uintptr_t)content);
    }
    if (!json_is_array(content)) {
        bad_block("messages", i, k, "a result is a text or an array of blocks", err);
        return NULL;
    }
    json_t *texts = json_array();
    for (size_t b = 0; b < json_array_size(content); b++) {
        if (!add_result(texts, tools, json_array_get(content, b))) {
            json_decref(texts);
            bad_block("messages", i, k,
                      "results are texts, or references to tools of this request; others are not "
                      "supported",
                      err);
            return NULL;
        }
    }
    json_t *joined = rt_json_join(texts);
    json_decref(texts);
    if (joined == NULL) {
        no_memory(err);
    }
    return joined;
}

/* One message in the making; texts of a user's turn are flushed before a tool's result. */
typedef struct turn {
    json_t *out;         /* the list of messages */
    const json_t *tools; /* by name: what results may refer to */
    const char *role;
    json_t *texts, *calls, *thoughts;
} turn;

static bool flush(turn *t) {
    bool ok = true;
    if (json_array_size(t->texts) > 0 || json_array_size(t->calls) > 0 ||
        json_array_size(t->thoughts) > 0) {
        json_t *m = json_pack("{s:s, s:o}", "role", t->role, "content", rt_json_join(t->texts));
        ok = m != NULL;
        if (ok && json_array_size(t->calls) > 0) {
            ok = json_object_set(m, "tool_calls", t->calls) == 0;
        }
        if (ok && json_array_size(t->thoughts) > 0) {
            ok = json_object_set_new(m, "reasoning_content", rt_json_join(t->thoughts)) == 0;
        }
        ok = ok && json_array_append(t->out, m) == 0;
        json_decref(m);
    }
    json_array_clear(t->texts);
    json_array_clear(t->calls);
    json_array_clear(t->thoughts);
    return ok;
}

static bool take_tool_use(turn *t, const json_t *block, size_t i, size_t k, lb_err *err) {
    const json_t *id = json_object_get(block, "id");
    const json_t *name = json_object_get(block, "name");
    const json_t *input = json_object_get(block, "input");
    if (!json_is_string(id) || !json_is_string(name) || !json_is_object(input)) {
        return bad_block("messages", i, k, "a tool_use has an id, a name and an input object", err);
    }
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", id, "type", "function", "function",
                             "name", name, "arguments", input);
    return (call != NULL && json_array_append_new(t->calls, call) == 0) || no_memory(err);
}

static bool take_result(turn *t, const json_t *block, size_t i, size_t k, lb_err *err) {
    const json_t *id = json_object_get(block, "tool_use_id");
    if (!json_is_string(id)) {
        return bad_block("messages", i, k, "a tool_result has a tool_use_id", err);
    }
    json_t *text = result_text(json_object_get(block, "content"), t->tools, i, k, err);
    if (text == NULL) {
        return false;
    }
    json_t *m = json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id", id, "content", text);
    return (flush(t) && m != NULL && json_array_append_new(t->out, m) == 0) || no_memory(err);
}

static bool take_thinking(turn *t, const json_t *block, size_t i, size_t k, lb_err *err) {
    const json_t *text = json_object_get(block, "thinking");
    if (!json_is_string(text)) {
        return bad_block("messages", i, k, "a thinking block has its text", err);
    }
    return json_array_append(t->thoughts, (json_t *)(uintptr_t)text) == 0 || no_memory(err);
}

static bool take_block(turn *t, const json_t *block, size_t i, size_t k, lb_err *err) {
    const json_t *type = json_object_get(block, "type");
    bool assistant = strcmp(t->role, "assistant") == 0;
    if (rt_is_word(type, "text")) {
        const json_t *text = json_object_get(block, "text");
        if (!json_is_string(text)) {
            return bad_block("messages", i, k, "a text block has its text", err);
        }
        return push_text(t->texts, text) || no_memory(err);
    }
    if (assistant && rt_is_word(type, "tool_use")) {
        return take_tool_use(t, block, i, k, err);
    }
    if (assistant && rt_is_word(type, "thinking")) {
        return take_thinking(t, block, i, k, err);
    }
    if (!assistant && rt_is_word(type, "tool_result")) {
        return take_result(t, block, i, k, err);
    }
    return lb_err_set(err, LB_UNSUPPORTED,
                      "messages[%zu].content[%zu]: blocks of type '%.40s' are "
                      "not supported in a turn of %s",
                      i, k, json_is_string(type) ? json_string_value(type) : "(none)", t->role);
}

/* ---- messages */

static bool take_message(turn *t, const json_t *message, size_t i, lb_err *err) {
    const json_t *content = json_object_get(message, "content");
    const json_t *role = json_object_get(message, "role");
    t->role = rt_is_word(role, "user")        ? "user"
              : rt_is_word(role, "assistant") ? "assistant"
              : rt_is_word(role, "system")    ? "system"
                                              : NULL;
    if (t->role == NULL) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "messages[%zu].role: must be user, assistant or system", i);
    }
    if (json_is_string(content)) {
        json_t *m = json_pack("{s:s, s:O}", "role", t->role, "content", content);
        return (m != NULL && json_array_append_new(t->out, m) == 0) || no_memory(err);
    }
    if (json_array_size(content) == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "messages[%zu].content: must be a text or blocks", i);
    }
    for (size_t k = 0; k < json_array_size(content); k++) {
        if (!take_block(t, json_array_get(content, k), i, k, err)) {
            return false;
        }
    }
    return flush(t) || no_memory(err);
}

/* A system block of the client's own that changes with every request, and so would keep every
 * prompt from being reused, is left out: it begins with the name of a billing header. */
static bool is_billing(const rt_ask *a, const json_t *text) {
    return !a->r->server->config->keep_billing &&
           strncmp(json_string_value(text), BILLING, sizeof BILLING - 1) == 0;
}

static bool take_system(const rt_ask *a, const json_t *system, json_t *out, lb_err *err) {
    lb_text t;
    lb_text_init(&t, &a->r->arena);
    if (json_is_string(system)) {
        lb_text_add_n(&t, json_string_value(system), json_string_length(system));
    } else if (!json_is_array(system)) {
        return lb_err_set(err, LB_BAD_TYPE, "system: must be a text or an array of text blocks");
    }
    for (size_t i = 0; i < json_array_size(system); i++) {
        const json_t *block = json_array_get(system, i);
        const json_t *text = json_object_get(block, "text");
        if (!rt_is_word(json_object_get(block, "type"), "text") || !json_is_string(text)) {
            return lb_err_set(err, LB_UNSUPPORTED, "system[%zu]: must be a text block", i);
        }
        if (!is_billing(a, text)) {
            lb_text_add(&t, t.n_bytes > 0 ? "\n\n" : "");
            lb_text_add_n(&t, json_string_value(text), json_string_length(text));
        }
    }
    if (!lb_text_done(&t, err)) {
        return false;
    }
    if (t.n_bytes == 0) {
        return true;
    }
    json_t *m = json_pack("{s:s, s:s%}", "role", "system", "content", t.data, t.n_bytes);
    return (m != NULL && json_array_append_new(out, m) == 0) || no_memory(err);
}

/* All messages into `out`. */
static bool take_messages(const rt_ask *a, json_t *out, lb_err *err) {
    const json_t *messages = NULL;
    const json_t *system = rt_field(a->root, "system");
    if (!rt_field_array(a->root, "messages", &messages, err) ||
        (system != NULL && !take_system(a, system, out, err))) {
        return false;
    }
    size_t n = json_array_size(messages);
    if (n == 0) {
        return lb_err_set(err, LB_MISSING, "messages: there must be at least one");
    }
    if (rt_is_word(json_object_get(json_array_get(messages, n - 1), "role"), "assistant")) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "messages: the last one is the assistant's; going on "
                          "with its words is not supported");
    }
    turn t = {.out = out,
              .tools = json_object_get(a->root, "lagen.names"),
              .texts = json_array(),
              .calls = json_array(),
              .thoughts = json_array()};
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = take_message(&t, json_array_get(messages, i), i, err);
        if (ok && json_array_size(t.texts) > 0) {
            ok = false; /* flush could not */
        }
    }
    json_decref(t.texts);
    json_decref(t.calls);
    json_decref(t.thoughts);
    return ok;
}

/* ---- tools */

/* One tool to those that may be called, and unless it is to be loaded later, to those that the
 * template shows. */
static bool take_tool(rt_ask *a, const json_t *tool, size_t i, json_t *shown, lb_err *err) {
    bool later = false;
    const json_t *type = rt_field(tool, "type");
    const json_t *name = json_object_get(tool, "name");
    const json_t *schema = json_object_get(tool, "input_schema");
    const json_t *description = rt_field(tool, "description");
    if (type != NULL && !rt_is_word(type, "custom")) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "tools[%zu]: type '%.60s' is run by Anthropic's "
                          "servers and not supported here",
                          i, json_is_string(type) ? json_string_value(type) : "?");
    }
    if (json_string_length(name) == 0 || !json_is_object(schema)) {
        return lb_err_set(err, LB_BAD_VALUE, "tools[%zu]: a tool has a name and an input_schema",
                          i);
    }
    if (!rt_field_bool(tool, "defer_loading", &later, err)) {
        return lb_err_prefix(err, "tools[%zu]", i);
    }
    json_t *f = json_pack("{s:O}", "name", name);
    if (f != NULL && description != NULL) {
        json_object_set(f, "description", (json_t *)(uintptr_t)description);
    }
    if (f != NULL) {
        json_object_set(f, "parameters", (json_t *)(uintptr_t)schema);
    }
    if (f != NULL && rt_field(tool, "strict") != NULL) {
        json_object_set(f, "strict", json_object_get(tool, "strict"));
    }
    json_t *t = json_pack("{s:s, s:o}", "type", "function", "function", f);
    bool ok = t != NULL && (later || json_array_append(shown, t) == 0) &&
              json_array_append(json_object_get(a->root, "lagen.tools"), t) == 0 &&
              json_object_set(json_object_get(a->root, "lagen.names"), json_string_value(name),
                              t) == 0;
    json_decref(t);
    return ok || no_memory(err);
}

static bool take_choice(rt_ask *a, bool *none, lb_err *err) {
    static const char *const types[] = {"auto", "none", "any", "tool", NULL};
    const json_t *choice = NULL;
    int type = 0;
    bool single = false;
    if (!rt_field_object(a->root, "tool_choice", &choice, err) ||
        !rt_field_word(choice, "type", types, &type, err) ||
        !rt_field_bool(choice, "disable_parallel_tool_use", &single, err)) {
        return false;
    }
    a->one_call = single;
    *none = type == 1;
    a->form.call = type >= 2;
    if (type == 3) {
        a->form.name = json_string_value(json_object_get(choice, "name"));
        if (a->form.name == NULL) {
            return lb_err_set(err, LB_MISSING, "tool_choice: it names no tool");
        }
    }
    return true;
}

static bool take_tools(rt_ask *a, json_t *out, json_t *shown, lb_err *err) {
    const json_t *tools = NULL;
    bool none = false;
    if (!take_choice(a, &none, err) || !rt_field_array(a->root, "tools", &tools, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(tools); i++) {
        if (!take_tool(a, json_array_get(tools, i), i, shown, err)) {
            return false;
        }
    }
    a->tools = none ? NULL : out;
    if (none) { /* the prompt does not offer them, so nothing is called */
        json_array_clear(shown);
    }
    return !a->form.call || json_array_size(out) > 0 ||
           lb_err_set(err, LB_BAD_VALUE, "tool_choice: there are no tools");
}

/* ---- the rest */

static bool take_thinking_mode(rt_ask *a, lb_err *err) {
    static const char *const types[] = {"enabled", "disabled", "adaptive", NULL};
    const json_t *thinking = NULL;
    int type = -1;
    int64_t budget = 0;
    if (!rt_field_object(a->root, "thinking", &thinking, err) ||
        !rt_field_word(thinking, "type", types, &type, err) ||
        !rt_field_int(thinking, "budget_tokens", 1, INT32_MAX, &budget, err)) {
        return false;
    }
    if (type == 0) {
        a->render.thinking = RT_THINKING_ON;
        a->think_budget = budget > 0 ? (uint32_t)budget : a->think_budget;
    } else if (type == 1) {
        a->render.thinking = RT_THINKING_OFF;
    }
    return true;
}

/* effort says how long to think where there is thinking; it switches nothing on. */
static bool take_effort(rt_ask *a, const json_t *config, lb_err *err) {
    rt_thinking before = a->render.thinking;
    bool ok = rt_ask_effort(a, config, "effort", err);
    a->render.thinking = before;
    return ok;
}

static bool take_config(rt_ask *a, lb_err *err) {
    static const rt_refused list[] = {{"task_budget", "max_tokens and thinking's budget are"}};
    const json_t *config = NULL;
    const json_t *format = NULL;
    const json_t *old = NULL;
    if (!rt_field_object(a->root, "output_config", &config, err) ||
        !rt_field_object(a->root, "output_format", &old, err)) {
        return false;
    }
    if (!rt_fields_refuse(config, list, 1, err) || !take_effort(a, config, err) ||
        !rt_field_object(config, "format", &format, err)) {
        return lb_err_prefix(err, "output_config");
    }
    return rt_ask_format(a, format != NULL ? format : old, "output_config", err);
}

/* What the client wants taken out of the conversation before the model sees it: nothing is, so all
 * that can be followed is to keep everything. */
static bool take_edits(const rt_ask *a, lb_err *err) {
    const json_t *management = NULL;
    const json_t *edits = NULL;
    if (!rt_field_object(a->root, "context_management", &management, err) ||
        !rt_field_array(management, "edits", &edits, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(edits); i++) {
        const json_t *edit = json_array_get(edits, i);
        const json_t *type = json_object_get(edit, "type");
        const json_t *keep = json_object_get(edit, "keep");
        const char *name = json_is_string(type) ? json_string_value(type) : "";
        bool all = rt_is_word(keep, "all") || rt_is_word(json_object_get(keep, "type"), "all");
        if (strncmp(name, "clear_thinking_", 15) != 0 || !all) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "context_management.edits[%zu]: '%.40s' is not supported but for "
                              "clear_thinking that keeps all",
                              i, name);
        }
    }
    return true;
}

bool rt_anthropic_parse(rt_ask *a, bool counting, lb_err *err) {
    int64_t max = 0;
    json_t *messages = json_array();
    json_t *tools = json_array();
    json_t *shown = json_array();
    /* They hang in the body from here on, and live as long. */
    bool ok = json_object_set_new(a->root, "lagen.messages", messages) == 0 &&
              json_object_set_new(a->root, "lagen.tools", tools) == 0 &&
              json_object_set_new(a->root, "lagen.shown", shown) == 0 &&
              json_object_set_new(a->root, "lagen.names", json_object()) == 0;
    ok = ok || no_memory(err);
    ok = ok && rt_fields_refuse(a->root, REFUSED, sizeof REFUSED / sizeof REFUSED[0], err) &&
         rt_field_int(a->root, "max_tokens", 1, INT32_MAX, &max, err) &&
         take_tools(a, tools, shown, err) && take_messages(a, messages, err) &&
         take_config(a, err) && take_thinking_mode(a, err) && take_edits(a, err) &&
         rt_ask_chat(a, messages, shown, err) && rt_ask_sampling(a, err) &&
         rt_ask_stops(a, "stop_sequences", err) && rt_ask_stream(a, err);
    if (ok && max == 0 && !counting) {
        return lb_err_set(err, LB_MISSING, "max_tokens: it is required");
    }
    a->max_tokens = (uint32_t)max;
    a->n = 1;
    return ok;
}
