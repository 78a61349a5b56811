/* tok.c -- reads a model file's tokenizer and has its tables made, see tok.h. */
#include "tok.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "tok_parts.h"

#define KEY(name) "tokenizer.ggml." name

uint32_t lg_tok_slots_for(uint32_t n) {
    uint32_t slots = 2;
    while (slots / 2 < n) {
        slots *= 2;
    }
    return slots;
}

void lg_tok_add_slot(uint32_t *slots, uint32_t n_slots, uint64_t hash, uint32_t index) {
    uint64_t i = hash;
    while (slots[i & (n_slots - 1)] != 0) {
        i++;
    }
    slots[i & (n_slots - 1)] = lb_slot(hash, index);
}

bool lg_tok_is_ordinary(lg_tok_type type) {
    return type == LG_TOK_NORMAL || type == LG_TOK_UNUSED || type == LG_TOK_UNDEFINED;
}

uint32_t lg_tok_find_raw(const lg_tok_build *b, const char *s, uint64_t n_bytes) {
    if (n_bytes == 0) {
        return LG_TOK_NONE;
    }
    uint64_t hash = lb_hash_bytes(s, n_bytes);
    for (uint64_t i = hash;; i++) {
        uint32_t slot = b->slots[i & (b->n_slots - 1)];
        if (slot == 0) {
            return LG_TOK_NONE;
        }
        const lg_gguf_str *raw = &b->raw[lb_slot_index(slot)];
        if (lb_slot_fits(slot, hash) && raw->n_bytes == n_bytes &&
            memcmp(raw->data, s, n_bytes) == 0) {
            return lb_slot_index(slot);
        }
    }
}

static bool text_is(const lg_gguf_str *s, const char *text) {
    return s->n_bytes == strlen(text) && memcmp(s->data, text, s->n_bytes) == 0;
}

static int shown_bytes(const lg_gguf_str *s) {
    return s->n_bytes > 60 ? 60 : (int)s->n_bytes;
}

/* -- what kind ------------------------------------------------------------------------------ */

/* The pre-tokenizer: as the user says, else as the file says, else `otherwise` (NULL: none). */
static bool find_pre(const lg_gguf *g, const lg_tok_options *options, const char *otherwise,
                     const lg_pretok **out, lb_err *err) {
    lg_gguf_str name = {.data = options->pre == NULL ? otherwise : options->pre};
    bool in_file = options->pre == NULL && lg_gguf_find(g, KEY("pre")) != NULL;
    if (in_file) {
        if (!lg_gguf_str_key(g, KEY("pre"), &name, err)) {
            return false;
        }
    } else if (name.data == NULL) {
        return lb_err_set(err, LB_MISSING,
                          "key 'tokenizer.ggml.pre' is missing, as in old files: say with --pre "
                          "NAME how the text is cut into words (gpt-2, llama-bpe, qwen2, ...; "
                          "docs/tokenizers.md lists all)");
    } else {
        name.n_bytes = strlen(name.data);
    }
    if (in_file && text_is(&name, "default")) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'tokenizer.ggml.pre' says 'default', which fits no model in "
                          "particular: say with --pre NAME how the text is cut into words, or "
                          "--pre default if that is meant");
    }
    const lg_pretok *found = lg_pretok_find(name.data, name.n_bytes);
    if (found == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "pre-tokenizer '%.*s' is not known; --pre NAME says which known one to "
                          "use (gpt-2, llama-bpe, qwen2, smollm, ...; docs/tokenizers.md lists "
                          "all)",
                          shown_bytes(&name), name.data);
    }
    *out = found;
    return true;
}

