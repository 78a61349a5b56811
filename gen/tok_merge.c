/* tok_merge.c -- merges as pairs of ids, or, for SPM, ranks by score. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tok_parts.h"

/* A text that comes from the file, for a message. */
static int shown_bytes(const lg_gguf_str *s) {
    return s->n_bytes > 60 ? 60 : (int)s->n_bytes;
}

static bool bad_merge(uint64_t i, const lg_gguf_str *merge, lb_code code, const char *what,
                      lb_err *err) {
    return lb_err_set(err, code, "key 'tokenizer.ggml.merges': element %" PRIu64 " '%.*s' %s", i,
                      shown_bytes(merge), merge->data, what);
}

/* "A B" as ids: parted at the first space behind the first byte; A, B and AB must be tokens. */
static bool parse_merge(const lg_tok_build *b, uint64_t i, const lg_gguf_str *merge, char *joined,
                        lg_tok_merge *out, lb_err *err) {
    const char *space =
        merge->n_bytes < 2 ? NULL : memchr(merge->data + 1, ' ', merge->n_bytes - 1);
    if (space == NULL) {
        return bad_merge(i, merge, LB_BAD_FORMAT, "is not two parts with a space between", err);
    }
    uint64_t n_left = (uint64_t)(space - merge->data);
    uint64_t n_right = merge->n_bytes - n_left - 1;
    memcpy(joined, merge->data, n_left);
    memcpy(joined + n_left, space + 1, n_right);
    lg_tok_merge m = {.left = lg_tok_find_raw(b, merge->data, n_left),
                      .right = lg_tok_find_raw(b, space + 1, n_right),
                      .id = lg_tok_find_raw(b, joined, n_left + n_right)};
    if (m.left == LG_TOK_NONE || m.right == LG_TOK_NONE) {
        return bad_merge(i, merge, LB_MISSING, "names a part that is no token", err);
    }
    if (m.id == LG_TOK_NONE) {
        return bad_merge(i, merge, LB_MISSING, "makes a text that is no token", err);
    }
    *out = m;
    return true;
}

/* Puts merge `rank` into the table unless its pair is there already: the first one counts. */
static bool add_merge(lg_tok *t, lg_tok_merge *merges, uint32_t *slots, lg_tok_merge m) {
    uint64_t hash = lb_hash_pair(m.left, m.right);
    for (uint64_t i = hash;; i++) {
        uint32_t slot = slots[i & (t->n_merge_slots - 1)];
        if (slot == 0) {
            break;
        }
        const lg_tok_merge *other = &merges[lb_slot_index(slot)];
        if (other->left == m.left && other->right == m.right) {
            return false;
        }
    }
    lg_tok_add_slot(slots, t->n_merge_slots, hash, t->n_ranks);
    merges[t->n_ranks++] = m;
    return true;
}

static uint64_t longest(const lg_gguf_str *texts, uint64_t n) {
    uint64_t most = 0;
    for (uint64_t i = 0; i < n; i++) {
        most = texts[i].n_bytes > most ? texts[i].n_bytes : most;
    }
    return most;
}

bool lg_tok_make_merges(lg_tok_build *b, lb_err *err) {
    const lg_gguf_str *texts = NULL;
    uint64_t n = 0;
    if (!lg_gguf_strs(b->g, "tokenizer.ggml.merges", b->arena, &texts, &n, err)) {
        return false;
    }
    lg_tok *t = b->t;
    t->n_merge_slots = lg_tok_slots_for((uint32_t)n);
    lg_tok_merge *merges = lb_alloc_n(b->arena, n, sizeof *merges, err);
    uint32_t *slots = lb_alloc_n(b->arena, t->n_merge_slots, sizeof *slots, err);
    char *joined = lb_alloc(b->arena, longest(texts, n), err);
    if (merges == NULL || slots == NULL || joined == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        lg_tok_merge m = {0};
        if (!parse_merge(b, i, &texts[i], joined, &m, err)) {
            return false;
        }
        if (!lg_tok_is_ordinary((lg_tok_type)b->type[m.id])) {
            t->n_dropped_merges++;
        } else {
            add_merge(t, merges, slots, m);
        }
    }
    t->merges = merges;
    t->merge_slots = slots;
    return true;
}

static int descending(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Index of `score` among `n` different ones in descending order. */
static uint32_t rank_of(const float *scores, uint32_t n, float score) {
    uint32_t low = 0;
    while (n > 1) {
        uint32_t half = n / 2;
        if (scores[low + half] >= score) {
            low += half;
            n -= half;
        } else {
            n = half;
        }
    }
    return low;
}

bool lg_tok_make_ranks(lg_tok_build *b, lb_err *err) {
    lg_tok *t = b->t;
    const float *scores = NULL;
    uint64_t n_scores = 0;
    uint32_t *rank = lb_alloc_n(b->arena, t->n_tokens, sizeof *rank, err);
    float *sorted = lb_alloc_n(b->arena, t->n_tokens, sizeof *sorted, err);
    if (rank == NULL || sorted == NULL) {
        return false;
    }
    t->rank = rank;
    t->n_ranks = 1;
    if (lg_gguf_find(b->g, "tokenizer.ggml.scores") == NULL) {
        return true;
    }
    if (!lg_gguf_f32s(b->g, "tokenizer.ggml.scores", b->arena, &scores, &n_scores, err)) {
        return false;
    }
    if (n_scores != t->n_tokens) {
        return lb_err_set(err, LB_BAD_VALUE, "key 'tokenizer.ggml.scores': %" PRIu64
                          " elements for %u tokens", n_scores, t->n_tokens);
    }
    memcpy(sorted, scores, n_scores * sizeof *sorted);
    qsort(sorted, t->n_tokens, sizeof *sorted, descending);
    for (uint32_t i = 1; i < t->n_tokens; i++) {
        if (sorted[i] < sorted[t->n_ranks - 1]) {
            sorted[t->n_ranks++] = sorted[i];
        }
    }
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        rank[id] = rank_of(sorted, t->n_ranks, scores[id]);
    }
    return true;
}
