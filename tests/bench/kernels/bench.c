/* bench.c -- times one emitted kernel on a team of threads.
 *
 *   bench KERNEL N_CTAS N_ROWS POS THREADS COPIES SECONDS OPERAND...
 * KERNEL indexes table.c (made by bench.py). An OPERAND is its bytes, with a leading "w" if every
 * copy has its own: weights of COPIES layers, run one after the other, so that they come from
 * memory as they do in a model. The step has N_ROWS rows of one sequence from position POS. Ctas
 * are shared out as an emitted step does it. Prints the best and the median seconds of one call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "harness.h"
#include "pool.h"

enum { MAX_OPERANDS = 16, MAX_ROUNDS = 1000, HUGE_BYTES = 2 << 20, STAGGER_BYTES = 9 * 64 };

typedef struct bench {
    const kernel_entry *kernel;
    uint32_t n_ctas, copies;
    uint8_t *base[MAX_OPERANDS];
    size_t n_bytes[MAX_OPERANDS];
    bool own[MAX_OPERANDS]; /* each copy has its own */
    rt_step step;
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All copies of the kernel, one grid after the other. */
static void run(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers) {
    bench *b = arg;
    void *params[MAX_OPERANDS + 1];
    for (uint32_t c = 0; c < b->copies; c++) {
        for (uint32_t i = 0; i < b->kernel->n_operands; i++) {
            params[i] = b->base[i] + (b->own[i] ? c * b->n_bytes[i] : 0);
        }
        params[b->kernel->n_operands] = &b->step;
        uint32_t begin, end;
        while (rt_pool_take(pool, worker, b->n_ctas, rt_grain(b->n_ctas, n_workers), &begin, &end)) {
            b->kernel->call(params, begin, end);
        }
        rt_pool_close(pool, worker, b->n_ctas);
    }
}

/* Bytes 0x34 0x35 0x3c 0x3d make plain halves, floats and codes. Operands begin at different
 * places of a page, as those of a program do. */
static bool fill(bench *b, uint32_t i) {
    size_t n = b->n_bytes[i] * (b->own[i] ? b->copies : 1) + (i + 1) * STAGGER_BYTES;
    n = (n + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uint8_t *all = aligned_alloc(HUGE_BYTES, n);
    if (all == NULL) {
        return false;
    }
    madvise(all, n, MADV_HUGEPAGE);
    uint32_t x = 1;
    for (size_t k = 0; k < n; k++) {
        x = x * 1664525u + 1013904223u;
        all[k] = (uint8_t)(0x34u | ((x >> 24) & 9u));
    }
    b->base[i] = all + i * STAGGER_BYTES;
    return true;
}

static bool make_step(rt_step *s, uint32_t n_rows, uint32_t pos) {
    uint32_t *rows = calloc(4 * (size_t)n_rows + 1, sizeof *rows);
    if (rows == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        rows[2 * n_rows + i] = pos + i;
        rows[3 * n_rows + i] = i;
    }
    *s = (rt_step){.n_rows = n_rows, .n_seqs = 1, .n_logits = n_rows};
    s->token_of_row = rows;
    s->seq_of_row = rows + n_rows;
    s->pos_of_row = rows + 2 * n_rows;
    s->logit_rows = rows + 3 * n_rows;
    s->slot_of_seq = rows + 4 * n_rows;
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    bench b = {0};
    rt_pool *pool;
    if (argc < 8) {
        fprintf(stderr,
                "usage: bench KERNEL N_CTAS N_ROWS POS THREADS COPIES SECONDS OPERAND...\n");
        return 2;
    }
    b.kernel = &kernels[atoi(argv[1])];
    b.n_ctas = (uint32_t)atoi(argv[2]);
    b.copies = (uint32_t)atoi(argv[6]);
    bool ok = make_step(&b.step, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4])) &&
              (uint32_t)(argc - 8) == b.kernel->n_operands &&
              rt_pool_start((uint32_t)atoi(argv[5]), &pool, NULL);
    for (int i = 8; ok && i < argc; i++) {
        b.own[i - 8] = argv[i][0] == 'w';
        b.n_bytes[i - 8] = strtoull(argv[i] + b.own[i - 8], NULL, 10);
        ok = fill(&b, (uint32_t)i - 8);
    }
    if (!ok) {
        fprintf(stderr, "bench: wrong operands, or no memory or threads\n");
        return 1;
    }
    static double seconds[MAX_ROUNDS];
    int n = 0;
    for (double end = now() + atof(argv[7]); n < 3 || (n < MAX_ROUNDS && now() < end); n++) {
        double begin = now();
        rt_pool_run(pool, run, &b);
        seconds[n] = (now() - begin) / b.copies;
    }
    qsort(seconds, (size_t)n, sizeof seconds[0], by_size);
    printf("%.9f %.9f\n", seconds[0], seconds[n / 2]);
    rt_pool_stop(pool);
    return 0;
}
