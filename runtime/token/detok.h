/* detok.h -- token ids to text, as a stream of whole UTF-8 characters.
 *
 * Tokens may end inside a character; those bytes are held back until the rest arrives. What turns
 * out to be no UTF-8 becomes U+FFFD, one for each maximal part of a character (Unicode, section
 * 3.9), so every output is well-formed and can go into JSON. */
#ifndef RT_TOKEN_DETOK_H
#define RT_TOKEN_DETOK_H

#include "token/token.h"

typedef struct rt_detok {
    const rt_tokenizer *tok;
    bool show_control;
    bool strip_space;     /* drop one leading space of the next piece that is not empty */
    char held[4];         /* the beginning of a character */
    size_t n_held;
} rt_detok;

/* Begins a stream. `strip_space` undoes the space that some tokenizers put before a text: set it
 * when decoding a whole text, not for the continuation of a prompt. */
void rt_detok_init(rt_detok *d, const rt_tokenizer *tok, bool show_control, bool strip_space);

/* Room that one push or flush may need. */
size_t rt_detok_max_bytes(const rt_tokenizer *tok);

/* Appends token `id`; writes the characters that are whole now to `out` (rt_detok_max_bytes) and
 * returns how many bytes. */
size_t rt_detok_push(rt_detok *d, uint32_t id, char *out);

/* Ends the stream: an incomplete character becomes U+FFFD. */
size_t rt_detok_flush(rt_detok *d, char *out);

#endif
