/* emit_text.c -- the parts of a program that handle text: tokenizer and chat template, where the
 * model file has them.
 *
 * A chat template that cannot be compiled fails the build with its line and construct; a model
 * without tokenizer gives a program that takes token ids only. */
#include <inttypes.h>
#include <string.h>

#include "emit_parts.h"
#include "gguf_value.h"
#include "jinja/jinja.h"
#include "tok.h"

static const char *const TEMPLATE_KEY = "tokenizer.chat_template";

/* The text of the token that key `id_key` names; a false value if the file has no such key. */
static const lg_value *token_text(const lg_gguf *file, const char *id_key, lg_builder *b,
                                  lb_err *err) {
    uint32_t id = 0;
    const lg_gguf_kv *tokens = lg_gguf_find(file, "tokenizer.ggml.tokens");
    if (lg_gguf_find(file, id_key) == NULL || tokens == NULL) {
        return lg_build_bool(b, false);
    }
    if (!lg_gguf_u32(file, id_key, NULL, &id, err)) {
        return NULL;
    }
    if (id >= tokens->n_elems) {
        lb_err_set(err, LB_BAD_VALUE,
                   "key '%s' is %" PRIu32 "; the vocabulary has %" PRIu64 " tokens", id_key, id,
                   tokens->n_elems);
        return NULL;
    }
    lg_gguf_iter it = lg_gguf_begin(tokens);
    lg_gguf_value v = {0};
    for (uint32_t i = 0; i <= id; i++) {
        if (!lg_gguf_next(&it, &v) || v.kind != LG_GGUF_KIND_STR) {
            lb_err_set(err, LB_BAD_TYPE, "key 'tokenizer.ggml.tokens' is no array of strings");
            return NULL;
        }
    }
    return lg_build_bytes(b, v.s.data, v.s.n_bytes);
}

static bool emit_chat(lg_emitter *e, lb_err *err) {
    lg_gguf_str source = {0};
    lg_builder b;
    lb_text c;
    lb_arena scratch;
    if (!lg_gguf_str_key(e->o->file, TEMPLATE_KEY, &source, err)) {
        return false;
    }
    lb_text_init(&c, e->arena);
    lb_arena_init(&scratch, "chat template", 256 << 20);
    bool ok = lg_jinja_compile(source.data, source.n_bytes, &scratch, &c, err) ||
              lb_err_prefix(err, "key '%s'", TEMPLATE_KEY);
    lb_arena_reset(&scratch);
    lg_build_init(&b, e->arena);
    lg_value *params = lg_build_map(&b);
    const lg_value *bos =
        ok ? token_text(e->o->file, "tokenizer.ggml.bos_token_id", &b, err) : NULL;
    const lg_value *eos =
        bos != NULL ? token_text(e->o->file, "tokenizer.ggml.eos_token_id", &b, err) : NULL;
    if (eos == NULL) {
        return false;
    }
    lg_build_set(&b, params, "bos", bos);
    lg_build_set(&b, params, "eos", eos);
    lg_build_set(&b, params, "source", lg_build_bytes(&b, source.data, source.n_bytes));
    lg_build_set(&b, params, "recipe_output", lg_build_bool(&b, false));
    e->has_chat = true;
    return lg_build_done(&b, err) && lb_text_done(&c, err) &&
           lg_emit_add(e, "src/chat.c", c.data, c.n_bytes, err) &&
           lg_emit_render(e, "program/chat_template.c.lua", params, "src/chat_template.c", err);
}

/* The tables as one binary file that an assembler line links in, and C that says what lies where.
 */
static bool emit_tokenizer(lg_emitter *e, const lg_tok *tok, lb_err *err) {
    const uint8_t *image = NULL;
    size_t n = 0;
    const lg_value *params = NULL;
    e->has_tokenizer = true;
    return lg_tok_image(tok, e->arena, &image, &n, &params, err) &&
           lg_emit_add(e, "src/tokenizer.bin", image, n, err) &&
           lg_emit_render(e, "program/tokenizer.c.lua", params, "src/tokenizer.c", err) &&
           lg_emit_render(e, "program/tokenizer_tables.S.lua", params, "src/tokenizer_tables.S",
                          err);
}

bool lg_emit_text_parts(lg_emitter *e, lb_err *err) {
    const lg_tok_options options = {.pre = e->o->pre};
    lg_tok *tok = NULL;
    e->has_tokenizer = false;
    e->has_chat = false;
    if (!lg_tok_read(e->o->file, &options, e->arena, &tok, err) ||
        (tok != NULL && !emit_tokenizer(e, tok, err))) {
        return false;
    }
    return lg_gguf_find(e->o->file, TEMPLATE_KEY) == NULL || emit_chat(e, err);
}
