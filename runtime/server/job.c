/* job.c -- see job.h. */
#include "server/job.h"

#include <math.h>
#include <string.h>

enum { JOB_BYTES = 64 * 1024 * 1024 };

/* ---- from text to notes */

static void send(rt_job *j, const rt_note *note) {
    if (!j->spent && !rt_mail_add(j->mail, note, &j->err)) {
        j->spent = true;
    }
}

static void send_content(rt_job *j, const char *text, size_t n) {
    if (n > 0) {
        j->any_content = true;
        send(j,
             &(rt_note){.kind = RT_NOTE_CONTENT, .choice = j->choice, .text = {.s = text, .n = n}});
    }
}

/* Which stop string begins at `at`, in front of `end`: all others there would end later. */
static size_t stop_index(const rt_job *j, const char *at, const char *end) {
    size_t best = 0;
    size_t shortest = SIZE_MAX;
    for (size_t i = 0; i < j->o.n_stops; i++) {
        const rt_stop_string *s = &j->o.stops[i];
        if (s->n_bytes < shortest && s->n_bytes <= (size_t)(end - at) &&
            memcmp(at, s->text, s->n_bytes) == 0) {
            best = i;
            shortest = s->n_bytes;
        }
    }
    return best;
}

static void close_with(rt_job *j, rt_stop_reason why) {
    j->closed = true;
    j->ended = true;
    j->stop = why;
}

/* Content goes through the stop strings, in pieces that the stream has room for. */
static void take_content(rt_job *j, const char *text, size_t n) {
    for (size_t at = 0; at < n && !j->closed;) {
        const char *out = NULL;
        size_t n_out = 0;
        size_t part = n - at < j->stream.push_max_bytes ? n - at : j->stream.push_max_bytes;
        char *room = rt_stream_room(&j->stream);
        memcpy(room, text + at, part);
        at += part;
        if (rt_stream_push(&j->stream, part, &out, &n_out)) {
            j->stop_index = stop_index(j, out + n_out, room + part);
            close_with(j, RT_STOP_STRING);
        }
        send_content(j, out, n_out);
    }
}

/* What was held back as the beginning of a stop string is none: something else comes. */
static void flush_content(rt_job *j) {
    const char *out = NULL;
    size_t n = 0;
    rt_stream_end(&j->stream, &out, &n);
    send_content(j, out, n);
}

static void take_call(rt_job *j, const rt_event *e) {
    j->n_calls++;
    send(j,
         &(rt_note){.kind = RT_NOTE_CALL, .choice = j->choice, .text = e->text, .name = e->name});
    if (j->o.one_call) {
        close_with(j, RT_STOP_EOG);
    }
}

static void on_event(void *to, const rt_event *e) {
    rt_job *j = to;
    if (j->closed) {
        return;
    }
    if (e->kind == RT_EVENT_CONTENT) {
        take_content(j, e->text.s, e->text.n);
        return;
    }
    flush_content(j);
    if (e->kind == RT_EVENT_CALL) {
        take_call(j, e);
    } else {
        send(j, &(rt_note){.kind =
                               e->kind == RT_EVENT_REASONING ? RT_NOTE_REASONING : RT_NOTE_CUT_CALL,
                           .choice = j->choice,
                           .text = e->text});
    }
}

static bool take_text(rt_job *j, const char *text, size_t n, lb_err *err) {
    if (j->machine == NULL) {
        take_content(j, text, n);
        return true;
    }
    return n == 0 || rt_output_feed(j->machine, text, n, err);
}

/* ---- one answer */

bool rt_job_start(rt_job *j, rt_seq *seq, lb_err *err) {
    const rt_model *m = seq->engine->model;
    size_t max = rt_detok_max_bytes(m->tokenizer);
    size_t longest = 1;
    for (size_t i = 0; i < j->o.n_stops; i++) {
        longest = j->o.stops[i].n_bytes > longest ? j->o.stops[i].n_bytes : longest;
    }
    j->seq = seq;
    lb_arena_init(&j->arena, "answer in the making", JOB_BYTES);
    rt_detok_init(&j->detok, m->tokenizer, false, false);
    j->piece = lb_alloc(&j->arena, max, err);
    return j->piece != NULL && rt_sampler_start(&j->sampler, &j->o.params, m->n_vocab, err) &&
           rt_stream_new(&j->stream, max, longest, &j->arena, err) &&
           rt_stream_start(&j->stream, j->o.stops, j->o.n_stops, err) &&
           (j->o.grammar == NULL || rt_gmachine_new(j->o.grammar, &j->arena, &j->form, err)) &&
           (j->o.chat == NULL || rt_output_new(j->o.chat->output, j->o.tools, j->o.rendered,
                                               on_event, j, &j->arena, &j->machine, err));
}

/* The text is over, for this reason unless what was held back completes a stop string. */
static bool end_with(rt_job *j, rt_stop_reason why, lb_err *err) {
    size_t n = rt_detok_flush(&j->detok, j->piece);
    j->ended = true;
    j->stop = why;
    if (!take_text(j, j->piece, n, err) ||
        (j->machine != NULL && !rt_output_finish(j->machine, err))) {
        return false;
    }
    if (!j->closed) {
        flush_content(j);
    }
    return true;
}

