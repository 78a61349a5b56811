/* openai_text.c -- POST /v1/completions: OpenAI's older endpoint, a text goes on. Names of special
 * tokens in the prompt stand for the tokens: who asks here writes the template too. */
#include <inttypes.h>
#include <string.h>

#include "base/unicode.h"
#include "server/openai.h"

static const rt_refused REFUSED[] = {
    {"suffix", "the model continues texts"},
    {"echo", "the prompt is the client's already"},
};

/* ---- the request */

static bool read_ids(rt_ask *a, const json_t *list, lb_err *err) {
    size_t n = json_array_size(list);
    uint32_t n_vocab = a->r->server->model->n_vocab;
    uint32_t *ids = lb_alloc_n(&a->r->arena, n, sizeof *ids, err);
    if (ids == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= n_vocab) {
            return lb_err_set(err, LB_BAD_VALUE, "prompt: token %zu must be in 0..%u", i,
                              n_vocab - 1);
        }
        ids[i] = (uint32_t)json_integer_value(v);
    }
    a->ids = ids;
    a->n_ids = n;
    return true;
}

/* A text, tokens, or a list of one of either. */
static bool read_prompt(rt_ask *a, lb_err *err) {
    const json_t *v = rt_field(a->root, "prompt");
    if (json_is_array(v) && !json_is_integer(json_array_get(v, 0))) {
        if (json_array_size(v) != 1) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "prompt: %zu prompts; one at a time is supported",
                              json_array_size(v));
        }
        v = json_array_get(v, 0);
    }
    if (json_is_array(v)) {
        return read_ids(a, v, err);
    }
    if (!json_is_string(v)) {
        return lb_err_set(err, LB_BAD_TYPE, "prompt: must be a text or an array of tokens");
    }
    a->text = (rt_string){.s = json_string_value(v), .n = json_string_length(v)};
    return true;
}

static bool parse(rt_ask *a, lb_err *err) {
    int64_t best = 1;
    const json_t *format = NULL;
    int64_t probs = -1;
    if (!rt_fields_refuse(a->root, REFUSED, sizeof REFUSED / sizeof REFUSED[0], err) ||
        !read_prompt(a, err) || !rt_ask_sampling(a, err) || !rt_ask_stops(a, "stop", err) ||
        !rt_ask_stream(a, err) || !rt_openai_max_tokens(a, err) ||
        !rt_field_int(a->root, "logprobs", 0, 20, &probs, err) ||
        !rt_field_object(a->root, "response_format", &format, err) ||
        !rt_ask_format(a, format, "response_format", err) ||
        !rt_field_int(a->root, "best_of", 1, RT_MAIL_CHOICES, &best, err)) {
        return false;
    }
    a->n_top = (int32_t)probs;
    if (best != 1 && best != a->n) {
        return lb_err_set(err, LB_UNSUPPORTED, "best_of: not supported; n gives all of them");
    }
    return true;
}

/* ---- logprobs: four lists side by side */

/* Tokens that are no whole characters are named by their bytes, as OpenAI does. */
static void add_name(const rt_ask *a, uint32_t token, lb_text *out) {
    size_t n = 0;
    const char *s = rt_token_text(a->r->server->model->tokenizer, token, &n);
    if (lb_utf8_valid_bytes(s, n) == n) {
        rt_jo_string(out, s, n);
        return;
    }
    lb_text_add(out, "\"bytes:");
    for (size_t i = 0; i < n; i++) {
        lb_text_printf(out, "\\\\x%02x", (unsigned char)s[i]);
    }
    lb_text_add(out, "\"");
}

static double shown(double log_prob) {
    return log_prob < -9999.0 ? -9999.0 : log_prob;
}

typedef struct columns {
    lb_text tokens, probs, top, at;
    uint32_t n;
} columns;

static void columns_init(rt_ask *a, columns *c) {
    *c = (columns){.n = 0};
    lb_text_init(&c->tokens, &a->r->arena);
    lb_text_init(&c->probs, &a->r->arena);
    lb_text_init(&c->top, &a->r->arena);
    lb_text_init(&c->at, &a->r->arena);
}

static void columns_add(rt_ask *a, columns *c, const rt_note *n) {
    rt_choice *choice = &a->choices[n->choice];
    const char *comma = c->n++ == 0 ? "" : ",";
    size_t n_bytes = 0;
    const char *s = rt_token_text(a->r->server->model->tokenizer, n->token.token, &n_bytes);
    lb_text_add(&c->tokens, comma);
    add_name(a, n->token.token, &c->tokens);
    lb_text_add(&c->probs, comma);
    rt_jo_real(&c->probs, shown(n->token.log_prob));
    lb_text_printf(&c->at, "%s%zu", comma, choice->text_at);
    for (size_t i = 0; i < n_bytes; i++) { /* characters, as clients count; by their first bytes */
        choice->text_at += ((unsigned char)s[i] & 0xC0U) != 0x80U;
    }
    lb_text_printf(&c->top, "%s{", comma);
    for (uint32_t i = 0; i < n->n_top; i++) {
        lb_text_add(&c->top, i == 0 ? "" : ",");
        add_name(a, n->top[i].token, &c->top);
        lb_text_add(&c->top, ":");
        rt_jo_real(&c->top, shown(n->top[i].log_prob));
    }
    lb_text_add(&c->top, "}");
}

