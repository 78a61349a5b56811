/* responses_in.c -- the request of /v1/responses: items become messages, and what was said before
 * is looked up by previous_response_id. */
#include <string.h>

#include "chat/json_read.h"
#include "server/responses.h"

static const rt_refused REFUSED[] = {
    {"background", "ask again, or stream"},
    {"prompt", "prompts are not kept here"},
    {"conversation", "previous_response_id is"},
    {"max_tool_calls", "the client runs tools itself"},
    {"context_management", "nothing is taken out of a conversation"},
    {"moderation", "the server judges nothing"},
};

static bool no_memory(lb_err *err) {
    return lb_err_set(err, LB_NO_MEMORY, "no memory for the items");
}

static bool bad_item(size_t i, const char *what, lb_err *err) {
    return lb_err_set(err, LB_BAD_VALUE, "input[%zu]: %s", i, what);
}

/* Content that is a text, or parts of text, as OpenAI's chat has it. */
static json_t *content_of(const json_t *content, size_t i, lb_err *err) {
    if (json_is_string(content)) {
        return json_incref((json_t *)(uintptr_t)content);
    }
    if (content != NULL && !json_is_null(content) && !json_is_array(content)) {
        bad_item(i, "its content must be a text or an array of parts", err);
        return NULL;
    }
    json_t *parts = json_array();
    for (size_t k = 0; k < json_array_size(content); k++) {
        const json_t *part = json_array_get(content, k);
        const json_t *type = json_object_get(part, "type");
        const json_t *text = json_object_get(part, "text");
        bool known = rt_is_word(type, "input_text") || rt_is_word(type, "output_text") ||
                     rt_is_word(type, "text") || rt_is_word(type, "reasoning_text") ||
                     rt_is_word(type, "summary_text");
        if (!known || !json_is_string(text)) {
            json_decref(parts);
            lb_err_set(err, LB_UNSUPPORTED, "input[%zu].content[%zu]: only parts of text are read",
                       i, k);
            return NULL;
        }
        json_array_append_new(parts, json_pack("{s:s, s:O}", "type", "text", "text", text));
    }
    return parts;
}

/* The assistant's message that calls and reasoning belong to: the last one, if it is one. */
static json_t *assistant(json_t *out) {
    json_t *last = json_array_get(out, json_array_size(out) - 1);
    if (!rt_is_word(json_object_get(last, "role"), "assistant")) {
        json_array_append_new(out, json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
        last = json_array_get(out, json_array_size(out) - 1);
    }
    return last;
}

static bool take_call(const json_t *item, size_t i, json_t *out, lb_err *err) {
    const json_t *id = json_object_get(item, "call_id");
    const json_t *name = json_object_get(item, "name");
    const json_t *arguments = json_object_get(item, "arguments");
    if (!json_is_string(id) || !json_is_string(name) || !json_is_string(arguments)) {
        return bad_item(i, "a function_call has a call_id, a name and arguments", err);
    }
    json_t *m = assistant(out);
    json_t *calls = json_object_get(m, "tool_calls");
    if (calls == NULL) {
        json_object_set_new(m, "tool_calls", json_array());
        calls = json_object_get(m, "tool_calls");
    }
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", id, "type", "function", "function",
                             "name", name, "arguments", arguments);
    return (call != NULL && json_array_append_new(calls, call) == 0) || no_memory(err);
}

static bool take_output(const json_t *item, size_t i, json_t *out, lb_err *err) {
    const json_t *id = json_object_get(item, "call_id");
    if (!json_is_string(id) || rt_field(item, "output") == NULL) {
        return bad_item(i, "a function_call_output has a call_id and an output", err);
    }
    json_t *content = content_of(json_object_get(item, "output"), i, err);
    if (content == NULL) {
        return false;
    }
    json_t *m =
        json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id", id, "content", content);
    return (m != NULL && json_array_append_new(out, m) == 0) || no_memory(err);
}

