/* tok_parts.h -- what the files that make a tokenizer's tables share; private to them. */
#ifndef LG_TOK_PARTS_H
#define LG_TOK_PARTS_H

#include "gguf_value.h"
#include "tok.h"

/* A tokenizer in the making: the file's own texts beside the tables. */
typedef struct lg_tok_build {
    const lg_gguf *g;
    lb_arena *arena;
    lg_tok *t;
    const lg_gguf_str *raw; /* [n_tokens] texts as in the file */
    uint8_t *type;          /* t->type, still writable */
    const uint32_t *slots;  /* ids by lb_hash_bytes of the raw text */
    uint32_t n_slots;
} lg_tok_build;

/* Id of the token whose text in the file is `s`, or LG_TOK_NONE. */
uint32_t lg_tok_find_raw(const lg_tok_build *b, const char *s, uint64_t n_bytes);

/* Smallest power of two that keeps a table of `n` entries at most half full. */
uint32_t lg_tok_slots_for(uint32_t n);

/* Puts `index` into a table, see base/hash.h. */
void lg_tok_add_slot(uint32_t *slots, uint32_t n_slots, uint64_t hash, uint32_t index);

/* True for tokens that ordinary text may become. */
bool lg_tok_is_ordinary(lg_tok_type type);

/* tok_eog.c: the ids that end a generation, and the types that eog.def changes. */
bool lg_tok_find_eog(lg_tok_build *b, const lg_tok_options *options, lb_err *err);

/* tok_text.c: what tokens print, their bytes, the lookup by text. */
bool lg_tok_make_texts(lg_tok_build *b, lb_err *err);

/* tok_merge.c: merges, or ranks by score. */
bool lg_tok_make_merges(lg_tok_build *b, lb_err *err);
bool lg_tok_make_ranks(lg_tok_build *b, lb_err *err);

/* tok_special.c: tokens that are matched as a whole. */
bool lg_tok_make_specials(lg_tok_build *b, lb_err *err);

#endif
