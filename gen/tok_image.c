/* tok_image.c -- the tables in one piece, and what the template needs to point into it. */
#include <string.h>

#include "base/num.h"
#include "splitter.h"
#include "tok.h"

enum { ALIGN_BYTES = 64, TABLES_MAX = 12 };

typedef struct table {
    const char *name;
    const void *data;
    uint64_t n_bytes;
} table;

/* The host writes its own byte order: lagen runs on little-endian machines, as its targets are. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tables are written as they lie");

static size_t list_tables(const lg_tok *t, table *list) {
    const table all[TABLES_MAX] = {
        {"text", t->text, t->text_at[t->n_tokens]},
        {"text_at", t->text_at, (t->n_tokens + UINT64_C(1)) * sizeof *t->text_at},
        {"type", t->type, t->n_tokens},
        {"byte_id", t->byte_id, 256 * sizeof *t->byte_id},
        {"text_slots", t->text_slots, t->n_text_slots * sizeof *t->text_slots},
        {"rank", t->rank, t->rank == NULL ? 0 : t->n_tokens * sizeof *t->rank},
        {"merges", t->merges, t->merges == NULL ? 0 : t->n_ranks * sizeof *t->merges},
        {"merge_slots", t->merge_slots, t->n_merge_slots * sizeof *t->merge_slots},
        {"specials", t->specials, t->n_specials * sizeof *t->specials},
        {"special_bytes", t->special_bytes, t->n_special_bytes * sizeof *t->special_bytes},
        {"eog", t->eog, t->n_eog * sizeof *t->eog},
    };
    size_t n = 0;
    for (size_t i = 0; i < TABLES_MAX; i++) {
        if (all[i].n_bytes > 0) {
            list[n++] = all[i];
        }
    }
    return n;
}

static void set_id(lg_builder *b, lg_value *v, const char *key, uint32_t id) {
    if (id != LG_TOK_NONE) {
        lg_build_set_uint(b, v, key, id);
    }
}

/* The name of a token as text for a comment: what is not ASCII is left out. */
static lg_value *describe(lg_builder *b, const lg_tok *t) {
    static const char *const kinds[] = {"bytes", "chars", "scores"};
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "kind", kinds[t->kind]);
    lg_build_set_string(b, v, "pre", t->pre == NULL ? "" : t->pre->name);
    lg_build_set_uint(b, v, "n_tokens", t->n_tokens);
    lg_build_set_uint(b, v, "n_ranks", t->n_ranks);
    lg_build_set_uint(b, v, "n_text_slots", t->n_text_slots);
    lg_build_set_uint(b, v, "n_merge_slots", t->n_merge_slots);
    lg_build_set_uint(b, v, "n_specials", t->n_specials);
    lg_build_set_uint(b, v, "n_special_bytes", t->n_special_bytes);
    lg_build_set_uint(b, v, "n_eog", t->n_eog);
    lg_build_set_uint(b, v, "text_max_bytes", t->text_max_bytes);
    lg_build_set_bool(b, v, "add_bos", t->add_bos);
    lg_build_set_bool(b, v, "add_eos", t->add_eos);
    lg_build_set_bool(b, v, "add_space_prefix", t->add_space_prefix);
    lg_build_set_bool(b, v, "space_marks", t->space_marks);
    lg_build_set_bool(b, v, "whole_words", t->whole_words);
    lg_build_set_bool(b, v, "whole_newlines", t->whole_newlines);
    set_id(b, v, "bos", t->bos);
    set_id(b, v, "eos", t->eos);
    set_id(b, v, "unknown", t->unknown);
    return v;
}

static bool add_splitter(const lg_tok *t, lb_arena *arena, lg_builder *b, lg_value *v,
                         lb_err *err) {
    if (t->pre == NULL) {
        return true;
    }
    lg_splitter compiled;
    lg_value *splitter = NULL;
    const lg_split *split = t->pre->split;
    if (!lg_splitter_compile(split->stages, split->n_stages, arena, &compiled, err) ||
        !lg_splitter_value(&compiled, t->pre->name, b, &splitter)) {
        return lg_build_done(b, err);
    }
    lg_build_set_string(b, splitter, "prefix", "");
    lg_build_set(b, v, "splitter", splitter);
    return true;
}

bool lg_tok_image(const lg_tok *t, lb_arena *arena, const uint8_t **image, size_t *n_bytes,
                  const lg_value **params, lb_err *err) {
    table list[TABLES_MAX];
    uint64_t offset[TABLES_MAX];
    size_t n = list_tables(t, list);
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        offset[i] = total;
        if (!lb_add(total, list[i].n_bytes, &total) || !lb_round_up(total, ALIGN_BYTES, &total)) {
            return lb_err_set(err, LB_OVERFLOW, "the tokenizer's tables do not fit");
        }
    }
    lg_builder b;
    lg_build_init(&b, arena);
    uint8_t *bytes = lb_alloc(arena, total, err);
    if (bytes == NULL) {
        return false;
    }
    lg_value *v = describe(&b, t);
    lg_value *tables = lg_build_array(&b);
    for (size_t i = 0; i < n; i++) {
        memcpy(bytes + offset[i], list[i].data, list[i].n_bytes);
        lg_value *row = lg_build_map(&b);
        lg_build_set_string(&b, row, "name", list[i].name);
        lg_build_set_uint(&b, row, "offset", offset[i]);
        lg_build_set_uint(&b, row, "n_bytes", list[i].n_bytes);
        lg_build_push(&b, tables, row);
    }
    lg_build_set(&b, v, "tables", tables);
    lg_build_set_uint(&b, v, "image_bytes", total);
    if (!add_splitter(t, arena, &b, v, err) || !lg_build_done(&b, err)) {
        return false;
    }
    *image = bytes;
    *n_bytes = total;
    *params = v;
    return true;
}
