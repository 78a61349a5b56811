/* tok_ids.c -- encodes texts with the tokenizer of a model file, for test_tok_ids.py; and cuts texts
 * with a pre-tokenizer, for test_split_words.py.
 * tok_ids MODEL reads from stdin, again and again, a length in decimal, a newline and that many
 * bytes; for each it prints the ids on one line. With --special before MODEL, special tokens are
 * looked for and BOS and EOS added as the file says. tok_ids --stages MODEL prints the expressions of
 * the pre-tokenizer, and flags=WHOLE if words that are tokens are taken whole. tok_ids --split ID
 * reads texts in the same way and prints the lengths of the words in characters; tok_ids --splits
 * prints ids, each with its expressions on lines of their own behind a tab. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/splits.h"
#include "tok.h"
#include "tok_bridge.h"

enum { TEXT_MAX = 1 << 20 };

static int print_stages(const lg_tok *t) {
    for (size_t i = 0; t->pre != NULL && i < t->pre->split->n_stages; i++) {
        printf("%s\n", t->pre->split->stages[i]);
    }
    printf("flags=%s\n", t->whole_words ? "WHOLE" : "");
    return 0;
}

static int print_ids(const rt_tokenizer *t, rt_token_scratch *scratch, bool special, lb_err *err) {
    static char text[TEXT_MAX];
    static uint32_t ids[TEXT_MAX];
    size_t n_bytes, n;
    while (scanf("%zu", &n_bytes) == 1 && getchar() == '\n' && n_bytes <= TEXT_MAX &&
           fread(text, 1, n_bytes, stdin) == n_bytes) {
        rt_token_input in = {.text = text, .n_bytes = n_bytes, .parse_special = special,
                             .add_special = special};
        if (!rt_token_encode(t, &in, scratch, ids, TEXT_MAX, &n, err)) {
            return 1;
        }
        for (size_t i = 0; i < n; i++) {
            printf("%s%u", i > 0 ? " " : "", ids[i]);
        }
        printf("\n");
    }
    return 0;
}

static int print_splits(void) {
    size_t n;
    const lg_split *rows = lg_split_rows(&n);
    for (size_t i = 0; i < n; i++) {
        printf("%s\n", rows[i].id);
        for (size_t k = 0; k < rows[i].n_stages; k++) {
            printf("\t%s\n", rows[i].stages[k]);
        }
    }
    return 0;
}

static int print_words(const char *id) {
    static char text[TEXT_MAX];
    static rt_char t[TEXT_MAX];
    const split_row *row = splits;
    size_t n_bytes;
    while (row->id != NULL && strcmp(row->id, id) != 0) {
        row++;
    }
    while (row->id != NULL && scanf("%zu", &n_bytes) == 1 && getchar() == '\n' &&
           n_bytes <= TEXT_MAX && fread(text, 1, n_bytes, stdin) == n_bytes) {
        size_t n = rt_split_chars(text, n_bytes, t);
        row->split(t, n);
        for (size_t at = 0, end; at < n; at = end) {
            end = rt_split_next(t, at, n);
            printf("%zu ", end - at);
        }
        printf("\n");
    }
    return row->id == NULL;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--splits") == 0) {
        return print_splits();
    }
    if (argc == 3 && strcmp(argv[1], "--split") == 0) {
        return print_words(argv[2]);
    }
    lb_arena arena;
    lb_err err = {0};
    lg_gguf *g = NULL;
    lg_tok *t = NULL;
    rt_token_scratch *scratch = NULL;
    lb_arena_init(&arena, "tok_ids", UINT64_C(1) << 30);
    bool done = argc > 1 && lg_gguf_open(argv[argc - 1], &arena, &g, &err) &&
                lg_tok_read(g, &(lg_tok_options){0}, &arena, &t, &err) && t != NULL;
    int status = 1;
    if (done && argc == 3 && strcmp(argv[1], "--stages") == 0) {
        status = print_stages(t);
    } else if (done && (argc == 2 || strcmp(argv[1], "--special") == 0)) {
        rt_tokenizer rt = tok_bridge(t);
        done = rt_token_scratch_new(&rt, TEXT_MAX, &arena, &scratch, &err);
        status = done ? print_ids(&rt, scratch, argc == 3, &err) : 1;
    }
    if (status != 0) {
        fprintf(stderr, "tok_ids: %s\n", err.text);
    }
    lg_gguf_close(g);
    lb_arena_reset(&arena);
    return status;
}
