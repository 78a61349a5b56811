/* ask.c -- an answer from its submission to its last byte; see ask.h. */
#include "server/ask.h"

#include <string.h>

#include "chat/json_read.h"

static const double LOOK_EVERY_S = 0.1; /* whether the client is still there */

/* ---- begin and end */

static void cancel_and_wait(rt_ask *a) {
    if (a->n_ended < a->n_submitted) {
        rt_sched_cancel(a->r->server->sched, &a->mail);
    }
    while (a->n_ended < a->n_submitted) {
        const rt_note *n = rt_mail_next(&a->mail, a->seen, 1.0);
        if (n != NULL) {
            a->seen = n;
            a->n_ended += n->kind == RT_NOTE_END;
        }
    }
}

static void log_end(const rt_ask *a) {
    for (uint32_t i = 0; i < a->n_submitted; i++) {
        const rt_job *j = &a->jobs[i];
        bool empty = !j->failed && j->stop == RT_STOP_LENGTH && j->n_thought > 0 &&
                     j->n_calls == 0 && !j->any_content;
        double from = j->queued_s;
        RT_LOG(&a->r->server->log, empty ? "warning" : "info", "answer", RT_LOG_S("id", a->r->id),
               RT_LOG_U("choice", i), RT_LOG_U("prompt", j->o.n_prompt),
               RT_LOG_U("cached", j->n_cached), RT_LOG_U("generated", j->n_generated),
               RT_LOG_U("reasoning", j->n_thought), RT_LOG_U("calls", j->n_calls),
               RT_LOG_T("queued", j->started_s > 0.0 ? j->started_s - from : j->ended_s - from),
               RT_LOG_T("first_token", j->first_s > 0.0 ? j->first_s - from : 0.0),
               RT_LOG_T("took", j->ended_s - from),
               RT_LOG_S("end", j->failed ? "failed" : rt_stop_name(j->stop)),
               RT_LOG_S("note", empty ? "max_tokens ended it inside its reasoning" : NULL));
    }
}

static void free_ask(rt_request *r) {
    rt_ask *a = r->state;
    if (a->has_mail) {
        cancel_and_wait(a);
        log_end(a);
        rt_mail_free(&a->mail);
        atomic_fetch_sub(&r->server->n_owed, 1);
    }
    json_decref(a->root);
}

static bool read_body(rt_ask *a, lb_err *err) {
    rt_request *r = a->r;
    if (r->n_body == 0) {
        return lb_err_set(err, LB_MISSING, "the body is empty; it must be a JSON object");
    }
    if (!rt_json_read(r->body, r->n_body, &r->arena, &a->root, err)) {
        return lb_err_prefix(err, "the body is no JSON that can be read");
    }
    if (!json_is_object(a->root)) {
        return lb_err_set(err, LB_BAD_TYPE, "the body must be a JSON object, not %s",
                          json_is_array(a->root) ? "an array" : "a plain value");
    }
    return true;
}

rt_ask *rt_ask_new(rt_request *r, const rt_writer *writer, lb_err *err) {
    const rt_model *m = r->server->model;
    rt_ask *a = lb_alloc(&r->arena, sizeof *a, err);
    if (a == NULL) {
        return NULL;
    }
    *a = (rt_ask){.r = r,
                  .writer = writer,
                  .n = 1,
                  .n_top = -1,
                  .think_budget = (uint32_t)r->server->config->think_budget,
                  .created = (int64_t)time(NULL)};
    rt_sample_defaults(&m->sampling, &a->params);
    r->state = a;
    r->release = free_ask;
    return read_body(a, err) ? a : NULL;
}

/* ---- what writers print */

uint32_t rt_ask_generated(const rt_ask *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_submitted; i++) {
        n += a->jobs[i].n_generated;
    }
    return n;
}

uint32_t rt_ask_thought(const rt_ask *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_submitted; i++) {
        n += a->jobs[i].n_thought;
    }
    return n;
}

uint32_t rt_ask_cached(const rt_ask *a) {
    return a->jobs[0].n_cached;
}

rt_string rt_ask_text(rt_ask *a, uint32_t choice, rt_note_kind kind, bool *any) {
    lb_text t;
    lb_text_init(&t, &a->r->arena);
    *any = false;
    for (const rt_note *n = a->mail.first; n != NULL; n = n->next) {
        if (n->choice == choice && n->kind == kind) {
            lb_text_add_n(&t, n->text.s, n->text.n);
            *any = true;
        }
    }
    if (!lb_text_done(&t, &a->r->out.err)) {
        a->r->out.failed = true;
        return (rt_string){.s = "", .n = 0};
    }
    return (rt_string){.s = t.data, .n = t.n_bytes};
}

/* ---- streams */

static const char *why_not(const rt_job *j) {
    return j->failed ? j->err.text : "the server is stopping";
}

static int status_of(const rt_job *j) {
    int status = j->failed ? rt_fault_status(j->err.code) : 503;
    return status < 500 ? 500 : status; /* the request was right once it was submitted */
}

static bool ended_badly(const rt_job *j) {
    return j->failed || j->stop == RT_STOP_INTERRUPT;
}

/* One note into the stream. False: the stream is over. */
static bool write_note(rt_ask *a, const rt_note *n) {
    lb_text *out = &a->r->out;
    a->seen = n;
    if (n->kind != RT_NOTE_END) {
        a->writer->note(a, n, out);
        return true;
    }
    a->n_ended++;
    const rt_job *j = &a->jobs[n->choice];
    if (ended_badly(j)) {
        a->writer->fail(a, status_of(j), why_not(j), out);
        return false;
    }
    a->writer->end_choice(a, n->choice, out);
    if (a->n_ended == a->n_submitted) {
        a->writer->finish(a, out);
        return false;
    }
    return true;
}

