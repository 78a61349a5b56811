/* detok.c -- tokens to a stream of whole characters, see detok.h. */
#include "token/detok.h"

#include <string.h>

void rt_detok_init(rt_detok *d, const rt_tokenizer *tok, bool show_control, bool strip_space) {
    *d = (rt_detok){.tok = tok, .show_control = show_control, .strip_space = strip_space};
}

size_t rt_detok_max_bytes(const rt_tokenizer *tok) {
    return 3 * ((size_t)tok->text_max_bytes + sizeof ((rt_detok *)0)->held);
}

static size_t put_replacement(char *out) {
    memcpy(out, "\xEF\xBF\xBD", 3);
    return 3;
}

/* Takes one byte behind those held; writes a character when one is whole, U+FFFD when what is held
 * cannot go on (the byte then begins anew). */
static size_t push_byte(rt_detok *d, char byte, char *out) {
    size_t n = 0;
    uint32_t code;
    d->held[d->n_held++] = byte;
    if (d->n_held > 1 && lb_utf8_decode(d->held, d->n_held, &code) == 0 &&
        !lb_utf8_is_cut(d->held, d->n_held)) {
        n = put_replacement(out);
        d->held[0] = byte;
        d->n_held = 1;
    }
    if (lb_utf8_decode(d->held, d->n_held, &code) == d->n_held) {
        memcpy(out + n, d->held, d->n_held);
        n += d->n_held;
        d->n_held = 0;
    } else if (!lb_utf8_is_cut(d->held, d->n_held)) {
        n += put_replacement(out + n);
        d->n_held = 0;
    }
    return n;
}

size_t rt_detok_push(rt_detok *d, uint32_t id, char *out) {
    size_t n_piece;
    const char *piece = rt_token_piece(d->tok, id, d->show_control, &n_piece);
    size_t n = 0;
    for (size_t i = 0; i < n_piece; i++) {
        if (i == 0 && d->strip_space && piece[0] == ' ') {
            continue;
        }
        n += push_byte(d, piece[i], out + n);
    }
    d->strip_space = d->strip_space && n_piece == 0;
    return n;
}

size_t rt_detok_flush(rt_detok *d, char *out) {
    size_t n = d->n_held == 0 ? 0 : put_replacement(out);
    d->n_held = 0;
    return n;
}
