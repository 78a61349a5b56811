/* token.c -- the encoder's outer half: special tokens, the fragments between them, words. */
#include "token/token.h"

#include <string.h>

#include "token/merge.h"
#include "token/special.h"

struct rt_token_scratch {
    size_t max_text_bytes;
    char *text;     /* a fragment made ready, one byte longer than the longest text */
    rt_char *chars; /* the same as characters */
    rt_special_finder finder;
    rt_merger merger;
    lb_arena *arena; /* for words that are longer than any before */
};

/* Words that fit without more ado. */
enum { WORD_BYTES = 4096 };

bool rt_token_scratch_new(const rt_tokenizer *tok, size_t max_text_bytes, lb_arena *arena,
                          rt_token_scratch **out, lb_err *err) {
    if (max_text_bytes > RT_TOKEN_TEXT_MAX) {
        return lb_err_set(err, LB_LIMIT, "texts of %zu bytes: at most %d can be encoded",
                          max_text_bytes, (int)RT_TOKEN_TEXT_MAX);
    }
    size_t n = max_text_bytes + 1;
    rt_token_scratch *s = lb_alloc(arena, sizeof *s, err);
    if (s == NULL) {
        return false;
    }
    s->max_text_bytes = max_text_bytes;
    s->arena = arena;
    s->text = lb_alloc(arena, n, err);
    s->chars = lb_alloc_n(arena, n, sizeof *s->chars, err);
    if (s->text == NULL || s->chars == NULL ||
        !rt_special_finder_new(&s->finder, tok, max_text_bytes, arena, err) ||
        !rt_merger_new(&s->merger, tok, n < WORD_BYTES ? n : WORD_BYTES, arena, err)) {
        return false;
    }
    *out = s;
    return true;
}

/* Makes a fragment ready where it cannot be taken as it is: U+2581 becomes the space that it stands
 * for, a bad byte becomes U+FFFD. With `space`, one goes in front. */
typedef struct fragment {
    const char *text;
    size_t n_bytes;
} fragment;

static bool add_bytes(rt_token_scratch *s, size_t *n, const char *bytes, size_t n_bytes,
                      lb_err *err) {
    if (n_bytes > s->max_text_bytes + 1 - *n) {
        return lb_err_set(err, LB_LIMIT,
                          "the text is too long: with its invalid UTF-8 replaced it has more than "
                          "%zu bytes",
                          s->max_text_bytes);
    }
    memcpy(s->text + *n, bytes, n_bytes);
    *n += n_bytes;
    return true;
}

static bool rewrite(const rt_tokenizer *tok, rt_token_scratch *s, bool space, fragment *f,
                    lb_err *err) {
    size_t n = 0;
    if (space) {
        s->text[n++] = ' ';
    }
    for (size_t at = 0; at < f->n_bytes;) {
        uint32_t code = 0;
        const char *bytes = f->text + at;
        size_t len = lb_utf8_decode(bytes, f->n_bytes - at, &code);
        size_t n_new = len;
        if (len == 0) {
            bool keep = tok->kind == RT_TOKENIZER_SCORES;
            bytes = keep ? bytes : "\xEF\xBF\xBD";
            n_new = keep ? 1 : 3;
            len = 1;
        } else if (tok->space_marks && code == 0x2581) {
            bytes = " ";
            n_new = 1;
        }
        if (!add_bytes(s, &n, bytes, n_new, err)) {
            return false;
        }
        at += len;
    }
    f->text = s->text;
    f->n_bytes = n;
    return true;
}

static bool encode_word(const rt_tokenizer *tok, rt_token_scratch *s, const char *word,
                        size_t n_bytes, rt_token_sink *sink, lb_err *err) {
    return rt_merger_reserve(&s->merger, n_bytes, s->arena, err) &&
           rt_merge_word(&s->merger, tok, word, n_bytes, sink, err);
}

static bool encode_words(const rt_tokenizer *tok, rt_token_scratch *s, const fragment *f,
                         rt_token_sink *sink, lb_err *err) {
    size_t n = rt_split_chars(f->text, f->n_bytes, s->chars);
    tok->split(s->chars, n);
    size_t at_byte = 0;
    for (size_t at = 0; at < n;) {
        size_t end = rt_split_next(s->chars, at, n);
        size_t n_bytes = 0;
        for (; at < end; at++) {
            n_bytes += lb_utf8_bytes(rt_code(s->chars[at]));
        }
        if (!encode_word(tok, s, f->text + at_byte, n_bytes, sink, err)) {
            return false;
        }
        at_byte += n_bytes;
    }
    return true;
}

static bool encode_fragment(const rt_tokenizer *tok, rt_token_scratch *s, fragment f,
                            rt_token_sink *sink, lb_err *err) {
    if (f.n_bytes == 0) {
        return true;
    }
    bool raw = !tok->space_marks && lb_utf8_valid_bytes(f.text, f.n_bytes) == f.n_bytes;
    if (!raw && !rewrite(tok, s, tok->add_space_prefix, &f, err)) {
        return false;
    }
    if (tok->split != NULL) {
        return encode_words(tok, s, &f, sink, err);
    }
    return encode_word(tok, s, f.text, f.n_bytes, sink, err);
}