/* Reasoning stands before what it led to: the message that follows takes it. */
static bool take_reasoning(const json_t *item, size_t i, json_t *out, lb_err *err) {
    const json_t *content = rt_field(item, "content");
    content = content != NULL ? content : rt_field(item, "summary");
    if (json_is_string(content)) {
        return bad_item(i, "the content of reasoning is an array of parts", err);
    }
    json_t *parts = content_of(content, i, err);
    if (parts == NULL) {
        return false;
    }
    json_t *texts = json_array();
    for (size_t k = 0; k < json_array_size(parts); k++) {
        json_array_append(texts, json_object_get(json_array_get(parts, k), "text"));
    }
    json_decref(parts);
    bool ok = true;
    if (json_array_size(texts) > 0) {
        json_t *m = json_pack("{s:s, s:s, s:o}", "role", "assistant", "content", "",
                              "reasoning_content", rt_json_join(texts));
        ok = m != NULL && json_array_append_new(out, m) == 0;
    }
    json_decref(texts);
    return ok || no_memory(err);
}

static bool take_message(const json_t *item, size_t i, json_t *out, lb_err *err) {
    const json_t *role = json_object_get(item, "role");
    json_t *content = content_of(json_object_get(item, "content"), i, err);
    if (content == NULL) {
        return false;
    }
    json_t *last = json_array_get(out, json_array_size(out) - 1);
    if (rt_is_word(role, "assistant") && json_object_get(last, "reasoning_content") != NULL &&
        json_string_length(json_object_get(last, "content")) == 0 &&
        json_object_get(last, "tool_calls") == NULL) {
        return json_object_set_new(last, "content", content) == 0 || no_memory(err);
    }
    if (!json_is_string(role)) {
        json_decref(content);
        return bad_item(i, "a message has a role", err);
    }
    json_t *m = json_pack("{s:O, s:o}", "role", role, "content", content);
    return (m != NULL && json_array_append_new(out, m) == 0) || no_memory(err);
}

static bool take_item(const json_t *item, size_t i, json_t *out, lb_err *err) {
    const json_t *type = rt_field(item, "type");
    if (type == NULL || rt_is_word(type, "message")) {
        return take_message(item, i, out, err);
    }
    if (rt_is_word(type, "function_call")) {
        return take_call(item, i, out, err);
    }
    if (rt_is_word(type, "function_call_output")) {
        return take_output(item, i, out, err);
    }
    if (rt_is_word(type, "reasoning")) {
        return take_reasoning(item, i, out, err);
    }
    return lb_err_set(err, LB_UNSUPPORTED, "input[%zu]: items of type '%.40s' are not supported", i,
                      json_is_string(type) ? json_string_value(type) : "(none)");
}

/* What was said before. */
static bool take_past(rt_ask *a, json_t **out, lb_err *err) {
    rt_string id = {0};
    char *text = NULL;
    size_t n = 0;
    if (!rt_field_text(a->root, "previous_response_id", &id, err)) {
        return false;
    }
    if (id.s == NULL) {
        *out = json_array();
        return *out != NULL || no_memory(err);
    }
    if (!rt_history_get(&a->r->server->history, id.s, &a->r->arena, &text, &n, err)) {
        a->r->status = err->code == LB_MISSING ? 404 : 200;
        return false;
    }
    return rt_json_read(text, n, &a->r->arena, out, err);
}

static bool take_input(rt_ask *a, json_t *out, lb_err *err) {
    const json_t *input = rt_field(a->root, "input");
    if (json_is_string(input)) {
        json_t *m = json_pack("{s:s, s:O}", "role", "user", "content", input);
        return (m != NULL && json_array_append_new(out, m) == 0) || no_memory(err);
    }
    if (!json_is_array(input)) {
        return lb_err_set(err, LB_BAD_TYPE, "input: must be a text or an array of items");
    }
    for (size_t i = 0; i < json_array_size(input); i++) {
        if (!take_item(json_array_get(input, i), i, out, err)) {
            return false;
        }
    }
    return true;
}

/* {"type": "function", "name": ...} to {"type": "function", "function": {...}}. */
static bool take_tools(rt_ask *a, json_t *out, lb_err *err) {
    const json_t *tools = NULL;
    if (!rt_field_array(a->root, "tools", &tools, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(tools); i++) {
        json_t *tool = json_array_get(tools, i);
        if (!rt_is_word(json_object_get(tool, "type"), "function") ||
            !json_is_string(json_object_get(tool, "name"))) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "tools[%zu]: only functions with a name are "
                              "supported; the client runs them",
                              i);
        }
        json_t *t = json_pack("{s:s, s:O}", "type", "function", "function", tool);
        if (t == NULL || json_array_append_new(out, t) != 0) {
            return no_memory(err);
        }
    }
    return true;
}

