/* output.c -- reasoning and content, and where calls begin; see output.h. */
#include "chat/output.h"

#include <string.h>

#include "chat/output_int.h"

/* Where texts are handed on, and where white space counts as text. */
enum { TEXT_BYTES = 4096, BLANKS_BYTES = 16384 };

void rt_bytes_add(rt_output *o, rt_bytes *b, const char *s, size_t n) {
    if (n > b->cap - b->n && !o->failed) {
        size_t cap = b->cap == 0 ? 256 : b->cap;
        while (cap - b->n < n) {
            cap *= 2; /* bounded by the arena, far below overflow */
        }
        char *p = lb_alloc(o->arena, cap, &o->err);
        o->failed = p == NULL;
        if (p != NULL && b->n > 0) {
            memcpy(p, b->s, b->n);
        }
        b->s = p != NULL ? p : b->s;
        b->cap = p != NULL ? cap : b->cap;
    }
    if (!o->failed && n > 0) {
        memcpy(b->s + b->n, s, n);
        b->n += n;
    }
}

void rt_out_flush(rt_output *o) {
    if (o->text.n > 0 && !o->failed) {
        rt_event e = {.kind = o->kind, .text = {.s = o->text.s, .n = o->text.n}};
        o->event(o->to, &e);
    }
    o->text.n = 0;
}

void rt_out_text(rt_output *o, rt_event_kind kind, char ch) {
    if (kind != o->kind) { /* blanks at the end of a text are dropped */
        rt_out_flush(o);
        o->blanks.n = 0;
        o->kind = kind;
    }
    if (o->text.n >= TEXT_BYTES && ((unsigned char)ch & 0xC0) != 0x80) {
        rt_out_flush(o); /* between characters */
    }
    if (rt_is_blank(ch) && (o->skip_blanks || o->blanks.n < BLANKS_BYTES)) {
        if (!o->skip_blanks) {
            rt_bytes_add(o, &o->blanks, &ch, 1);
        }
        return;
    }
    o->skip_blanks = false;
    o->any_content = o->any_content || kind == RT_EVENT_CONTENT;
    rt_bytes_add(o, &o->text, o->blanks.s, o->blanks.n);
    o->blanks.n = 0;
    rt_bytes_add(o, &o->text, &ch, 1);
}

void rt_out_texts(rt_output *o, rt_event_kind kind, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        rt_out_text(o, kind, s[i]);
    }
}

void rt_out_call(rt_output *o, rt_string name, rt_string arguments) {
    rt_out_flush(o);
    o->blanks.n = 0;
    o->skip_blanks = true;
    if (!o->failed) {
        rt_event e = {.kind = RT_EVENT_CALL, .name = name, .text = arguments};
        o->event(o->to, &e);
    }
}

static void byte(rt_output *o, char ch);

void rt_out_no_call(rt_output *o) {
    char again[RT_MARKER_BYTES_MAX + 1];
    size_t n = o->n_hold < o->raw.n ? o->n_hold : o->raw.n;
    memcpy(again, o->hold, n);
    o->n_hold = 0;
    o->state = RT_OUT_CONTENT;
    rt_out_texts(o, RT_EVENT_CONTENT, o->raw.s, o->raw.n - n);
    o->raw.n = 0;
    /* fewer each time: no deeper than a marker is long */
    for (size_t i = 0; i < n && !o->failed; i++) {
        byte(o, again[i]);
    }
}

int rt_out_match(const rt_output *o, const char *const markers[4]) {
    int found = -2;
    for (int i = 0; i < 4; i++) {
        size_t n = markers[i] == NULL ? 0 : strlen(markers[i]);
        if (n < o->n_hold || memcmp(markers[i], o->hold, o->n_hold) != 0) {
            continue;
        }
        if (n == o->n_hold) {
            return i;
        }
        found = -1;
    }
    return found;
}

/* ---- texts ---- */

static rt_event_kind kind_of_state(const rt_output *o) {
    return o->state == RT_OUT_REASONING ? RT_EVENT_REASONING : RT_EVENT_CONTENT;
}

static void begin_content(rt_output *o) {
    rt_out_flush(o);
    o->blanks.n = 0;
    o->skip_blanks = true;
    o->state = RT_OUT_CONTENT;
}

static void begin_call(rt_output *o) {
    o->raw.n = 0;
    rt_bytes_add(o, &o->raw, o->hold, o->n_hold);
    o->n_hold = 0;
    o->state = RT_OUT_CALL;
    rt_call_begin(o);
}

/* The first thing of an answer is no tag: it is content, blanks included. */
static void leave_start(rt_output *o) {
    o->state = RT_OUT_CONTENT;
    o->skip_blanks = false;
}

/* The marker that opens calls in content, NULL if none may. */
static const char *call_marker(const rt_output *o) {
    bool marked = o->f->form == RT_CALLS_KEYS || o->f->form == RT_CALLS_JSON ||
                  o->f->form == RT_CALLS_NAMED || o->f->form == RT_CALLS_BARE;
    if (!marked || o->tools == NULL) {
        return NULL;
    }
    return o->f->form == RT_CALLS_NAMED ? o->f->calls_begin : o->f->call_begin;
}

/* What a whole marker in `hold` does in the current state. */
static void on_marker(rt_output *o, int which) {
    if (which == 0) { /* think_begin, at the start only */
        o->state = RT_OUT_REASONING;
        o->skip_blanks = true;
        o->blanks.n = 0;
    } else if (which == 1) { /* think_end */
        begin_content(o);
    } else if (which == 2) {
        begin_call(o);
    } else {
        rt_out_flush(o);
        o->state = RT_OUT_DONE;
    }
    o->n_hold = 0;
}

