/* inspect_tokenizer.c -- the tokenizer's keys, in short: kind, sizes, special tokens, template.
 *
 * Refuses arrays whose lengths contradict each other; points out ids outside the vocabulary. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gguf_bits.h"
#include "inspect_data.h"

/* Names as in "tokenizer.ggml.<name>_token_id"; "seperator" is how the format spells it. */
static const char *const special_names[] = {
    "bos",     "eos",     "eot",     "eom",     "unknown", "seperator", "padding", "cls",
    "mask",    "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep",   "fim_sep", "prefix",
    "suffix",  "middle",
};

enum { N_SPECIAL_NAMES = sizeof special_names / sizeof special_names[0] };

/* The elements of an array key of the right element type; 0 if it is absent. */
static bool count(const lg_gguf *g, const char *key, lg_gguf_type elem, uint64_t *n, lb_err *err) {
    const lg_gguf_kv *kv = lg_gguf_find(g, key);
    if (kv == NULL) {
        *n = 0;
        return true;
    }
    if (kv->type != LG_GGUF_ARRAY || kv->elem_type != elem) {
        return lb_err_set(err, LB_BAD_TYPE, "key '%s': %s%s where an array of %s is needed", key,
                          kv->type == LG_GGUF_ARRAY ? "array of " : "",
                          lg_bits_type_name(kv->elem_type), lg_bits_type_name(elem));
    }
    *n = kv->n_elems;
    return true;
}

/* An array with one element per token, or none at all. */
static bool check_length(const lg_gguf *g, const char *key, lg_gguf_type elem, uint64_t n_tokens,
                         lb_err *err) {
    uint64_t n = 0;
    if (!count(g, key, elem, &n, err)) {
        return false;
    }
    if (lg_gguf_find(g, key) != NULL && n != n_tokens) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "key '%s': %" PRIu64 " elements for %" PRIu64 " tokens", key, n,
                          n_tokens);
    }
    return true;
}

static bool add_special(lg_inspection *in, const char *name, const lg_gguf_kv *tokens,
                        lb_err *err) {
    lg_tokenizer_info *tok = &in->tok;
    lg_special *s = &tok->specials[tok->n_specials];
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", name);
    if (lg_gguf_find(in->g, key) == NULL) {
        return true;
    }
    if (!lg_gguf_u64(in->g, key, NULL, &s->id, err)) {
        return false;
    }
    s->name = name;
    s->known = s->id < tok->n_tokens;
    tok->n_specials++;
    if (!s->known) {
        return lg_inspect_warn(in, err, "key '%s': %" PRIu64 " is none of the %" PRIu64 " tokens",
                               key, s->id, tok->n_tokens);
    }
    return lg_gguf_elem_str(tokens, s->id, &s->text, err);
}

static bool read_template(lg_inspection *in, lb_err *err) {
    static const char plain[] = "tokenizer.chat_template";
    lg_tokenizer_info *tok = &in->tok;
    lg_gguf_str text = {0};
    if (lg_gguf_find(in->g, plain) != NULL) {
        if (!lg_gguf_str_key(in->g, plain, &text, err)) {
            return false;
        }
        tok->has_template = true;
        tok->template_bytes = text.n_bytes;
    }
    return count(in->g, "tokenizer.chat_templates", LG_GGUF_STR, &tok->n_named_templates, err);
}

static bool optional_str(const lg_gguf *g, const char *key, lg_gguf_str *out, lb_err *err) {
    return lg_gguf_find(g, key) == NULL || lg_gguf_str_key(g, key, out, err);
}

bool lg_inspect_tokenizer(lg_inspection *in, lb_err *err) {
    lg_tokenizer_info *tok = &in->tok;
    const lg_gguf *g = in->g;
    const lg_gguf_kv *tokens = lg_gguf_find(g, "tokenizer.ggml.tokens");
    tok->present = tokens != NULL || lg_gguf_find(g, "tokenizer.ggml.model") != NULL;
    if (!optional_str(g, "tokenizer.ggml.model", &tok->model, err) ||
        !optional_str(g, "tokenizer.ggml.pre", &tok->pre, err) ||
        !count(g, "tokenizer.ggml.tokens", LG_GGUF_STR, &tok->n_tokens, err) ||
        !count(g, "tokenizer.ggml.merges", LG_GGUF_STR, &tok->n_merges, err) ||
        !check_length(g, "tokenizer.ggml.scores", LG_GGUF_F32, tok->n_tokens, err) ||
        !check_length(g, "tokenizer.ggml.token_type", LG_GGUF_I32, tok->n_tokens, err)) {
        return false;
    }
    for (size_t i = 0; i < N_SPECIAL_NAMES; i++) {
        if (!add_special(in, special_names[i], tokens, err)) {
            return false;
        }
    }
    return read_template(in, err);
}
