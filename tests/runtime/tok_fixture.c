/* tok_fixture.c -- tables of small tokenizers, made in the plainest way. */
#include "tok_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void *get(lb_arena *arena, size_t n, size_t bytes) {
    lb_err err = {0};
    void *p = lb_alloc_n(arena, n + 1, bytes, &err);
    assert_non_null(p);
    return p;
}

static uint32_t slots_for(uint32_t n) {
    uint32_t slots = 2;
    while (slots < 2 * n + 2) {
        slots *= 2;
    }
    return slots;
}

static void add_slot(uint32_t *slots, uint32_t mask, uint64_t hash, uint32_t value) {
    uint64_t i = hash;
    while (slots[i & mask] != 0) {
        i++;
    }
    slots[i & mask] = lb_slot(hash, value);
}

static void fill_tokens(rt_tokenizer *t, const tok_row *rows, lb_arena *arena) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        bytes += rows[i].n_bytes;
    }
    char *text = get(arena, bytes, 1);
    uint32_t *text_at = get(arena, t->n_tokens, sizeof *text_at);
    uint8_t *type = get(arena, t->n_tokens, 1);
    uint32_t *rank = get(arena, t->n_tokens, sizeof *rank);
    uint32_t *byte_id = get(arena, 256, sizeof *byte_id);
    uint32_t n_slots = slots_for(t->n_tokens);
    uint32_t *slots = get(arena, n_slots, sizeof *slots);
    memset(byte_id, 0xFF, 256 * sizeof *byte_id);
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        const tok_row *row = &rows[i];
        memcpy(text + text_at[i], row->text, row->n_bytes);
        text_at[i + 1] = text_at[i] + (uint32_t)row->n_bytes;
        type[i] = (uint8_t)row->type;
        rank[i] = row->rank;
        t->n_ranks = t->merges == NULL && row->rank >= t->n_ranks ? row->rank + 1 : t->n_ranks;
        t->text_max_bytes = row->n_bytes > t->text_max_bytes ? (uint32_t)row->n_bytes
                                                             : t->text_max_bytes;
        bool byte = row->type == RT_TOKEN_BYTE;
        if (row->n_bytes == 1 && (byte || t->kind == RT_TOKENIZER_BYTES)) {
            byte_id[(uint8_t)row->text[0]] = i;
        }
        if (row->type == RT_TOKEN_NORMAL && row->n_bytes > 0) {
            add_slot(slots, n_slots - 1, lb_hash_bytes(row->text, row->n_bytes), i);
        }
    }
    t->text = text;
    t->text_at = text_at;
    t->type = type;
    t->rank = rank;
    t->byte_id = byte_id;
    t->text_slots = slots;
    t->text_slots_mask = n_slots - 1;
}

static void fill_merges(rt_tokenizer *t, lb_arena *arena) {
    uint32_t n_slots = slots_for(t->n_ranks);
    uint32_t *slots = get(arena, n_slots, sizeof *slots);
    for (uint32_t i = 0; i < t->n_ranks; i++) {
        add_slot(slots, n_slots - 1, lb_hash_pair(t->merges[i].left, t->merges[i].right), i);
    }
    t->merge_slots = slots;
    t->merge_slots_mask = n_slots - 1;
}

static int compare(const tok_row *a, const tok_row *b) {
    size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    int order = memcmp(a->text, b->text, n);
    return order != 0 ? order : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

static bool is_plain(const tok_row *row) {
    size_t n = 0;
    while (n < row->n_bytes && (row->text[n] == ' ' || row->text[n] == '\n')) {
        n++;
    }
    return n == row->n_bytes && row->type == RT_TOKEN_USER;
}

static void fill_specials(rt_tokenizer *t, const tok_row *rows, lb_arena *arena) {
    rt_special *specials = get(arena, t->n_tokens, sizeof *specials);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        rt_token_type type = rows[i].type;
        if (type != RT_TOKEN_CONTROL && type != RT_TOKEN_USER && type != RT_TOKEN_UNKNOWN) {
            continue;
        }
        uint32_t at = n++;
        for (; at > 0 && compare(&rows[i], &rows[specials[at - 1].id]) < 0; at--) {
            specials[at] = specials[at - 1];
        }
        specials[at] = (rt_special){.id = i, .flags = is_plain(&rows[i])};
    }
    uint32_t *lengths = get(arena, n, sizeof *lengths);
    for (uint32_t i = 0; i < n; i++) {
        const tok_row *row = &rows[specials[i].id];
        specials[i].shorter = RT_TOKEN_NONE;
        for (uint32_t j = 0; j < i; j++) {
            const tok_row *other = &rows[specials[j].id];
            if (other->n_bytes < row->n_bytes &&
                memcmp(other->text, row->text, other->n_bytes) == 0) {
                specials[i].shorter = j;
            }
        }
    }
    for (uint32_t len = t->text_max_bytes; len > 0; len--) {
        bool any = false;
        for (uint32_t i = 0; i < n; i++) {
            any = any || rows[specials[i].id].n_bytes == len;
        }
        lengths[t->n_special_bytes] = len;
        t->n_special_bytes += any;
    }
    t->specials = specials;
    t->n_specials = n;
    t->special_bytes = lengths;
}

rt_tokenizer *tok_fixture(rt_tokenizer_kind kind, const tok_row *rows, uint32_t n,
                          const rt_merge *merges, uint32_t n_merges, lb_arena *arena) {
    rt_tokenizer *t = get(arena, 1, sizeof *t);
    *t = (rt_tokenizer){.kind = kind, .n_tokens = n, .merges = merges, .n_ranks = n_merges};
    t->bos = t->eos = t->unknown = RT_TOKEN_NONE;
    fill_tokens(t, rows, arena);
    if (kind != RT_TOKENIZER_SCORES) {
        fill_merges(t, arena);
    }
    fill_specials(t, rows, arena);
    return t;
}
