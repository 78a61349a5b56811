/* merge.c -- merges the symbols of one word, lowest rank first, leftmost among equals.
 *
 * The order is that of the reference programs to the last tie: byte-level BPE by the index of the
 * merge, SPM by the score of the token that a pair makes up. */
#include "token/merge.h"

#include <string.h>

#include "base/hash.h"

bool rt_merger_new(rt_merger *m, const rt_tokenizer *tok, size_t n_bytes, lb_arena *arena,
                   lb_err *err) {
    uint32_t n = (uint32_t)n_bytes + 1;
    *m = (rt_merger){.id = lb_alloc_n(arena, n, sizeof *m->id, err)};
    m->at = lb_alloc_n(arena, n, sizeof *m->at, err);
    m->next = lb_alloc_n(arena, n, sizeof *m->next, err);
    m->prev = lb_alloc_n(arena, n, sizeof *m->prev, err);
    return m->id != NULL && m->at != NULL && m->next != NULL && m->prev != NULL &&
           rt_queue_new(&m->queue, tok->n_ranks, n, arena, err);
}

uint32_t rt_token_find(const rt_tokenizer *tok, const char *s, size_t n_bytes) {
    if (tok->text_slots == NULL || n_bytes > tok->text_max_bytes || n_bytes == 0) {
        return RT_TOKEN_NONE;
    }
    for (uint64_t slot = lb_hash_bytes(s, n_bytes);; slot++) {
        uint32_t entry = tok->text_slots[slot & tok->text_slots_mask];
        if (entry == 0) {
            return RT_TOKEN_NONE;
        }
        uint32_t at = tok->text_at[entry - 1];
        if (tok->text_at[entry] - at == n_bytes && memcmp(tok->text + at, s, n_bytes) == 0) {
            return entry - 1;
        }
    }
}

/* Rank of the merge "left right", or RT_QUEUE_NONE. */
static uint32_t find_merge(const rt_tokenizer *tok, uint32_t left, uint32_t right) {
    for (uint64_t slot = lb_hash_pair(left, right);; slot++) {
        uint32_t entry = tok->merge_slots[slot & tok->merge_slots_mask];
        if (entry == 0) {
            return RT_QUEUE_NONE;
        }
        const rt_merge *merge = &tok->merges[entry - 1];
        if (merge->left == left && merge->right == right) {
            return entry - 1;
        }
    }
}

/* The token that symbols i and its successor make up, by text. */
static uint32_t find_joined(const rt_merger *m, const rt_tokenizer *tok, const char *word,
                            uint32_t i) {
    uint32_t end = m->at[m->next[m->next[i]]];
    return rt_token_find(tok, word + m->at[i], end - m->at[i]);
}

/* Queues the pair of symbol i and the one behind it, if they merge. `n` is the end of the list. */
static void consider(rt_merger *m, const rt_tokenizer *tok, const char *word, uint32_t i,
                     uint32_t n) {
    uint32_t right = m->next[i];
    if (right == n) {
        return;
    }
    uint32_t rank = RT_QUEUE_NONE;
    if (tok->kind == RT_TOKENIZER_SCORES) {
        uint32_t id = find_joined(m, tok, word, i);
        rank = id == RT_TOKEN_NONE ? RT_QUEUE_NONE : tok->rank[id];
    } else if (m->id[i] != RT_TOKEN_NONE && m->id[right] != RT_TOKEN_NONE) {
        rank = find_merge(tok, m->id[i], m->id[right]);
    }
    if (rank != RT_QUEUE_NONE) {
        rt_queue_push(&m->queue, i, rank);
    }
}

/* Joins symbol i, whose pair came up with `rank`, and its successor. */
static void join(rt_merger *m, const rt_tokenizer *tok, const char *word, uint32_t i,
                 uint32_t rank, uint32_t n) {
    uint32_t right = m->next[i];
    m->id[i] = tok->kind == RT_TOKENIZER_SCORES ? find_joined(m, tok, word, i)
                                                 : tok->merges[rank].id;
    rt_queue_remove(&m->queue, right);
    m->next[i] = m->next[right];
    if (m->next[i] != n) {
        m->prev[m->next[i]] = i;
    }
    if (i != 0) {
        rt_queue_remove(&m->queue, m->prev[i]);
        consider(m, tok, word, m->prev[i], n);
    }
    consider(m, tok, word, i, n);
}

