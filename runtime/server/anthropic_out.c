/* anthropic_out.c -- Anthropic's answer: blocks of thinking, text and calls, whole or as events. */
#include <inttypes.h>
#include <string.h>

#include "server/anthropic.h"

enum { BLOCK_NONE, BLOCK_THINKING, BLOCK_TEXT, BLOCK_CALL };

static int block_of(rt_note_kind kind) {
    return kind == RT_NOTE_REASONING ? BLOCK_THINKING
           : kind == RT_NOTE_CALL    ? BLOCK_CALL
                                     : BLOCK_TEXT;
}

/* Ours to make and to believe: it only shows that a thought came from here. */
static void add_signature(const rt_ask *a, lb_text *out) {
    lb_text_printf(out, "\"lagen-%s\"", a->r->id);
}

static const char *stop_reason(const rt_job *j) {
    return j->stop == RT_STOP_LENGTH   ? "max_tokens"
           : j->stop == RT_STOP_STRING ? "stop_sequence"
           : j->n_calls > 0            ? "tool_use"
                                       : "end_turn";
}

static void add_stop(const rt_ask *a, lb_text *out) {
    const rt_job *j = &a->jobs[0];
    lb_text_printf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", stop_reason(j));
    if (j->stop == RT_STOP_STRING) {
        rt_jo_string(out, a->stops[j->stop_index].text, a->stops[j->stop_index].n_bytes);
    } else {
        lb_text_add(out, "null");
    }
}

static void add_usage(const rt_ask *a, uint32_t cached, uint32_t made, uint32_t thought,
                      lb_text *out) {
    lb_text_printf(out,
                   "\"usage\":{\"input_tokens\":%u,\"cache_creation_input_tokens\":0,"
                   "\"cache_read_input_tokens\":%u,\"output_tokens\":%u,"
                   "\"output_tokens_details\":{\"thinking_tokens\":%u}}",
                   (uint32_t)a->n_ids - cached, cached, made, thought);
}

static void add_head(const rt_ask *a, lb_text *out) {
    lb_text_printf(
        out, "{\"id\":\"msg_%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", a->r->id);
    rt_jo_text(out, a->r->server->config->name);
}

static void add_call_head(const rt_ask *a, const rt_note *n, uint32_t index, lb_text *out) {
    lb_text_printf(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%s_%u\",\"name\":", a->r->id, index);
    rt_jo_string(out, n->name.s, n->name.n);
    lb_text_add(out, ",\"input\":");
}

/* ---- events */

static void close_block(rt_ask *a, lb_text *out) {
    rt_choice *c = &a->choices[0];
    if (c->open == BLOCK_NONE) {
        return;
    }
    uint32_t index = c->n_blocks - 1;
    if (c->open == BLOCK_THINKING) {
        lb_text_printf(out,
                       "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
                       "\"index\":%u,\"delta\":{\"type\":\"signature_delta\",\"signature\":",
                       index);
        add_signature(a, out);
        lb_text_add(out, "}}\n\n");
    }
    lb_text_printf(out,
                   "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
                   "\"index\":%u}\n\n",
                   index);
    c->open = BLOCK_NONE;
}

