/* inspect_json.c -- the report for programs: one JSON object, "schema": "lagen.inspect/1".
 *
 * Keys are always there; what the file does not say is null. Strings are valid UTF-8 and cut to
 * 4096 bytes ("cut": true). What JSON cannot hold is a string: integers above 2^63-1, nan, inf. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inspect_data.h"
#include "value_text.h"

enum { ELEMS = 8 };

static const lg_value *str(lg_builder *b, lg_gguf_str s, bool *cut) {
    char clean[LG_INSPECT_CLEAN_BYTES];
    bool was_cut = false;
    size_t n = lg_inspect_clean(s, LG_INSPECT_STR_BYTES, false, clean, &was_cut);
    if (cut != NULL) {
        *cut = was_cut;
    }
    return lg_build_bytes(b, clean, n);
}

static const lg_value *str_or_nil(lg_builder *b, lg_gguf_str s) {
    return s.data == NULL ? lg_build_nil(b) : str(b, s, NULL);
}

static const lg_value *c_str(lg_builder *b, const char *s) {
    return str(b, (lg_gguf_str){.data = s, .n_bytes = strlen(s)}, NULL);
}

static const lg_value *uint_or_nil(lg_builder *b, uint64_t n) {
    return n == 0 ? lg_build_nil(b) : lg_build_uint(b, n);
}

static void set_tally(lg_builder *b, lg_value *map, const lg_tally *t) {
    lg_build_set_uint(b, map, "tensors", t->n_tensors);
    lg_build_set_uint(b, map, "weights", t->n_elems);
    lg_build_set_uint(b, map, "bytes", t->n_bytes);
}

static const lg_value *files(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < lg_gguf_n_files(in->g); i++) {
        const lg_gguf_file *f = lg_gguf_file_at(in->g, i);
        lg_value *map = lg_build_map(b);
        lg_build_set(b, map, "path", c_str(b, f->path));
        lg_build_set_uint(b, map, "version", f->version);
        lg_build_set_uint(b, map, "bytes", f->n_bytes);
        lg_build_set_uint(b, map, "tensors", f->n_tensors);
        lg_build_set_uint(b, map, "alignment", f->alignment);
        lg_build_set_uint(b, map, "data_start", f->data_start);
        lg_build_push(b, list, map);
    }
    return list;
}

static const lg_value *types(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    const lg_qtype_row *row;
    for (size_t i = 0; (row = lg_qtype_at(i)) != NULL; i++) {
        if (in->by_type[row->id].n_tensors > 0) {
            lg_value *map = lg_build_map(b);
            lg_build_set_string(b, map, "type", row->name);
            lg_build_set_bool(b, map, "supported", row->computes);
            set_tally(b, map, &in->by_type[row->id]);
            lg_build_push(b, list, map);
        }
    }
    return list;
}

static const lg_value *groups(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    for (int i = 0; i < LG_N_GROUPS; i++) {
        if (in->by_group[i].n_tensors > 0) {
            lg_value *map = lg_build_map(b);
            lg_build_set_string(b, map, "group", lg_group_name((lg_group)i));
            set_tally(b, map, &in->by_group[i]);
            lg_build_push(b, list, map);
        }
    }
    return list;
}

static const lg_value *roles(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    for (uint64_t i = 0; i < in->n_roles && !b->failed; i++) {
        const lg_role *r = &in->roles[i];
        lg_value *map = lg_build_map(b);
        lg_value *shape = lg_build_array(b);
        for (uint32_t d = 0; d < r->first->n_dims; d++) {
            lg_build_push(b, shape, lg_build_uint(b, r->first->ne[d]));
        }
        lg_build_set_string(b, map, "role", r->name);
        lg_build_set_string(b, map, "group", lg_group_name(r->group));
        lg_build_set_string(b, map, "type", lg_qtype_get(r->type)->name);
        set_tally(b, map, &r->sum);
        lg_build_set(b, map, "shape", r->one_shape ? shape : lg_build_nil(b));
        lg_build_push(b, list, map);
    }
    return list;
}

/* A number, or its digits as a string where JSON readers would lose some. */
static const lg_value *number(lg_builder *b, uint64_t n) {
    char digits[24];
    if (n <= INT64_MAX) {
        return lg_build_uint(b, n);
    }
    snprintf(digits, sizeof digits, "%" PRIu64, n);
    return lg_build_string(b, digits);
}

static const lg_value *specials(lg_builder *b, const lg_tokenizer_info *tok) {
    lg_value *map = lg_build_map(b);
    for (uint32_t i = 0; i < tok->n_specials; i++) {
        const lg_special *s = &tok->specials[i];
        lg_value *one = lg_build_map(b);
        lg_build_set(b, one, "id", number(b, s->id));
        lg_build_set(b, one, "text", s->known ? str(b, s->text, NULL) : lg_build_nil(b));
        lg_build_set(b, map, s->name, one);
    }
    return map;
}

