/* emit_text.c -- the parts of a program that handle text: tokenizer and chat template. */
#include "emit_parts.h"

bool lg_emit_text_parts(lg_emitter *e, const lg_value *all, lb_err *err) {
    (void)all;
    (void)err;
    e->has_tokenizer = false;
    e->has_chat = false;
    return true;
}
