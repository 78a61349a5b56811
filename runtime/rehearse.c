/* rehearse.c -- see rehearse.h. */
#include "rehearse.h"

#include "base/arena.h"
#include "engine.h"
#include "identity.h"
#include "memory.h"

typedef struct rehearsal {
    const rt_model *m;
    rt_memory memory;
    lb_arena arena;
    uint32_t *token_of_row, *seq_of_row, *pos_of_row; /* [t_max] */
    uint32_t *slot_of_seq, *logit_rows;               /* [slots], [logit_rows_max] */
    rt_rehearsal *seen;
} rehearsal;

static bool u32s(rehearsal *r, uint64_t n, uint32_t **out, lb_err *err) {
    *out = lb_alloc_n(&r->arena, n, sizeof **out, err);
    return *out != NULL;
}

static bool start(rehearsal *r, const char *device, lb_err *err) {
    const rt_model *m = r->m;
    uint64_t words = 3ULL * m->t_max + m->slots + m->logit_rows_max;
    lb_arena_init(&r->arena, "rehearsal", 4 * words + (1 << 20));
    return rt_identity_check(m, err) && u32s(r, m->t_max, &r->token_of_row, err) &&
           u32s(r, m->t_max, &r->seq_of_row, err) && u32s(r, m->t_max, &r->pos_of_row, err) &&
           u32s(r, m->slots, &r->slot_of_seq, err) &&
           u32s(r, m->logit_rows_max, &r->logit_rows, err) &&
           rt_memory_map_on(m, device, &r->memory, err) && m->device->ready(m, &r->memory, err);
}

/* n_rows over n_seqs sequences, as evenly as may be, each ending at position ctx - 1; false if one
 * would have more rows than positions. */
static bool lay_out(rehearsal *r, uint32_t n_rows, uint32_t n_seqs, uint32_t ctx) {
    uint32_t row = 0;
    for (uint32_t s = 0; s < n_seqs; s++) {
        uint32_t n = n_rows / n_seqs + (s < n_rows % n_seqs);
        if (n > ctx || n == 0) {
            return false;
        }
        r->slot_of_seq[s] = s;
        for (uint32_t i = 0; i < n; i++, row++) {
            r->token_of_row[row] = 0;
            r->seq_of_row[row] = s;
            r->pos_of_row[row] = ctx - n + i;
        }
        if (s < r->m->logit_rows_max) {
            r->logit_rows[s] = row - 1;
        }
    }
    return true;
}

static bool step(rehearsal *r, uint32_t n_rows, uint32_t n_seqs, uint32_t ctx, uint32_t n_logits,
                 lb_err *err) {
    rt_step s = {.n_rows = n_rows,
                 .n_seqs = n_seqs,
                 .n_logits = n_logits,
                 .token_of_row = r->token_of_row,
                 .seq_of_row = r->seq_of_row,
                 .pos_of_row = r->pos_of_row,
                 .slot_of_seq = r->slot_of_seq,
                 .logit_rows = r->logit_rows};
    r->seen->steps++;
    bool ok = r->m->step(r->memory.arenas, &s, NULL, err);
    if (ok && rt_prompts_in_f16(r->m)) {
        s.n_prompt = n_rows; /* few rows of a prompt have launches of their own */
        ok = r->m->step(r->memory.arenas, &s, NULL, err);
    }
    return ok || lb_err_prefix(err, "%u rows of %u sequences at context %u", n_rows, n_seqs, ctx);
}

/* The last rows all at once, as many as there is room for. */
static bool most_logits(rehearsal *r, uint32_t n_seqs, uint32_t ctx, lb_err *err) {
    uint32_t t = r->m->t_max;
    uint32_t n = r->m->logit_rows_max;
    if (!lay_out(r, t, n_seqs, ctx)) {
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        r->logit_rows[i] = t - n + i;
    }
    return step(r, t, n_seqs, ctx, n, err);
}

static bool every_number_of_rows(rehearsal *r, uint32_t n_seqs, uint32_t ctx, lb_err *err) {
    uint32_t most = r->m->logit_rows_max;
    for (uint32_t t = n_seqs; t <= r->m->t_max; t++) {
        if (lay_out(r, t, n_seqs, ctx) &&
            !step(r, t, n_seqs, ctx, n_seqs < most ? n_seqs : most, err)) {
            return false;
        }
    }
    return most_logits(r, n_seqs, ctx, err);
}

/* Appends v to a list in ascending order if it is new and in 1..max. */
static void add(uint32_t *list, uint32_t *n, uint32_t v, uint32_t max) {
    if (v >= 1 && v <= max && (*n == 0 || v > list[*n - 1])) {
        list[(*n)++] = v;
    }
}

static bool every_step(rehearsal *r, lb_err *err) {
    const rt_model *m = r->m;
    uint32_t n_slots = 0;
    uint32_t n_contexts = 0;
    /* a window of 0: none, and a ring of 0 */
    uint32_t window = m->ring == 0 ? 0 : m->ring - m->ring_spare + 1;
    add(r->seen->slots, &n_slots, 1, m->slots);
    add(r->seen->slots, &n_slots, 2, m->slots);
    add(r->seen->slots, &n_slots, m->slots, m->slots);
    add(r->seen->contexts, &n_contexts, 1, m->ctx);
    add(r->seen->contexts, &n_contexts, window - (window > 0), m->ctx);
    add(r->seen->contexts, &n_contexts, window, m->ctx);
    add(r->seen->contexts, &n_contexts, window > 0 ? window + 1 : 0, m->ctx);
    add(r->seen->contexts, &n_contexts, m->ctx, m->ctx);
    for (uint32_t s = 0; s < n_slots; s++) {
        for (uint32_t c = 0; c < n_contexts; c++) {
            if (!every_number_of_rows(r, r->seen->slots[s], r->seen->contexts[c], err)) {
                return false;
            }
        }
    }
    return true;
}

bool rt_rehearse(const rt_model *m, const char *device, rt_rehearsal *out, lb_err *err) {
    rehearsal r = {.m = m, .seen = out};
    *out = (rt_rehearsal){0};
    if (m->device == NULL) {
        return lb_err_set(err, LB_BAD_VALUE, "a CPU program (%s) has no launches to be refused",
                          m->arch_row);
    }
    bool ok = start(&r, device, err) && every_step(&r, err);
    rt_memory_unmap(&r.memory);
    lb_arena_reset(&r.arena);
    return ok;
}
