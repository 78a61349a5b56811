/* tok_text.c -- what tokens print; the token of each byte; tokens by text. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/unicode.h"
#include "tok_parts.h"

/* Code points that stand for bytes in byte-level BPE: the printable Latin-1 ones for themselves,
 * the others from U+0100 on in order (GPT-2's bytes_to_unicode). -1: stands for none. */
static int byte_of(uint32_t code) {
    bool itself = (code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xAC) ||
                  (code >= 0xAE && code <= 0xFF);
    if (itself) {
        return (int)code;
    }
    if (code < 0x100 || code > 0x143) {
        return -1;
    }
    uint32_t n = code - 0x100;
    return n <= 0x20 ? (int)n : n <= 0x41 ? (int)(n - 0x21 + 0x7F) : n == 0x42 ? 0xA0 : 0xAD;
}

/* Turns the text of an ordinary token into what it prints, in place of at most as many bytes; false
 * if it holds what no text can become, and is then left as it is. */
static bool decode_bytes(const lg_gguf_str *raw, char *out, uint32_t *n_out) {
    uint32_t n = 0;
    for (uint64_t at = 0; at < raw->n_bytes;) {
        uint32_t code = 0;
        size_t len = lb_utf8_decode(raw->data + at, raw->n_bytes - at, &code);
        int byte = len == 0 ? -1 : byte_of(code);
        if (byte < 0) {
            return false;
        }
        out[n++] = (char)byte;
        at += len;
    }
    *n_out = n;
    return true;
}

static bool decode_marks(const lg_gguf_str *raw, char *out, uint32_t *n_out) {
    uint32_t n = 0;
    bool has_space = false;
    for (uint64_t at = 0; at < raw->n_bytes;) {
        bool marks = raw->n_bytes - at >= 3 && memcmp(raw->data + at, "\xE2\x96\x81", 3) == 0;
        has_space = has_space || raw->data[at] == ' ';
        out[n++] = marks ? ' ' : raw->data[at];
        at += marks ? 3 : 1;
    }
    *n_out = n;
    return !has_space;
}

/* The byte of "<0x41>", or -1. */
static int byte_name(const lg_gguf_str *raw) {
    static const char hex[] = "0123456789ABCDEF";
    if (raw->n_bytes != 6 || memcmp(raw->data, "<0x", 3) != 0 || raw->data[5] != '>') {
        return -1;
    }
    const char *high = memchr(hex, raw->data[3], 16);
    const char *low = memchr(hex, raw->data[4], 16);
    return high == NULL || low == NULL ? -1 : (int)((high - hex) * 16 + (low - hex));
}

/* Writes what token `id` prints to `out`; true if ordinary text may become it. */
static bool print_token(const lg_tok_build *b, uint32_t id, char *out, uint32_t *n_out) {
    const lg_gguf_str *raw = &b->raw[id];
    lg_tok_type type = (lg_tok_type)b->type[id];
    int byte = byte_name(raw);
    if (type == LG_TOK_BYTE && byte >= 0) {
        out[0] = (char)byte;
        *n_out = 1;
        return false;
    }
    if (lg_tok_is_ordinary(type)) {
        if (b->t->kind == LG_TOK_BYTES && decode_bytes(raw, out, n_out)) {
            return *n_out > 0;
        }
        if (b->t->space_marks && decode_marks(raw, out, n_out)) {
            return *n_out > 0;
        }
        if (b->t->kind == LG_TOK_CHARS && !b->t->space_marks) {
            memcpy(out, raw->data, raw->n_bytes);
            *n_out = (uint32_t)raw->n_bytes;
            return *n_out > 0;
        }
    }
    memcpy(out, raw->n_bytes > 0 ? raw->data : "", raw->n_bytes);
    *n_out = (uint32_t)raw->n_bytes;
    return false;
}

/* Whether programs look tokens up by text. */
static bool needs_slots(const lg_tok *t) {
    return t->kind != LG_TOK_BYTES || t->whole_words || t->whole_newlines;
}

/* The token for each byte: by its text where bytes are the units; else "<0x41>", else the token
 * that is that one byte. */
static bool make_byte_ids(lg_tok_build *b, uint32_t *byte_id, lb_err *err) {
    uint32_t *ids = lb_alloc_n(b->arena, 256, sizeof *ids, err);
    if (ids == NULL) {
        return false;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        char name[8];
        char itself = (char)byte;
        snprintf(name, sizeof name, "<0x%02X>", byte);
        ids[byte] = byte_id[byte];
        if (b->t->kind != LG_TOK_BYTES) {
            uint32_t named = lg_tok_find_raw(b, name, 6);
            ids[byte] = named != LG_TOK_NONE ? named : lg_tok_find_raw(b, &itself, 1);
        }
    }
    b->t->byte_id = ids;
    return true;
}

bool lg_tok_make_texts(lg_tok_build *b, lb_err *err) {
    lg_tok *t = b->t;
    uint64_t bytes = 0;
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        bytes += b->raw[id].n_bytes; /* at most the header's size */
    }
    uint32_t total;
    char *text = lb_alloc(b->arena, bytes, err);
    uint32_t *at = lb_alloc_n(b->arena, (uint64_t)t->n_tokens + 1, sizeof *at, err);
    uint32_t n_slots = needs_slots(t) ? lg_tok_slots_for(t->n_tokens) : 1;
    uint32_t *slots = lb_alloc_n(b->arena, n_slots, sizeof *slots, err);
    if (text == NULL || at == NULL || slots == NULL) {
        return false;
    }
    if (!lb_to_u32(bytes, &total)) {
        return lb_err_set(err, LB_LIMIT, "the tokens' texts have 4 GiB or more");
    }
    uint32_t single[256];
    memset(single, 0xFF, sizeof single);
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        uint32_t n = 0;
        bool ordinary = print_token(b, id, text + at[id], &n);
        if (ordinary && needs_slots(t)) {
            lg_tok_add_slot(slots, n_slots, lb_hash_bytes(text + at[id], n), id);
        }
        if (ordinary && n == 1) {
            single[(uint8_t)text[at[id]]] = id;
        }
        at[id + 1] = at[id] + n;
        t->text_max_bytes = n > t->text_max_bytes ? n : t->text_max_bytes;
    }
    t->text = text;
    t->text_at = at;
    t->text_slots = needs_slots(t) ? slots : NULL;
    t->n_text_slots = needs_slots(t) ? n_slots : 0;
    return make_byte_ids(b, single, err);
}