static bool check_input(const rt_token_input *in, const rt_token_scratch *s, lb_err *err) {
    if (in->n_bytes > s->max_text_bytes) {
        return lb_err_set(err, LB_LIMIT,
                          "the text is too long: %zu bytes, this program takes %zu", in->n_bytes,
                          s->max_text_bytes);
    }
    size_t at = 0;
    for (size_t i = 0; i < in->n_user; i++) {
        const rt_token_span *span = &in->user[i];
        if (span->at < at || span->at > in->n_bytes || span->n_bytes > in->n_bytes - span->at) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "user span %zu, %zu bytes at %zu, is out of order or outside the "
                              "text of %zu bytes",
                              i, span->n_bytes, span->at, in->n_bytes);
        }
        at = span->at + span->n_bytes;
    }
    return true;
}

static bool is_c_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The special token of hit i, or RT_TOKEN_NONE where no special token stands at that edge. */
static uint32_t edge_id(const rt_tokenizer *tok, const rt_token_scratch *s, size_t n_hits,
                        bool at_end, size_t n_bytes) {
    if (n_hits == 0) {
        return RT_TOKEN_NONE;
    }
    const rt_special_hit *hit = &s->finder.hits[at_end ? n_hits - 1 : 0];
    uint32_t id = tok->specials[hit->special].id;
    size_t len;
    rt_token_text(tok, id, &len);
    bool there = at_end ? hit->at + len == n_bytes : hit->at == 0;
    return there ? id : RT_TOKEN_NONE;
}

/* The text between two special tokens (NULL: the text's own ends), without what they swallow. */
static fragment fragment_between(const rt_tokenizer *tok, const rt_token_input *in,
                                 const rt_special_hit *left, const rt_special_hit *right) {
    size_t at = 0;
    size_t end = right == NULL ? in->n_bytes : right->at;
    if (left != NULL) {
        rt_token_text(tok, tok->specials[left->special].id, &at);
        at += left->at;
    }
    uint32_t left_flags = left == NULL ? 0 : tok->specials[left->special].flags;
    uint32_t right_flags = right == NULL ? 0 : tok->specials[right->special].flags;
    while (at < end && (left_flags & RT_SPECIAL_STRIP_RIGHT) != 0 && is_c_space(in->text[at])) {
        at++;
    }
    while (at < end && (right_flags & RT_SPECIAL_STRIP_LEFT) != 0 &&
           is_c_space(in->text[end - 1])) {
        end--;
    }
    return (fragment){.text = in->text + at, .n_bytes = end - at};
}

bool rt_token_encode(const rt_tokenizer *tok, const rt_token_input *in, rt_token_scratch *scratch,
                     uint32_t *out, size_t cap, size_t *n_out, lb_err *err) {
    if (!check_input(in, scratch, err)) {
        return false;
    }
    rt_token_sink sink = {.out = out, .cap = cap, .n = 0};
    size_t n_hits = rt_special_find(&scratch->finder, tok, in);
    bool bos_there = in->at_most_one && edge_id(tok, scratch, n_hits, false, 0) == tok->bos;
    bool eos_there =
        in->at_most_one && edge_id(tok, scratch, n_hits, true, in->n_bytes) == tok->eos;
    if (in->add_special && tok->add_bos && !bos_there) {
        rt_token_put(&sink, tok->bos);
    }
    const rt_special_hit *last = NULL;
    for (size_t i = 0; i <= n_hits; i++) {
        const rt_special_hit *hit = i < n_hits ? &scratch->finder.hits[i] : NULL;
        fragment f = fragment_between(tok, in, last, hit);
        if (!encode_fragment(tok, scratch, f, &sink, err)) {
            return false;
        }
        if (hit != NULL) {
            rt_token_put(&sink, tok->specials[hit->special].id);
        }
        last = hit;
    }
    if (in->add_special && tok->add_eos && !eos_there) {
        rt_token_put(&sink, tok->eos);
    }
    *n_out = sink.n;
    return true;
}

const char *rt_token_text(const rt_tokenizer *tok, uint32_t id, size_t *n_bytes) {
    if (id >= tok->n_tokens) {
        *n_bytes = 0;
        return "";
    }
    *n_bytes = tok->text_at[id + 1] - tok->text_at[id];
    return tok->text + tok->text_at[id];
}

const char *rt_token_piece(const rt_tokenizer *tok, uint32_t id, bool show_control,
                           size_t *n_bytes) {
    const char *text = rt_token_text(tok, id, n_bytes);
    switch (id < tok->n_tokens ? (rt_token_type)tok->type[id] : RT_TOKEN_UNDEFINED) {
    case RT_TOKEN_NORMAL:
    case RT_TOKEN_USER:
    case RT_TOKEN_BYTE:
        return text;
    case RT_TOKEN_CONTROL:
    case RT_TOKEN_UNKNOWN:
        *n_bytes = show_control ? *n_bytes : 0;
        return text;
    default:
        *n_bytes = 0;
        return text;
    }
}

bool rt_token_is_eog(const rt_tokenizer *tok, uint32_t id) {
    uint32_t low = 0;
    uint32_t high = tok->n_eog;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tok->eog[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < tok->n_eog && tok->eog[low] == id;
}
