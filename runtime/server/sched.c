/* sched.c -- see sched.h. */
#include "server/sched.h"

#include <stdlib.h>
#include <string.h>

#include "server/reuse.h"

enum { FLUSH_S = 20 }; /* for files, at the end */
static const uint64_t SCHED_BYTES = UINT64_C(1) << 32;

struct rt_sched {
    rt_engine *engine;
    rt_sched_opts o;
    rt_log *log;
    rt_metrics *metrics;
    lb_arena arena;
    rt_sample_scratch *scratch;
    float *masked;    /* [n_vocab] */
    rt_feed *feeds;   /* [n_slots] */
    rt_job **fed;     /* [n_slots]: whose feed it is */
    rt_job **running; /* [n_running], in the order of their start */
    uint32_t n_running;
    bool *busy; /* [n_slots] */
    rt_reuse *reuse;
    bool apart;        /* rows of prompts and of answers have steps of their own, in turns */
    bool prompts_turn; /* with both there, the next step is the prompts' */
    bool broken; /* the device was lost between steps */
    bool told;   /* and so was who asked to hear of it */

    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    rt_job *first, *last; /* the queue */
    uint32_t n_queued, n_in_slots;
    bool closed, stop, lost;
};

/* ---- answers begin */

/* The slot is free before anybody hears that the answer is over: who asks again at once is not told
 * that all are busy. */
static void release(rt_sched *s, rt_job *j) {
    if (j->seq != NULL) {
        s->busy[j->seq->slot] = false;
        pthread_mutex_lock(&s->lock);
        s->n_in_slots -= s->n_in_slots > 0;
        pthread_mutex_unlock(&s->lock);
    }
}

static void count_end(rt_sched *s, const rt_job *j, const lb_err *err) {
    atomic_fetch_add(&s->metrics->answer_tokens, j->n_generated);
    atomic_fetch_add(&s->metrics->answers_failed, err != NULL);
    atomic_fetch_add(&s->metrics->answers_cancelled, j->stop == RT_STOP_INTERRUPT);
}

static void end_job(rt_sched *s, rt_job *j, const lb_err *err) {
    if (err != NULL && j->seq != NULL) {
        rt_seq_cut(j->seq, 0); /* what is in the slot may be what made it fail */
    }
    release(s, j);
    count_end(s, j, err);
    rt_job_end(j, err);
}

static void fail_lost(rt_sched *s, rt_job *j) {
    lb_err err;
    lb_err_set(&err, LB_DEVICE_LOST, "the device was lost");
    end_job(s, j, &err);
}

/* Before anybody hears of it by an answer: whoever then looks finds it red. */
static void tell_lost(rt_sched *s) {
    if (s->o.lost != NULL && !s->told) {
        s->o.lost(s->o.lost_arg);
    }
    s->told = true;
}

static void begin_failed(rt_sched *s, rt_job *j, const lb_err *err) {
    RT_LOG(s->log, "error", "answer not begun", RT_LOG_S("reason", err->text));
    if (err->code != LB_DEVICE_LOST) {
        end_job(s, j, err);
        return;
    }
    s->broken = true;
    tell_lost(s);
    fail_lost(s, j);
}

static void begin(rt_sched *s, rt_job *j) {
    lb_err err;
    uint32_t slot = rt_reuse_choose(s->reuse, s->busy, j->o.prompt, j->o.n_prompt);
    rt_seq *q = &s->engine->seqs[slot];
    s->busy[slot] = true;
    j->started_s = rt_seconds();
    j->masked = s->masked;
    atomic_fetch_add(&s->metrics->answers, 1);
    atomic_fetch_add(&s->metrics->prompt_tokens, j->o.n_prompt);
    j->seq = q;
    if (!rt_job_start(j, q, &err) ||
        !rt_reuse_begin(s->reuse, slot, j->o.prompt, j->o.n_prompt, &j->n_cached, &err)) {
        begin_failed(s, j, &err);
        return;
    }
    j->n_fed = j->n_cached;
    atomic_fetch_add(&s->metrics->cached_tokens, j->n_cached);
    s->running[s->n_running++] = j;
}

