/* tok_bridge.c -- see tok_bridge.h. */
#include "tok_bridge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/splits.h"

_Static_assert(sizeof(rt_merge) == sizeof(lg_tok_merge), "merges are taken over as they lie");
_Static_assert(sizeof(rt_special) == sizeof(lg_tok_special), "so are special tokens");
_Static_assert((int)RT_SPECIAL_PLAIN == 1 && (int)RT_SPECIAL_STRIP_LEFT == 2 &&
                   (int)RT_SPECIAL_STRIP_RIGHT == 4, "flags are those of gen/tok_special.c");
_Static_assert((int)RT_TOKENIZER_SCORES == (int)LG_TOK_SCORES, "and kinds");

static void (*find_split(const char *id))(rt_char *t, size_t n) {
    const split_row *row = splits;
    while (row->id != NULL && strcmp(row->id, id) != 0) {
        row++;
    }
    assert_non_null(row->id);
    return row->split;
}

rt_tokenizer tok_bridge(const lg_tok *t) {
    rt_tokenizer r = {
        .kind = (rt_tokenizer_kind)t->kind,
        .n_tokens = t->n_tokens,
        .text = t->text,
        .text_at = t->text_at,
        .type = t->type,
        .text_max_bytes = t->text_max_bytes,
        .byte_id = t->byte_id,
        .text_slots = t->text_slots,
        .text_slots_mask = t->n_text_slots - 1,
        .n_ranks = t->n_ranks,
        .rank = t->rank,
        .merges = (const rt_merge *)(const void *)t->merges,
        .merge_slots = t->merge_slots,
        .merge_slots_mask = t->n_merge_slots - 1,
        .specials = (const rt_special *)(const void *)t->specials,
        .n_specials = t->n_specials,
        .special_bytes = t->special_bytes,
        .n_special_bytes = t->n_special_bytes,
        .add_bos = t->add_bos,
        .add_eos = t->add_eos,
        .add_space_prefix = t->add_space_prefix,
        .space_marks = t->space_marks,
        .whole_words = t->whole_words,
        .whole_newlines = t->whole_newlines,
        .bos = t->bos,
        .eos = t->eos,
        .unknown = t->unknown,
        .eog = t->eog,
        .n_eog = t->n_eog,
        .split = t->pre == NULL ? NULL : find_split(t->pre->split->id),
    };
    return r;
}

size_t tok_encode(const rt_tokenizer *t, const rt_token_input *in, uint32_t *out, size_t cap) {
    lb_arena arena;
    lb_err err = {0};
    rt_token_scratch *scratch = NULL;
    size_t n = 0;
    lb_arena_init(&arena, "encode", UINT64_C(1) << 31);
    bool done = rt_token_scratch_new(t, in->n_bytes, &arena, &scratch, &err) &&
                rt_token_encode(t, in, scratch, out, cap, &n, &err);
    if (!done) {
        print_message("# %s\n", err.text);
    }
    lb_arena_reset(&arena);
    assert_true(done);
    return n;
}