static void columns_print(const columns *c, lb_text *out) {
    const struct {
        const char *name;
        const lb_text *list;
    } rows[] = {{"{\"tokens\":[", &c->tokens},
                {"],\"token_logprobs\":[", &c->probs},
                {"],\"top_logprobs\":[", &c->top},
                {"],\"text_offset\":[", &c->at}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lb_text_add(out, rows[i].name);
        lb_text_add_n(out, rows[i].list->data, rows[i].list->n_bytes);
        out->failed = out->failed || rows[i].list->failed;
    }
    lb_text_add(out, "]}");
}

/* ---- streams */

static const char *finish_reason(const rt_job *j) {
    return j->stop == RT_STOP_LENGTH ? "length" : "stop";
}

/* One chunk; `token` (may be NULL) is the token that it tells of. */
static void chunk(rt_ask *a, uint32_t choice, rt_string text, const rt_note *token,
                  const char *reason, lb_text *out) {
    columns c;
    lb_text_add(out, "data: ");
    rt_openai_head(a, "cmpl-", "text_completion", out);
    lb_text_printf(out, ",\"choices\":[{\"index\":%u,\"text\":", choice);
    rt_jo_string(out, text.s, text.n);
    lb_text_add(out, ",\"logprobs\":");
    if (token != NULL) {
        columns_init(a, &c);
        columns_add(a, &c, token);
        columns_print(&c, out);
    } else {
        lb_text_add(out, "null");
    }
    lb_text_add(out, ",\"finish_reason\":");
    rt_jo_text(out, reason);
    lb_text_add(out, a->usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

static void begin(rt_ask *a, lb_text *out) {
    (void)a;
    rt_openai_ping(out); /* the head goes out at once; there is no first event */
}

static void note(rt_ask *a, const rt_note *n, lb_text *out) {
    if (n->kind == RT_NOTE_TOKEN) {
        chunk(a, n->choice, (rt_string){.s = "", .n = 0}, n, NULL, out);
    } else {
        chunk(a, n->choice, n->text, NULL, NULL, out);
    }
}

static void end_choice(rt_ask *a, uint32_t choice, lb_text *out) {
    chunk(a, choice, (rt_string){.s = "", .n = 0}, NULL, finish_reason(&a->jobs[choice]), out);
}

static void finish(rt_ask *a, lb_text *out) {
    if (a->usage) {
        lb_text_add(out, "data: ");
        rt_openai_head(a, "cmpl-", "text_completion", out);
        lb_text_add(out, ",\"choices\":[],");
        rt_openai_usage(a, out);
        lb_text_add(out, "}\n\n");
    }
    lb_text_add(out, "data: [DONE]\n\n");
}

/* ---- whole answers */

static void add_logprobs(rt_ask *a, uint32_t choice, lb_text *out) {
    columns c;
    if (a->n_top < 0) {
        lb_text_add(out, "null");
        return;
    }
    columns_init(a, &c);
    for (const rt_note *n = a->mail.first; n != NULL; n = n->next) {
        if (n->choice == choice && n->kind == RT_NOTE_TOKEN) {
            columns_add(a, &c, n);
        }
    }
    columns_print(&c, out);
}

static void whole(rt_ask *a, lb_text *out) {
    rt_openai_head(a, "cmpl-", "text_completion", out);
    lb_text_add(out, ",\"choices\":[");
    for (uint32_t i = 0; i < a->n; i++) {
        bool any = false;
        rt_string s = rt_ask_text(a, i, RT_NOTE_CONTENT, &any);
        lb_text_printf(out, "%s{\"index\":%u,\"text\":", i == 0 ? "" : ",", i);
        rt_jo_string(out, s.s, s.n);
        lb_text_add(out, ",\"logprobs\":");
        add_logprobs(a, i, out);
        lb_text_printf(out, ",\"finish_reason\":\"%s\"}", finish_reason(&a->jobs[i]));
    }
    lb_text_add(out, "],");
    rt_openai_usage(a, out);
    lb_text_add(out, "}");
}

static const rt_writer WRITER = {begin,          note,           end_choice, finish,
                                 rt_openai_ping, rt_openai_fail, whole,      rt_openai_too_long};

bool rt_openai_completions(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &WRITER, err);
    return a != NULL && parse(a, err) && rt_ask_run(a, err);
}