static bool send_token(rt_job *j, rt_sample_scratch *scratch, const float *logits, lb_err *err) {
    rt_token_prob top[32];
    rt_note note = {.kind = RT_NOTE_TOKEN,
                    .choice = j->choice,
                    .top = top,
                    .token = {.token = j->token, .logit = logits[j->token]}};
    uint32_t n_vocab = j->sampler.n_vocab;
    if (!rt_log_prob(logits, n_vocab, j->token, &note.token.log_prob, err) ||
        (j->o.n_top > 0 &&
         !rt_sample_top(scratch, logits, n_vocab, (uint32_t)j->o.n_top, top, &note.n_top, err))) {
        return false;
    }
    send(j, &note);
    return true;
}

/* Reasoning has used up its budget: the words that end it are put in the model's mouth. */
static bool is_forced(const rt_job *j) {
    return j->n_forced < j->o.n_think_close &&
           (j->n_forced > 0 || (j->machine != NULL && rt_output_reasoning(j->machine) &&
                                j->n_thought >= j->o.think_budget));
}

/* Whether a token fits the form that the answer must have. Tokens without text, control tokens
 * among them, fit nowhere. */
static bool fits(rt_job *j, uint32_t token) {
    size_t n = 0;
    if (rt_token_is_eog(j->detok.tok, token)) {
        return rt_gmachine_may_end(j->form);
    }
    const char *s = rt_token_piece(j->detok.tok, token, false, &n);
    return n > 0 && rt_gmachine_fits(j->form, s, n);
}

static bool is_formed(const rt_job *j) {
    return j->form != NULL && (j->machine == NULL || !rt_output_reasoning(j->machine));
}

static bool pick(rt_job *j, rt_sample_scratch *scratch, const float *logits, lb_err *err) {
    return rt_sampler_pick(&j->sampler, scratch, logits, j->seq->tokens, j->seq->n_tokens,
                           &j->token, err);
}

/* Most of the time what is chosen fits. If it does not, the choice is made again among tokens that
 * do, with the same random numbers. */
static bool choose(rt_job *j, rt_sample_scratch *scratch, const float *logits, lb_err *err) {
    if (is_forced(j)) {
        j->token = j->o.think_close[j->n_forced++];
        return true;
    }
    if (!is_formed(j)) {
        return rt_seq_choose(j->seq, &j->sampler, scratch, logits, &j->token, err);
    }
    rt_rng before = j->sampler.rng;
    if (!pick(j, scratch, logits, err) || fits(j, j->token)) {
        return j->token < j->sampler.n_vocab;
    }
    j->sampler.rng = before;
    for (uint32_t i = 0; i < j->sampler.n_vocab; i++) {
        j->masked[i] = logits[i] > -INFINITY && fits(j, i) ? logits[i] : -INFINITY;
    }
    return pick(j, scratch, j->masked, err);
}

/* The form reads the token's text; once nothing can follow, the answer is over. */
static void read_form(rt_job *j) {
    size_t n = 0;
    const char *s = rt_token_piece(j->detok.tok, j->token, false, &n);
    rt_gmachine_take(j->form, s, n);
}

bool rt_job_next(rt_job *j, rt_sample_scratch *scratch, const float *logits, lb_err *err) {
    const rt_tokenizer *tok = j->detok.tok;
    bool formed = is_formed(j) && !is_forced(j);
    if (!choose(j, scratch, logits, err)) {
        return false;
    }
    j->n_generated++;
    j->n_thought += j->machine != NULL && rt_output_reasoning(j->machine);
    j->first_s = j->first_s == 0.0 ? rt_seconds() : j->first_s;
    if (rt_token_is_eog(tok, j->token)) {
        return end_with(j, RT_STOP_EOG, err);
    }
    if (j->o.n_top >= 0 && !send_token(j, scratch, logits, err)) {
        return false;
    }
    if (formed) {
        read_form(j);
    }
    size_t n = rt_detok_push(&j->detok, j->token, j->piece);
    if (!take_text(j, j->piece, n, err)) {
        return false;
    }
    if (!j->ended && j->machine != NULL && rt_output_over(j->machine)) {
        return end_with(j, RT_STOP_EOG, err); /* the end of the turn, spelled in ordinary text */
    }
    if (!j->ended && formed && rt_gmachine_must_end(j->form)) {
        return end_with(j, RT_STOP_EOG, err);
    }
    if (!j->ended && j->n_generated >= j->o.n_predict) {
        return end_with(j, RT_STOP_LENGTH, err);
    }
    if (j->spent) {
        return lb_err_set(err, LB_NO_MEMORY, "no memory for more of this answer");
    }
    return true;
}

void rt_job_end(rt_job *j, const lb_err *err) {
    const rt_note end = {.kind = RT_NOTE_END, .choice = j->choice};
    j->failed = err != NULL;
    if (err != NULL) {
        j->err = *err;
    }
    lb_arena_reset(&j->arena);
    j->ended_s = rt_seconds();
    rt_mail_add(j->mail, &end, NULL);
}