static bool find_kind(lg_tok_build *b, const lg_tok_options *options, bool *there, lb_err *err) {
    lg_gguf_str model = {0};
    lg_tok *t = b->t;
    *there = false;
    bool named = lg_gguf_find(b->g, KEY("model")) != NULL;
    if (named && !lg_gguf_str_key(b->g, KEY("model"), &model, err)) {
        return false;
    }
    if (!named || text_is(&model, "none") || text_is(&model, "no_vocab")) {
        return options->pre == NULL ||
               lb_err_set(err, LB_BAD_VALUE, "--pre %s: this model has no tokenizer",
                          options->pre);
    }
    *there = true;
    if (text_is(&model, "llama")) {
        t->kind = LG_TOK_SCORES;
        t->space_marks = true;
        return options->pre == NULL ||
               lb_err_set(err, LB_BAD_VALUE,
                          "--pre %s: this model's tokenizer (SPM) does not cut text into words",
                          options->pre);
    }
    bool gemma4 = text_is(&model, "gemma4");
    if (!gemma4 && !text_is(&model, "gpt2")) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "key 'tokenizer.ggml.model': '%.*s' is not supported; gpt2 (BPE), llama "
                          "(SPM) and gemma4 are",
                          shown_bytes(&model), model.data);
    }
    if (!find_pre(b->g, options, gemma4 ? "gemma4" : NULL, &t->pre, err)) {
        return false;
    }
    uint32_t flags = t->pre->flags;
    t->kind = (flags & LG_PRETOK_CHARS) != 0 ? LG_TOK_CHARS : LG_TOK_BYTES;
    t->space_marks = (flags & LG_PRETOK_SPACE_MARKS) != 0;
    t->whole_words = (flags & LG_PRETOK_WHOLE_WORDS) != 0;
    t->whole_newlines = (flags & LG_PRETOK_WHOLE_NEWLINES) != 0;
    return true;
}

/* -- tokens --------------------------------------------------------------------------------- */

/* The table of raw texts; refuses one that is there twice. Empty ones may repeat and are not in
 * it. */
static bool index_texts(lg_tok_build *b, lb_err *err) {
    b->n_slots = lg_tok_slots_for(b->t->n_tokens);
    uint32_t *slots = lb_alloc_n(b->arena, b->n_slots, sizeof *slots, err);
    b->slots = slots;
    for (uint32_t id = 0; slots != NULL && id < b->t->n_tokens; id++) {
        const lg_gguf_str *raw = &b->raw[id];
        if (raw->n_bytes == 0) {
            continue;
        }
        uint32_t other = lg_tok_find_raw(b, raw->data, raw->n_bytes);
        if (other != LG_TOK_NONE) {
            return lb_err_set(err, LB_DUPLICATE,
                              "key 'tokenizer.ggml.tokens': '%.*s' is both token %u and token %u",
                              shown_bytes(raw), raw->data, other, id);
        }
        lg_tok_add_slot(slots, b->n_slots, lb_hash_bytes(raw->data, raw->n_bytes), id);
    }
    return slots != NULL;
}

/* A list of the file that goes with the tokens, where it is there, has one element for each of them, used or not. */
static bool list_matches(const lg_tok_build *b, const char *key, lb_err *err) {
    const lg_gguf_kv *kv = lg_gguf_find(b->g, key);
    if (kv == NULL || (kv->type == LG_GGUF_ARRAY && kv->n_elems == b->t->n_tokens)) {
        return true;
    }
    return lb_err_set(err, LB_BAD_VALUE, "key '%s': %" PRIu64 " elements for %u tokens", key, kv->n_elems,
                      b->t->n_tokens);
}

static bool read_types(lg_tok_build *b, lb_err *err) {
    uint32_t n = b->t->n_tokens;
    b->type = lb_alloc(b->arena, n, err);
    b->t->type = b->type;
    if (b->type == NULL) {
        return false;
    }
    memset(b->type, LG_TOK_NORMAL, n);
    if (!list_matches(b, KEY("scores"), err)) {
        return false;
    }
    if (lg_gguf_find(b->g, KEY("token_type")) == NULL) {
        return true;
    }
    const int64_t *types = NULL;
    uint64_t n_types = 0;
    if (!lg_gguf_i64s(b->g, KEY("token_type"), b->arena, &types, &n_types, err)) {
        return false;
    }
    if (n_types != n) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'tokenizer.ggml.token_type': %" PRIu64 " elements for %u tokens",
                          n_types, n);
    }
    for (uint32_t id = 0; id < n; id++) {
        if (types[id] < LG_TOK_UNDEFINED || types[id] > LG_TOK_BYTE) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "key 'tokenizer.ggml.token_type': element %u is %" PRId64
                              "; types are 0 to 6",
                              id, types[id]);
        }
        b->type[id] = (uint8_t)types[id];
    }
    return true;
}

