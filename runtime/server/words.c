/* words.c -- POST /tokenize, /detokenize and /apply-template: what the model reads, without asking
 * it. */
#include <string.h>

#include "server/openai.h"
#include "token/detok.h"

static const rt_writer NONE = {0};

/* A chat if there are messages, otherwise the text under `content` or `prompt`. */
static bool read_words(rt_ask *a, bool *special, lb_err *err) {
    const json_t *messages = NULL;
    const json_t *tools = NULL;
    bool generate = true;
    bool parse = true;
    rt_string text = {0};
    if (!rt_field_array(a->root, "messages", &messages, err) ||
        !rt_field_array(a->root, "tools", &tools, err) ||
        !rt_field_object(a->root, "chat_template_kwargs", &a->render.kwargs, err) ||
        !rt_field_bool(a->root, "add_generation_prompt", &generate, err) ||
        !rt_field_bool(a->root, "add_special", special, err) ||
        !rt_field_bool(a->root, "add_special_tokens", special, err) ||
        !rt_field_bool(a->root, "parse_special", &parse, err) ||
        !rt_field_text(a->root, "content", &text, err) ||
        !rt_field_text(a->root, "prompt", &text, err)) {
        return false;
    }
    if (messages != NULL) {
        bool ok = rt_ask_chat(a, messages, tools, err);
        a->render.add_generation_prompt = generate;
        return ok;
    }
    a->text = text;
    a->no_parse = !parse;
    return text.s != NULL || lb_err_set(err, LB_MISSING,
                                        "content: it is required, or prompt, or "
                                        "messages");
}

static void add_tokens(const rt_ask *a, bool pieces, lb_text *out) {
    lb_text_add(out, "{\"tokens\":[");
    for (size_t i = 0; i < a->n_ids; i++) {
        size_t n = 0;
        lb_text_add(out, i == 0 ? "" : ",");
        if (pieces) {
            const char *s = rt_token_text(a->r->server->model->tokenizer, a->ids[i], &n);
            lb_text_printf(out, "{\"id\":%u,\"piece\":", a->ids[i]);
            rt_jo_string(out, s, n);
            lb_text_add(out, "}");
        } else {
            lb_text_printf(out, "%u", a->ids[i]);
        }
    }
    lb_text_printf(out, "],\"count\":%zu,\"max_model_len\":%u}", a->n_ids,
                   a->r->server->model->ctx);
}

bool rt_words_tokenize(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &NONE, err);
    bool pieces = false;
    bool special = false;
    if (a == NULL || !rt_field_bool(a->root, "with_pieces", &pieces, err) ||
        !read_words(a, &special, err)) {
        return false;
    }
    a->no_special = !a->is_chat && !special;
    if (!rt_ask_prompt(a, err)) {
        return false;
    }
    add_tokens(a, pieces, &r->out);
    return true;
}

bool rt_words_apply_template(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &NONE, err);
    const rt_server *s = r->server;
    bool special = false;
    if (a == NULL || !read_words(a, &special, err)) {
        return false;
    }
    if (!a->is_chat) {
        return lb_err_set(err, LB_MISSING, "messages: they are required");
    }
    if (!rt_chat_render(s->model->chat, &s->caps, &a->chat, &a->render, &r->arena, &a->rendered,
                        err)) {
        return false;
    }
    lb_text_add(&r->out, "{\"prompt\":");
    rt_jo_string(&r->out, a->rendered.text, a->rendered.n_bytes);
    lb_text_add(&r->out, "}");
    return true;
}

bool rt_words_detokenize(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &NONE, err);
    const json_t *tokens = NULL;
    rt_detok d;
    if (a == NULL || !rt_field_array(a->root, "tokens", &tokens, err)) {
        return false;
    }
    if (tokens == NULL) {
        return lb_err_set(err, LB_MISSING, "tokens: they are required");
    }
    const rt_tokenizer *tok = r->server->model->tokenizer;
    char *piece = lb_alloc(&r->arena, rt_detok_max_bytes(tok), err);
    if (piece == NULL) {
        return false;
    }
    rt_detok_init(&d, tok, true, false);
    lb_text_add(&r->out, "{\"content\":\"");
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *v = json_array_get(tokens, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= r->server->model->n_vocab) {
            return lb_err_set(err, LB_BAD_VALUE, "tokens: token %zu must be in 0..%u", i,
                              r->server->model->n_vocab - 1);
        }
        rt_jo_chars(&r->out, piece, rt_detok_push(&d, (uint32_t)json_integer_value(v), piece));
    }
    rt_jo_chars(&r->out, piece, rt_detok_flush(&d, piece));
    lb_text_add(&r->out, "\"}");
    return true;
}
