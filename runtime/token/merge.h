/* merge.h -- one word to token ids: the merging half of the encoder. Private to runtime/token. */
#ifndef RT_TOKEN_MERGE_H
#define RT_TOKEN_MERGE_H

#include "token/queue.h"
#include "token/token.h"

/* Two tokens side by side and the token that their texts make up, or RT_TOKEN_NONE. */
typedef struct rt_joined_pair {
    uint32_t left, right, id;
} rt_joined_pair;

enum { RT_JOINED_PAIRS = 1024 };

/* The token `id`, or RT_TOKEN_NONE, over the word's bytes from `at` to the next symbol's. */
typedef struct rt_symbol {
    uint32_t id, at, next, prev;
} rt_symbol;

/* The word at hand: a list of symbols, in text order. */
typedef struct rt_merger {
    rt_symbol *symbols;     /* [room_bytes + 1] */
    size_t room_bytes;      /* of the longest word that fits */
    rt_queue queue;         /* item i: the pair of symbol i and the one behind it; its value is the
                             * token that the two make */
    uint32_t first_id[256]; /* token of a one-byte symbol */
    rt_joined_pair *pairs;  /* RT_TOKENIZER_SCORES: pairs that were looked up lately,
                             * [RT_JOINED_PAIRS] by lb_hash_pair */
} rt_merger;

/* Where ids go: beyond `cap` they are only counted. */
typedef struct rt_token_sink {
    uint32_t *out;
    size_t cap;
    size_t n;
} rt_token_sink;

static inline void rt_token_put(rt_token_sink *sink, uint32_t id) {
    if (sink->n < sink->cap) {
        sink->out[sink->n] = id;
    }
    sink->n++;
}

/* A merger for words of up to n_bytes bytes. */
bool rt_merger_new(rt_merger *m, const rt_tokenizer *tok, size_t n_bytes, lb_arena *arena,
                   lb_err *err);

/* Makes room for a longer word, from `arena`: at least twice the room that there was, so that all
 * rooms together take at most twice what the last one does. Between words only. */
bool rt_merger_reserve(rt_merger *m, size_t n_bytes, lb_arena *arena, lb_err *err);

/* Encodes one word. Fails with LB_BAD_VALUE where a byte has no token and there is no unknown
 * one. */
bool rt_merge_word(rt_merger *m, const rt_tokenizer *tok, const char *word, size_t n_bytes,
                   rt_token_sink *sink, lb_err *err);

/* The token that ordinary text `s` is, as a whole, or RT_TOKEN_NONE. */
uint32_t rt_token_find(const rt_tokenizer *tok, const char *s, size_t n_bytes);

#endif