static void open_block(rt_ask *a, const rt_note *n, lb_text *out) {
    rt_choice *c = &a->choices[0];
    close_block(a, out);
    c->open = block_of(n->kind);
    lb_text_printf(out,
                   "event: content_block_start\ndata: {\"type\":\"content_block_start\","
                   "\"index\":%u,\"content_block\":",
                   c->n_blocks++);
    if (c->open == BLOCK_CALL) {
        add_call_head(a, n, c->n_calls++, out);
        lb_text_add(out, "{}}");
    } else {
        lb_text_add(out, c->open == BLOCK_TEXT
                             ? "{\"type\":\"text\",\"text\":\"\"}"
                             : "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    }
    lb_text_add(out, "}\n\n");
}

static void note(rt_ask *a, const rt_note *n, lb_text *out) {
    static const char *const deltas[] = {
        "", "\"thinking_delta\",\"thinking\":", "\"text_delta\",\"text\":",
        "\"input_json_delta\",\"partial_json\":"};
    rt_choice *c = &a->choices[0];
    if (n->kind == RT_NOTE_TOKEN) {
        return;
    }
    if (c->open != block_of(n->kind) || c->open == BLOCK_CALL) {
        open_block(a, n, out);
    }
    lb_text_printf(out,
                   "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
                   "\"index\":%u,\"delta\":{\"type\":%s",
                   c->n_blocks - 1, deltas[c->open]);
    rt_jo_string(out, n->text.s, n->text.n);
    lb_text_add(out, "}}\n\n");
}

static void ping(lb_text *out) {
    lb_text_add(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

static void begin(rt_ask *a, lb_text *out) {
    lb_text_add(out, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    add_head(a, out);
    lb_text_add(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,");
    /* what was cached is known once it has begun: message_delta has it */
    add_usage(a, 0, 0, 0, out);
    lb_text_add(out, "}}\n\n");
    ping(out);
}

static void end_choice(rt_ask *a, uint32_t choice, lb_text *out) {
    (void)choice;
    close_block(a, out);
    lb_text_add(out, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{");
    add_stop(a, out);
    lb_text_add(out, "},");
    add_usage(a, rt_ask_cached(a), rt_ask_generated(a), rt_ask_thought(a), out);
    lb_text_add(out, "}\n\n");
}

static void finish(rt_ask *a, lb_text *out) {
    (void)a;
    lb_text_add(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void fail(rt_ask *a, int status, const char *message, lb_text *out) {
    lb_text_add(out, "event: error\ndata: ");
    rt_fault_json(true, status, a->r->id, message, out);
    lb_text_add(out, "\n\n");
}

/* ---- whole answers */

/* The text of this block: the note's, and those of the notes behind it that belong to it. */
static const rt_note *add_block(rt_ask *a, const rt_note *n, lb_text *out) {
    int kind = block_of(n->kind);
    if (kind == BLOCK_CALL) {
        add_call_head(a, n, a->choices[0].n_calls++, out);
        lb_text_add_n(out, n->text.s, n->text.n); /* a JSON object, as the recogniser promises */
        lb_text_add(out, "}");
        return n->next;
    }
    lb_text_add(out, kind == BLOCK_TEXT ? "{\"type\":\"text\",\"text\":\""
                                        : "{\"type\":\"thinking\",\"thinking\":\"");
    for (; n->kind != RT_NOTE_END && (n->kind == RT_NOTE_TOKEN || block_of(n->kind) == kind);
         n = n->next) {
        if (n->kind != RT_NOTE_TOKEN) {
            rt_jo_chars(out, n->text.s, n->text.n);
        }
    }
    lb_text_add(out, "\"");
    if (kind == BLOCK_THINKING) {
        lb_text_add(out, ",\"signature\":");
        add_signature(a, out);
    }
    lb_text_add(out, "}");
    return n;
}

static void whole(rt_ask *a, lb_text *out) {
    uint32_t n_blocks = 0;
    add_head(a, out);
    lb_text_add(out, ",\"content\":[");
    for (const rt_note *n = a->mail.first; n->kind != RT_NOTE_END;) {
        if (n->kind == RT_NOTE_TOKEN) {
            n = n->next;
            continue;
        }
        lb_text_add(out, n_blocks++ == 0 ? "" : ",");
        n = add_block(a, n, out);
    }
    lb_text_add(out, "],");
    add_stop(a, out);
    lb_text_add(out, ",");
    add_usage(a, rt_ask_cached(a), rt_ask_generated(a), rt_ask_thought(a), out);
    lb_text_add(out, "}");
}

static bool too_long(const rt_ask *a, uint32_t n_prompt, lb_err *err) {
    uint32_t ctx = a->r->server->model->ctx;
    if (n_prompt >= ctx || a->max_tokens == 0) {
        return lb_err_set(err, LB_LIMIT, "prompt is too long: %u tokens > %u maximum", n_prompt,
                          ctx - 1);
    }
    return lb_err_set(err, LB_LIMIT,
                      "input length and `max_tokens` exceed context limit: %u + %u > "
                      "%u, decrease input length or `max_tokens` and try again",
                      n_prompt, a->max_tokens, ctx);
}

const rt_writer rt_anthropic_writer = {begin, note, end_choice, finish,
                                       ping,  fail, whole,      too_long};

bool rt_anthropic_messages(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &rt_anthropic_writer, err);
    return a != NULL && rt_anthropic_parse(a, false, err) && rt_ask_run(a, err);
}

bool rt_anthropic_count(rt_request *r, lb_err *err) {
    rt_ask *a = rt_ask_new(r, &rt_anthropic_writer, err);
    if (a == NULL || !rt_anthropic_parse(a, true, err) || !rt_ask_prompt(a, err)) {
        return false;
    }
    lb_text_printf(&r->out, "{\"input_tokens\":%zu}", a->n_ids);
    return true;
}
