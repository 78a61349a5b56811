/* mail.h -- what an answer consists of, on its way from the engine's thread to a connection's.
 *
 * One mailbox serves all answers (choices) of a request. Notes are copied into its arena and stay
 * until it is freed, so the reader walks them without a lock once it has seen them. */
#ifndef RT_SERVER_MAIL_H
#define RT_SERVER_MAIL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "chat/message.h"
#include "sample.h"

typedef enum rt_note_kind {
    RT_NOTE_REASONING, /* text */
    RT_NOTE_CONTENT,   /* text */
    RT_NOTE_CALL,      /* name, text = arguments */
    RT_NOTE_CUT_CALL,  /* text: what was there of a call when the answer ended */
    RT_NOTE_TOKEN,     /* a token was chosen; its text comes in later notes, if at all */
    RT_NOTE_END        /* the last one of a choice; its job is the reader's again */
} rt_note_kind;

typedef struct rt_note rt_note;
struct rt_note {
    rt_note *next;
    rt_note_kind kind;
    uint32_t choice;
    rt_string text, name;
    rt_token_prob token; /* RT_NOTE_TOKEN: the chosen one, and the likeliest ones */
    const rt_token_prob *top;
    uint32_t n_top;
};

enum { RT_MAIL_CHOICES = 16 }; /* of one request */

typedef struct rt_mail {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    lb_arena arena;
    rt_note *first, *last;
    rt_note ends[RT_MAIL_CHOICES];
    uint32_t n_ends;
    atomic_bool cancelled; /* the reader wants no more: jobs end soon, with RT_NOTE_END */
} rt_mail;

/* LB_RESOURCES. Release with rt_mail_free once every job has ended. */
bool rt_mail_init(rt_mail *m, lb_err *err);
void rt_mail_free(rt_mail *m);

/* Appends a copy, texts and list included, and wakes the reader. LB_NO_MEMORY; but RT_NOTE_END, at
 * most RT_MAIL_CHOICES of them, always finds room. */
bool rt_mail_add(rt_mail *m, const rt_note *note, lb_err *err);

/* The note after `seen` (NULL: the first), or NULL when none has come within `seconds`. */
const rt_note *rt_mail_next(rt_mail *m, const rt_note *seen, double seconds);

/* Seconds of CLOCK_MONOTONIC. */
double rt_seconds(void);

#endif
