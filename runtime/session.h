/* session.h -- one sequence over time: a prompt goes in by chunks, an answer comes out token by
 * token.
 *
 * A generation (rt_gen) makes no step itself, so that a scheduler can put the tokens of several
 * into one; rt_generate is the loop for a single one. */
#ifndef RT_SESSION_H
#define RT_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "sample.h"
#include "stream.h"
#include "token/detok.h"

/* Sees the logits [n_vocab] of position `pos` of the sequence; false with err set ends the feed. */
typedef bool (*rt_visit_fn)(void *arg, uint32_t pos, const float *logits, lb_err *err);

typedef struct rt_feed_opts {
    rt_visit_fn visit; /* logits of every token that is fed; NULL: of the last one only, row 0 */
    void *visit_arg;
    const volatile sig_atomic_t *interrupt; /* not 0: stop before the next step; may be NULL */
    rt_progress_fn progress;                /* tokens instead of bytes; may be NULL */
    void *progress_arg;
    const rt_sampler *sampler; /* that will choose the token behind them (rt_feed); may be NULL */
    bool prompt;               /* they are a prompt's (rt_feed) */
} rt_feed_opts;

/* Appends n >= 1 tokens in steps of at most engine->chunk rows. `o` may be NULL. All must fit
 * before any is fed: LB_LIMIT, naming how many there are and the context. LB_CANCELLED when
 * interrupted: the sequence then holds what was fed. Otherwise fails as rt_engine_step. */
bool rt_seq_feed(rt_seq *s, const uint32_t *tokens, uint32_t n, const rt_feed_opts *o, lb_err *err);

/* Makes the sequence hold exactly these tokens, the last one just fed: keeps the common
 * beginning where it can (rt_seq_cut), cuts the rest and feeds what is new. *n_kept (may be NULL)
 * tells how much was there. */
bool rt_seq_prompt(rt_seq *s, const uint32_t *tokens, uint32_t n, const rt_feed_opts *o,
                   uint32_t *n_kept, lb_err *err);

/* How many tokens the sequence and tokens[0..n) begin with in common. */
uint32_t rt_seq_common(const rt_seq *s, const uint32_t *tokens, uint32_t n);

/* Whether a row at position n would find all that it sees: layers with a window hold the last
 * positions stored, each in the place of one before. n <= s->n_tokens. */
bool rt_seq_holds(const rt_seq *s, uint32_t n);

/* Forgets all tokens but the first n (no more than there are); returns how many stay: n, or 0 where
 * a layer with a window no longer holds what would be seen from there. */
uint32_t rt_seq_cut(rt_seq *s, uint32_t n);

typedef enum rt_stop_reason {
    RT_STOP_NOT,
    RT_STOP_EOG,     /* an end-of-generation token */
    RT_STOP_STRING,  /* a stop string */
    RT_STOP_LENGTH,  /* n_predict tokens */
    RT_STOP_CONTEXT, /* the context is full */
    RT_STOP_INTERRUPT
} rt_stop_reason;

/* Takes text that is certain, in order; false with err set (nobody reads it) ends the generation. */
typedef bool (*rt_emit_fn)(void *arg, const char *text, size_t n_bytes, lb_err *err);

typedef struct rt_gen_opts {
    rt_sampler *sampler; /* started */
    rt_sample_scratch *scratch;
    rt_stream *stream; /* started with the stop strings */
    uint32_t n_predict;
    rt_emit_fn emit;
    void *emit_arg;
    const volatile sig_atomic_t *interrupt; /* may be NULL; rt_generate only */
} rt_gen_opts;

typedef struct rt_gen {
    rt_gen_opts o;
    rt_seq *seq;
    rt_detok detok;
    uint32_t token;       /* the last one chosen */
    uint32_t n_generated; /* the end-of-generation token included */
    rt_stop_reason stop;
} rt_gen;

/* The stream must be made for pushes of rt_detok_max_bytes. `strip_space`: see rt_detok_init. */
void rt_gen_start(rt_gen *g, rt_seq *seq, const rt_gen_opts *o);

/* Chooses the next token from `logits` (rt_seq_choose), emits text, sets g->stop; unless it stops,
 * g->token is to be fed next. Fails as rt_sampler_pick and as `emit`. */
bool rt_gen_next(rt_gen *g, const float *logits, lb_err *err);

/* Ends a generation for a reason from outside; emits what was held back. Fails as `emit`. */
bool rt_gen_end(rt_gen *g, rt_stop_reason why, lb_err *err);

/* From the logits of row 0 of the last step, or the choice it made for the generation's sampler,
 * until g->stop is set. */
bool rt_generate(rt_gen *g, lb_err *err);

const char *rt_stop_name(rt_stop_reason r);

#endif
