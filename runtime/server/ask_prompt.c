/* ask_prompt.c -- messages or text to tokens; see ask.h. */
#include <inttypes.h>
#include <string.h>

#include "base/unicode.h"
#include "server/ask.h"
#include "server/fields.h"

enum { LARGE_BYTES = 64 * 1024 }; /* texts that take megabytes to encode go one at a time */

static bool encode(rt_ask *a, const rt_token_input *in, const uint32_t **out, size_t *n_out,
                   lb_err *err) {
    const rt_tokenizer *tok = a->r->server->model->tokenizer;
    rt_token_scratch *scratch = NULL;
    lb_arena work;
    /* A byte that is no UTF-8 is encoded as three. No token stands for less than a byte. */
    bool valid = lb_utf8_valid_bytes(in->text, in->n_bytes) == in->n_bytes;
    size_t most = (valid ? 1 : 3) * in->n_bytes + 1;
    size_t n = 0;
    lb_arena_init(&work, "encoding", UINT64_C(6) << 30);
    uint32_t *ids = lb_alloc_n(&work, most + 2, sizeof *ids, err);
    bool ok = ids != NULL && rt_token_scratch_new(tok, most, &work, &scratch, err) &&
              rt_token_encode(tok, in, scratch, ids, most + 2, &n, err);
    if (ok) {
        uint32_t *kept = lb_alloc_n(&a->r->arena, n, sizeof *kept, err);
        ok = kept != NULL;
        if (ok) {
            memcpy(kept, ids, n * sizeof *kept);
            *out = kept;
            *n_out = n;
        }
    }
    lb_arena_reset(&work);
    return ok;
}

static bool encode_one_at_a_time(rt_ask *a, const rt_token_input *in, lb_err *err) {
    rt_server *s = a->r->server;
    if (in->n_bytes < LARGE_BYTES) {
        return encode(a, in, &a->ids, &a->n_ids, err);
    }
    pthread_mutex_lock(&s->large);
    bool ok = encode(a, in, &a->ids, &a->n_ids, err);
    pthread_mutex_unlock(&s->large);
    return ok;
}

bool rt_ask_prompt(rt_ask *a, lb_err *err) {
    const rt_server *s = a->r->server;
    if (!a->is_chat) {
        rt_token_input in = {.text = a->text.s,
                             .n_bytes = a->text.n,
                             .add_special = !a->no_special,
                             .parse_special = !a->no_parse,
                             .at_most_one = true};
        return a->ids != NULL || encode_one_at_a_time(a, &in, err);
    }
    if (!rt_chat_render(s->model->chat, &s->caps, &a->chat, &a->render, &a->r->arena, &a->rendered,
                        err)) {
        return false;
    }
    rt_token_input in = {.text = a->rendered.text,
                         .n_bytes = a->rendered.n_bytes,
                         .add_special = true,
                         .parse_special = true,
                         .at_most_one = true,
                         .user = a->rendered.user,
                         .n_user = a->rendered.n_user};
    return encode_one_at_a_time(a, &in, err);
}

bool rt_ask_think_close(rt_ask *a, lb_err *err) {
    const rt_chat_template *chat = a->is_chat ? a->r->server->model->chat : NULL;
    const char *end = chat == NULL || chat->output == NULL ? NULL : chat->output->think_end;
    size_t n = 0;
    if (end == NULL || a->think_budget == UINT32_MAX) {
        return true;
    }
    const rt_token_input in = {.text = end, .n_bytes = strlen(end), .parse_special = true};
    if (!encode(a, &in, &a->think_close, &n, err)) {
        return false;
    }
    a->n_think_close = (uint32_t)n;
    return true;
}

static bool only_text(const rt_chat *chat, lb_err *err) {
    for (size_t i = 0; i < chat->n_messages; i++) {
        const rt_message *m = &chat->messages[i];
        for (size_t k = 0; k < m->n_parts; k++) {
            if (strcmp(m->parts[k].type.s, "text") != 0) {
                return lb_err_set(err, LB_UNSUPPORTED,
                                  "messages[%zu].content[%zu]: parts of type "
                                  "'%.40s' are not supported; this model reads text alone",
                                  i, k, m->parts[k].type.s);
            }
        }
    }
    return true;
}

/* What else a message may say, and no template knows. */
static bool only_known(const json_t *messages, lb_err *err) {
    static const rt_refused list[] = {
        {"function_call", "calls are tool_calls"},
        {"audio", "this model reads text alone"},
        {"refusal", "say it as content"},
    };
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!rt_fields_refuse(json_array_get(messages, i), list, sizeof list / sizeof list[0],
                              err)) {
            return lb_err_prefix(err, "messages[%zu]", i);
        }
    }
    return true;
}

static bool bad_tool(size_t i, const char *what, lb_err *err) {
    return lb_err_set(err, LB_BAD_VALUE, "tools[%zu]%s", i, what);
}

/* {"type": "function", "function": {"name": ..}}: what the model is shown and may call. */
static bool only_functions(const json_t *tools, lb_err *err) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const json_t *f = json_object_get(tool, "function");
        const json_t *description = rt_field(f, "description");
        const json_t *parameters = rt_field(f, "parameters");
        if (!rt_is_word(json_object_get(tool, "type"), "function")) {
            return bad_tool(i, ".type: function is what is supported", err);
        }
        if (json_string_length(json_object_get(f, "name")) == 0) {
            return bad_tool(i, ": a function has a name", err);
        }
        if (description != NULL && !json_is_string(description)) {
            return bad_tool(i, ": a function's description is a text", err);
        }
        if (parameters != NULL && !json_is_object(parameters)) {
            return bad_tool(i, ": a function's parameters are a schema, an object", err);
        }
    }
    return true;
}

bool rt_ask_chat(rt_ask *a, const json_t *messages, const json_t *tools, lb_err *err) {
    if (a->r->server->model->chat == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "this model has no chat template; /v1/completions "
                          "continues texts");
    }
    if (json_array_size(messages) == 0) {
        return lb_err_set(err, LB_MISSING, "messages: there must be at least one");
    }
    a->is_chat = true;
    a->render.add_generation_prompt = true;
    rt_chat_init(&a->chat, &a->r->arena);
    return only_functions(tools, err) && rt_chat_add_json(&a->chat, messages, tools, err) &&
           only_text(&a->chat, err) && only_known(messages, err);
}
