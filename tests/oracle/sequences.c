/* sequences.c -- linked with an emitted program in place of its command line: sequences side by side,
 * cut and begun anew, by a script on standard input. Lines:
 *
 *   text S X        slot S is empty and holds text X from now on: token i is f(X, i)
 *   step S:N ...    one step: N further tokens of each slot's text, and the last one's logits
 *   prompt S N      makes slot S hold the first N tokens of its text, keeping what it can
 *   other S X       slot S holds text X from now on, and what it held before
 *
 * Every step and prompt prints "S tokens kept digest" for each slot of it; equal digests are equal
 * bits. Exit status 1 with a line on what went wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine.h"
#include "session.h"

enum { SLOTS_MAX = 16, LINE_MAX_BYTES = 256 };

static uint32_t text_of[SLOTS_MAX];

/* Token i of text x: short repeats, so that attention has something to find. */
static uint32_t token_at(const rt_engine *e, uint32_t x, uint32_t i) {
    return (i * 7 + i / 13 * 5 + x * 31 + 1) % e->model->n_vocab;
}

static void fill(const rt_engine *e, uint32_t slot, uint32_t from, uint32_t n, uint32_t *to) {
    for (uint32_t i = 0; i < n; i++) {
        to[i] = token_at(e, text_of[slot], from + i);
    }
}

static void report(const rt_engine *e, uint32_t slot, uint32_t kept, uint32_t row) {
    const rt_seq *q = &e->seqs[slot];
    uint64_t digest = lb_hash_bytes(rt_engine_logits(e, row), e->model->n_vocab * sizeof(float));
    printf("%" PRIu32 " %" PRIu32 " %" PRIu32 " %016" PRIx64 "\n", slot, q->n_tokens, kept, digest);
}

static bool step(rt_engine *e, char *words, uint32_t *tokens, lb_err *err) {
    rt_feed feeds[SLOTS_MAX];
    uint32_t n = 0;
    for (char *w = strtok(words, " \n"); w != NULL && n < SLOTS_MAX; w = strtok(NULL, " \n")) {
        char *colon = NULL;
        uint32_t slot = (uint32_t)strtoul(w, &colon, 10);
        uint32_t count = (uint32_t)strtoul(colon + 1, NULL, 10);
        fill(e, slot, e->seqs[slot].n_tokens, count, tokens);
        feeds[n++] = (rt_feed){
            .seq = &e->seqs[slot], .tokens = tokens, .n_tokens = count, .n_logits = 1};
        tokens += count;
    }
    if (!rt_engine_step(e, feeds, n, err)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        report(e, feeds[i].seq->slot, feeds[i].seq->n_tokens - feeds[i].n_tokens,
               feeds[i].first_logit);
    }
    return true;
}

static bool prompt(rt_engine *e, uint32_t slot, uint32_t n, uint32_t *tokens, lb_err *err) {
    uint32_t kept = 0;
    fill(e, slot, 0, n, tokens);
    if (!rt_seq_prompt(&e->seqs[slot], tokens, n, NULL, &kept, err)) {
        return false;
    }
    report(e, slot, kept, 0);
    return true;
}

static bool line(rt_engine *e, char *text, uint32_t *tokens, lb_err *err) {
    unsigned slot = 0;
    unsigned x = 0;
    char verb[8] = "";
    if (strncmp(text, "step ", 5) == 0) {
        return step(e, text + 5, tokens, err);
    }
    if (sscanf(text, "%7s %u %u", verb, &slot, &x) != 3 || slot >= SLOTS_MAX ||
        slot >= e->model->slots) {
        return lb_err_set(err, LB_USAGE, "no line of a script: %s", text);
    }
    if (strcmp(verb, "prompt") == 0) {
        return prompt(e, slot, x, tokens, err);
    }
    if (strcmp(verb, "text") == 0) {
        rt_seq_cut(&e->seqs[slot], 0);
    }
    text_of[slot] = x;
    return true;
}

int main(int argc, char **argv) {
    char text[LINE_MAX_BYTES];
    lb_err err = {0};
    rt_engine *e = NULL;
    const rt_engine_opts o = {.n_threads = 2, .load = {.dir = argc > 1 ? argv[1] : "."}};
    uint32_t *tokens = calloc(lagen_model.ctx + lagen_model.t_max, sizeof *tokens);
    bool ok = tokens != NULL && rt_engine_start(&lagen_model, &o, &e, &err);
    while (ok && fgets(text, sizeof text, stdin) != NULL) {
        ok = line(e, text, tokens, &err);
    }
    rt_engine_stop(e);
    free(tokens);
    if (!ok) {
        fprintf(stderr, "sequences: %s\n", err.text);
    }
    return ok ? 0 : 1;
}
