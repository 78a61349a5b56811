/* output.h -- takes a model's answer apart while it is made: reasoning, content, calls of tools.
 *
 * A state machine over bytes, driven by the format that the model's recipe names. It is tolerant:
 * what turns out to be no call is content. Text is handed on as soon as it cannot belong to a
 * marker; white space around reasoning, and at the end of content, is dropped (but for runs of more
 * than 16 KiB). Feeding the same bytes in other pieces gives the same events, save where texts of
 * one kind are cut. */
#ifndef RT_CHAT_OUTPUT_H
#define RT_CHAT_OUTPUT_H

#include <jansson.h>

#include "base/arena.h"
#include "chat/render.h"

enum {
    RT_MARKER_BYTES_MAX = 48,
    /* A longer call, as it is spelled, is content: what is buffered has a bound. */
    RT_CALL_BYTES_MAX = (1 << 20) - 1,
    /* The most that a machine takes from its arena, whatever the answer. */
    RT_OUTPUT_ARENA_BYTES = 32 << 20
};

/* How calls are spelled. */
typedef enum rt_call_form {
    RT_CALLS_NONE,
    RT_CALLS_KEYS,    /* call_begin name { key_begin k key_end value_begin v value_end } call_end */
    RT_CALLS_JSON,    /* call_begin {"name": "f", "arguments": {...}} call_end */
    RT_CALLS_BARE,    /* the answer is JSON like that, perhaps behind call_begin; several with ; */
    /* calls_begin { call_begin [type separator] name {...} call_end } calls_end */
    RT_CALLS_NAMED,
    RT_CALLS_CHANNELS /* <|channel|>commentary to=functions.f<|message|>{...}<|call|> */
} rt_call_form;

/* A recipe's words; NULL where a format has none. No marker begins with another one. */
typedef struct rt_output_format rt_output_format;
struct rt_output_format {
    const char *name;
    const char *think_begin, *think_end;
    rt_call_form form;
    const char *call_begin, *call_end;
    const char *calls_begin, *calls_end, *separator;
    const char *key_begin, *key_end, *value_begin, *value_end;
    const char *arguments_key; /* of a JSON call, "arguments" if NULL; both are understood */
    const char *turn_end;      /* ends the answer when spelled in ordinary text */
};

typedef enum rt_event_kind {
    RT_EVENT_REASONING, /* text */
    RT_EVENT_CONTENT,   /* text */
    RT_EVENT_CALL,      /* name, and text = the arguments, a JSON object */
    RT_EVENT_CUT_CALL   /* the answer ended inside a call: text is what was there of it */
} rt_event_kind;

typedef struct rt_event {
    rt_event_kind kind;
    rt_string name, text; /* valid during the call only */
} rt_event;

typedef void (*rt_event_fn)(void *to, const rt_event *event);

typedef struct rt_output rt_output;

/* A machine for one answer, in `arena`, which must live as long and have RT_OUTPUT_ARENA_BYTES to
 * give; what is buffered there (white space, the call that is being read) stays below.
 *   tools   the request's tools, or NULL: without tools nothing is taken for a call. Their schemas
 *           say which arguments are strings, to be kept byte for byte
 *   prompt  what was rendered: its end says whether the answer begins inside reasoning
 * Fails with LB_NO_MEMORY. */
bool rt_output_new(const rt_output_format *format, const json_t *tools, const rt_rendered *prompt,
                   rt_event_fn event, void *to, lb_arena *arena, rt_output **out, lb_err *err);

/* The bytes at the end of the prompt with which the template has opened the answer's reasoning: the
 * marker and white space behind it. 0: the answer does not begin inside reasoning. */
size_t rt_output_opening(const rt_output_format *format, const rt_rendered *prompt);

/* Takes n bytes of the answer, whole characters if events are to be. Fails with LB_NO_MEMORY. */
bool rt_output_feed(rt_output *o, const char *s, size_t n, lb_err *err);

/* True while what comes next is reasoning; true once turn_end was spelled, behind which nothing is
 * read. */
bool rt_output_reasoning(const rt_output *o);
bool rt_output_over(const rt_output *o);

/* The answer is over: hands on what was held back. */
bool rt_output_finish(rt_output *o, lb_err *err);

#endif
