/* output_int.h -- shared by output.c (texts), output_call.c (calls) and output_channel.c. */
#ifndef RT_CHAT_OUTPUT_INT_H
#define RT_CHAT_OUTPUT_INT_H

#include "chat/output.h"

/* A buffer that is emptied and used again. */
typedef struct rt_bytes {
    char *s;
    size_t n, cap;
} rt_bytes;

typedef enum rt_output_state {
    RT_OUT_START,     /* nothing but white space yet: reasoning may begin */
    RT_OUT_REASONING,
    RT_OUT_CONTENT,
    RT_OUT_CALL,      /* inside a call; `step` says where */
    RT_OUT_HEADER,    /* channels: between messages */
    RT_OUT_BODY,      /* channels: a message's text */
    RT_OUT_DONE       /* behind turn_end: the rest is ignored */
} rt_output_state;

/* Where a call is being read; see output_call.c for the order. */
typedef enum rt_call_step {
    RT_STEP_LIST,      /* between calls of a list */
    RT_STEP_HEAD,      /* type or name, up to the separator or the JSON */
    RT_STEP_JSON_OPEN, /* white space in front of the JSON */
    RT_STEP_JSON,
    RT_STEP_CLOSE,     /* behind the JSON: up to call_end */
    RT_STEP_BETWEEN,   /* bare: behind an object, another one may follow */
    RT_STEP_NAME,      /* keys: the name */
    RT_STEP_NEXT_KEY,  /* keys: white space, then key_begin or call_end */
    RT_STEP_KEY,
    RT_STEP_TO_VALUE,  /* keys: white space, then value_begin */
    RT_STEP_VALUE
} rt_call_step;

struct rt_output {
    const rt_output_format *f;
    const json_t *tools;
    rt_event_fn event;
    void *to;
    lb_arena *arena;
    lb_err err;
    bool failed;
    rt_output_state state;
    rt_call_step step;
    char hold[RT_MARKER_BYTES_MAX + 1]; /* bytes that may begin a marker */
    size_t n_hold;
    bool skip_blanks;      /* drop white space until the next text */
    rt_bytes blanks;       /* white space that is dropped if nothing follows */
    rt_event_kind kind;    /* of `text` */
    rt_bytes text;         /* to be handed on */
    rt_bytes raw;          /* the call that is being read, as it was spelled */
    rt_bytes name, key, value, json, arguments;
    unsigned depth;        /* of brackets in the JSON */
    bool in_string, escaped;
    bool any_content;      /* content has begun */
    rt_event_kind body;    /* channels: what the message is */
    bool body_call;
};

static inline bool rt_is_blank(char ch) {
    return ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r';
}

static inline rt_string rt_bytes_string(const rt_bytes *b) {
    return (rt_string){.s = b->n == 0 ? "" : b->s, .n = b->n};
}

static inline rt_string rt_trimmed(rt_string s) {
    for (; s.n > 0 && rt_is_blank(s.s[0]); s.n--) {
        s.s++;
    }
    while (s.n > 0 && rt_is_blank(s.s[s.n - 1])) {
        s.n--;
    }
    return s;
}

void rt_bytes_add(rt_output *o, rt_bytes *b, const char *s, size_t n);

/* A byte of reasoning or content. */
void rt_out_text(rt_output *o, rt_event_kind kind, char ch);
void rt_out_texts(rt_output *o, rt_event_kind kind, const char *s, size_t n);

/* Hands on the text so far; then a call, or a cut one. */
void rt_out_flush(rt_output *o);
void rt_out_call(rt_output *o, rt_string name, rt_string arguments);

/* What `hold` is, beside up to four markers (NULL: none): the index of the one that it equals, -1
 * if it is the beginning of one, -2 if of none. */
int rt_out_match(const rt_output *o, const char *const markers[4]);

/* What was read was no call: it becomes content, and content goes on with what `hold` has, which
 * may begin a marker of content. */
void rt_out_no_call(rt_output *o);

/* output_call.c: begins a call (its opening marker is in o->raw), takes a byte of one, ends the
 * answer. */
void rt_call_begin(rt_output *o);
void rt_call_byte(rt_output *o, char ch);
void rt_call_finish(rt_output *o);

/* output_channel.c: if the prompt ends inside a message, the answer goes on there. */
void rt_channel_start(rt_output *o, const rt_rendered *prompt);
void rt_channel_byte(rt_output *o, char ch);
void rt_channel_finish(rt_output *o);

/* output_json.c: the bytes of member `key` of a JSON object that is known to be well-formed. */
bool rt_json_member(rt_string object, const char *key, rt_string *out);

/* True if `s` is a JSON object, or any JSON text. Numbers of any size are. */
bool rt_json_is_object(rt_string s);
bool rt_json_is_value(rt_string s);

/* True if `s` can name a function: not empty, and UTF-8. */
bool rt_is_call_name(rt_string s);

/* Appends `s` as a JSON string; bytes that are no UTF-8 become U+FFFD. */
void rt_json_quote(rt_output *o, rt_bytes *to, rt_string s);

/* True if the request has a function of this name. */
bool rt_is_tool(const json_t *tools, rt_string name);

/* True if `value`, given for argument `key` of function `name`, is a text as it stands: it is no
 * JSON, or the schema wants a string, or it allows one and nothing of the kind that `value` is as
 * JSON. */
bool rt_argument_is_text(const json_t *tools, rt_string name, rt_string key, rt_string value);

#endif
