/* sched.h -- one thread that owns the engine: answers in slots, a bounded queue before them.
 *
 * Each step takes one row of every answer that is being made, and rows of prompts beside them: as
 * many as a chunk has when nothing is being made, at most `prompt_rows` otherwise. Where the model
 * computes rows of prompts in another way, these have steps of their own, in turns. Answers are
 * taken first in, first out. An answer whose client went away leaves before the next step. A step
 * that fails is tried again answer by answer, and only those that fail alone are given up; a lost
 * device ends all of them. */
#ifndef RT_SERVER_SCHED_H
#define RT_SERVER_SCHED_H

#include "prefix.h"
#include "prefix_disk.h"
#include "server/job.h"
#include "server/log.h"
#include "server/metrics.h"

typedef struct rt_sched rt_sched;

typedef struct rt_sched_opts {
    uint32_t n_slots;        /* 1 .. model->slots */
    uint32_t prompt_rows;    /* >= 1 */
    uint32_t queue;          /* answers that may wait */
    rt_prefix *store;        /* the scheduler's until rt_sched_stop; NULL: none */
    rt_disk *disk;           /* likewise: the store's files, written while nothing else is to do */
    void (*lost)(void *arg); /* on the scheduler's thread, once: the device is gone */
    void *lost_arg;
} rt_sched_opts;

/* LB_RESOURCES. The engine is the scheduler's until rt_sched_stop. */
bool rt_sched_start(rt_engine *engine, const rt_sched_opts *opts, rt_log *log, rt_metrics *metrics,
                    rt_sched **out, lb_err *err);

/* Cancels what is left, and joins the thread. NULL is allowed. */
void rt_sched_stop(rt_sched *s);

typedef enum rt_submitted {
    RT_SUBMITTED,
    RT_QUEUE_FULL,
    RT_SCHED_STOPPING, /* or stopped */
    RT_SCHED_LOST
} rt_submitted;

/* Takes all n jobs or none; each then ends with one RT_NOTE_END. */
rt_submitted rt_sched_submit(rt_sched *s, rt_job *const *jobs, uint32_t n);

/* Cancels the answers of this mailbox; each still ends with RT_NOTE_END, soon. */
void rt_sched_cancel(rt_sched *s, rt_mail *mail);

/* No more jobs are taken. */
void rt_sched_close(rt_sched *s);

/* Answers in slots and in the queue. */
uint32_t rt_sched_load(rt_sched *s);

bool rt_sched_is_lost(rt_sched *s);

#endif
