/* tok_special.c -- tokens that are matched in a text as a whole, in the order that the matcher
 * needs. */
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "tok_parts.h"

typedef struct entry {
    const char *text;
    uint32_t n_bytes;
    uint32_t id;
} entry;

static int by_bytes(const void *a, const void *b) {
    const entry *x = a;
    const entry *y = b;
    uint32_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    int order = memcmp(x->text, y->text, n);
    return order != 0 ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static bool begins_with(const entry *e, const entry *prefix) {
    return prefix->n_bytes < e->n_bytes && memcmp(e->text, prefix->text, prefix->n_bytes) == 0;
}

/* User-defined and nothing but white space (or its mark): it can stand for nothing but itself. */
static bool is_plain(const lg_tok_build *b, const entry *e) {
    if (b->type[e->id] != LG_TOK_USER) {
        return false;
    }
    for (uint32_t at = 0; at < e->n_bytes;) {
        uint32_t code = 0;
        size_t len = lb_utf8_decode(e->text + at, e->n_bytes - at, &code);
        bool space = (LB_UC_SPACE >> lb_unicode_category(code) & 1) != 0 || code == 0x2581;
        if (len == 0 || !space) {
            return false;
        }
        at += (uint32_t)len;
    }
    return true;
}

/* -- what swallows white space -------------------------------------------------------------- */

enum { IS, HAS };
enum { NEITHER = 0, PLAIN = 1, LEFT = 2, RIGHT = 4 }; /* RT_SPECIAL_ of runtime/token/token.h */

typedef struct strip_row {
    const char *key;
    int form;
    const char *text, *token;
    uint32_t side;
} strip_row;

static const strip_row strips[] = {
#define STRIP(key, form, text, token, side) {key, form, text, token, side},
#include "tok_strip.def"
#undef STRIP
};

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The `n` letters at `s` are `text`, letters of any case if `any_case`. */
static bool same(const char *s, const char *text, size_t n, bool any_case) {
    for (size_t i = 0; i < n; i++) {
        if ((any_case ? lower(s[i]) : s[i]) != text[i]) {
            return false;
        }
    }
    return true;
}

static bool row_applies(const lg_tok_build *b, const strip_row *row) {
    lg_gguf_str value = {0};
    lb_err why = {0};
    size_t n = strlen(row->text);
    bool there = lg_gguf_find(b->g, row->key) != NULL &&
                 lg_gguf_str_key(b->g, row->key, &value, &why) && value.n_bytes >= n;
    if (!there || row->form == IS) {
        return there && value.n_bytes == n && same(value.data, row->text, n, false);
    }
    for (uint64_t at = 0; at <= value.n_bytes - n; at++) {
        if (same(value.data + at, row->text, n, true)) {
            return true;
        }
    }
    return false;
}

/* The side on which a special token swallows white space. */
static uint32_t strip_side(const entry *e, const bool *applies) {
    uint32_t side = NEITHER;
    for (size_t i = 0; i < sizeof strips / sizeof strips[0]; i++) {
        size_t n = strlen(strips[i].token);
        bool this_one = n == 0 || (n == e->n_bytes && memcmp(strips[i].token, e->text, n) == 0);
        side = applies[i] && this_one ? strips[i].side : side;
    }
    return side;
}

static bool is_special(lg_tok_type type) {
    return type == LG_TOK_CONTROL || type == LG_TOK_USER || type == LG_TOK_UNKNOWN;
}

static entry *collect(lg_tok_build *b, uint32_t *n_out, lb_err *err) {
    const lg_tok *t = b->t;
    uint32_t n = 0;
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        n += is_special((lg_tok_type)b->type[id]) && b->raw[id].n_bytes > 0;
    }
    entry *entries = lb_alloc_n(b->arena, n, sizeof *entries, err);
    *n_out = 0;
    for (uint32_t id = 0; entries != NULL && id < t->n_tokens; id++) {
        if (is_special((lg_tok_type)b->type[id]) && b->raw[id].n_bytes > 0) {
            entries[(*n_out)++] = (entry){t->text + t->text_at[id],
                                          t->text_at[id + 1] - t->text_at[id], id};
        }
    }
    return entries;
}

static bool list_lengths(lg_tok_build *b, const entry *entries, uint32_t n, lb_err *err) {
    lg_tok *t = b->t;
    bool *there = lb_alloc(b->arena, (uint64_t)t->text_max_bytes + 1, err);
    uint32_t *lengths = lb_alloc_n(b->arena, n, sizeof *lengths, err);
    if (there == NULL || lengths == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        there[entries[i].n_bytes] = true;
    }
    t->special_bytes = lengths;
    for (uint32_t len = t->text_max_bytes; len > 0; len--) {
        if (there[len]) {
            lengths[t->n_special_bytes++] = len;
        }
    }
    return true;
}

bool lg_tok_make_specials(lg_tok_build *b, lb_err *err) {
    uint32_t n;
    entry *entries = collect(b, &n, err);
    lg_tok_special *specials = lb_alloc_n(b->arena, n, sizeof *specials, err);
    if (entries == NULL || specials == NULL) {
        return false;
    }
    bool applies[sizeof strips / sizeof strips[0]];
    for (size_t i = 0; i < sizeof strips / sizeof strips[0]; i++) {
        applies[i] = row_applies(b, &strips[i]);
    }
    qsort(entries, n, sizeof *entries, by_bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shorter = i == 0 ? LG_TOK_NONE : i - 1;
        while (shorter != LG_TOK_NONE && !begins_with(&entries[i], &entries[shorter])) {
            shorter = specials[shorter].shorter;
        }
        uint32_t flags = is_plain(b, &entries[i]) ? PLAIN : strip_side(&entries[i], applies);
        specials[i] = (lg_tok_special){entries[i].id, shorter, flags};
    }
    b->t->specials = specials;
    b->t->n_specials = n;
    return list_lengths(b, entries, n, err);
}
