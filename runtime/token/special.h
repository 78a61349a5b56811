/* special.h -- finds special tokens in a text, before it is cut into words. Private to
 * runtime/token. */
#ifndef RT_TOKEN_SPECIAL_H
#define RT_TOKEN_SPECIAL_H

#include "token/token.h"

/* A special token found at text[at]. */
typedef struct rt_special_hit {
    uint32_t at;
    uint32_t special; /* index in tok->specials */
} rt_special_hit;

typedef struct rt_special_finder {
    bool starts[256];     /* some special token begins with this byte */
    uint8_t *used;        /* [max text bytes] */
    rt_special_hit *hits; /* [max text bytes] */
} rt_special_finder;

bool rt_special_finder_new(rt_special_finder *f, const rt_tokenizer *tok, size_t max_text_bytes,
                           lb_arena *arena, lb_err *err);

/* Fills f->hits in text order and returns how many. Longer tokens come first; among tokens of one
 * length the leftmost; what is taken is taken. Only plain tokens match where in->parse_special is
 * false, and inside or across a user span. */
size_t rt_special_find(rt_special_finder *f, const rt_tokenizer *tok, const rt_token_input *in);

#endif
