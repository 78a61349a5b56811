/* fake_model.h -- a model without arithmetic: its KV cache holds tokens, its logits follow a
 * script.
 *
 * Tokens 0..255 are bytes; the three above are control tokens. What it says depends on the text
 * since the last FAKE_USER: "forever" there: "tick " without end, 2 ms a token; "turns": how many
 * FAKE_USER tokens there are; otherwise FAKE_ANSWER. Logits carry noise made of the whole
 * history, so that a wrong position, slot or token shows in every one of them. A step with token
 * 0 twice in succession fails. */
#ifndef TESTS_FAKE_MODEL_H
#define TESTS_FAKE_MODEL_H

#include "model_abi.h"

enum {
    FAKE_EOG = 256,
    FAKE_USER = 257,
    FAKE_BOT = 258,
    FAKE_N_VOCAB = 259,
    FAKE_CTX = 256,
    FAKE_SLOTS = 3,
    FAKE_CHUNK = 16
};

#define FAKE_ANSWER "Hello, w\xC3\xB6rld! STOP now.\n"

/* The chat template (fake_chat.c), for programs that link it. */
extern const struct rt_chat_template fake_chat;

/* Rows of prompts in the last step. */
extern uint32_t fake_prompt_rows;

/* Logits after history[0..n). */
void fake_logits(const uint32_t *history, uint32_t n, float *logits);

#endif
