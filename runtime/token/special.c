/* special.c -- longest special tokens first, then leftmost, see special.h.
 *
 * One pass notes the longest special token at each position; the others that match there are its
 * chain of `shorter`. Then one pass a length takes what is still free. */
#include "token/special.h"

#include <string.h>

#define TAKEN UINT32_C(0x80000000) /* on rt_special_hit.special */

static const char *special_text(const rt_tokenizer *tok, uint32_t s, size_t *n_bytes) {
    return rt_token_text(tok, tok->specials[s].id, n_bytes);
}

bool rt_special_finder_new(rt_special_finder *f, const rt_tokenizer *tok, size_t max_text_bytes,
                           lb_arena *arena, lb_err *err) {
    memset(f, 0, sizeof *f);
    for (uint32_t s = 0; s < tok->n_specials; s++) {
        size_t n;
        f->starts[(uint8_t)special_text(tok, s, &n)[0]] = true;
    }
    f->used = lb_alloc(arena, max_text_bytes, err);
    f->hits = lb_alloc_n(arena, max_text_bytes, sizeof *f->hits, err);
    return f->used != NULL && f->hits != NULL;
}

/* The first special in [low, high), all alike up to `depth`, whose byte there is >= `byte`. */
static uint32_t lower_bound(const rt_tokenizer *tok, uint32_t low, uint32_t high, size_t depth,
                            int byte) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t n;
        const char *s = special_text(tok, middle, &n);
        if (depth < n && (uint8_t)s[depth] >= byte) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The longest special token that `text` begins with, or RT_TOKEN_NONE. */
static uint32_t longest_at(const rt_tokenizer *tok, const char *text, size_t n_bytes) {
    uint32_t low = 0;
    uint32_t high = tok->n_specials;
    uint32_t found = RT_TOKEN_NONE;
    for (size_t depth = 0; depth < n_bytes && low < high; depth++) {
        int byte = (uint8_t)text[depth];
        low = lower_bound(tok, low, high, depth, byte);
        high = lower_bound(tok, low, high, depth, byte + 1);
        size_t n;
        if (low < high && (special_text(tok, low, &n), n == depth + 1)) {
            found = low;
        }
    }
    return found;
}

/* Some user span shares a byte with [at, at + n_bytes). */
static bool is_users(const rt_token_input *in, size_t at, size_t n_bytes) {
    size_t low = 0;
    size_t high = in->n_user;
    while (low < high) { /* the first span that ends behind `at` */
        size_t middle = low + (high - low) / 2;
        if (in->user[middle].at + in->user[middle].n_bytes > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    while (low < in->n_user && in->user[low].n_bytes == 0) {
        low++;
    }
    return low < in->n_user && in->user[low].at < at + n_bytes;
}

static bool may_take(const rt_special_finder *f, const rt_tokenizer *tok,
                     const rt_token_input *in, const rt_special_hit *hit, size_t n_bytes) {
    if ((tok->specials[hit->special].flags & RT_SPECIAL_PLAIN) == 0 &&
        (!in->parse_special || is_users(in, hit->at, n_bytes))) {
        return false;
    }
    return memchr(f->used + hit->at, 1, n_bytes) == NULL;
}

/* Takes the hits of one length and keeps those that may still be taken shorter. */
static size_t take_length(rt_special_finder *f, const rt_tokenizer *tok, const rt_token_input *in,
                          size_t n_hits, size_t n_bytes) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n_hits; i++) {
        rt_special_hit hit = f->hits[i];
        size_t n = n_bytes;
        if ((hit.special & TAKEN) == 0) {
            special_text(tok, hit.special, &n);
        }
        if (n == n_bytes && (hit.special & TAKEN) == 0) {
            if (may_take(f, tok, in, &hit, n)) {
                memset(f->used + hit.at, 1, n);
                hit.special |= TAKEN;
            } else {
                hit.special = tok->specials[hit.special].shorter;
            }
        }
        if (hit.special != RT_TOKEN_NONE) {
            f->hits[n_kept++] = hit;
        }
    }
    return n_kept;
}

size_t rt_special_find(rt_special_finder *f, const rt_tokenizer *tok, const rt_token_input *in) {
    size_t n = 0;
    for (size_t at = 0; at < in->n_bytes; at++) {
        if (!f->starts[(uint8_t)in->text[at]]) {
            continue;
        }
        uint32_t special = longest_at(tok, in->text + at, in->n_bytes - at);
        if (special != RT_TOKEN_NONE) {
            f->hits[n++] = (rt_special_hit){.at = (uint32_t)at, .special = special};
        }
    }
    if (n == 0) {
        return 0;
    }
    memset(f->used, 0, in->n_bytes);
    for (uint32_t i = 0; i < tok->n_special_bytes; i++) {
        n = take_length(f, tok, in, n, tok->special_bytes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        f->hits[i].special &= ~TAKEN;
    }
    return n;
}