static bool next_part(rt_request *r) {
    rt_ask *a = r->state;
    if (!a->begun) {
        a->begun = true;
        a->sent_s = rt_seconds();
        a->writer->begin(a, &r->out);
        return true;
    }
    if (a->over) {
        return false;
    }
    const rt_note *n = rt_mail_next(&a->mail, a->seen, LOOK_EVERY_S);
    double now = rt_seconds();
    if (n == NULL) {
        if (rt_request_gone(r)) {
            return false;
        }
        if (now - a->sent_s >= (double)r->server->config->ping_s) {
            a->writer->ping(&r->out);
            a->sent_s = now;
        }
        return true;
    }
    bool more = true;
    for (; n != NULL && more; n = more ? rt_mail_next(&a->mail, n, 0.0) : NULL) {
        more = write_note(a, n);
    }
    a->sent_s = r->out.n_bytes > 0 ? now : a->sent_s;
    a->over = !more;
    return more;
}

/* ---- whole answers */

/* Waits for the end of all choices; false if nobody waits for them any more. */
static bool wait_all(rt_ask *a, lb_err *err) {
    double looked_s = rt_seconds();
    while (a->n_ended < a->n_submitted) {
        const rt_note *n = rt_mail_next(&a->mail, a->seen, LOOK_EVERY_S);
        if (n != NULL) {
            a->seen = n;
            a->n_ended += n->kind == RT_NOTE_END;
        }
        bool look = n == NULL || rt_seconds() - looked_s >= LOOK_EVERY_S;
        if (look && a->n_ended < a->n_submitted) {
            looked_s = rt_seconds();
            if (rt_request_gone(a->r)) {
                a->r->status = 503;
                a->r->left = !atomic_load(&a->r->server->abort);
                return lb_err_set(err, LB_CANCELLED, "the client is gone, or the server stops");
            }
        }
    }
    for (uint32_t i = 0; i < a->n_submitted; i++) {
        if (ended_badly(&a->jobs[i])) {
            a->r->status = status_of(&a->jobs[i]);
            return lb_err_set(err, a->jobs[i].failed ? a->jobs[i].err.code : LB_CANCELLED, "%s",
                              why_not(&a->jobs[i]));
        }
    }
    return true;
}

/* ---- the way through */

static void make_jobs(rt_ask *a) {
    const rt_model *m = a->r->server->model;
    uint32_t room = m->ctx - (uint32_t)a->n_ids;
    for (uint32_t i = 0; i < a->n; i++) {
        rt_job *j = &a->jobs[i];
        j->mail = &a->mail;
        j->choice = i;
        j->o = (rt_job_opts){.prompt = a->ids,
                             .n_prompt = (uint32_t)a->n_ids,
                             .n_predict = a->max_tokens != 0 ? a->max_tokens : room,
                             .params = a->params,
                             .stops = a->stops,
                             .n_stops = a->n_stops,
                             .chat = a->is_chat ? m->chat : NULL,
                             .tools = a->tools,
                             .one_call = a->one_call,
                             .rendered = &a->rendered,
                             .grammar = a->grammar,
                             .think_close = a->think_close,
                             .n_think_close = a->n_think_close,
                             .think_budget = a->think_budget,
                             .n_top = a->n_top};
        j->o.params.seed += i;
    }
}

static bool submit(rt_ask *a, lb_err *err) {
    rt_job *jobs[RT_MAIL_CHOICES];
    rt_request *r = a->r;
    for (uint32_t i = 0; i < a->n; i++) {
        jobs[i] = &a->jobs[i];
    }
    switch (rt_sched_submit(r->server->sched, jobs, a->n)) {
    case RT_SUBMITTED: a->n_submitted = a->n; return true;
    case RT_QUEUE_FULL:
        r->status = 429;
        r->retry_after = "1";
        return lb_err_set(err, LB_LIMIT,
                          "all slots are busy and %u answers wait already; try again "
                          "later",
                          (unsigned)r->server->config->queue);
    case RT_SCHED_LOST:
        r->status = 503;
        return lb_err_set(err, LB_DEVICE_LOST, "the device was lost");
    default:
        r->status = 503;
        r->retry_after = "10";
        return lb_err_set(err, LB_CANCELLED, "the server is stopping");
    }
}

static bool in_budget(const rt_ask *a, lb_err *err) {
    uint64_t ctx = a->r->server->model->ctx;
    if (a->n_ids == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "the prompt is empty");
    }
    if (a->n_ids >= ctx || a->n_ids + a->max_tokens > ctx) {
        uint32_t n = a->n_ids > UINT32_MAX ? UINT32_MAX : (uint32_t)a->n_ids;
        return a->writer->too_long(a, n, err);
    }
    return true;
}

bool rt_ask_run(rt_ask *a, lb_err *err) {
    rt_request *r = a->r;
    if (!rt_ask_prompt(a, err) || !in_budget(a, err) || !rt_ask_think_close(a, err) ||
        !rt_ask_form(a, err) || !rt_mail_init(&a->mail, err)) {
        return false;
    }
    a->has_mail = true;
    atomic_fetch_add(&r->server->n_owed, 1);
    for (uint32_t i = 0; i < a->n; i++) {
        lb_text_init(&a->choices[i].held, &r->arena);
    }
    make_jobs(a);
    if (!submit(a, err)) {
        return false;
    }
    if (a->stream) {
        r->type = "text/event-stream";
        r->next = next_part;
        return true;
    }
    if (!wait_all(a, err)) {
        return false;
    }
    a->writer->whole(a, &r->out);
    return true;
}
