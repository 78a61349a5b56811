/* merge.c -- merges the symbols of one word, lowest rank first, leftmost among equals.
 *
 * The order is that of the reference programs to the last tie: byte-level BPE by the index of the
 * merge, SPM by the score of the token that a pair makes up. */
#include "token/merge.h"

#include "base/hash.h"

bool rt_merger_new(rt_merger *m, const rt_tokenizer *tok, size_t n_bytes, lb_arena *arena,
                   lb_err *err) {
    uint32_t n_pairs = tok->kind == RT_TOKENIZER_SCORES ? RT_JOINED_PAIRS : 0;
    *m = (rt_merger){.pairs = lb_alloc_n(arena, n_pairs, sizeof *m->pairs, err)};
    if (m->pairs == NULL) {
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
    return rt_queue_new(&m->queue, tok->n_ranks, arena, err) &&
           rt_merger_reserve(m, n_bytes, arena, err);
}

bool rt_merger_reserve(rt_merger *m, size_t n_bytes, lb_arena *arena, lb_err *err) {
    if (m->symbols != NULL && n_bytes <= m->room_bytes) {
        return true;
    }
    size_t room = n_bytes > 2 * m->room_bytes ? n_bytes : 2 * m->room_bytes;
    rt_symbol *symbols = lb_alloc_n(arena, (uint64_t)room + 1, sizeof *symbols, err);
    if (symbols == NULL || !rt_queue_reserve(&m->queue, room + 1, arena, err)) {
        return false;
    }
    m->symbols = symbols;
    m->room_bytes = room;
    return true;
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

/* Rank of the merge "left right", or RT_QUEUE_NONE; *id is what it makes. */
static uint32_t find_merge(const rt_tokenizer *tok, uint32_t left, uint32_t right, uint32_t *id) {
    uint64_t hash = lb_hash_pair(left, right);
    for (uint64_t i = hash;; i++) {
        uint32_t slot = tok->merge_slots[i & tok->merge_slots_mask];
        if (slot == 0) {
            return RT_QUEUE_NONE;
        }
        const rt_merge *merge = &tok->merges[lb_slot_index(slot)];
        if (lb_slot_fits(slot, hash) && merge->left == left && merge->right == right) {
            *id = merge->id;
            return lb_slot_index(slot);
        }
    }
}

/* The token that symbols `left` and `right`, side by side, make up, by text. */
static uint32_t find_joined(const rt_merger *m, const rt_tokenizer *tok, const char *word,
                            const rt_symbol *left, const rt_symbol *right) {
    uint32_t n_bytes = m->symbols[right->next].at - left->at;
    if (left->id == RT_TOKEN_NONE || right->id == RT_TOKEN_NONE) {
        return rt_token_find(tok, word + left->at, n_bytes);
    }
    rt_joined_pair *pair = &m->pairs[lb_hash_pair(left->id, right->id) % RT_JOINED_PAIRS];
    if (pair->left != left->id || pair->right != right->id) {
        *pair = (rt_joined_pair){left->id, right->id,
                                 rt_token_find(tok, word + left->at, n_bytes)};
    }
    return pair->id;
}

/* Queues the pair of symbol i and the one behind it, if they merge. `n` is the end of the list. */
static void consider(rt_merger *m, const rt_tokenizer *tok, const char *word, uint32_t i,
                     uint32_t n) {
    const rt_symbol *left = &m->symbols[i];
    if (left->next == n) {
        return;
    }
    const rt_symbol *right = &m->symbols[left->next];
    uint32_t rank = RT_QUEUE_NONE;
    uint32_t id = RT_TOKEN_NONE;
    if (tok->kind == RT_TOKENIZER_SCORES) {
        id = find_joined(m, tok, word, left, right);
        rank = id == RT_TOKEN_NONE ? RT_QUEUE_NONE : tok->rank[id];
    } else if (left->id != RT_TOKEN_NONE && right->id != RT_TOKEN_NONE) {
        rank = find_merge(tok, left->id, right->id, &id);
    }
    if (rank != RT_QUEUE_NONE) {
        rt_queue_push(&m->queue, i, rank, id);
    }
}

/* Joins symbol i, whose pair was taken out of the queue, and its successor. */
static void join(rt_merger *m, const rt_tokenizer *tok, const char *word, uint32_t i, uint32_t n) {
    rt_symbol *left = &m->symbols[i];
    const rt_symbol *right = &m->symbols[left->next];
    left->id = m->queue.items[i].value;
    rt_queue_remove(&m->queue, left->next);
    left->next = right->next;
    if (left->next != n) {
        m->symbols[left->next].prev = i;
    }
    if (i != 0) {
        rt_queue_remove(&m->queue, left->prev);
        consider(m, tok, word, left->prev, n);
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
        m->symbols[n] = (rt_symbol){.at = (uint32_t)at, .next = n + 1, .prev = n - 1};
        m->symbols[n].id =
            len == 1 ? m->first_id[(uint8_t)word[at]] : rt_token_find(tok, word + at, len);
        at += len;
    }
    m->symbols[n].at = (uint32_t)n_bytes;
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
    for (uint32_t i = 0; i != n; i = m->symbols[i].next) {
        const rt_symbol *symbol = &m->symbols[i];
        uint32_t n_bytes = m->symbols[symbol->next].at - symbol->at;
        if (symbol->id != RT_TOKEN_NONE) {
            rt_token_put(sink, symbol->id);
        } else if (!put_bytes(tok, word + symbol->at, n_bytes, sink, err)) {
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
        join(m, tok, word, i, n);
    }
    return put_symbols(m, tok, word, n, sink, err);
}
