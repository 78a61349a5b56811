/* output_channel.c -- answers in channels (gpt-oss): messages with a header, for reasoning, for
 * tools and for the user; see output.h. The prompt ends in <|start|>assistant, so that an answer
 * begins inside a header. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "chat/output_int.h"

enum { HEADER_BYTES_MAX = 1024 };

/* The word behind `mark` in a header: up to a blank or '<'. */
static rt_string word_behind(rt_string header, const char *mark) {
    rt_string word = {"", 0};
    const char *p = memmem(header.s, header.n, mark, strlen(mark));
    if (p == NULL) {
        return word;
    }
    word.s = p + strlen(mark);
    const char *end = header.s + header.n;
    while (word.s + word.n < end && strchr(" \n\t<", word.s[word.n]) == NULL) {
        word.n++;
    }
    return word;
}

static bool is_word(rt_string word, const char *text) {
    return word.n == strlen(text) && memcmp(word.s, text, word.n) == 0;
}

/* The header is whole: what is the message? */
static void begin_body(rt_output *o) {
    static const char functions[] = "functions.";
    size_t n_functions = sizeof functions - 1;
    rt_string header = rt_bytes_string(&o->raw);
    rt_string to = word_behind(header, "to=");
    bool analysis = is_word(word_behind(header, "<|channel|>"), "analysis");
    if (to.n > n_functions && memcmp(to.s, functions, n_functions) == 0) {
        to.s += n_functions;
        to.n -= n_functions;
    }
    o->body_call = rt_is_call_name(to) && o->tools != NULL;
    o->body = analysis ? RT_EVENT_REASONING : RT_EVENT_CONTENT;
    o->name.n = 0;
    rt_bytes_add(o, &o->name, to.s, to.n);
    o->json.n = 0;
    o->skip_blanks = true;
    o->blanks.n = 0;
    o->state = RT_OUT_BODY;
}

void rt_channel_start(rt_output *o, const rt_rendered *prompt) {
    static const char start[] = "<|start|>";
    size_t n = sizeof start - 1;
    for (size_t at = prompt->n_bytes; at >= n; at--) {
        if (memcmp(prompt->text + at - n, start, n) == 0) {
            rt_bytes_add(o, &o->raw, prompt->text + at, prompt->n_bytes - at);
            begin_body(o);
            o->raw.n = 0;
            return;
        }
    }
}

static void header_byte(rt_output *o, char ch) {
    static const char message[] = "<|message|>";
    size_t n = sizeof message - 1;
    rt_bytes_add(o, &o->raw, &ch, 1);
    if (o->failed) {
        return;
    }
    if (o->raw.n >= n && memcmp(o->raw.s + o->raw.n - n, message, n) == 0) {
        begin_body(o);
    } else if (o->raw.n > HEADER_BYTES_MAX) { /* no header at all */
        rt_out_no_call(o);
    }
}

/* A message to a tool: a call if it is a JSON object, or empty. */
static void end_body(rt_output *o) {
    rt_string json = rt_bytes_string(&o->json);
    if (o->body_call && json.n == 0) {
        json = (rt_string){"{}", 2};
    }
    if (o->body_call && rt_json_is_object(json)) {
        rt_out_call(o, rt_bytes_string(&o->name), json);
    } else {
        rt_out_texts(o, o->body, o->json.s, o->json.n);
    }
    rt_out_flush(o);
    o->blanks.n = 0;
    o->raw.n = 0;
    o->json.n = 0;
    o->n_hold = 0;
    o->state = RT_OUT_HEADER;
}

/* What was read for a call is too long for one: it is the message's text. */
static void no_body_call(rt_output *o) {
    if (o->body_call) {
        o->body_call = false;
        rt_out_texts(o, o->body, o->json.s, o->json.n);
        o->json.n = 0;
    }
}

static void body_byte(rt_output *o, char ch) {
    static const char *const ends[4] = {"<|end|>", "<|return|>", "<|call|>", "<|start|>"};
    o->hold[o->n_hold++] = ch;
    while (o->n_hold > 0) {
        int which = rt_out_match(o, ends);
        if (which >= 0) {
            end_body(o);
            return;
        }
        if (which == -1) {
            return;
        }
        if (o->body_call && o->json.n < RT_CALL_BYTES_MAX) {
            rt_bytes_add(o, &o->json, o->hold, 1);
        } else {
            no_body_call(o);
            rt_out_text(o, o->body, o->hold[0]);
        }
        o->n_hold--;
        memmove(o->hold, o->hold + 1, o->n_hold);
    }
}

void rt_channel_byte(rt_output *o, char ch) {
    if (o->state == RT_OUT_HEADER) {
        header_byte(o, ch);
    } else {
        body_byte(o, ch);
    }
}

void rt_channel_finish(rt_output *o) {
    if (o->state == RT_OUT_HEADER) {
        bool marked = o->raw.n >= 2 && memcmp(o->raw.s, "<|", 2) == 0;
        if (!marked) { /* an answer without any channel */
            rt_out_no_call(o);
        }
        o->n_hold = 0;
        return;
    }
    if (!o->body_call) {
        rt_out_texts(o, o->body, o->hold, o->n_hold);
        o->n_hold = 0;
        return;
    }
    rt_bytes_add(o, &o->json, o->hold, o->n_hold);
    o->n_hold = 0;
    if (rt_json_is_object(rt_bytes_string(&o->json))) { /* only the end marker is missing */
        end_body(o);
        return;
    }
    rt_event e = {.kind = RT_EVENT_CUT_CALL, .name = rt_bytes_string(&o->name), .text =
                  rt_bytes_string(&o->json)};
    rt_out_flush(o);
    if (!o->failed) {
        o->event(o->to, &e);
    }
}
