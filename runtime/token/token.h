/* token.h -- text to token ids and back, for the one tokenizer that a program was made with.
 *
 * rt_tokenizer is constant data: emitted code defines it over the tables that the generator made
 * from the model file (gen/tok.h). Encoding follows the reference programs: special tokens first,
 * longest first; then the pre-tokenizer's words; then merges, lowest rank first, leftmost among
 * equals. It never recurses, takes time proportional to the text (up to a sort of equal pairs), and
 * works in memory whose bound depends on the longest text that is accepted. */
#ifndef RT_TOKEN_TOKEN_H
#define RT_TOKEN_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "token/split.h"

#define RT_TOKEN_NONE UINT32_MAX
enum { RT_TOKEN_TEXT_MAX = 1 << 30 };

/* What the smallest units of a word are, and what decides which pair is merged first. */
typedef enum rt_tokenizer_kind {
    RT_TOKENIZER_BYTES, /* byte-level BPE: bytes, merged by table */
    RT_TOKENIZER_CHARS, /* BPE: characters, merged by table */
    RT_TOKENIZER_SCORES /* SPM: characters, merged by the rank of what they become */
} rt_tokenizer_kind;

typedef enum rt_token_type { /* numbers as in model files */
    RT_TOKEN_UNDEFINED,
    RT_TOKEN_NORMAL,
    RT_TOKEN_UNKNOWN,
    RT_TOKEN_CONTROL,
    RT_TOKEN_USER, /* "user-defined": matched as a whole, printed */
    RT_TOKEN_UNUSED,
    RT_TOKEN_BYTE
} rt_token_type;

/* "left right" is the merge whose rank is its index; it makes token `id`. */
typedef struct rt_merge {
    uint32_t left, right, id;
} rt_merge;

enum { /* of a special token */
    RT_SPECIAL_PLAIN = 1,      /* white space only: it can mark nothing, and user text may have it */
    RT_SPECIAL_STRIP_LEFT = 2, /* swallows the white space before it */
    RT_SPECIAL_STRIP_RIGHT = 4 /* and behind it */
};

/* A token that is matched in the text as a whole. Sorted by bytes; `shorter` is the index of the
 * longest other special token that this one begins with, or RT_TOKEN_NONE. */
typedef struct rt_special {
    uint32_t id;
    uint32_t shorter;
    uint32_t flags;
} rt_special;

struct rt_tokenizer {
    rt_tokenizer_kind kind;
    uint32_t n_tokens;
    const char *text;        /* what each token prints, one after the other */
    const uint32_t *text_at; /* [n_tokens + 1] */
    const uint8_t *type;     /* [n_tokens], rt_token_type */
    uint32_t text_max_bytes; /* of one token */

    const uint32_t *byte_id;    /* [256], or RT_TOKEN_NONE */
    const uint32_t *text_slots; /* lb_slot by lb_hash_bytes; NULL where not needed. Holds only
                                 * tokens that ordinary text may become. */
    uint32_t text_slots_mask;
    uint32_t n_ranks;            /* of merges, or of scores */
    const uint32_t *rank;        /* RT_TOKENIZER_SCORES, [n_tokens]: lower merges first */
    const rt_merge *merges;      /* the others, [n_ranks] */
    const uint32_t *merge_slots; /* and lb_slot by lb_hash_pair */
    uint32_t merge_slots_mask;

    const rt_special *specials;
    uint32_t n_specials;
    const uint32_t *special_bytes; /* the different lengths of specials, longest first */
    uint32_t n_special_bytes;

    bool add_bos, add_eos, add_space_prefix;
    bool space_marks;    /* U+2581 stands for the space in the file; here it is the space */
    bool whole_words;    /* a word that is a token is taken as it is ("ignore_merges") */
    bool whole_newlines; /* the same, for words of nothing but newlines */
    uint32_t bos, eos, unknown; /* or RT_TOKEN_NONE */
    const uint32_t *eog; /* tokens that end a generation, ascending */
    uint32_t n_eog;

    /* Cuts t[0..n) into words; NULL: one word. */
    void (*split)(rt_char *t, size_t n);
};
typedef struct rt_tokenizer rt_tokenizer;

/* Bytes of a text that came from a user; no token but a plain one matches in or across them. */
typedef struct rt_token_span {
    size_t at, n_bytes;
} rt_token_span;

typedef struct rt_token_input {
    const char *text; /* any bytes */
    size_t n_bytes;
    bool add_special;   /* BOS and EOS as the tokenizer has it */
    bool parse_special; /* match special tokens; without it only plain ones are */
    bool at_most_one;   /* no BOS or EOS is added where the text brings it along (chat) */
    const rt_token_span *user; /* ascending, apart, inside the text; may be NULL */
    size_t n_user;
} rt_token_input;

/* Working memory of one encoder; not to be shared between threads. */
typedef struct rt_token_scratch rt_token_scratch;

/* Scratch for texts of up to max_text_bytes (at most RT_TOKEN_TEXT_MAX), from `arena`, which must
 * live as long: 14 bytes for each byte of text and 4 for each rank at once; 32 more for each byte of
 * the longest word, and at most 32 for room that was outgrown, while texts with such words are
 * encoded. Fails with LB_LIMIT, LB_NO_MEMORY. */
bool rt_token_scratch_new(const rt_tokenizer *tok, size_t max_text_bytes, lb_arena *arena,
                          rt_token_scratch **out, lb_err *err);

/* Encodes `in`. The first `cap` ids are written to `out`; *n_out is how many there are in all, so a
 * caller that finds *n_out > cap knows by how much the prompt is too long.
 * Bytes that are not UTF-8 are taken as U+FFFD, each; RT_TOKENIZER_SCORES has tokens for bytes and
 * keeps them. Fails with LB_LIMIT (text longer than the scratch is made for), LB_NO_MEMORY (for a
 * long word) and LB_BAD_VALUE (a byte for which the model has no token, user spans out of order). */
bool rt_token_encode(const rt_tokenizer *tok, const rt_token_input *in, rt_token_scratch *scratch,
                     uint32_t *out, size_t cap, size_t *n_out, lb_err *err);

/* The bytes of a token, not terminated: what a normal token prints (bytes, perhaps not whole
 * characters), or the name of a special one. "" for an id that is none. */
const char *rt_token_text(const rt_tokenizer *tok, uint32_t id, size_t *n_bytes);

/* The same as it appears in output: empty for control, unknown, unused and undefined tokens;
 * control and unknown ones keep their text if `show_control`. */
const char *rt_token_piece(const rt_tokenizer *tok, uint32_t id, bool show_control,
                           size_t *n_bytes);

/* True if `id` ends a generation. */
bool rt_token_is_eog(const rt_tokenizer *tok, uint32_t id);

#endif
