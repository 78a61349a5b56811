/* routes.c -- what is answered, and the small answers: health, models. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "server/anthropic.h"
#include "server/json_out.h"
#include "server/openai.h"
#include "server/page.h"
#include "server/responses.h"
#include "server/server.h"

/* ---- /health */

static bool health(rt_request *r, lb_err *err) {
    static const char *const words[] = {"ok", "stopping", "device lost"};
    int h = atomic_load(&r->server->health);
    (void)err;
    r->status = h == RT_HEALTH_OK ? 200 : 503;
    lb_text_printf(&r->out, "{\"status\":\"%s\",\"running\":%u,\"waiting\":%u}", words[h],
                   atomic_load(&r->server->metrics.running),
                   atomic_load(&r->server->metrics.waiting));
    return true;
}

/* ---- /v1/models */

static void add_time(lb_text *out, int64_t when) {
    struct tm tm = {0};
    char text[32] = "";
    time_t t = (time_t)when;
    if (gmtime_r(&t, &tm) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    rt_jo_text(out, text);
}

static void add_model(const rt_request *r, lb_text *out) {
    const rt_server *s = r->server;
    lb_text_add(out, "{\"id\":");
    rt_jo_text(out, s->config->name);
    if (r->anthropic) {
        lb_text_add(out, ",\"type\":\"model\",\"display_name\":");
        rt_jo_text(out, s->config->name);
        lb_text_add(out, ",\"created_at\":");
        add_time(out, s->started);
    } else {
        lb_text_printf(out, ",\"object\":\"model\",\"created\":%" PRId64 ",\"owned_by\":\"lagen\"",
                       s->started);
    }
    lb_text_printf(out, ",\"max_model_len\":%u,\"max_input_tokens\":%u}", s->model->ctx,
                   s->model->ctx);
}

static bool models(rt_request *r, lb_err *err) {
    (void)err;
    lb_text_add(&r->out, r->anthropic ? "{\"data\":[" : "{\"object\":\"list\",\"data\":[");
    add_model(r, &r->out);
    lb_text_add(&r->out, "]");
    if (r->anthropic) {
        lb_text_add(&r->out, ",\"has_more\":false,\"first_id\":");
        rt_jo_text(&r->out, r->server->config->name);
        lb_text_add(&r->out, ",\"last_id\":");
        rt_jo_text(&r->out, r->server->config->name);
    }
    lb_text_add(&r->out, "}");
    return true;
}

static bool model(rt_request *r, lb_err *err) {
    const char *name = r->path + strlen("/v1/models/");
    if (strcmp(name, r->server->config->name) != 0) {
        r->status = 404;
        return lb_err_set(err, LB_MISSING, "the model '%s' is not here; '%s' is", name,
                          r->server->config->name);
    }
    add_model(r, &r->out);
    return true;
}

/* ---- /metrics */

static bool metrics(rt_request *r, lb_err *err) {
    (void)err;
    r->type = "text/plain; version=0.0.4; charset=utf-8";
    rt_metrics_print(&r->server->metrics, &r->out);
    return true;
}

const rt_route rt_routes[] = {
    {"GET", "/", rt_page, true},
    {"GET", "/health", health, true},
    {"GET", "/v1/models", models, false},
    {"GET", "/v1/models/*", model, false},
    {"GET", "/metrics", metrics, false},
    {"POST", "/v1/chat/completions", rt_openai_chat, false},
    {"POST", "/v1/responses", rt_responses, false},
    {"POST", "/v1/completions", rt_openai_completions, false},
    {"POST", "/tokenize", rt_words_tokenize, false},
    {"POST", "/detokenize", rt_words_detokenize, false},
    {"POST", "/apply-template", rt_words_apply_template, false},
    {"POST", "/v1/messages", rt_anthropic_messages, false},
    {"POST", "/v1/messages/count_tokens", rt_anthropic_count, false},
};
const size_t rt_n_routes = sizeof rt_routes / sizeof rt_routes[0];
