/* engine.c -- see engine.h. */
#include "engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "identity.h"

enum { CONTROL_SLACK_BYTES = 1 << 20 };

/* Control memory: bounded by what the arrays below add up to. */
static bool control_limit(const rt_model *m, uint64_t *out) {
    uint64_t tokens = 0;
    uint64_t rows = 0;
    return lb_mul(m->ctx, m->slots, &tokens) && lb_mul(tokens, sizeof(uint32_t), &tokens) &&
           lb_mul(m->t_max, 8 * sizeof(uint32_t), &rows) && lb_add(tokens, rows, out) &&
           lb_mul(m->slots, 64, &rows) && lb_add(*out, rows, out) &&
           lb_mul(m->logit_rows_max, sizeof(uint32_t) + sizeof(rt_pick), &rows) &&
           lb_add(*out, rows, out) && lb_add(*out, CONTROL_SLACK_BYTES, out);
}

static bool u32_array(lb_arena *a, uint64_t n, uint32_t **out, lb_err *err) {
    *out = lb_alloc_n(a, n, sizeof **out, err);
    return *out != NULL;
}

static bool alloc_control(rt_engine *e, lb_err *err) {
    const rt_model *m = e->model;
    uint64_t limit = 0;
    if (!control_limit(m, &limit)) {
        return lb_err_set(err, LB_RESOURCES, "context of %u tokens in %u slots", m->ctx, m->slots);
    }
    lb_arena_init(&e->arena, "control memory", limit);
    e->seqs = lb_alloc_n(&e->arena, m->slots, sizeof *e->seqs, err);
    bool ok = e->seqs != NULL && u32_array(&e->arena, m->t_max, &e->token_of_row, err) &&
              u32_array(&e->arena, m->t_max, &e->seq_of_row, err) &&
              u32_array(&e->arena, m->t_max, &e->pos_of_row, err) &&
              u32_array(&e->arena, m->slots, &e->slot_of_seq, err) &&
              u32_array(&e->arena, m->logit_rows_max, &e->logit_rows, err);
    if (ok && m->samples) {
        e->picks = lb_alloc_n(&e->arena, m->logit_rows_max, sizeof *e->picks, err);
        ok = e->picks != NULL;
    }
    for (uint32_t i = 0; ok && i < m->slots; i++) {
        e->seqs[i] = (rt_seq){.engine = e, .slot = i};
        ok = u32_array(&e->arena, m->ctx, &e->seqs[i].tokens, err);
    }
    if (!ok && err != NULL) {
        err->code = LB_RESOURCES;
    }
    return ok;
}

static bool load(const rt_model *m, const rt_engine_opts *o, rt_engine *e, lb_err *err) {
    if (!o->bare) {
        return rt_weights_load(m, &o->load, e->pool, &e->memory, err);
    }
    return m->device == NULL || m->device->ready(m, &e->memory, err);
}

bool rt_engine_start(const rt_model *m, const rt_engine_opts *o, rt_engine **out, lb_err *err) {
    rt_engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return lb_err_set(err, LB_RESOURCES, "no memory for the engine");
    }
    e->model = m;
    e->chunk = m->chunk;
    bool ok = rt_identity_check(m, err) && rt_memory_map_on(m, o->device, &e->memory, err) &&
              alloc_control(e, err) && rt_pool_start(o->n_threads, &e->pool, err) &&
              rt_memory_touch(m, &e->memory, e->pool, err) &&
              load(m, o, e, err);
    if (!ok) {
        rt_engine_stop(e);
        return false;
    }
    *out = e;
    return true;
}

void rt_engine_stop(rt_engine *e) {
    if (e != NULL) {
        rt_pool_stop(e->pool);
        rt_memory_unmap(&e->memory);
        lb_arena_reset(&e->arena);
        free(e);
    }
}

/* The feed alone: its sequence, its tokens, its context. */
static bool check_feed(const rt_engine *e, const rt_feed *f, lb_err *err) {
    const rt_model *m = e->model;
    uint32_t used = f->seq->n_tokens;
    if (f->n_tokens == 0 || f->n_logits > f->n_tokens) {
        return lb_err_set(err, LB_BAD_VALUE, "slot %u: %u tokens with %u logits", f->seq->slot,
                          f->n_tokens, f->n_logits);
    }
    if (f->n_tokens > m->ctx - used) {
        return lb_err_set(err, LB_LIMIT,
                          "context: %u more tokens after %u; it holds %u, so %u more fit",
                          f->n_tokens, used, m->ctx, m->ctx - used);
    }
    for (uint32_t i = 0; i < f->n_tokens; i++) {
        if (f->tokens[i] >= m->n_vocab) {
            return lb_err_set(err, LB_BAD_VALUE, "token %u of a vocabulary of %u", f->tokens[i],
                              m->n_vocab);
        }
    }
    return true;
}

static bool check_feeds(const rt_engine *e, const rt_feed *feeds, uint32_t n, lb_err *err) {
    const rt_model *m = e->model;
    uint64_t rows = 0;
    uint64_t logits = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!check_feed(e, &feeds[i], err)) {
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (feeds[j].seq == feeds[i].seq) {
                return lb_err_set(err, LB_BAD_VALUE, "slot %u twice in one step",
                                  feeds[i].seq->slot);
            }
        }
        rows += feeds[i].n_tokens;
        logits += feeds[i].n_logits;
    }
    if (rows > m->t_max || logits > m->logit_rows_max) {
        return lb_err_set(err, LB_LIMIT,
                          "a step of %" PRIu64 " rows with %" PRIu64
                          " logits; the program was made for %u and %u",
                          rows, logits, m->t_max, m->logit_rows_max);
    }
    return true;
}

