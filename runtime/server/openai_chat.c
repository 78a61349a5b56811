/* openai_chat.c -- POST /v1/chat/completions: OpenAI's request, answer and stream of chunks. */
#include <inttypes.h>
#include <string.h>

#include "server/openai.h"

/* ---- the request */

static const rt_refused REFUSED[] = {
    {"functions", "name them under tools"},
    {"function_call", "use tool_choice"},
    {"audio", "this model writes text"},
    {"web_search_options", "the server looks nothing up"},
    {"moderation", "the server judges nothing"},
    {"echo", "the prompt is the client's already"},
    {"continue_final_message", "an answer begins anew"},
    {"chat_template", "the model's own is used"},
};

bool rt_openai_max_tokens(rt_ask *a, lb_err *err) {
    int64_t old = 0;
    int64_t x = 0;
    if (!rt_field_int(a->root, "max_tokens", 1, INT32_MAX, &old, err) ||
        !rt_field_int(a->root, "max_completion_tokens", 1, INT32_MAX, &x, err)) {
        return false;
    }
    if (old != 0 && x != 0 && old != x) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "max_completion_tokens: %" PRId64 ", and max_tokens "
                          "says %" PRId64,
                          x, old);
    }
    a->max_tokens = (uint32_t)(x != 0 ? x : old);
    return true;
}

static bool read_logprobs(rt_ask *a, lb_err *err) {
    bool on = false;
    int64_t top = 0;
    if (!rt_field_bool(a->root, "logprobs", &on, err) ||
        !rt_field_int(a->root, "top_logprobs", 0, 20, &top, err)) {
        return false;
    }
    if (top > 0 && !on) {
        return lb_err_set(err, LB_BAD_VALUE, "top_logprobs: only with logprobs true");
    }
    a->n_top = on ? (int32_t)top : -1;
    return true;
}

/* Texts of the usual length, all that were made, are what there is. */
static bool read_modalities(const rt_ask *a, lb_err *err) {
    static const char *const verbosities[] = {"medium", NULL};
    const json_t *list = NULL;
    int word = 0;
    int64_t best = 1;
    if (!rt_field_word(a->root, "verbosity", verbosities, &word, err) ||
        !rt_field_int(a->root, "best_of", 1, 1, &best, err) ||
        !rt_field_array(a->root, "modalities", &list, err)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!rt_is_word(json_array_get(list, i), "text")) {
            return lb_err_set(err, LB_UNSUPPORTED, "modalities: this model writes text alone");
        }
    }
    return true;
}

static bool read_format(rt_ask *a, lb_err *err) {
    const json_t *format = NULL;
    return rt_field_object(a->root, "response_format", &format, err) &&
           rt_ask_format(a, format, "response_format", err);
}

/* {"type": "function", "function": {"name": ...}} */
static bool read_named(rt_ask *a, const json_t *choice, lb_err *err) {
    const json_t *name = json_object_get(json_object_get(choice, "function"), "name");
    if (!rt_is_word(json_object_get(choice, "type"), "function") || !json_is_string(name)) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "tool_choice: must be auto, none, required or a "
                          "function's name");
    }
    a->form.name = json_string_value(name);
    return true;
}

/* Which tools may be called: all, or none; and whether one must be. */
static bool read_tool_choice(rt_ask *a, const json_t **tools, lb_err *err) {
    const json_t *choice = rt_field(a->root, "tool_choice");
    bool parallel = true;
    if (!rt_field_array(a->root, "tools", tools, err) ||
        !rt_field_bool(a->root, "parallel_tool_calls", &parallel, err)) {
        return false;
    }
    a->one_call = !parallel;
    if (choice == NULL || rt_is_word(choice, "auto")) {
        return true;
    }
    if (rt_is_word(choice, "none")) {
        *tools = NULL; /* the prompt does not offer them, so nothing is called */
        return true;
    }
    if (json_array_size(*tools) == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "tool_choice: there are no tools");
    }
    a->form.call = true;
    return rt_is_word(choice, "required") || read_named(a, choice, err);
}

static bool parse(rt_ask *a, lb_err *err) {
    const json_t *messages = NULL;
    const json_t *tools = NULL;
    if (!rt_fields_refuse(a->root, REFUSED, sizeof REFUSED / sizeof REFUSED[0], err) ||
        !rt_field_array(a->root, "messages", &messages, err) || !read_tool_choice(a, &tools, err) ||
        !rt_field_object(a->root, "chat_template_kwargs", &a->render.kwargs, err)) {
        return false;
    }
    a->tools = tools;
    return rt_ask_chat(a, messages, tools, err) && rt_ask_sampling(a, err) &&
           rt_ask_stops(a, "stop", err) && rt_ask_stream(a, err) && rt_openai_max_tokens(a, err) &&
           read_logprobs(a, err) && read_format(a, err) && read_modalities(a, err) &&
           rt_ask_effort(a, a->root, "reasoning_effort", err);
}

/* ---- parts of answers */

static const char *finish_reason(const rt_job *j) {
    return j->stop == RT_STOP_LENGTH ? "length" : j->n_calls > 0 ? "tool_calls" : "stop";
}

