/* inspect_text.c -- the report for people: columns, one thing a line, strings made harmless. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect_data.h"
#include "size_text.h"

enum { STR_BYTES = 64, TOKEN_BYTES = 40, ELEMS = 5 };

static void add_str(lb_text *out, lg_gguf_str s, uint64_t max_bytes) {
    char clean[LG_INSPECT_CLEAN_BYTES];
    bool cut = false;
    size_t n = lg_inspect_clean(s, max_bytes, true, clean, &cut);
    lb_text_add(out, "\"");
    lb_text_add_n(out, clean, n);
    lb_text_add(out, cut ? "...\"" : "\"");
}

/* "1234 bytes (1.21 KiB)", as plan says sizes. */
static void add_bytes(lb_text *out, uint64_t n) {
    char size[32];
    lb_text_printf(out, "%" PRIu64 " bytes", n);
    if (n >= 1024) {
        lb_text_printf(out, " (%s)", lg_size_text(n, size));
    }
}

static void label(lb_text *out, const char *name) {
    lb_text_printf(out, "  %-14s", name);
}

static void add_line_str(lb_text *out, const char *name, lg_gguf_str s) {
    label(out, name);
    if (s.data == NULL) {
        lb_text_add(out, "not said");
    } else {
        add_str(out, s, STR_BYTES);
    }
    lb_text_add(out, "\n");
}

static void add_line_number(lb_text *out, const char *name, uint64_t n) {
    label(out, name);
    if (n == 0) {
        lb_text_add(out, "not said\n");
        return;
    }
    lb_text_printf(out, "%" PRIu64 "\n", n);
}

static void add_head(const lg_inspection *in, lb_text *out) {
    lg_gguf_str path = {.data = in->path, .n_bytes = strlen(in->path)};
    lb_text_add(out, "file ");
    add_str(out, path, LG_INSPECT_STR_BYTES);
    lb_text_add(out, "\n");
    add_line_str(out, "architecture", in->arch);
    add_line_str(out, "name", in->name);
    add_line_number(out, "layers", in->n_layers);
    add_line_number(out, "context", in->context);
    uint64_t bits = lg_inspect_centibits(&in->total);
    label(out, "weights");
    lb_text_printf(out, "%" PRIu64 " in %" PRIu64 " tensors, ", in->total.n_elems,
                   in->total.n_tensors);
    add_bytes(out, in->total.n_bytes);
    lb_text_printf(out, ", %" PRIu64 ".%02" PRIu64 " bits each\n", bits / 100, bits % 100);
}

static void add_files(const lg_inspection *in, lb_text *out) {
    uint32_t n = lg_gguf_n_files(in->g);
    lb_text_printf(out, "files: %" PRIu32 ", ", n);
    add_bytes(out, in->file_bytes);
    lb_text_add(out, "\n");
    for (uint32_t i = 0; i < n; i++) {
        const lg_gguf_file *f = lg_gguf_file_at(in->g, i);
        const char *slash = strrchr(f->path, '/');
        const char *base = slash == NULL ? f->path : slash + 1;
        lb_text_add(out, "  ");
        add_str(out, (lg_gguf_str){.data = base, .n_bytes = strlen(base)}, 255);
        lb_text_printf(out,
                       "  GGUF v%" PRIu32 ", %" PRIu64 " bytes, %" PRIu64
                       " tensors from byte %" PRIu64 "\n",
                       f->version, f->n_bytes, f->n_tensors, f->data_start);
    }
}

/* The columns that types, groups and roles share. */
static void add_tally(const lg_inspection *in, const lg_tally *t, lb_text *out) {
    uint64_t share = lg_inspect_permille(t->n_bytes, in->total.n_bytes);
    uint64_t bits = lg_inspect_centibits(t);
    lb_text_printf(out, "%8" PRIu64 " %16" PRIu64 " %16" PRIu64 " %5" PRIu64 ".%" PRIu64
                        " %3" PRIu64 ".%02" PRIu64,
                   t->n_tensors, t->n_elems, t->n_bytes, share / 10, share % 10, bits / 100,
                   bits % 100);
}

static const char columns[] = " tensors          weights            bytes       %   bits";

static void add_types(const lg_inspection *in, lb_text *out) {
    const lg_qtype_row *row;
    lb_text_printf(out, "%-24s%s\n", "types", columns);
    for (size_t i = 0; (row = lg_qtype_at(i)) != NULL; i++) {
        if (in->by_type[row->id].n_tensors > 0) {
            lb_text_printf(out, "  %-22s", row->name);
            add_tally(in, &in->by_type[row->id], out);
            lb_text_add(out, row->computes ? "\n" : "  not supported\n");
        }
    }
}

