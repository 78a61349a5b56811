/* harness.c -- test program: runs emitted CUDA kernels on softgpu, on operands from a file.
 *
 *   harness IN OUT
 * IN holds records (little-endian u32 unless said): kernel, grid x, y, z, n_rows, n_seqs, n_logits, the
 * five arrays of rt_step in its order, n_operands, and for each operand: written (0 or 1), n_bytes,
 * bytes padded to 4. Every record runs once for each order of softgpu, from the same bytes, and the first of a kernel once
 * more with every wait for the launch in front taken seriously: before it a cta may touch early operands only. All must
 * agree, and read-only operands must keep theirs. Each operand is an allocation of its own, so AddressSanitizer
 * sees any touch outside it. OUT receives the written operands, in order. Exit 1 with one line. */
#define _DEFAULT_SOURCE
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sanitizer/asan_interface.h>
#include <string.h>

#include "model_abi.h"
#include "softgpu.h"

enum { MAX_OPERANDS = 16, ALIGN = 64 };

typedef struct operand {
    uint32_t written;
    size_t n_bytes;
    const uint8_t *bytes; /* in the record */
    uint8_t *at, *result; /* result: of the first order */
} operand;

static uint32_t take_u32(const uint8_t **at) {
    uint32_t v;
    memcpy(&v, *at, sizeof v);
    *at += sizeof v;
    return v;
}

/* A copy of its own size, so that reading behind the array is seen too. */
static const uint32_t *take_array(const uint8_t **at, uint32_t n) {
    uint32_t *a = malloc(n * sizeof *a);
    if (a != NULL) {
        memcpy(a, *at, n * sizeof *a);
    }
    *at += n * sizeof *a;
    return a;
}

static rt_step *take_step(const uint8_t **at) {
    rt_step *s = calloc(1, sizeof *s);
    if (s == NULL) {
        exit(1);
    }
    s->n_rows = take_u32(at);
    s->n_seqs = take_u32(at);
    s->n_logits = take_u32(at);
    s->n_prompt = take_u32(at);
    s->token_of_row = take_array(at, s->n_rows);
    s->seq_of_row = take_array(at, s->n_rows);
    s->pos_of_row = take_array(at, s->n_rows);
    s->slot_of_seq = take_array(at, s->n_seqs);
    s->logit_rows = take_array(at, s->n_logits);
    return s;
}

static void free_step(rt_step *s) {
    free((void *)(uintptr_t)s->token_of_row);
    free((void *)(uintptr_t)s->seq_of_row);
    free((void *)(uintptr_t)s->pos_of_row);
    free((void *)(uintptr_t)s->slot_of_seq);
    free((void *)(uintptr_t)s->logit_rows);
    free(s);
}

/* What a cta may not touch before its wait: operands that are not early, and the step. */
typedef struct guarded {
    const soft_entry *k;
    const operand *o;
    const rt_step *step;
} guarded;

static void each_late(const guarded *g, void (*do_to)(const volatile void *, size_t)) {
    for (uint32_t i = 0; i < g->k->n_operands; i++) {
        if ((g->k->early >> i & 1) == 0) {
            do_to(g->o[i].at, g->o[i].n_bytes);
        }
    }
    do_to(g->step, sizeof *g->step);
}

static void hide(void *arg) {
    each_late(arg, __asan_poison_memory_region);
}

static void show(void *arg) {
    each_late(arg, __asan_unpoison_memory_region);
}

/* Once, from the bytes of the record. */
static bool run_once(const soft_entry *k, const uint32_t grid[3], const operand *o, const rt_step *step, soft_order order,
                     const soft_wait_hooks *wait, lb_err *err) {
    const void *params[MAX_OPERANDS + 1];
    for (uint32_t i = 0; i < k->n_operands; i++) {
        memcpy(o[i].at, o[i].bytes, o[i].n_bytes);
        params[i] = o[i].at;
    }
    params[k->n_operands] = step;
    const soft_launch l = {.kernel = k->kernel, .params = params, .grid = {grid[0], grid[1], grid[2]},
                           .block = k->block, .smem_bytes = k->smem_bytes, .order = order, .wait = wait};
    return soft_run(&l, err);
}

