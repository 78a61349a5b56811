/* stub_model.h -- a model without arithmetic that answers by a script, for tests of the server: the
 * engine, the sampler and all above them are the real ones.
 *
 * Tokens 0..255 are bytes, then <eog>, <user>, <bot>, then pieces of several bytes (stub_model.c).
 * What it says is in the text between the last <user> and the last <bot>: what follows "say:"
 * there, in pieces as long as there are, or a greeting. \xHH is a byte. In front of "say:" stand
 * orders: #delay=MS    sleep before each token      #prefill=MS  sleep in each step that reads the
 * prompt #fail=N      the step for token N fails    #lost=N      the device is lost then #nan=N
 * #inf=N #ninf=N                      logits of token N are NaN, +inf, -inf #pfail=N     the step
 * that reads position N of the prompt fails #loop        the text again and again      #flat noise
 * alone Logits carry noise made of the whole history, so that a wrong position, slot or token
 * shows. */
#ifndef TESTS_STUB_MODEL_H
#define TESTS_STUB_MODEL_H

#include "model_abi.h"

enum { STUB_EOG = 256, STUB_USER = 257, STUB_BOT = 258, STUB_PIECES = 259 };

/* The model with a context of `ctx` tokens, `slots` and `chunk`. */
void stub_model_make(uint32_t ctx, uint32_t slots, uint32_t chunk, rt_model *out);

#endif