static const lg_value *tokenizer(lg_builder *b, const lg_inspection *in) {
    const lg_tokenizer_info *tok = &in->tok;
    if (!tok->present) {
        return lg_build_nil(b);
    }
    lg_value *map = lg_build_map(b);
    lg_build_set(b, map, "model", str_or_nil(b, tok->model));
    lg_build_set(b, map, "pre", str_or_nil(b, tok->pre));
    lg_build_set_uint(b, map, "tokens", tok->n_tokens);
    lg_build_set_uint(b, map, "merges", tok->n_merges);
    lg_build_set(b, map, "special", specials(b, tok));
    lg_build_set_bool(b, map, "chat_template", tok->has_template);
    lg_build_set_uint(b, map, "chat_template_bytes", tok->template_bytes);
    lg_build_set_uint(b, map, "named_chat_templates", tok->n_named_templates);
    return map;
}

static const lg_value *real(lg_builder *b, double f) {
    if (isfinite(f)) {
        return lg_build_double(b, f);
    }
    return lg_build_string(b, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
}

static const lg_value *value(lg_builder *b, const lg_gguf_value *v, bool *cut) {
    switch (v->kind) {
    case LG_GGUF_KIND_UINT: return number(b, v->u);
    case LG_GGUF_KIND_REAL: return real(b, v->f);
    case LG_GGUF_KIND_BOOL: return lg_build_bool(b, v->i != 0);
    case LG_GGUF_KIND_STR: return str(b, v->s, cut);
    default: return lg_build_int(b, v->i);
    }
}

/* The first elements of an array, *cut if there are more. */
static const lg_value *elems(lg_builder *b, const lg_gguf_kv *kv, bool *cut) {
    lg_value *list = lg_build_array(b);
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    bool any_cut = false;
    for (int i = 0; i < ELEMS && lg_gguf_next(&it, &v); i++) {
        bool one = false;
        lg_build_push(b, list, value(b, &v, &one));
        any_cut = any_cut || one;
    }
    *cut = any_cut || kv->n_elems > ELEMS;
    return list;
}

static const lg_value *metadata(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    for (uint64_t i = 0; i < lg_gguf_n_keys(in->g) && !b->failed; i++) {
        const lg_gguf_kv *kv = lg_gguf_key_at(in->g, i);
        lg_value *map = lg_build_map(b);
        bool cut = false;
        lg_build_set(b, map, "key", str(b, kv->key, NULL));
        lg_build_set_string(b, map, "type", lg_gguf_type_name(kv->type));
        if (kv->type == LG_GGUF_ARRAY) {
            lg_build_set_string(b, map, "elem_type", lg_gguf_type_name(kv->elem_type));
            lg_build_set_uint(b, map, "elems", kv->n_elems);
            lg_build_set(b, map, "value", elems(b, kv, &cut));
        } else {
            lg_gguf_iter it = lg_gguf_begin(kv);
            lg_gguf_value v = {0};
            lg_gguf_next(&it, &v);
            lg_build_set(b, map, "value", value(b, &v, &cut));
        }
        lg_build_set_bool(b, map, "cut", cut);
        lg_build_push(b, list, map);
    }
    return list;
}

static const lg_value *warnings(lg_builder *b, const lg_inspection *in) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < in->n_warnings; i++) {
        lg_build_push(b, list, c_str(b, in->warnings[i]));
    }
    return list;
}

bool lg_inspect_json(const lg_inspection *in, lb_text *out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, out->arena);
    lg_value *root = lg_build_map(&b);
    lg_build_set_string(&b, root, "schema", "lagen.inspect/1");
    lg_build_set(&b, root, "file", c_str(&b, in->path));
    lg_build_set(&b, root, "architecture", str_or_nil(&b, in->arch));
    lg_build_set(&b, root, "name", str_or_nil(&b, in->name));
    lg_build_set(&b, root, "layers", uint_or_nil(&b, in->n_layers));
    lg_build_set(&b, root, "context_length", uint_or_nil(&b, in->context));
    set_tally(&b, root, &in->total);
    lg_build_set_uint(&b, root, "file_bytes", in->file_bytes);
    lg_build_set(&b, root, "files", files(&b, in));
    lg_build_set(&b, root, "types", types(&b, in));
    lg_build_set(&b, root, "groups", groups(&b, in));
    lg_build_set(&b, root, "roles", roles(&b, in));
    lg_build_set(&b, root, "tokenizer", tokenizer(&b, in));
    lg_build_set(&b, root, "metadata", metadata(&b, in));
    lg_build_set(&b, root, "warnings", warnings(&b, in));
    if (!lg_build_done(&b, err)) {
        return false;
    }
    return lg_value_to_json(root, out, err) && lb_text_done(out, err);
}
