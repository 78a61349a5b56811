/* ask.h -- one request for answers, whatever API it came by: parsed into one form, made by the
 * scheduler, written in the words of its API as it comes or as a whole.
 *
 * A parser (openai_chat.c and others) fills an ask; rt_ask_run does the rest. A writer knows how an
 * API spells an answer and nothing of how it is made. */
#ifndef RT_SERVER_ASK_H
#define RT_SERVER_ASK_H

#include <jansson.h>

#include "server/grammar.h"
#include "server/json_out.h"
#include "server/server.h"

typedef struct rt_ask rt_ask;

typedef struct rt_writer {
    /* Streams, appending to the request's out: the first event; one for a note (never
     * RT_NOTE_END); the end of a choice; the end of all; a sign of life; an error. */
    void (*begin)(rt_ask *a, lb_text *out);
    void (*note)(rt_ask *a, const rt_note *n, lb_text *out);
    void (*end_choice)(rt_ask *a, uint32_t choice, lb_text *out);
    void (*finish)(rt_ask *a, lb_text *out);
    void (*ping)(lb_text *out);
    void (*fail)(rt_ask *a, int status, const char *message, lb_text *out);
    /* The whole answer, from a->mail's notes. */
    void (*whole)(rt_ask *a, lb_text *out);
    /* The budgets that this API's clients understand: more tokens than the context holds. */
    bool (*too_long)(const rt_ask *a, uint32_t n_prompt, lb_err *err);
} rt_writer;

/* What a writer remembers of a choice. */
typedef struct rt_choice {
    int open; /* the block that is open; 0: none */
    uint32_t n_blocks, n_calls, n_events;
    lb_text held; /* tokens' probabilities that go with the next text */
    uint32_t n_held;
    size_t text_at; /* characters of text so far */
} rt_choice;

struct rt_ask {
    rt_request *r;
    const rt_writer *writer;
    json_t *root;        /* the body */
    json_t *messages;    /* /v1/responses: the conversation, in the body */
    const rt_note *item; /* and the note that began the open item */

    /* What was asked. */
    bool stream, usage;
    bool is_chat;
    rt_chat chat;
    rt_chat_options render;
    const json_t *tools; /* that may be called; NULL: none */
    bool one_call;
    struct { /* what the answer must be */
        bool json, call;
        const json_t *schema; /* of json; NULL: any object */
        const char *where;    /* the member of the request that says so */
        const char *name;     /* of call: the tool; NULL: any */
    } form;
    const rt_grammar *grammar; /* made of it, and of tools that are strict; NULL: anything goes */
    rt_string text;            /* not is_chat: the prompt, or ids */
    bool no_special;           /* of a text: no BOS or EOS is added */
    bool no_parse;             /* of a text: names of special tokens are text */
    const uint32_t *ids;
    size_t n_ids;
    rt_rendered rendered; /* is_chat */
    uint32_t n;           /* choices */
    uint32_t max_tokens;  /* 0: as many as the context holds */
    rt_sample_params params;
    const rt_stop_string *stops;
    size_t n_stops;
    int32_t n_top;               /* -1: no probabilities */
    uint32_t think_budget;       /* UINT32_MAX: none */
    const uint32_t *think_close; /* tokens that end a thought, where there is a budget */
    uint32_t n_think_close;
    int64_t created;

    /* The answer. */
    bool has_mail;
    rt_mail mail;
    rt_job jobs[RT_MAIL_CHOICES];
    rt_choice choices[RT_MAIL_CHOICES];
    uint32_t n_submitted, n_ended;
    const rt_note *seen;
    bool begun, over; /* of a stream */
    double sent_s;
};

/* Reads the body: LB_SYNTAX, LB_BAD_TYPE (an object it must be). The ask is the request's state and
 * is released with it. */
rt_ask *rt_ask_new(rt_request *r, const rt_writer *writer, lb_err *err);

/* Everything after parsing: prompt, budget, jobs, and the reply (or the stream of it). */
bool rt_ask_run(rt_ask *a, lb_err *err);

/* The prompt's tokens into a->ids, within no budget. What rt_chat_render and rt_token_encode fail
 * with. */
bool rt_ask_prompt(rt_ask *a, lb_err *err);

/* The tokens that end a thought, if there is a budget and the model's format has thoughts. */
bool rt_ask_think_close(rt_ask *a, lb_err *err);

/* The form that the answer must have: a member in OpenAI's words (NULL: none), and the grammar of
 * a->form. LB_UNSUPPORTED for what cannot be guaranteed. */
bool rt_ask_format(rt_ask *a, const json_t *format, const char *where, lb_err *err);
bool rt_ask_form(rt_ask *a, lb_err *err);

/* Members that several APIs share: ask_fields.c. */
bool rt_ask_sampling(rt_ask *a, lb_err *err);
bool rt_ask_stops(rt_ask *a, const char *key, lb_err *err);
bool rt_ask_stream(rt_ask *a, lb_err *err);

/* How long to think: a word under `key` of `object`. It makes a budget that the server was given
 * smaller, never larger. */
bool rt_ask_effort(rt_ask *a, const json_t *object, const char *key, lb_err *err);

/* Messages and tools in OpenAI's form; content of other kinds than text, tools of other kinds than
 * functions, and what else templates do not know, are refused. */
bool rt_ask_chat(rt_ask *a, const json_t *messages, const json_t *tools, lb_err *err);

/* What writers print. */
uint32_t rt_ask_generated(const rt_ask *a); /* tokens of all choices */
uint32_t rt_ask_thought(const rt_ask *a);
uint32_t rt_ask_cached(const rt_ask *a);

/* All text of one kind of a choice, joined in the request's arena; *any tells whether there was a
 * note of it. */
rt_string rt_ask_text(rt_ask *a, uint32_t choice, rt_note_kind kind, bool *any);

#endif
