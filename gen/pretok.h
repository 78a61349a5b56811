/* pretok.h -- the pre-tokenizers that lagen knows, by name (pretok.def). */
#ifndef LG_PRETOK_H
#define LG_PRETOK_H

#include <stddef.h>
#include <stdint.h>

enum {
    LG_PRETOK_BOS = 1,           /* adds BOS unless the file says otherwise */
    LG_PRETOK_NO_BOS = 2,        /* has no BOS token unless the file names one */
    LG_PRETOK_WHOLE_WORDS = 4,   /* a word that is a token is taken whole ("ignore_merges") */
    LG_PRETOK_CHARS = 8,         /* merges characters, not bytes */
    LG_PRETOK_SPACE_MARKS = 16,  /* writes the space as U+2581 */
    LG_PRETOK_WHOLE_NEWLINES = 32, /* a word of newlines that is a token is taken whole */
    LG_PRETOK_ALWAYS_BOS = 64      /* adds BOS whatever the file says */
};

/* Expressions, applied one after the other; shared by the names that use them. */
typedef struct lg_split {
    const char *id;
    const char *const *stages;
    size_t n_stages;
} lg_split;

typedef struct lg_pretok {
    const char *name;
    const lg_split *split;
    uint32_t flags;
} lg_pretok;

/* The row of `name` (n_bytes long), or NULL. */
const lg_pretok *lg_pretok_find(const char *name, size_t n_bytes);

/* All rows, in the order of pretok.def. */
const lg_pretok *lg_pretok_rows(size_t *n);

/* All different splits. */
const lg_split *lg_split_rows(size_t *n);

#endif