static bool take_choice(rt_ask *a, lb_err *err) {
    const json_t *choice = rt_field(a->root, "tool_choice");
    const json_t *name =
        rt_is_word(rt_field(choice, "type"), "function") ? rt_field(choice, "name") : NULL;
    bool parallel = true;
    if (!rt_field_bool(a->root, "parallel_tool_calls", &parallel, err)) {
        return false;
    }
    a->one_call = !parallel;
    if (choice == NULL || rt_is_word(choice, "auto")) {
        return true;
    }
    if (rt_is_word(choice, "none")) {
        a->tools = NULL;
        return true;
    }
    if (json_array_size(a->tools) == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "tool_choice: there are no tools");
    }
    a->form.call = true;
    a->form.name = json_string_value(name);
    return rt_is_word(choice, "required") || a->form.name != NULL ||
           lb_err_set(err, LB_UNSUPPORTED,
                      "tool_choice: must be auto, none, required or a "
                      "function's name");
}

/* Of what may be included, probabilities are refused; the rest is of tools that do not run here,
 * or reasoning, which is always told. */
static bool take_include(const rt_ask *a, lb_err *err) {
    const json_t *list = NULL;
    if (!rt_field_array(a->root, "include", &list, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (rt_is_word(json_array_get(list, i), "message.output_text.logprobs")) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "include: probabilities are told by /v1/chat/completions");
        }
    }
    return true;
}

static bool take_effort(rt_ask *a, const json_t *reasoning, lb_err *err) {
    return rt_ask_effort(a, reasoning, "effort", err) || lb_err_prefix(err, "reasoning");
}

static bool take_rest(rt_ask *a, lb_err *err) {
    static const char *const truncations[] = {"disabled", NULL};
    static const char *const verbosities[] = {"medium", NULL};
    int64_t max = 0;
    int64_t top = 0;
    int word = 0;
    const json_t *text = NULL;
    const json_t *format = NULL;
    if (!rt_field_int(a->root, "max_output_tokens", 1, INT32_MAX, &max, err) ||
        !rt_field_int(a->root, "top_logprobs", 0, 0, &top, err) ||
        !rt_field_word(a->root, "truncation", truncations, &word, err) ||
        !rt_field_object(a->root, "text", &text, err) ||
        !rt_field_word(text, "verbosity", verbosities, &word, err) ||
        !rt_field_object(text, "format", &format, err) ||
        !rt_ask_format(a, format, "text", err) || !take_include(a, err) ||
        !rt_field_bool(a->root, "store", &(bool){false}, err)) {
        return false;
    }
    a->max_tokens = (uint32_t)max;
    a->n = 1; /* this API has no n */
    return true;
}

bool rt_responses_parse(rt_ask *a, lb_err *err) {
    json_t *messages = NULL;
    json_t *tools = json_array();
    const json_t *reasoning = NULL;
    rt_string instructions = {0};
    if (json_object_set_new(a->root, "lagen.tools", tools) != 0) {
        return no_memory(err);
    }
    if (!rt_fields_refuse(a->root, REFUSED, sizeof REFUSED / sizeof REFUSED[0], err) ||
        !rt_field_text(a->root, "instructions", &instructions, err) ||
        !rt_field_object(a->root, "reasoning", &reasoning, err) || !take_past(a, &messages, err)) {
        return false;
    }
    if (json_object_set_new(a->root, "lagen.messages", messages) != 0 ||
        !take_input(a, messages, err) || !take_tools(a, tools, err)) {
        return err->code != LB_OK ? false : no_memory(err);
    }
    a->messages = messages;
    a->tools = tools;
    json_t *shown = json_deep_copy(messages); /* instructions are of this request alone */
    if (instructions.s != NULL && shown != NULL) {
        json_array_insert_new(
            shown, 0,
            json_pack("{s:s, s:s%}", "role", "system", "content", instructions.s, instructions.n));
    }
    if (shown == NULL || json_object_set_new(a->root, "lagen.shown", shown) != 0) {
        return no_memory(err);
    }
    return take_choice(a, err) && rt_ask_chat(a, shown, a->tools, err) && rt_ask_sampling(a, err) &&
           take_effort(a, reasoning, err) &&
           rt_field_bool(a->root, "stream", &a->stream, err) && take_rest(a, err);
}