static bool read_tokens(lg_tok_build *b, lb_err *err) {
    uint64_t n = 0;
    if (!lg_gguf_strs(b->g, KEY("tokens"), b->arena, &b->raw, &n, err)) {
        return false;
    }
    if (n == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "key 'tokenizer.ggml.tokens' has no elements");
    }
    _Static_assert((int)LG_GGUF_MAX_STRS <= (int)LB_SLOT_INDEX_MAX, "any id fits a slot");
    b->t->n_tokens = (uint32_t)n; /* at most LG_GGUF_MAX_STRS */
    return read_types(b, err) && index_texts(b, err);
}

/* -- special ids and switches --------------------------------------------------------------- */

static bool read_id(const lg_tok_build *b, const char *key, uint32_t absent, uint32_t *out,
                    lb_err *err) {
    *out = absent < b->t->n_tokens ? absent : LG_TOK_NONE;
    return lg_gguf_find(b->g, key) == NULL ||
           lg_gguf_u32_in(b->g, key, NULL, 0, b->t->n_tokens - 1, out, err);
}

static bool needs_id(bool needed, uint32_t id, const char *name, lb_err *err) {
    return !needed || id != LG_TOK_NONE ||
           lb_err_set(err, LB_MISSING,
                      "key 'tokenizer.ggml.%s_token_id' is missing, and the tokenizer adds this "
                      "token to every text",
                      name);
}

static bool read_specials(lg_tok_build *b, lb_err *err) {
    lg_tok *t = b->t;
    bool spm = t->kind == LG_TOK_SCORES;
    uint32_t flags = t->pre == NULL ? 0 : t->pre->flags;
    bool bos_absent = spm || (flags & LG_PRETOK_BOS) != 0;
    bool no = false;
    if (!read_id(b, KEY("bos_token_id"), spm ? 1 : LG_TOK_NONE, &t->bos, err) ||
        !read_id(b, KEY("eos_token_id"), spm ? 2 : LG_TOK_NONE, &t->eos, err) ||
        !read_id(b, KEY("unknown_token_id"), spm ? 0 : LG_TOK_NONE, &t->unknown, err) ||
        !lg_gguf_bool(b->g, KEY("add_bos_token"), &bos_absent, &t->add_bos, err) ||
        !lg_gguf_bool(b->g, KEY("add_eos_token"), &no, &t->add_eos, err) ||
        !lg_gguf_bool(b->g, KEY("add_space_prefix"), &spm, &t->add_space_prefix, err)) {
        return false;
    }
    t->add_bos = t->add_bos || (flags & LG_PRETOK_ALWAYS_BOS) != 0;
    t->add_space_prefix = t->add_space_prefix && spm;
    return needs_id(t->add_bos, t->bos, "bos", err) && needs_id(t->add_eos, t->eos, "eos", err);
}

bool lg_tok_read(const lg_gguf *g, const lg_tok_options *options, lb_arena *arena, lg_tok **out,
                 lb_err *err) {
    lg_tok *t = lb_alloc(arena, sizeof *t, err);
    lg_tok_build b = {.g = g, .arena = arena, .t = t};
    bool there = false;
    if (t == NULL || !find_kind(&b, options, &there, err)) {
        return false;
    }
    if (!there && lg_gguf_find(g, KEY("tokens")) != NULL) {
        return lb_err_set(err, LB_MISSING, "the model file has tokens and no key 'tokenizer.ggml.model', which says"
                          " how to use them");
    }
    if (!there) {
        *out = NULL;
        return true;
    }
    bool merges = t->kind != LG_TOK_SCORES;
    if (!read_tokens(&b, err) || !read_specials(&b, err) || !lg_tok_find_eog(&b, options, err) ||
        !lg_tok_make_texts(&b, err) ||
        !(merges ? lg_tok_make_merges(&b, err) : lg_tok_make_ranks(&b, err)) ||
        !lg_tok_make_specials(&b, err)) {
        return false;
    }
    *out = t;
    return true;
}
