/* merge.c -- merges the symbols of one word, lowest rank first, leftmost among equals.
 *
 * The order is that of the reference programs to the last tie: byte-level BPE by the index of the
 * merge, SPM by the score of the token that a pair makes up. */
#include "token/merge.h"

#include "base/hash.h"

bool rt_merger_new(rt_merger *m, const rt_tokenizer *tok, size_t n_bytes, lb_arena *arena,
                   lb_err *err) {
    uint32_t n = (uint32_t)n_bytes + 1;
    uint32_t n_scored = tok->kind == RT_TOKENIZER_SCORES ? n : 0;
    uint32_t n_pairs = tok->kind == RT_TOKENIZER_SCORES ? RT_JOINED_PAIRS : 0;
    *m = (rt_merger){.id = lb_alloc_n(arena, n, sizeof *m->id, err)};
    m->at = lb_alloc_n(arena, n, sizeof *m->at, err);
    m->next = lb_alloc_n(arena, n, sizeof *m->next, err);
    m->prev = lb_alloc_n(arena, n, sizeof *m->prev, err);
    m->joined = lb_alloc_n(arena, n_scored, sizeof *m->joined, err);
    m->pairs = lb_alloc_n(arena, n_pairs, sizeof *m->pairs, err);
    if (m->id == NULL || m->at == NULL || m->next == NULL || m->prev == NULL ||
        m->joined == NULL || m->pairs == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        m->pairs[i].left = RT_TOKEN_NONE;
    }
    for (int byte = 0; byte < 256; byte++) {
        char text = (char)byte;
        bool by_table = tok->kind == RT_TOKENIZER_BYTES;
        m->first_id[byte] = by_table ? tok->byte_id[byte] : rt_token_find(tok, &text, 1);
    }
    return rt_queue_new(&m->queue, tok->n_ranks, n, arena, err);
}

/* Equality of two texts of 1 byte or more: most are short, and a call costs more than they do. */
static bool same_bytes(const char *a, const char *b, size_t n) {
    const uint8_t *p = (const uint8_t *)a;
    const uint8_t *q = (const uint8_t *)b;
    for (; n > 8; n -= 8, p += 8, q += 8) {
        if (lb_hash_word(p, 8) != lb_hash_word(q, 8)) {
            return false;
        }
    }
    return lb_hash_word(p, n) == lb_hash_word(q, n);
}

uint32_t rt_token_find(const rt_tokenizer *tok, const char *s, size_t n_bytes) {
    if (tok->text_slots == NULL || n_bytes > tok->text_max_bytes || n_bytes == 0) {
        return RT_TOKEN_NONE;
    }
    uint64_t hash = lb_hash_bytes(s, n_bytes);
    for (uint64_t i = hash;; i++) {
        uint32_t slot = tok->text_slots[i & tok->text_slots_mask];
        if (slot == 0) {
            return RT_TOKEN_NONE;
        }
        if (!lb_slot_fits(slot, hash)) {
            continue;
        }
        uint32_t id = lb_slot_index(slot);
        uint32_t at = tok->text_at[id];
        if (tok->text_at[id + 1] - at == n_bytes && same_bytes(tok->text + at, s, n_bytes)) {
            return id;
        }
    }
}

/* Rank of the merge "left right", or RT_QUEUE_NONE. */
static uint32_t find_merge(const rt_tokenizer *tok, uint32_t left, uint32_t right) {
    uint64_t hash = lb_hash_pair(left, right);
    for (uint64_t i = hash;; i++) {
        uint32_t slot = tok->merge_slots[i & tok->merge_slots_mask];
        if (slot == 0) {
            return RT_QUEUE_NONE;
        }
        const rt_merge *merge = &tok->merges[lb_slot_index(slot)];
        if (lb_slot_fits(slot, hash) && merge->left == left && merge->right == right) {
            return lb_slot_index(slot);
        }
    }
}

/* The token that symbols i and `right`, the next one, make up, by text. */
static uint32_t find_joined(const rt_merger *m, const rt_tokenizer *tok, const char *word,
                            uint32_t i, uint32_t right) {
    uint32_t end = m->at[m->next[right]];
    uint32_t left_id = m->id[i];
    uint32_t right_id = m->id[right];
    if (left_id == RT_TOKEN_NONE || right_id == RT_TOKEN_NONE) {
        return rt_token_find(tok, word + m->at[i], end - m->at[i]);
    }
    rt_joined_pair *pair = &m->pairs[lb_hash_pair(left_id, right_id) % RT_JOINED_PAIRS];
    if (pair->left != left_id || pair->right != right_id) {
        *pair = (rt_joined_pair){left_id, right_id,
                                 rt_token_find(tok, word + m->at[i], end - m->at[i])};
    }
    return pair->id;
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
        uint32_t id = find_joined(m, tok, word, i, right);
        rank = id == RT_TOKEN_NONE ? RT_QUEUE_NONE : tok->rank[id];
        m->joined[i] = id;
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
    m->id[i] = tok->kind == RT_TOKENIZER_SCORES ? m->joined[i] : tok->merges[rank].id;
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
    if (kind == RT_TOKENIZER_BYTES || (uint8_t)word[at] < 0x80) {
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
        m->id[n] = len == 1 ? m->first_id[(uint8_t)word[at]] : rt_token_find(tok, word + at, len);
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