/* ---- answers end */

static void cancel(rt_sched *s, rt_job *j) {
    j->stop = RT_STOP_INTERRUPT;
    end_job(s, j, NULL);
}

/* Takes jobs[i] out, keeping the order. */
static void remove_running(rt_sched *s, uint32_t i) {
    s->n_running--;
    memmove(&s->running[i], &s->running[i + 1], (s->n_running - i) * sizeof s->running[0]);
}

static void drop_cancelled(rt_sched *s) {
    for (uint32_t i = 0; i < s->n_running;) {
        rt_job *j = s->running[i];
        if (atomic_load(&j->mail->cancelled)) {
            remove_running(s, i);
            cancel(s, j);
        } else {
            i++;
        }
    }
}

/* What the store is given between steps: no answer fails for it, but a device that is lost is. */
static bool kept(rt_sched *s, bool ok, const lb_err *err) {
    if (!ok) {
        RT_LOG(s->log, "warning", "prefix not stored", RT_LOG_S("reason", err->text));
    }
    return ok || err->code != LB_DEVICE_LOST;
}

/* ---- the queue; under the lock */

static rt_job *pop(rt_sched *s) {
    rt_job *j = s->first;
    s->first = j->next;
    s->last = s->first == NULL ? NULL : s->last;
    s->n_queued--;
    return j;
}

/* Cancelled ones leave the queue, wherever they stand; they are returned as a list. */
static rt_job *take_cancelled(rt_sched *s) {
    rt_job *gone = NULL;
    rt_job **at = &s->first;
    rt_job *last = NULL;
    while (*at != NULL) {
        rt_job *j = *at;
        if (s->stop || atomic_load(&j->mail->cancelled)) {
            *at = j->next;
            j->next = gone;
            gone = j;
            s->n_queued--;
        } else {
            last = j;
            at = &j->next;
        }
    }
    s->last = last;
    return gone;
}

/* Nothing is asked for: what slots hold goes to the store, and from there one page to its file. False:
 * there is no more to do. */
static bool use_idle_time(rt_sched *s) {
    lb_err err;
    rt_disk_stats st;
    for (uint32_t i = 0; s->o.disk != NULL && i < s->o.n_slots; i++) {
        s->broken = !kept(s, rt_reuse_save(s->reuse, i, &err), &err) || s->broken;
    }
    bool more = s->o.disk != NULL && !s->broken && rt_disk_work(s->o.disk);
    if (s->o.disk != NULL) {
        rt_disk_stats_of(s->o.disk, &st);
        atomic_store(&s->metrics->files_read, st.n_read);
        atomic_store(&s->metrics->files_written, st.n_written);
        atomic_store(&s->metrics->files_failed, st.n_failed);
    }
    return more;
}