/* A bare call begins where the content begins with a bracket. */
static bool begins_bare_call(const rt_output *o) {
    return o->f->form == RT_CALLS_BARE && o->tools != NULL && o->hold[0] == '{' &&
           o->state != RT_OUT_REASONING && !o->any_content;
}

/* Gives up the first byte of `hold`: it begins no marker. */
static void release(rt_output *o) {
    char ch = o->hold[0];
    if (o->state == RT_OUT_START && !rt_is_blank(ch)) {
        leave_start(o);
    }
    if (o->state == RT_OUT_START) { /* blanks in front of a tag are dropped, others are kept */
        rt_bytes_add(o, &o->blanks, &ch, 1);
    } else {
        rt_out_text(o, kind_of_state(o), ch);
    }
    o->n_hold--;
    memmove(o->hold, o->hold + 1, o->n_hold);
}

static void text_byte(rt_output *o, char ch) {
    o->hold[o->n_hold++] = ch;
    while (o->n_hold > 0 && !o->failed) {
        bool start = o->state == RT_OUT_START;
        const char *const markers[4] = {
            start ? o->f->think_begin : NULL,
            start || o->state == RT_OUT_REASONING ? o->f->think_end : NULL,
            o->state != RT_OUT_REASONING ? call_marker(o) : NULL,
            o->f->turn_end,
        };
        int which = rt_out_match(o, markers);
        if (which >= 0) {
            on_marker(o, which);
            return;
        }
        if (which == -1) {
            return;
        }
        if (o->n_hold == 1 && begins_bare_call(o)) {
            begin_call(o);
            return;
        }
        release(o);
    }
}

static void byte(rt_output *o, char ch) {
    switch (o->state) {
    case RT_OUT_DONE: break;
    case RT_OUT_CALL: rt_call_byte(o, ch); break;
    case RT_OUT_HEADER:
    case RT_OUT_BODY: rt_channel_byte(o, ch); break;
    default: text_byte(o, ch); break;
    }
}

bool rt_output_feed(rt_output *o, const char *s, size_t n, lb_err *err) {
    for (size_t i = 0; i < n && !o->failed; i++) {
        byte(o, s[i]);
    }
    rt_out_flush(o);
    if (o->failed) {
        *err = o->err;
    }
    return !o->failed;
}

bool rt_output_reasoning(const rt_output *o) {
    return o->state == RT_OUT_REASONING ||
           (o->state == RT_OUT_BODY && !o->body_call && o->body == RT_EVENT_REASONING);
}

bool rt_output_over(const rt_output *o) {
    return o->state == RT_OUT_DONE;
}

bool rt_output_finish(rt_output *o, lb_err *err) {
    if (o->state == RT_OUT_CALL) {
        rt_call_finish(o);
    } else if (o->state == RT_OUT_HEADER || o->state == RT_OUT_BODY) {
        rt_channel_finish(o);
    }
    while (o->n_hold > 0 && o->state != RT_OUT_DONE && !o->failed) {
        release(o);
    }
    rt_out_flush(o);
    o->state = RT_OUT_DONE;
    if (o->failed) {
        *err = o->err;
    }
    return !o->failed;
}

/* ---- the start ---- */

/* Bytes from where the prompt ends in `marker`, white space aside, in the template's own words; 0: it
 * does not. */
static size_t prompt_ends_in(const rt_rendered *prompt, const char *marker) {
    size_t end = prompt->n_bytes;
    while (end > 0 && rt_is_blank(prompt->text[end - 1])) {
        end--;
    }
    size_t n = marker == NULL ? 0 : strlen(marker);
    if (n == 0 || n > end || memcmp(prompt->text + end - n, marker, n) != 0) {
        return 0;
    }
    const rt_token_span *last = prompt->n_user == 0 ? NULL : &prompt->user[prompt->n_user - 1];
    bool own = last == NULL || last->at + last->n_bytes <= end - n;
    return own ? prompt->n_bytes - (end - n) : 0;
}

size_t rt_output_opening(const rt_output_format *format, const rt_rendered *prompt) {
    return prompt_ends_in(prompt, format->think_begin);
}

static void set_start(rt_output *o, const rt_rendered *prompt) {
    o->kind = RT_EVENT_CONTENT;
    o->state = o->f->form == RT_CALLS_CHANNELS  ? RT_OUT_HEADER
               : o->f->think_end != NULL        ? RT_OUT_START
                                                : RT_OUT_CONTENT;
    if (rt_output_opening(o->f, prompt) > 0) {
        o->state = RT_OUT_REASONING;
        o->kind = RT_EVENT_REASONING;
        o->skip_blanks = true;
    } else if (prompt_ends_in(prompt, o->f->think_end) > 0) {
        o->state = RT_OUT_CONTENT;
        o->skip_blanks = true;
    } else if (o->state == RT_OUT_HEADER && prompt_ends_in(prompt, "<|message|>") > 0) {
        rt_channel_start(o, prompt);
    }
}

bool rt_output_new(const rt_output_format *format, const json_t *tools, const rt_rendered *prompt,
                   rt_event_fn event, void *to, lb_arena *arena, rt_output **out, lb_err *err) {
    rt_output *o = lb_alloc(arena, sizeof *o, err);
    if (o == NULL) {
        return false;
    }
    *o = (rt_output){.f = format, .event = event, .to = to, .arena = arena};
    o->tools = json_array_size(tools) > 0 ? tools : NULL;
    set_start(o, prompt);
    if (o->failed) {
        *err = o->err;
        return false;
    }
    *out = o;
    return true;
}
