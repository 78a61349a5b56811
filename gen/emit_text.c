/* emit_text.c -- the parts of a program that handle text: tokenizer and chat template, where the
 * model file has them.
 *
 * A chat template that cannot be compiled fails the build with its line and construct, and another
 * one can be given; a model without tokenizer gives a program that takes token ids only. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "emit_parts.h"
#include "gguf_value.h"
#include "jinja/jinja.h"
#include "tok.h"

static const char *const TEMPLATE_KEY = "tokenizer.chat_template";
enum { TEMPLATE_BYTES_MAX = 16 << 20 }; /* of a file; what compiles is shorter */

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

/* The template's text, and what to call it in messages: the user's file, else the model's key. */
static bool find_template(lg_emitter *e, lg_gguf_str *source, const char **name, lb_err *err) {
    char *text = NULL;
    size_t n = 0;
    const char *path = e->o->chat_template;
    if (path == NULL) {
        *name = lb_format(e->arena, err, "key '%s'", TEMPLATE_KEY);
        return *name != NULL && lg_gguf_str_key(e->o->file, TEMPLATE_KEY, source, err);
    }
    *name = lb_format(e->arena, err, "--template %s", path);
    if (*name == NULL || !lb_read_file(path, TEMPLATE_BYTES_MAX, e->arena, &text, &n, err)) {
        return false;
    }
    *source = (lg_gguf_str){.data = text, .n_bytes = n};
    return true;
}

/* Whose text never gets into a prompt is no template. */
static bool is_blank(const lg_gguf_str *s) {
    for (uint64_t i = 0; i < s->n_bytes; i++) {
        if (strchr(" \t\r\n", s->data[i]) == NULL || s->data[i] == '\0') {
            return false;
        }
    }
    return true;
}

static bool compile_template(const lg_gguf_str *source, const char *name, lb_text *c, lb_err *err) {
    lb_arena scratch;
    lb_arena_init(&scratch, "chat template", 256 << 20);
    bool ok = lg_jinja_compile(source->data, source->n_bytes, &scratch, c, err) ||
              lb_err_prefix(err, "%s", name);
    lb_arena_reset(&scratch);
    return ok;
}

static bool emit_chat(lg_emitter *e, lb_err *err) {
    lg_gguf_str source = {0};
    const char *name = NULL;
    lg_builder b;
    lb_text c;
    if (!find_template(e, &source, &name, err)) {
        return false;
    }
    if (is_blank(&source)) {
        return lb_err_set(err, LB_BAD_VALUE, "%s is empty; --template FILE gives another one",
                          name);
    }
    lb_text_init(&c, e->arena);
    bool ok = compile_template(&source, name, &c, err);
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
    const lg_recipe *recipe = e->o->recipe;
    lg_build_set(&b, params, "recipe_output",
                 recipe->output != NULL ? recipe->output : lg_build_bool(&b, false));
    lg_build_set_string(&b, params, "thinking",
                        recipe->thinking != NULL ? recipe->thinking : "default");
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
    const lg_tok_options options = {
        .pre = e->o->pre, .ends = e->o->recipe->ends, .n_ends = e->o->recipe->n_ends};
    lg_tok *tok = NULL;
    e->has_tokenizer = false;
    e->has_chat = false;
    if (!lg_tok_read(e->o->file, &options, e->arena, &tok, err) ||
        (tok != NULL && !emit_tokenizer(e, tok, err))) {
        return false;
    }
    bool has_template =
        e->o->chat_template != NULL || lg_gguf_find(e->o->file, TEMPLATE_KEY) != NULL;
    return !has_template || emit_chat(e, err);
}