static void add_bytes(const rt_ask *a, uint32_t token, lb_text *out) {
    size_t n = 0;
    const char *s = rt_token_text(a->r->server->model->tokenizer, token, &n);
    lb_text_add(out, "\"token\":");
    rt_jo_string(out, s, n);
    lb_text_add(out, ",\"bytes\":[");
    for (size_t i = 0; i < n; i++) {
        lb_text_printf(out, "%s%u", i == 0 ? "" : ",", (unsigned char)s[i]);
    }
    lb_text_add(out, "]");
}

static void add_prob(const rt_ask *a, const rt_token_prob *p, lb_text *out) {
    lb_text_add(out, "{");
    add_bytes(a, p->token, out);
    lb_text_add(out, ",\"logprob\":");
    rt_jo_real(out, p->log_prob < -9999.0 ? -9999.0 : p->log_prob);
}

/* One token of logprobs.content. */
static void add_token(const rt_ask *a, const rt_note *n, lb_text *out) {
    add_prob(a, &n->token, out);
    lb_text_add(out, ",\"top_logprobs\":[");
    for (uint32_t i = 0; i < n->n_top; i++) {
        lb_text_add(out, i == 0 ? "" : ",");
        add_prob(a, &n->top[i], out);
        lb_text_add(out, "}");
    }
    lb_text_add(out, "]}");
}

void rt_openai_usage(const rt_ask *a, lb_text *out) {
    uint32_t made = rt_ask_generated(a);
    lb_text_printf(out,
                   "\"usage\":{\"prompt_tokens\":%u,\"completion_tokens\":%u,\"total_tokens\":%u,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%u},"
                   "\"completion_tokens_details\":{\"reasoning_tokens\":%u}}",
                   (uint32_t)a->n_ids, made, (uint32_t)a->n_ids + made, rt_ask_cached(a),
                   rt_ask_thought(a));
}

static void add_call(const rt_ask *a, const rt_note *n, uint32_t index, bool with_index,
                     lb_text *out) {
    lb_text_add(out, "{");
    if (with_index) {
        lb_text_printf(out, "\"index\":%u,", index);
    }
    lb_text_printf(out, "\"id\":\"call_%s_%u_%u\",\"type\":\"function\",\"function\":{\"name\":",
                   a->r->id, n->choice, index);
    rt_jo_string(out, n->name.s, n->name.n);
    lb_text_add(out, ",\"arguments\":");
    rt_jo_string(out, n->text.s, n->text.n);
    lb_text_add(out, "}}");
}

void rt_openai_head(const rt_ask *a, const char *prefix, const char *object, lb_text *out) {
    lb_text_printf(out,
                   "{\"id\":\"%s%s\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":", prefix,
                   a->r->id, object, a->created);
    rt_jo_text(out, a->r->server->config->name);
}

/* ---- streams */

static void chunk_begin(const rt_ask *a, uint32_t choice, lb_text *out) {
    lb_text_add(out, "data: ");
    rt_openai_head(a, "chatcmpl-", "chat.completion.chunk", out);
    lb_text_printf(out, ",\"choices\":[{\"index\":%u,\"delta\":{", choice);
}