static bool judge(const soft_entry *k, const operand *o, bool first, lb_err *err) {
    for (uint32_t i = 0; i < k->n_operands; i++) {
        if (!o[i].written && memcmp(o[i].at, o[i].bytes, o[i].n_bytes) != 0) {
            return lb_err_set(err, LB_PROOF, "operand %u, which is only read, has changed", i);
        }
        if (first) {
            memcpy(o[i].result, o[i].at, o[i].n_bytes);
        } else if (memcmp(o[i].result, o[i].at, o[i].n_bytes) != 0) {
            return lb_err_set(err, LB_PROOF, "operand %u depends on the order of threads or ctas", i);
        }
    }
    return true;
}

/* `waits`: once more, with waits. */
static bool run_orders(const soft_entry *k, const uint32_t grid[3], const operand *o, const rt_step *step, bool waits,
                       lb_err *err) {
    guarded g = {k, o, step};
    const soft_wait_hooks wait = {hide, show, &g};
    for (int order = 0; order < SOFT_N_ORDERS; order++) {
        if (!run_once(k, grid, o, step, (soft_order)order, NULL, err) || !judge(k, o, order == 0, err)) {
            return false;
        }
    }
    return !waits || (run_once(k, grid, o, step, SOFT_SHUFFLED, &wait, err) && judge(k, o, false, err));
}

static bool take_operands(const uint8_t **at, const soft_entry *k, operand *o) {
    for (uint32_t i = 0; i < k->n_operands; i++) {
        void *p = NULL;
        o[i].written = take_u32(at);
        o[i].n_bytes = take_u32(at);
        o[i].bytes = *at;
        *at += (o[i].n_bytes + 3) / 4 * 4;
        o[i].result = malloc(o[i].n_bytes + 1);
        if (o[i].result == NULL || posix_memalign(&p, ALIGN, o[i].n_bytes) != 0) {
            return false;
        }
        o[i].at = p;
    }
    return true;
}

/* `last` is the kernel of the record before. */
static bool run_record(const uint8_t **at, uint32_t *last, FILE *out, lb_err *err) {
    const uint32_t which = take_u32(at);
    uint32_t grid[3];
    for (int i = 0; i < 3; i++) {
        grid[i] = take_u32(at);
    }
    rt_step *step = take_step(at);
    operand o[MAX_OPERANDS] = {0};
    if (which >= n_soft_kernels || take_u32(at) != soft_kernels[which].n_operands) {
        return lb_err_set(err, LB_BAD_VALUE, "no such kernel, or other operands");
    }
    const soft_entry *k = &soft_kernels[which];
    bool ok = take_operands(at, k, o) || lb_err_set(err, LB_NO_MEMORY, "operands");
    ok = ok && (run_orders(k, grid, o, step, which != *last, err) || lb_err_prefix(err, "%s", k->name));
    *last = which;
    for (uint32_t i = 0; i < k->n_operands; i++) {
        if (ok && o[i].written) {
            ok = fwrite(o[i].result, 1, o[i].n_bytes, out) == o[i].n_bytes;
        }
        free(o[i].at);
        free(o[i].result);
    }
    free_step(step);
    return ok;
}

static uint8_t *read_all(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        return NULL;
    }
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*n + 1);
    if (data != NULL && fread(data, 1, *n, f) != *n) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

int main(int argc, char **argv) {
    size_t n = 0;
    uint8_t *data = argc == 3 ? read_all(argv[1], &n) : NULL;
    FILE *out = data != NULL ? fopen(argv[2], "wb") : NULL;
    if (out == NULL) {
        fprintf(stderr, "usage: harness IN OUT\n");
        return 2;
    }
    bool ok = true;
    lb_err err = {0};
    uint32_t record = 0;
    uint32_t last = UINT32_MAX;
    for (const uint8_t *at = data; ok && at < data + n; record++) {
        ok = run_record(&at, &last, out, &err);
        if (!ok) {
            fprintf(stderr, "harness: record %u: %s\n", record, err.text);
        }
    }
    ok = fclose(out) == 0 && ok;
    free(data);
    return ok ? 0 : 1;
}
