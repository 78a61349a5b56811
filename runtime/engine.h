/* engine.h -- the model in memory, and one step of it over rows of several sequences.
 *
 * Everything is allocated by rt_engine_start: the planned arenas, and beside them control memory of
 * 4 bytes per token of context and slot and a few per row of a step. One caller at a time. */
#ifndef RT_ENGINE_H
#define RT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "load.h"
#include "memory.h"
#include "model_abi.h"
#include "pick.h"
#include "pool.h"

typedef struct rt_engine rt_engine;

/* What one slot of the KV cache holds: tokens at positions 0..n_tokens-1. */
typedef struct rt_seq {
    rt_engine *engine;
    uint32_t slot;
    uint32_t n_tokens;
    uint32_t n_stored; /* positions that were ever stored in the slot since it was empty */
    uint32_t least_cut; /* of a restored slot (prefix.h): from fewer tokens than these, windows
                           reach back to positions that were not restored */
    uint32_t *tokens;   /* [ctx]; written by steps, and where a slot is restored */
    /* The token after the last one, if the last step chose it: rt_seq_choose takes it. */
    const rt_sampler *chosen_by; /* NULL: the step gave logits */
    rt_picked choice;
    uint32_t choice_rng; /* where the sampler's generator stood */
} rt_seq;

struct rt_engine {
    const rt_model *model;
    rt_pool *pool;
    rt_memory memory;
    lb_arena arena; /* control memory */
    rt_seq *seqs;   /* [slots], empty at start */
    uint32_t chunk; /* rows that rt_seq_feed puts in a step: model->chunk, or fewer */
    uint32_t *token_of_row, *seq_of_row, *pos_of_row; /* [t_max] */
    uint32_t *slot_of_seq;                            /* [slots] */
    uint32_t *logit_rows;                             /* [logit_rows_max] */
    rt_pick *picks; /* [logit_rows_max] if the model samples, else NULL */
};

typedef struct rt_engine_opts {
    uint32_t n_threads; /* 0: the CPUs this process may run on */
    const char *device; /* of a GPU program: rt_memory_map_on; NULL: the only one that fits */
    bool bare; /* no weights are read: for those who want its memory alone */
    rt_load_opts load;
} rt_engine_opts;

/* Checks the machine, allocates, loads. Fails with LB_WRONG_BOX, LB_RESOURCES, LB_DAMAGED and what
 * load.h lists; everything is then released. */
bool rt_engine_start(const rt_model *model, const rt_engine_opts *opts, rt_engine **out,
                     lb_err *err);
void rt_engine_stop(rt_engine *e); /* NULL is allowed */

/* Whether attention of prompts has another arithmetic than that of generated rows. */
static inline bool rt_prompts_in_f16(const rt_model *m) {
    return m->attn_type != NULL && strcmp(m->attn_type, "f16") == 0;
}

/* The next tokens of one sequence in a step, and for how many of the last ones logits are wanted.
 */
typedef struct rt_feed {
    rt_seq *seq;
    const uint32_t *tokens;
    uint32_t n_tokens;    /* >= 1 */
    uint32_t n_logits;    /* <= n_tokens */
    bool prompt;          /* the tokens are a prompt's, none that was generated: rt_step.n_prompt */
    uint32_t first_logit; /* out: rt_engine_logits row of the first of them */
    /* Who will choose the next token from the last row of logits; may be NULL. Where the program
     * can, and every feed of the step that wants logits wants one row and names its sampler, the
     * step chooses. */
    const rt_sampler *sampler;
} rt_feed;

/* Runs one step over all feeds, whose sequences must differ. Fails, with no sequence changed, with
 * LB_LIMIT (context full: says how many tokens are in it and how many would fit; more than t_max
 * rows or logit_rows_max logits) and LB_BAD_VALUE (a token outside the vocabulary, a sequence
 * twice). On success every sequence has grown by its tokens. */
bool rt_engine_step(rt_engine *e, rt_feed *feeds, uint32_t n_feeds, lb_err *err);

/* The token after a sequence's last one: what the step chose, else chosen here from `logits`, row
 * first_logit of the feed. `s` is the sampler that the feed named, unchanged since. Fails as
 * rt_sampler_pick; with LB_BAD_VALUE for a choice that another sampler was to make. */
bool rt_seq_choose(const rt_seq *seq, rt_sampler *s, rt_sample_scratch *scratch,
                   const float *logits, uint32_t *token, lb_err *err);

/* Logits [n_vocab] of row i of the last step; valid until the next one. Of a step that chose all
 * tokens (rt_seq.chosen_by) they are not there. */
const float *rt_engine_logits(const rt_engine *e, uint32_t i);

#endif