static void add_groups(const lg_inspection *in, lb_text *out) {
    lb_text_printf(out, "%-24s%s\n", "groups", columns);
    for (int i = 0; i < LG_N_GROUPS; i++) {
        if (in->by_group[i].n_tensors > 0) {
            lb_text_printf(out, "  %-22s", lg_group_name((lg_group)i));
            add_tally(in, &in->by_group[i], out);
            lb_text_add(out, "\n");
        }
    }
}

static void add_roles(const lg_inspection *in, lb_text *out) {
    lb_text_printf(out, "%-44s%s  shape\n", "roles", columns);
    for (uint64_t i = 0; i < in->n_roles; i++) {
        const lg_role *r = &in->roles[i];
        lb_text_printf(out, "  %-34s %-7s", r->name, lg_qtype_get(r->type)->name);
        add_tally(in, &r->sum, out);
        lb_text_add(out, "  [");
        for (uint32_t d = 0; d < r->first->n_dims; d++) {
            lb_text_printf(out, "%s%" PRIu64, d == 0 ? "" : ", ", r->first->ne[d]);
        }
        lb_text_add(out, r->one_shape ? "]\n" : "] and others\n");
    }
}

static void add_template_line(const lg_tokenizer_info *tok, lb_text *out) {
    label(out, "chat template");
    if (tok->has_template) {
        lb_text_printf(out, "%" PRIu64 " bytes", tok->template_bytes);
    } else {
        lb_text_add(out, "none");
    }
    if (tok->n_named_templates > 0) {
        lb_text_printf(out, ", and %" PRIu64 " by name", tok->n_named_templates);
    }
    lb_text_add(out, "\n");
}

static void add_tokenizer(const lg_inspection *in, lb_text *out) {
    const lg_tokenizer_info *tok = &in->tok;
    if (!tok->present) {
        lb_text_add(out, "tokenizer: none\n");
        return;
    }
    lb_text_add(out, "tokenizer\n");
    add_line_str(out, "model", tok->model);
    add_line_str(out, "pre", tok->pre);
    label(out, "tokens");
    lb_text_printf(out, "%" PRIu64 ", %" PRIu64 " merges\n", tok->n_tokens, tok->n_merges);
    for (uint32_t i = 0; i < tok->n_specials; i++) {
        const lg_special *s = &tok->specials[i];
        label(out, s->name);
        lb_text_printf(out, "%" PRIu64 " ", s->id);
        if (s->known) {
            add_str(out, s->text, TOKEN_BYTES);
        } else {
            lb_text_add(out, "(no such token)");
        }
        lb_text_add(out, "\n");
    }
    add_template_line(tok, out);
}

static void add_value(const lg_gguf_value *v, lb_text *out) {
    switch (v->kind) {
    case LG_GGUF_KIND_INT: lb_text_printf(out, "%" PRId64, v->i); return;
    case LG_GGUF_KIND_UINT: lb_text_printf(out, "%" PRIu64, v->u); return;
    case LG_GGUF_KIND_REAL: lb_text_printf(out, "%.9g", v->f); return;
    case LG_GGUF_KIND_BOOL: lb_text_add(out, v->i != 0 ? "true" : "false"); return;
    case LG_GGUF_KIND_STR: add_str(out, v->s, STR_BYTES); return;
    }
}

static void add_elems(const lg_gguf_kv *kv, lb_text *out) {
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    for (int i = 0; lg_gguf_next(&it, &v); i++) {
        if (i == ELEMS) {
            lb_text_add(out, ", ...");
            return;
        }
        lb_text_add(out, i == 0 ? "" : ", ");
        add_value(&v, out);
    }
}

static void add_metadata(const lg_inspection *in, lb_text *out) {
    uint64_t n = lg_gguf_n_keys(in->g);
    lb_text_printf(out, "metadata: %" PRIu64 " keys\n", n);
    for (uint64_t i = 0; i < n && !out->failed; i++) {
        const lg_gguf_kv *kv = lg_gguf_key_at(in->g, i);
        int shown = kv->key.n_bytes > 200 ? 200 : (int)kv->key.n_bytes;
        lb_text_printf(out, "  %-44.*s %-6s ", shown, kv->key.data,
                       lg_gguf_type_name(kv->elem_type));
        if (kv->type == LG_GGUF_ARRAY) {
            lb_text_printf(out, "%" PRIu64 ": [", kv->n_elems);
        }
        add_elems(kv, out);
        lb_text_add(out, kv->type == LG_GGUF_ARRAY ? "]\n" : "\n");
    }
}

void lg_inspect_text(const lg_inspection *in, lb_text *out) {
    add_head(in, out);
    add_files(in, out);
    add_types(in, out);
    add_groups(in, out);
    add_roles(in, out);
    add_tokenizer(in, out);
    add_metadata(in, out);
    lb_text_printf(out, "warnings: %" PRIu32 "\n", in->n_warnings);
    for (uint32_t i = 0; i < in->n_warnings; i++) {
        lb_text_printf(out, "  %s\n", in->warnings[i]);
    }
}
