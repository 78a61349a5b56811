/* quantize_rows.c -- quantises float rows from standard input to a type, for test_quantize.py.
 *   quantize_rows TYPE COLUMNS < floats > bytes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize.h"

int main(int argc, char **argv) {
    lg_qtype t;
    lb_err err = {0};
    uint64_t n_bytes = 0;
    if (argc != 3 || !lg_qtype_from_name(argv[1], strlen(argv[1]), &t, &err)) {
        return 2;
    }
    size_t cols = (size_t)strtoull(argv[2], NULL, 10);
    if (!lg_qtype_row_bytes(t, cols, &n_bytes, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    float *x = calloc(cols, sizeof *x);
    uint8_t *row = malloc(n_bytes);
    bool good = x != NULL && row != NULL;
    while (good && fread(x, sizeof *x, cols, stdin) == cols) {
        good = lg_quantize_row(t, x, cols, row, &err) && fwrite(row, 1, n_bytes, stdout) == n_bytes;
    }
    if (!good) {
        fprintf(stderr, "%s\n", err.text);
    }
    free(x);
    free(row);
    return good ? 0 : 1;
}