/* Writes one feed's rows from `row` on; returns the row after them. */
static uint32_t add_rows(rt_engine *e, rt_feed *f, uint32_t seq, uint32_t row, uint32_t *n_logits) {
    e->slot_of_seq[seq] = f->seq->slot;
    f->first_logit = *n_logits;
    for (uint32_t i = 0; i < f->n_tokens; i++, row++) {
        e->token_of_row[row] = f->tokens[i];
        e->seq_of_row[row] = seq;
        e->pos_of_row[row] = f->seq->n_tokens + i;
        if (i >= f->n_tokens - f->n_logits) {
            e->logit_rows[(*n_logits)++] = row;
        }
    }
    return row;
}

/* The rows of all feeds, those of prompts last. */
static void add_all(rt_engine *e, rt_feed *feeds, uint32_t n_feeds, rt_step *s) {
    for (int prompts = 0; prompts < 2; prompts++) {
        for (uint32_t i = 0; i < n_feeds; i++) {
            if (feeds[i].prompt == (prompts == 1)) {
                s->n_rows = add_rows(e, &feeds[i], i, s->n_rows, &s->n_logits);
                s->n_prompt += feeds[i].prompt ? feeds[i].n_tokens : 0;
            }
        }
    }
}

/* Whether the step can choose all tokens that are wanted; writes e->picks then. */
static bool make_picks(rt_engine *e, const rt_feed *feeds, uint32_t n_feeds) {
    bool ok = e->picks != NULL;
    for (uint32_t i = 0; ok && i < n_feeds; i++) {
        const rt_feed *f = &feeds[i];
        const rt_pick_history h = {f->seq->tokens, f->tokens, f->seq->n_tokens, f->n_tokens};
        if (f->n_logits > 0) {
            ok = f->n_logits == 1 && f->sampler != NULL &&
                 rt_pick_make(f->sampler, &h, &e->picks[f->first_logit]);
        }
    }
    return ok;
}

/* What the step chose, or that it gave logits. */
static void note_choice(const rt_engine *e, const rt_feed *f, bool chose) {
    const uint8_t *io = e->memory.arenas[RT_ARENA_IO] + e->model->choices_offset_bytes;
    const rt_picked *choice = (const rt_picked *)(const void *)io + f->first_logit;
    rt_seq *q = f->seq;
    q->chosen_by = NULL;
    if (chose && f->n_logits > 0 && rt_picked_kind_of(*choice) != RT_PICKED_UNDECIDED) {
        q->chosen_by = f->sampler;
        q->choice = *choice;
        q->choice_rng = f->sampler->rng.next;
    }
}

bool rt_engine_step(rt_engine *e, rt_feed *feeds, uint32_t n_feeds, lb_err *err) {
    if (n_feeds == 0) {
        return true;
    }
    if (!check_feeds(e, feeds, n_feeds, err)) {
        return false;
    }
    rt_step s = {.n_seqs = n_feeds,
                 .token_of_row = e->token_of_row,
                 .seq_of_row = e->seq_of_row,
                 .pos_of_row = e->pos_of_row,
                 .slot_of_seq = e->slot_of_seq,
                 .logit_rows = e->logit_rows};
    add_all(e, feeds, n_feeds, &s);
    for (uint32_t i = 0; i < n_feeds; i++) { /* stored, even if the step fails half way */
        rt_seq *q = feeds[i].seq;
        uint32_t end = q->n_tokens + feeds[i].n_tokens;
        q->n_stored = end > q->n_stored ? end : q->n_stored;
    }
    s.picks = s.n_logits > 0 && make_picks(e, feeds, n_feeds) ? e->picks : NULL;
    if (!e->model->step(e->memory.arenas, &s, e->pool, err)) {
        return false;
    }
    for (uint32_t i = 0; i < n_feeds; i++) {
        rt_seq *q = feeds[i].seq;
        memcpy(q->tokens + q->n_tokens, feeds[i].tokens, feeds[i].n_tokens * sizeof q->tokens[0]);
        q->n_tokens += feeds[i].n_tokens;
        note_choice(e, &feeds[i], s.picks != NULL);
    }
    return true;
}

bool rt_seq_choose(const rt_seq *q, rt_sampler *s, rt_sample_scratch *scratch, const float *logits,
                   uint32_t *token, lb_err *err) {
    if (q->chosen_by == NULL) {
        return rt_sampler_pick(s, scratch, logits, q->tokens, q->n_tokens, token, err);
    }
    if (q->chosen_by != s || q->choice_rng != s->rng.next) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "slot %u: its next token was chosen for another sampler, or an earlier "
                          "state of this one",
                          q->slot);
    }
    return rt_pick_take(s, q->choice, token, err);
}

const float *rt_engine_logits(const rt_engine *e, uint32_t i) {
    const uint8_t *io = e->memory.arenas[RT_ARENA_IO] + e->model->logits_offset_bytes;
    return (const float *)(const void *)io + (size_t)i * e->model->n_vocab;
}
