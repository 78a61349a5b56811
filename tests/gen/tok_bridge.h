/* tok_bridge.h -- joins the two halves of the tokenizer in one process, without a compiler between
 * them: the generator's tables, the runtime's code, and the emitted pre-tokenizers of splits.c. */
#ifndef TESTS_TOK_BRIDGE_H
#define TESTS_TOK_BRIDGE_H

#include "tok.h"
#include "token/token.h"

/* The tokenizer that a program with these tables would have. */
rt_tokenizer tok_bridge(const lg_tok *t);

/* Ids of `text`, which must encode; at most `cap` are written, their number is returned. */
size_t tok_encode(const rt_tokenizer *t, const rt_token_input *in, uint32_t *out, size_t cap);

#endif
