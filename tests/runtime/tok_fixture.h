/* tok_fixture.h -- small tokenizers for tests, built straight from lists, without a model file. */
#ifndef TESTS_TOK_FIXTURE_H
#define TESTS_TOK_FIXTURE_H

#include "base/arena.h"
#include "token/token.h"

typedef struct tok_row {
    const char *text; /* as it prints */
    size_t n_bytes;
    rt_token_type type;
    uint32_t rank; /* for RT_TOKENIZER_SCORES */
} tok_row;

/* A tokenizer of `n` tokens and `n_merges` merges (ids filled in by the caller); copies nothing but
 * makes all tables. Flags, special ids and `split` are the caller's to set. Asserts on failure. */
rt_tokenizer *tok_fixture(rt_tokenizer_kind kind, const tok_row *rows, uint32_t n,
                          const rt_merge *merges, uint32_t n_merges, lb_arena *arena);

#endif
