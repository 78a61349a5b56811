/* responses_out.c -- the answer of /v1/responses: items, whole or as numbered events. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/openai.h"
#include "server/responses.h"

enum { ITEM_NONE, ITEM_REASONING, ITEM_MESSAGE, ITEM_CALL };

static int item_of(rt_note_kind kind) {
    return kind == RT_NOTE_REASONING ? ITEM_REASONING
           : kind == RT_NOTE_CALL    ? ITEM_CALL
                                     : ITEM_MESSAGE;
}

/* ---- items */

static const char GOING_ON[] = "in_progress";
static const char WHOLE[] = "completed";
static const char CUT[] = "incomplete";

/* One item: its notes from `n` on (GOING_ON: none of them), up to one of another kind. */
static const rt_note *add_item(rt_ask *a, int kind, uint32_t index, const rt_note *n,
                               const char *status, lb_text *out) {
    bool done = status != GOING_ON;
    static const char *const prefixes[] = {"", "rs", "msg", "fc"};
    static const char *const heads[] = {"", "\"reasoning\",\"summary\":[],\"content\":[",
                                        "\"message\",\"role\":\"assistant\",\"content\":[",
                                        "\"function_call\","};
    lb_text_printf(out, "{\"id\":\"%s_%s_%u\",\"status\":\"%s\",\"type\":%s", prefixes[kind],
                   a->r->id, index, status, heads[kind]);
    if (kind == ITEM_CALL) {
        lb_text_printf(out, "\"call_id\":\"call_%s_%u\",\"name\":", a->r->id, index);
        rt_jo_string(out, n->name.s, n->name.n);
        lb_text_add(out, ",\"arguments\":");
        rt_jo_string(out, n->text.s, done ? n->text.n : 0);
        lb_text_add(out, "}");
        return n->next;
    }
    if (done) {
        lb_text_add(out,
                    kind == ITEM_MESSAGE
                        ? "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\""
                        : "{\"type\":\"reasoning_text\",\"text\":\"");
        for (; n->kind != RT_NOTE_END && item_of(n->kind) == kind; n = n->next) {
            rt_jo_chars(out, n->text.s, n->text.n);
        }
        lb_text_add(out, "\"}");
    }
    lb_text_add(out, "]}");
    return n;
}

static const char *status_of(const rt_ask *a) {
    return a->jobs[0].stop == RT_STOP_LENGTH ? CUT : WHOLE;
}

/* The note behind those of n's item. */
static const rt_note *behind(const rt_note *n) {
    int kind = item_of(n->kind);
    for (n = n->next; kind != ITEM_CALL && n->kind != RT_NOTE_END && item_of(n->kind) == kind;) {
        n = n->next;
    }
    return n;
}

/* All of them, of an answer that is over: the last one is whole if the answer is. */
static void add_items(rt_ask *a, lb_text *out) {
    uint32_t n_items = 0;
    for (const rt_note *n = a->mail.first; n != NULL && n->kind != RT_NOTE_END; n_items++) {
        bool last = behind(n)->kind == RT_NOTE_END;
        lb_text_add(out, n_items == 0 ? "" : ",");
        n = add_item(a, item_of(n->kind), n_items, n, last ? status_of(a) : WHOLE, out);
    }
}

/* ---- the response */

static void add_json(const rt_ask *a, const char *key, const char *otherwise, lb_text *out) {
    const json_t *v = rt_field(a->root, key);
    char *text = v == NULL ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    lb_text_printf(out, ",\"%s\":", key);
    lb_text_add(out, text != NULL ? text : otherwise);
    free(text);
}

