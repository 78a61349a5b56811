/* job.h -- one answer: what it is made from, how far it is, and the way of a token from logits to
 * notes.
 *
 * A token is chosen, becomes whole characters, goes through the recogniser of reasoning and calls,
 * and what of it is content through the stop strings. All of that happens on the scheduler's
 * thread, so where an answer ends depends on its tokens alone. */
#ifndef RT_SERVER_JOB_H
#define RT_SERVER_JOB_H

#include "chat/output.h"
#include "server/grammar.h"
#include "server/mail.h"
#include "session.h"

/* Borrowed until RT_NOTE_END. */
typedef struct rt_job_opts {
    const uint32_t *prompt;
    uint32_t n_prompt;  /* 1 .. ctx - 1 */
    uint32_t n_predict; /* 1 .. ctx - n_prompt */
    rt_sample_params params;
    const rt_stop_string *stops; /* cut out of content */
    size_t n_stops;
    const rt_chat_template *chat; /* NULL: text is content as it comes */
    const json_t *tools;          /* calls are looked for if there are any */
    bool one_call;                /* the answer ends after the first one */
    const rt_rendered *rendered;  /* with chat */
    const rt_grammar *grammar;    /* of the answer behind its reasoning; NULL: anything */
    const uint32_t *think_close;  /* tokens that end the thought; forced when the budget is spent */
    uint32_t n_think_close;
    uint32_t think_budget; /* UINT32_MAX: none */
    int32_t n_top;         /* likeliest tokens to tell with each; -1: none */
} rt_job_opts;

typedef struct rt_job rt_job;
struct rt_job {
    rt_job_opts o;
    rt_mail *mail;
    uint32_t choice;

    /* Results, the reader's after RT_NOTE_END. */
    bool failed; /* err says why */
    lb_err err;
    rt_stop_reason stop; /* RT_STOP_INTERRUPT: cancelled */
    size_t stop_index;   /* RT_STOP_STRING: which of o.stops */
    uint32_t n_cached, n_generated, n_thought, n_calls;
    bool any_content;
    double queued_s, started_s, first_s, ended_s; /* rt_seconds; 0: not reached */

    /* The scheduler's. */
    rt_job *next;
    rt_seq *seq;
    uint32_t n_fed; /* tokens of the prompt that are in seq */
    uint32_t token; /* the last one chosen, to be fed */
    uint32_t n_forced;
    bool ended;  /* `stop` is decided */
    bool closed; /* nothing more of the text goes out */
    bool spent;  /* memory for notes ran out */
    rt_sampler sampler;
    rt_stream stream;
    rt_detok detok;
    rt_output *machine;
    rt_gmachine *form;
    float *masked; /* [n_vocab], the scheduler's: logits of tokens that fit */
    char *piece;   /* room for a token's text */
    lb_arena arena;
};

/* Begins the answer in `seq`. LB_BAD_VALUE for parameters out of range, LB_NO_MEMORY. */
bool rt_job_start(rt_job *j, rt_seq *seq, lb_err *err);

/* Chooses the next token from `logits` [n_vocab], sends what became certain, and sets j->ended if
 * that was the last one; otherwise j->token is to be fed. Fails as rt_sampler_pick and with
 * LB_NO_MEMORY. */
bool rt_job_next(rt_job *j, rt_sample_scratch *scratch, const float *logits, lb_err *err);

/* Sends RT_NOTE_END; releases what rt_job_start took. `err` (may be NULL) is why it failed. */
void rt_job_end(rt_job *j, const lb_err *err);

#endif
