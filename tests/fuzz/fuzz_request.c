/* fuzz_request.c -- libFuzzer target: any bytes as the body of a request, to every endpoint that
 * reads one. Everything up to the scheduler runs: JSON, fields, messages, template, tokenizer,
 * budgets, schemas; what would be begun is refused as by a full queue. Whatever the bytes, the
 * reply is an error in JSON, or an answer of /tokenize and its like in JSON, in bounded memory. The
 * first byte picks the endpoint. Built and run by run.sh. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chat/json_read.h"
#include "runtime/fake_model.h"
#include "server/anthropic.h"
#include "server/openai.h"
#include "server/responses.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void must(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

/* ---- what the endpoints would reach */

rt_submitted rt_sched_submit(rt_sched *s, rt_job *const *jobs, uint32_t n) {
    must(s == NULL && n >= 1 && n <= RT_MAIL_CHOICES);
    for (uint32_t i = 0; i < n; i++) {
        const rt_job_opts *o = &jobs[i]->o;
        must(o->n_prompt >= 1 && o->n_predict >= 1 && o->n_prompt + o->n_predict <= FAKE_CTX);
        for (uint32_t k = 0; k < o->n_prompt; k++) {
            must(o->prompt[k] < FAKE_N_VOCAB);
        }
    }
    return RT_QUEUE_FULL;
}

void rt_sched_cancel(rt_sched *s, rt_mail *mail) {
    (void)s;
    (void)mail;
}

bool rt_request_gone(const rt_request *r) {
    (void)r;
    return true;
}

const char *rt_stop_name(rt_stop_reason r) {
    (void)r;
    return "";
}

/* ---- one request */

static const rt_output_format FORMATS[] = {
    {.name = "json",
     .think_begin = "<think>",
     .think_end = "</think>",
     .form = RT_CALLS_JSON,
     .call_begin = "<call>",
     .call_end = "</call>"},
    {.name = "keys",
     .form = RT_CALLS_KEYS,
     .call_begin = "<call>",
     .call_end = "</call>",
     .key_begin = "<k>",
     .key_end = "</k>",
     .value_begin = "<v>",
     .value_end = "</v>"},
};

static const rt_handler ENDPOINTS[] = {
    rt_openai_chat,     rt_openai_completions, rt_responses,        rt_anthropic_messages,
    rt_anthropic_count, rt_words_tokenize,     rt_words_detokenize, rt_words_apply_template};
enum { N_ENDPOINTS = sizeof ENDPOINTS / sizeof ENDPOINTS[0] };

static void check_reply(rt_request *r) {
    json_t *reply = NULL;
    lb_err err;
    must(!r->out.failed);
    must(rt_json_read(r->out.data, r->out.n_bytes, &r->arena, &reply, &err));
    must(json_is_object(reply));
    json_decref(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const rt_server_config config = {.name = "fake", .think_budget = 9, .queue = 1};
    rt_model m = lagen_model;
    struct rt_chat_template chat = fake_chat;
    rt_server s = {.model = &m, .config = &config};
    rt_request r = {.server = &s, .id = "0123456789abcdef", .status = 200, .method = "POST"};
    lb_err err = {0};
    if (n_bytes == 0) {
        return 0;
    }
    chat.output = &FORMATS[data[0] / N_ENDPOINTS % 2];
    m.chat = &chat;
    rt_history_init(&s.history);
    pthread_mutex_init(&s.large, NULL);
    rt_log_init(&s.log, -1, false);
    lb_arena_init(&r.arena, "request", UINT64_C(1) << 28);
    lb_text_init(&r.out, &r.arena);
    r.path = "/";
    r.body = malloc(n_bytes);
    must(r.body != NULL);
    memcpy(r.body, data + 1, n_bytes - 1);
    r.body[n_bytes - 1] = '\0';
    r.n_body = n_bytes - 1;
    r.anthropic = data[0] % N_ENDPOINTS == 3;
    if (!ENDPOINTS[data[0] % N_ENDPOINTS](&r, &err)) {
        must(err.code != LB_OK && err.text[0] != '\0');
        rt_fault(&r, r.status == 200 ? 0 : r.status, &err);
        must(r.status >= 400 && r.status < 500);
    }
    check_reply(&r);
    if (r.release != NULL) {
        r.release(&r);
    }
    free(r.body);
    lb_arena_reset(&r.arena);
    rt_history_free(&s.history);
    return 0;
}