/* Waits for work, then fills free slots. False: it is time to end. */
static bool admit(rt_sched *s) {
    pthread_mutex_lock(&s->lock);
    s->n_in_slots = s->n_running;
    for (bool more = true; !s->stop && !s->broken && s->n_running == 0 && s->first == NULL;) {
        atomic_store(&s->metrics->running, 0);
        if (!more) {
            pthread_cond_wait(&s->wake, &s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        more = use_idle_time(s);
        pthread_mutex_lock(&s->lock);
    }
    rt_job *gone = take_cancelled(s);
    rt_job *jobs = NULL;
    rt_job **end = &jobs;
    for (uint32_t free = s->o.n_slots - s->n_running; free > 0 && s->first != NULL; free--) {
        *end = pop(s);
        end = &(*end)->next;
        s->n_in_slots++;
    }
    *end = NULL;
    bool go_on = !s->stop;
    atomic_store(&s->metrics->waiting, s->n_queued);
    atomic_store(&s->metrics->running, s->n_in_slots);
    pthread_mutex_unlock(&s->lock);
    while (gone != NULL) {
        rt_job *next = gone->next;
        cancel(s, gone);
        gone = next;
    }
    while (jobs != NULL) {
        rt_job *next = jobs->next;
        begin(s, jobs);
        jobs = next;
    }
    return go_on;
}

/* ---- steps */

static bool in_prompt(const rt_job *j) {
    return j->n_fed < j->o.n_prompt;
}

static void add_feed(rt_sched *s, uint32_t n, rt_job *j, const uint32_t *tokens, uint32_t n_tokens,
                     bool logits) {
    bool host = j->o.n_top >= 0 || j->form != NULL; /* probabilities and forms need the logits */
    s->feeds[n] = (rt_feed){.seq = j->seq, .tokens = tokens, .n_tokens = n_tokens,
                            .n_logits = logits ? 1 : 0,
                            .prompt = in_prompt(j),
                            .sampler = host ? NULL : &j->sampler};
    s->fed[n] = j;
}

/* What others know of the job's prompt by now need not be computed. Should the device fail, all of it
 * is computed again. */
static void join(rt_sched *s, rt_job *j) {
    lb_err err;
    uint32_t before = j->n_fed;
    bool ok = rt_reuse_join(s->reuse, j->seq->slot, j->o.prompt, j->o.n_prompt, &err);
    s->broken = !kept(s, ok, &err) || s->broken;
    j->n_fed = j->seq->n_tokens;
    if (j->n_fed > before) {
        j->n_cached += j->n_fed - before;
        atomic_fetch_add(&s->metrics->cached_tokens, j->n_fed - before);
    } else if (j->n_fed < before) {
        j->n_cached = 0;
    }
}

static uint32_t count_in_prompt(const rt_sched *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        n += in_prompt(s->running[i]);
    }
    return n;
}

/* One row of every answer. */
static uint32_t feed_answers(rt_sched *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        if (!in_prompt(s->running[i])) {
            add_feed(s, n++, s->running[i], &s->running[i]->token, 1, true);
        }
    }
    return n;
}

/* Behind n feeds up to `left` rows of prompts, the oldest first; how many feeds there are then. */
static uint32_t feed_prompts(rt_sched *s, uint32_t n, uint32_t left) {
    for (uint32_t i = 0; i < s->n_running && left > 0; i++) {
        rt_job *j = s->running[i];
        if (in_prompt(j)) {
            join(s, j);
        }
        uint32_t rest = j->o.n_prompt - j->n_fed;
        uint32_t rows = rest < left ? rest : left;
        if (rest > 0) {
            add_feed(s, n++, j, j->o.prompt + j->n_fed, rows, rows == rest);
            left -= rows;
        }
    }
    return n;
}

/* Answers' rows and, in the same step or the one between two of theirs, prompts' rows. */
static uint32_t make_feeds(rt_sched *s) {
    uint32_t n_prompts = count_in_prompt(s);
    if (n_prompts == s->n_running) {
        return feed_prompts(s, 0, s->engine->chunk);
    }
    if (s->apart && n_prompts > 0) {
        s->prompts_turn = !s->prompts_turn;
        uint32_t n = s->prompts_turn ? feed_prompts(s, 0, s->o.prompt_rows) : 0;
        return n > 0 ? n : feed_answers(s);
    }
    uint32_t n = feed_answers(s);
    uint32_t room = s->engine->model->t_max - n;
    return feed_prompts(s, n, s->o.prompt_rows < room ? s->o.prompt_rows : room);
}

static bool before_step(rt_sched *s, uint32_t n, lb_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        const rt_feed *f = &s->feeds[i];
        if (!kept(s, rt_reuse_before(s->reuse, f->seq, f->n_tokens, err), err)) {
            return false;
        }
    }
    return true;
}

/* After a step in which the job's feed took part: the next token, if there are logits. False: the
 * job failed, with err set. */
