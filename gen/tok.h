/* tok.h -- the tokenizer of a model file, made into the tables that a program encodes with.
 *
 * Reads tokenizer.ggml.*; checks that lengths agree, that texts are unique, that merges join tokens
 * to a token, that ids are of tokens. The tables are those of runtime/token/token.h, which says
 * what they are for; this side only fills them. Texts are turned into what tokens print: bytes for
 * byte-level BPE, U+2581 as a space where that is its meaning. */
#ifndef LG_TOK_H
#define LG_TOK_H

#include "gguf.h"
#include "pretok.h"
#include "value.h"

#define LG_TOK_NONE UINT32_MAX

typedef enum lg_tok_kind { LG_TOK_BYTES, LG_TOK_CHARS, LG_TOK_SCORES } lg_tok_kind;

typedef enum lg_tok_type { /* numbers as in the file */
    LG_TOK_UNDEFINED,
    LG_TOK_NORMAL,
    LG_TOK_UNKNOWN,
    LG_TOK_CONTROL,
    LG_TOK_USER,
    LG_TOK_UNUSED,
    LG_TOK_BYTE
} lg_tok_type;

typedef struct lg_tok_merge {
    uint32_t left, right, id;
} lg_tok_merge;

typedef struct lg_tok_special {
    uint32_t id, shorter, flags; /* flags as in runtime/token/token.h */
} lg_tok_special;

typedef struct lg_tok {
    lg_tok_kind kind;
    const lg_pretok *pre; /* NULL for LG_TOK_SCORES */
    uint32_t n_tokens;
    const char *text;
    const uint32_t *text_at; /* [n_tokens + 1] */
    const uint8_t *type;     /* as generation sees it, after what eog.def changes */
    uint32_t text_max_bytes;

    const uint32_t *byte_id;    /* [256] */
    const uint32_t *text_slots; /* NULL where not needed */
    uint32_t n_text_slots;      /* power of two */
    uint32_t n_ranks;
    const uint32_t *rank;
    const lg_tok_merge *merges;
    const uint32_t *merge_slots;
    uint32_t n_merge_slots;
    uint32_t n_dropped_merges; /* they would have made special tokens out of plain text */

    const lg_tok_special *specials;
    uint32_t n_specials;
    const uint32_t *special_bytes;
    uint32_t n_special_bytes;

    bool add_bos, add_eos, add_space_prefix, space_marks, whole_words, whole_newlines;
    uint32_t bos, eos, unknown;
    const uint32_t *eog;
    uint32_t n_eog;
} lg_tok;

typedef struct lg_tok_options {
    const char *pre; /* name of the pre-tokenizer, in place of the file's; NULL: the file's */
    const char *const *ends; /* texts of tokens that end an answer, beside those of eog.def */
    uint32_t n_ends;
} lg_tok_options;

/* Reads the tokenizer; *out is NULL if the file has none. Fails with LB_MISSING, LB_BAD_VALUE,
 * LB_BAD_TYPE, LB_DUPLICATE, LB_UNSUPPORTED (a kind or pre-tokenizer that lagen does not know),
 * LB_LIMIT, LB_NO_MEMORY; messages name the key and the element. */
bool lg_tok_read(const lg_gguf *g, const lg_tok_options *options, lb_arena *arena, lg_tok **out,
                 lb_err *err);

/* The tables as one piece of memory that is linked into the program: little-endian, each table at a
 * multiple of 64. Sets *params to what templates/program/tokenizer.c.lua takes: numbers, names and
 * where each table lies. */
bool lg_tok_image(const lg_tok *t, lb_arena *arena, const uint8_t **image, size_t *n_bytes,
                  const lg_value **params, lb_err *err);

#endif