static void add_response(rt_ask *a, const char *status, const char *error, bool whole,
                         lb_text *out) {
    bool cut = status == CUT;
    lb_text_printf(out,
                   "{\"id\":\"resp_%s\",\"object\":\"response\",\"created_at\":%" PRId64
                   ",\"status\":\"%s\",\"model\":",
                   a->r->id, a->created, status);
    rt_jo_text(out, a->r->server->config->name);
    lb_text_add(out, ",\"error\":");
    if (error != NULL) {
        lb_text_add(out, "{\"code\":\"server_error\",\"message\":");
        rt_jo_text(out, error);
        lb_text_add(out, "}");
    } else {
        lb_text_add(out, "null");
    }
    lb_text_printf(out, ",\"incomplete_details\":%s,\"output\":[",
                   cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
    if (whole) {
        add_items(a, out);
    }
    lb_text_add(out, "]");
    add_json(a, "instructions", "null", out);
    add_json(a, "max_output_tokens", "null", out);
    add_json(a, "metadata", "{}", out);
    add_json(a, "parallel_tool_calls", "true", out);
    add_json(a, "previous_response_id", "null", out);
    add_json(a, "reasoning", "{\"effort\":null,\"summary\":null}", out);
    add_json(a, "store", "true", out);
    add_json(a, "text", "{\"format\":{\"type\":\"text\"}}", out);
    add_json(a, "tool_choice", "\"auto\"", out);
    add_json(a, "tools", "[]", out);
    lb_text_printf(out,
                   ",\"temperature\":%.6g,\"top_p\":%.6g,\"truncation\":\"disabled\",\"usage\":",
                   (double)a->params.temperature, (double)a->params.top_p);
    if (whole) {
        uint32_t made = rt_ask_generated(a);
        lb_text_printf(out,
                       "{\"input_tokens\":%u,\"input_tokens_details\":{\"cached_tokens\":%u},"
                       "\"output_tokens\":%u,\"output_tokens_details\":{\"reasoning_tokens\":%u},"
                       "\"total_tokens\":%u}}",
                       (uint32_t)a->n_ids, rt_ask_cached(a), made, rt_ask_thought(a),
                       (uint32_t)a->n_ids + made);
    } else {
        lb_text_add(out, "null}");
    }
}

/* ---- what the next turn may refer to */

static bool add_turn(rt_ask *a, json_t *messages) {
    bool any = false;
    rt_string content = rt_ask_text(a, 0, RT_NOTE_CONTENT, &any);
    json_t *m = json_pack("{s:s, s:s%}", "role", "assistant", "content", content.s, content.n);
    rt_string thought = rt_ask_text(a, 0, RT_NOTE_REASONING, &any);
    json_t *calls = json_array();
    uint32_t n_items = 0;
    int last = ITEM_NONE;
    if (any && m != NULL) {
        json_object_set_new(m, "reasoning_content", json_stringn(thought.s, thought.n));
    }
    for (const rt_note *n = a->mail.first; n->kind != RT_NOTE_END; n = n->next) {
        n_items += item_of(n->kind) != last || last == ITEM_CALL;
        last = item_of(n->kind);
        if (n->kind == RT_NOTE_CALL) {
            char id[64];
            snprintf(id, sizeof id, "call_%s_%u", a->r->id, n_items - 1);
            json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s%, s:s%}}", "id", id, "type",
                                                   "function", "function", "name", n->name.s,
                                                   n->name.n, "arguments", n->text.s, n->text.n));
        }
    }
    if (m != NULL && json_array_size(calls) > 0) {
        json_object_set(m, "tool_calls", calls);
    }
    json_decref(calls);
    return m != NULL && json_array_append_new(messages, m) == 0;
}

static void keep(rt_ask *a) {
    bool store = true;
    char id[RT_HISTORY_ID_BYTES];
    lb_err ignored;
    if (!rt_field_bool(a->root, "store", &store, &ignored) || !store || !add_turn(a, a->messages)) {
        return;
    }
    char *text = json_dumps(a->messages, JSON_COMPACT);
    snprintf(id, sizeof id, "resp_%s", a->r->id);
    if (text != NULL) {
        rt_history_put(&a->r->server->history, id, text, strlen(text));
    }
    free(text);
}

/* ---- events */

static void event(rt_ask *a, const char *type, lb_text *out) {
    lb_text_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%u", type, type,
                   a->choices[0].n_events++);
}

static void end_event(lb_text *out) {
    lb_text_add(out, "}\n\n");
}

static void response_event(rt_ask *a, const char *type, const char *status, const char *error,
                           bool whole, lb_text *out) {
    event(a, type, out);
    lb_text_add(out, ",\"response\":");
    add_response(a, status, error, whole, out);
    end_event(out);
}

static void begin(rt_ask *a, lb_text *out) {
    response_event(a, "response.created", GOING_ON, NULL, false, out);
    response_event(a, "response.in_progress", GOING_ON, NULL, false, out);
}

/* ,"item_id":...,"output_index":... of the open item */
static void add_place(const rt_ask *a, lb_text *out) {
    static const char *const prefixes[] = {"", "rs", "msg", "fc"};
    const rt_choice *c = &a->choices[0];
    lb_text_printf(out, ",\"item_id\":\"%s_%s_%u\",\"output_index\":%u", prefixes[c->open],
                   a->r->id, c->n_blocks - 1, c->n_blocks - 1);
}