static bool advance(rt_sched *s, const rt_feed *f, rt_job *j, lb_err *err) {
    if (in_prompt(j)) {
        j->n_fed += f->n_tokens;
    }
    return f->n_logits == 0 ||
           rt_job_next(j, s->scratch, rt_engine_logits(s->engine, f->first_logit), err);
}

static void leave(rt_sched *s, rt_job *j, const lb_err *err) {
    for (uint32_t i = 0; i < s->n_running; i++) {
        if (s->running[i] == j) {
            remove_running(s, i);
            break;
        }
    }
    if (err != NULL) {
        RT_LOG(s->log, "error", "answer failed", RT_LOG_S("reason", err->text),
               RT_LOG_U("prompt", j->o.n_prompt), RT_LOG_U("fed", j->n_fed),
               RT_LOG_U("generated", j->n_generated));
    }
    end_job(s, j, err);
}

static void after_step(rt_sched *s, uint32_t from, uint32_t n) {
    for (uint32_t i = from; i < from + n; i++) {
        rt_job *j = s->fed[i];
        const rt_feed *f = &s->feeds[i];
        lb_err err;
        s->broken = !kept(s, rt_reuse_after(s->reuse, f->seq, f->n_tokens, &err), &err) || s->broken;
        bool ok = advance(s, f, j, &err);
        if (!ok || j->ended) {
            leave(s, j, ok ? NULL : &err);
        }
    }
}

static bool timed_step(rt_sched *s, rt_feed *feeds, uint32_t n, lb_err *err) {
    double begin_s = rt_seconds();
    uint64_t rows = 0;
    bool ok = rt_engine_step(s->engine, feeds, n, err);
    for (uint32_t i = 0; i < n; i++) {
        rows += feeds[i].n_tokens;
    }
    atomic_fetch_add(&s->metrics->steps, 1);
    atomic_fetch_add(&s->metrics->step_rows, rows);
    atomic_fetch_add(&s->metrics->step_us, (uint64_t)((rt_seconds() - begin_s) * 1e6));
    return ok;
}

/* False: the device is lost. */
static bool step(rt_sched *s, uint32_t n) {
    lb_err err;
    if (!before_step(s, n, &err)) {
        return false;
    }
    if (timed_step(s, s->feeds, n, &err)) {
        after_step(s, 0, n);
        return true;
    }
    RT_LOG(s->log, "error", "step failed", RT_LOG_S("reason", err.text), RT_LOG_U("answers", n));
    if (n == 1 && err.code != LB_DEVICE_LOST) {
        leave(s, s->fed[0], &err);
        return true;
    }
    for (uint32_t i = 0; i < n && err.code != LB_DEVICE_LOST; i++) {
        if (timed_step(s, &s->feeds[i], 1, &err)) {
            after_step(s, i, 1);
        } else if (err.code != LB_DEVICE_LOST) {
            leave(s, s->fed[i], &err);
        }
    }
    return err.code != LB_DEVICE_LOST;
}

/* ---- the thread */

static void end_all(rt_sched *s, bool lost) {
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    s->lost = lost;
    rt_job *queue = s->first;
    s->first = s->last = NULL;
    s->n_queued = s->n_in_slots = 0;
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->metrics->waiting, 0);
    atomic_store(&s->metrics->running, 0);
    while (queue != NULL) {
        rt_job *next = queue->next;
        (lost ? fail_lost : cancel)(s, queue);
        queue = next;
    }
    while (s->n_running > 0) {
        rt_job *j = s->running[--s->n_running];
        (lost ? fail_lost : cancel)(s, j);
    }
}

static void *run(void *arg) {
    rt_sched *s = arg;
    bool lost = false;
    while (!lost && admit(s)) {
        drop_cancelled(s);
        uint32_t n = make_feeds(s);
        lost = s->broken || (n > 0 && !step(s, n)) || s->broken;
    }
    if (lost) {
        tell_lost(s);
    }
    end_all(s, lost);
    for (double until = rt_seconds() + FLUSH_S; !lost && use_idle_time(s);) {
        if (rt_seconds() > until) {
            RT_LOG(s->log, "warning", "prefixes not all written", RT_LOG_U("seconds", FLUSH_S));
            break;
        }
    }
    return NULL;
}