/* Bytes of the smallest symbol at word[at]: a byte, or a character; what is no character is taken
 * byte by byte. */
static size_t unit_bytes(rt_tokenizer_kind kind, const char *word, size_t at, size_t n_bytes) {
    uint32_t code;
    if (kind == RT_TOKENIZER_BYTES) {
        return 1;
    }
    size_t n = lb_utf8_decode(word + at, n_bytes - at, &code);
    return n == 0 ? 1 : n;
}

/* Fills the list with the smallest symbols; returns how many. */
static uint32_t begin(rt_merger *m, const rt_tokenizer *tok, const char *word, size_t n_bytes) {
    uint32_t n = 0;
    for (size_t at = 0; at < n_bytes; n++) {
        size_t len = unit_bytes(tok->kind, word, at, n_bytes);
        m->id[n] = tok->kind == RT_TOKENIZER_BYTES ? tok->byte_id[(uint8_t)word[at]]
                                                   : rt_token_find(tok, word + at, len);
        m->at[n] = (uint32_t)at;
        m->next[n] = n + 1;
        m->prev[n] = n - 1;
        at += len;
    }
    m->at[n] = (uint32_t)n_bytes;
    rt_queue_begin(&m->queue, n);
    return n;
}

/* Puts bytes that no token covers: each one's own token, else the unknown one. */
static bool put_bytes(const rt_tokenizer *tok, const char *s, size_t n_bytes, rt_token_sink *sink,
                      lb_err *err) {
    if (tok->space_marks && n_bytes == 1 && s[0] == ' ') {
        s = "\xE2\x96\x81"; /* what the space is called in the file */
        n_bytes = 3;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        uint32_t id = tok->byte_id[(uint8_t)s[i]];
        if (id == RT_TOKEN_NONE) {
            id = tok->unknown;
        }
        if (id == RT_TOKEN_NONE) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "the text holds byte 0x%02X, for which this model has no token",
                              (uint8_t)s[i]);
        }
        rt_token_put(sink, id);
    }
    return true;
}

static bool put_symbols(const rt_merger *m, const rt_tokenizer *tok, const char *word, uint32_t n,
                        rt_token_sink *sink, lb_err *err) {
    for (uint32_t i = 0; i != n; i = m->next[i]) {
        if (m->id[i] != RT_TOKEN_NONE) {
            rt_token_put(sink, m->id[i]);
        } else if (!put_bytes(tok, word + m->at[i], m->at[m->next[i]] - m->at[i], sink, err)) {
            return false;
        }
    }
    return true;
}

static bool taken_whole(const rt_tokenizer *tok, const char *word, size_t n_bytes) {
    if (tok->whole_words) {
        return true;
    }
    size_t n = 0;
    while (tok->whole_newlines && n < n_bytes && word[n] == '\n') {
        n++;
    }
    return n == n_bytes;
}

bool rt_merge_word(rt_merger *m, const rt_tokenizer *tok, const char *word, size_t n_bytes,
                   rt_token_sink *sink, lb_err *err) {
    if (taken_whole(tok, word, n_bytes)) {
        uint32_t id = rt_token_find(tok, word, n_bytes);
        if (id != RT_TOKEN_NONE) {
            rt_token_put(sink, id);
            return true;
        }
    }
    uint32_t n = begin(m, tok, word, n_bytes);
    for (uint32_t i = 0; i < n; i++) {
        consider(m, tok, word, i, n);
    }
    for (;;) {
        uint32_t rank;
        uint32_t i = rt_queue_pop(&m->queue, &rank);
        if (i == RT_QUEUE_NONE) {
            break;
        }
        join(m, tok, word, i, rank, n);
    }
    return put_symbols(m, tok, word, n, sink, err);
}
