/* fault.c -- errors in the words of OpenAI's and Anthropic's APIs; see server.h. */
#include <string.h>

#include "server/json_out.h"
#include "server/server.h"

typedef struct words {
    int status;
    const char *openai, *anthropic; /* the error's "type" */
} words;

static const words WORDS[] = {
    {400, "invalid_request_error", "invalid_request_error"},
    {401, "authentication_error", "authentication_error"},
    {403, "permission_error", "permission_error"},
    {404, "not_found_error", "not_found_error"},
    {405, "invalid_request_error", "invalid_request_error"},
    {411, "invalid_request_error", "invalid_request_error"},
    {413, "invalid_request_error", "request_too_large"},
    {429, "rate_limit_error", "rate_limit_error"},
    {503, "service_unavailable_error", "overloaded_error"},
};

static const words *words_of(int status) {
    static const words other = {500, "server_error", "api_error"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (WORDS[i].status == status) {
            return &WORDS[i];
        }
    }
    return &other;
}

int rt_fault_status(lb_code code) {
    switch (code) {
    case LB_BAD_FORMAT:
    case LB_BAD_VALUE:
    case LB_BAD_TYPE:
    case LB_BAD_SHAPE:
    case LB_MISSING:
    case LB_DUPLICATE:
    case LB_OVERFLOW:
    case LB_LIMIT:
    case LB_UNSUPPORTED:
    case LB_SYNTAX: return 400;
    case LB_DEVICE_LOST:
    case LB_CANCELLED: return 503;
    default: return 500;
    }
}

/* "name: what is wrong", where name is a field of the request: its length, or 0. */
static size_t param_bytes(const char *message) {
    size_t n = strspn(message, "abcdefghijklmnopqrstuvwxyz_0123456789.[]");
    return n > 0 && message[n] == ':' && message[n + 1] == ' ' ? n : 0;
}

static const char *code_of(int status, const char *message) {
    return status == 401                                       ? "invalid_api_key"
           : strstr(message, "maximum context length") != NULL ? "context_length_exceeded"
                                                               : NULL;
}

void rt_fault_json(bool anthropic, int status, const char *request_id, const char *message,
                   lb_text *out) {
    const words *w = words_of(status);
    size_t n_param = param_bytes(message);
    if (anthropic) {
        lb_text_printf(out,
                       "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":", w->anthropic);
        rt_jo_text(out, message);
        lb_text_printf(out, "},\"request_id\":\"req_%s\"}", request_id);
        return;
    }
    lb_text_add(out, "{\"error\":{\"message\":");
    rt_jo_text(out, message);
    lb_text_printf(out, ",\"type\":\"%s\",\"param\":", w->openai);
    if (status == 400 && n_param > 0) {
        rt_jo_string(out, message, n_param);
    } else {
        lb_text_add(out, "null");
    }
    lb_text_add(out, ",\"code\":");
    rt_jo_text(out, code_of(status, message));
    lb_text_add(out, "}}");
}

void rt_fault(rt_request *r, int status, const lb_err *err) {
    r->status = status != 0 ? status : rt_fault_status(err->code);
    r->type = "application/json";
    r->next = NULL;
    lb_text_init(&r->out, &r->arena);
    rt_fault_json(r->anthropic, r->status, r->id, err->text, &r->out);
}