static bool alloc(rt_sched *s, lb_err *err) {
    const rt_model *m = s->engine->model;
    s->apart = rt_prompts_in_f16(m);
    uint32_t n = s->o.n_slots;
    lb_arena_init(&s->arena, "scheduler", SCHED_BYTES);
    s->feeds = lb_alloc_n(&s->arena, n, sizeof *s->feeds, err);
    s->fed = lb_alloc_n(&s->arena, n, sizeof(rt_job *), err);
    s->running = lb_alloc_n(&s->arena, n, sizeof(rt_job *), err);
    s->busy = lb_alloc_n(&s->arena, n, sizeof *s->busy, err);
    return s->feeds != NULL && s->fed != NULL && s->running != NULL && s->busy != NULL &&
           (s->masked = lb_alloc_n(&s->arena, m->n_vocab, sizeof *s->masked, err)) != NULL &&
           rt_sample_scratch_new(m->n_vocab, m->ctx, &s->arena, &s->scratch, err) &&
           rt_reuse_open(s->engine, s->o.store, n, s->metrics, &s->reuse, err);
}

bool rt_sched_start(rt_engine *engine, const rt_sched_opts *opts, rt_log *log, rt_metrics *metrics,
                    rt_sched **out, lb_err *err) {
    rt_sched *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for the scheduler");
    }
    *s = (rt_sched){.engine = engine, .o = *opts, .log = log, .metrics = metrics};
    bool ok = alloc(s, err);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    if (ok && pthread_create(&s->thread, NULL, run, s) != 0) {
        ok = lb_err_set(err, LB_RESOURCES, "no thread for the scheduler");
    }
    if (!ok) {
        rt_reuse_close(s->reuse);
        lb_arena_reset(&s->arena);
        free(s);
        return false;
    }
    *out = s;
    return true;
}

void rt_sched_stop(rt_sched *s) {
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    s->closed = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    rt_reuse_close(s->reuse);
    lb_arena_reset(&s->arena);
    free(s);
}

/* ---- from other threads */

static void append(rt_sched *s, rt_job *j) {
    j->next = NULL;
    j->queued_s = rt_seconds();
    if (s->last == NULL) {
        s->first = j;
    } else {
        s->last->next = j;
    }
    s->last = j;
    s->n_queued++;
}

rt_submitted rt_sched_submit(rt_sched *s, rt_job *const *jobs, uint32_t n) {
    rt_submitted r = RT_SUBMITTED;
    pthread_mutex_lock(&s->lock);
    /* what is in the queue and in slots must fit into both together */
    uint64_t load = (uint64_t)s->n_queued + s->n_in_slots + n;
    if (s->closed || s->stop) {
        r = s->lost ? RT_SCHED_LOST : RT_SCHED_STOPPING;
    } else if (load > (uint64_t)s->o.n_slots + s->o.queue) {
        r = RT_QUEUE_FULL;
        atomic_fetch_add(&s->metrics->refused_full, 1);
    } else {
        for (uint32_t i = 0; i < n; i++) {
            append(s, jobs[i]);
        }
        atomic_store(&s->metrics->waiting, s->n_queued);
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

void rt_sched_cancel(rt_sched *s, rt_mail *mail) {
    atomic_store(&mail->cancelled, true);
    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void rt_sched_close(rt_sched *s) {
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
}

uint32_t rt_sched_load(rt_sched *s) {
    pthread_mutex_lock(&s->lock);
    uint32_t n = s->n_queued + s->n_in_slots;
    pthread_mutex_unlock(&s->lock);
    return n;
}

bool rt_sched_is_lost(rt_sched *s) {
    pthread_mutex_lock(&s->lock);
    bool lost = s->lost;
    pthread_mutex_unlock(&s->lock);
    return lost;
}