/* Closes the delta; the tokens that were held go along. */
static void chunk_end(rt_ask *a, uint32_t choice, const char *reason, lb_text *out) {
    rt_choice *c = &a->choices[choice];
    lb_text_add(out, "},\"logprobs\":");
    if (c->n_held > 0) {
        lb_text_add(out, "{\"content\":[");
        lb_text_add_n(out, c->held.data, c->held.n_bytes);
        lb_text_add(out, "],\"refusal\":null}");
        c->held.n_bytes = 0;
        c->n_held = 0;
    } else {
        lb_text_add(out, "null");
    }
    lb_text_add(out, ",\"finish_reason\":");
    rt_jo_text(out, reason);
    lb_text_add(out, a->usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

static void begin(rt_ask *a, lb_text *out) {
    for (uint32_t i = 0; i < a->n; i++) {
        chunk_begin(a, i, out);
        lb_text_add(out, "\"role\":\"assistant\",\"content\":\"\"");
        chunk_end(a, i, NULL, out);
    }
}

static void note(rt_ask *a, const rt_note *n, lb_text *out) {
    rt_choice *c = &a->choices[n->choice];
    if (n->kind == RT_NOTE_TOKEN) {
        lb_text_add(&c->held, c->n_held++ == 0 ? "" : ",");
        add_token(a, n, &c->held);
        return;
    }
    chunk_begin(a, n->choice, out);
    if (n->kind == RT_NOTE_CALL) {
        lb_text_add(out, "\"tool_calls\":[");
        add_call(a, n, c->n_calls++, true, out);
        lb_text_add(out, "]");
    } else { /* what there is of a call that was cut off is shown as text: nobody runs it */
        lb_text_add(out, n->kind == RT_NOTE_REASONING ? "\"reasoning_content\":" : "\"content\":");
        rt_jo_string(out, n->text.s, n->text.n);
    }
    chunk_end(a, n->choice, NULL, out);
}

static void end_choice(rt_ask *a, uint32_t choice, lb_text *out) {
    chunk_begin(a, choice, out);
    chunk_end(a, choice, finish_reason(&a->jobs[choice]), out);
}

static void finish(rt_ask *a, lb_text *out) {
    if (a->usage) {
        lb_text_add(out, "data: ");
        rt_openai_head(a, "chatcmpl-", "chat.completion.chunk", out);
        lb_text_add(out, ",\"choices\":[],");
        rt_openai_usage(a, out);
        lb_text_add(out, "}\n\n");
    }
    lb_text_add(out, "data: [DONE]\n\n");
}

void rt_openai_ping(lb_text *out) {
    lb_text_add(out, ": ping\n\n");
}

void rt_openai_fail(rt_ask *a, int status, const char *message, lb_text *out) {
    lb_text_add(out, "data: ");
    rt_fault_json(false, status, a->r->id, message, out);
    lb_text_add(out, "\n\n");
}

/* ---- whole answers */

static void add_text(rt_ask *a, uint32_t choice, rt_note_kind kind, const char *key, lb_text *out) {
    bool any = false;
    rt_string s = rt_ask_text(a, choice, kind, &any);
    if (any) {
        lb_text_printf(out, ",\"%s\":", key);
        rt_jo_string(out, s.s, s.n);
    }
}

static void add_content(rt_ask *a, uint32_t choice, lb_text *out) {
    bool any = false;
    bool cut = false;
    rt_string s = rt_ask_text(a, choice, RT_NOTE_CONTENT, &any);
    rt_string c = rt_ask_text(a, choice, RT_NOTE_CUT_CALL, &cut);
    lb_text_add(out, ",\"content\":");
    if (!any && !cut && a->jobs[choice].n_calls > 0) {
        lb_text_add(out, "null");
        return;
    }
    lb_text_add(out, "\"");
    rt_jo_chars(out, s.s, s.n);
    rt_jo_chars(out, c.s, c.n);
    lb_text_add(out, "\"");
}

static void add_calls(rt_ask *a, uint32_t choice, lb_text *out) {
    uint32_t n_calls = 0;
    for (const rt_note *n = a->mail.first; n != NULL; n = n->next) {
        if (n->choice == choice && n->kind == RT_NOTE_CALL) {
            lb_text_add(out, n_calls == 0 ? ",\"tool_calls\":[" : ",");
            add_call(a, n, n_calls++, false, out);
        }
    }
    lb_text_add(out, n_calls > 0 ? "]" : "");
}

static void add_tokens(rt_ask *a, uint32_t choice, lb_text *out) {
    bool first = true;
    if (a->n_top < 0) {
        lb_text_add(out, "null");
        return;
    }
    lb_text_add(out, "{\"content\":[");
    for (const rt_note *n = a->mail.first; n != NULL; n = n->next) {
        if (n->choice == choice && n->kind == RT_NOTE_TOKEN) {
            lb_text_add(out, first ? "" : ",");
            add_token(a, n, out);
            first = false;
        }
    }
    lb_text_add(out, "],\"refusal\":null}");
}

static void whole(rt_ask *a, lb_text *out) {
    rt_openai_head(a, "chatcmpl-", "chat.completion", out);
    lb_text_add(out, ",\"choices\":[");
    for (uint32_t i = 0; i < a->n; i++) {
        lb_text_printf(out, "%s{\"index\":%u,\"message\":{\"role\":\"assistant\"",
                       i == 0 ? "" : ",", i);
        add_content(a, i, out);
        lb_text_add(out, ",\"refusal\":null");
        add_text(a, i, RT_NOTE_REASONING, "reasoning_content", out);
        add_calls(a, i, out);
        lb_text_add(out, "},\"logprobs\":");
        add_tokens(a, i, out);
        lb_text_printf(out, ",\"finish_reason\":\"%s\"}", finish_reason(&a->jobs[i]));
    }
    lb_text_add(out, "],");
    rt_openai_usage(a, out);
    lb_text_add(out, "}");
}

bool rt_openai_too_long(const rt_ask *a, uint32_t n_prompt, lb_err *err) {
    uint32_t ctx = a->r->server->model->ctx;
    if (a->max_tokens == 0 || n_prompt >= ctx) {
        return lb_err_set(
            err, LB_LIMIT,
            "This model's maximum context length is %u tokens. However, "
            "your prompt has %u tokens, and at least one more must fit. Please reduce "
            "its length.",
            ctx, n_prompt);
    }
    return lb_err_set(err, LB_LIMIT,
                      "This model's maximum context length is %u tokens. However, you "
                      "requested %" PRIu64 " tokens (%u in the prompt, %u in the answer). Please "
                      "reduce one of them.",
                      ctx, (uint64_t)n_prompt + a->max_tokens, n_prompt, a->max_tokens);
}

static const rt_writer WRITER = {begin,          note,           end_choice, finish,
                                 rt_openai_ping, rt_openai_fail, whole,      rt_openai_too_long};

bool rt_openai_chat(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &WRITER, err);
    return a != NULL && parse(a, err) && rt_ask_run(a, err);
}