static void item_event(rt_ask *a, const char *type, const rt_note *n, const char *status,
                       lb_text *out) {
    const rt_choice *c = &a->choices[0];
    event(a, type, out);
    lb_text_printf(out, ",\"output_index\":%u,\"item\":", c->n_blocks - 1);
    add_item(a, c->open, c->n_blocks - 1, n, status, out);
    end_event(out);
}

static void add_part(int kind, lb_text *out) {
    lb_text_add(out,
                kind == ITEM_MESSAGE
                    ? "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\""
                    : "{\"type\":\"reasoning_text\",\"text\":\"");
}

/* All text of the open item, which began with a->item. */
static void add_whole_text(rt_ask *a, lb_text *out) {
    for (const rt_note *n = a->item;
         n != NULL && n->kind != RT_NOTE_END && item_of(n->kind) == a->choices[0].open;
         n = n->next) {
        rt_jo_chars(out, n->text.s, n->text.n);
    }
}

static void part_event(rt_ask *a, const char *type, bool done, lb_text *out) {
    event(a, type, out);
    add_place(a, out);
    lb_text_add(out, ",\"content_index\":0,\"part\":");
    add_part(a->choices[0].open, out);
    if (done) {
        add_whole_text(a, out);
    }
    lb_text_add(out, "\"}");
    end_event(out);
}

static void close_item(rt_ask *a, const char *status, lb_text *out) {
    rt_choice *c = &a->choices[0];
    if (c->open == ITEM_MESSAGE || c->open == ITEM_REASONING) {
        event(a,
              c->open == ITEM_MESSAGE ? "response.output_text.done"
                                      : "response.reasoning_text.done",
              out);
        add_place(a, out);
        lb_text_add(out, ",\"content_index\":0,\"logprobs\":[],\"text\":\"");
        add_whole_text(a, out);
        lb_text_add(out, "\"");
        end_event(out);
        part_event(a, "response.content_part.done", true, out);
    }
    if (c->open != ITEM_NONE) {
        item_event(a, "response.output_item.done", a->item, status, out);
    }
    c->open = ITEM_NONE;
}

static void note(rt_ask *a, const rt_note *n, lb_text *out) {
    rt_choice *c = &a->choices[0];
    int kind = item_of(n->kind);
    if (n->kind == RT_NOTE_TOKEN) {
        return;
    }
    if (c->open != kind || kind == ITEM_CALL) {
        close_item(a, WHOLE, out);
        c->open = kind;
        c->n_blocks++;
        a->item = n;
        item_event(a, "response.output_item.added", n, GOING_ON, out);
        if (kind != ITEM_CALL) {
            part_event(a, "response.content_part.added", false, out);
        }
    }
    event(a,
          kind == ITEM_MESSAGE     ? "response.output_text.delta"
          : kind == ITEM_REASONING ? "response.reasoning_text.delta"
                                   : "response.function_call_arguments.delta",
          out);
    add_place(a, out);
    lb_text_add(out, kind == ITEM_CALL ? ",\"delta\":"
                                       : ",\"content_index\":0,\"logprobs\":[],\"delta\":");
    rt_jo_string(out, n->text.s, n->text.n);
    end_event(out);
    if (kind == ITEM_CALL) {
        event(a, "response.function_call_arguments.done", out);
        add_place(a, out);
        lb_text_add(out, ",\"name\":");
        rt_jo_string(out, n->name.s, n->name.n);
        lb_text_add(out, ",\"arguments\":");
        rt_jo_string(out, n->text.s, n->text.n);
        end_event(out);
    }
}

static void end_choice(rt_ask *a, uint32_t choice, lb_text *out) {
    (void)choice;
    close_item(a, status_of(a), out);
}

static void finish(rt_ask *a, lb_text *out) {
    const char *status = status_of(a);
    keep(a);
    response_event(a, status == CUT ? "response.incomplete" : "response.completed", status, NULL,
                   true, out);
}

static void fail(rt_ask *a, int status, const char *message, lb_text *out) {
    (void)status;
    response_event(a, "response.failed", "failed", message, false, out);
}

static void whole(rt_ask *a, lb_text *out) {
    keep(a);
    add_response(a, status_of(a), NULL, true, out);
}

const rt_writer rt_responses_writer = {begin,          note, end_choice, finish,
                                       rt_openai_ping, fail, whole,      rt_openai_too_long};

bool rt_responses(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &rt_responses_writer, err);
    return a != NULL && rt_responses_parse(a, err) && rt_ask_run(a, err);
}
