/* harness.c -- test program: runs emitted kernels on operands from a file, each between guard
 * pages.
 *
 *   harness IN OUT
 * IN holds records (little-endian u32 unless said): kernel, n_ctas, n_rows, n_seqs, n_logits, the
 * five arrays of rt_step in its order, n_operands, and for each operand: written (0 or 1), n_bytes,
 * bytes. Every record runs twice from the same bytes: operands flush against the guard page behind
 * them, all ctas in one call; then flush against the one before, ctas in uneven pieces. Both must
 * agree, and the rest of their pages must keep its filling. OUT receives the written operands, in
 * order. Linked with table.c (made by test_kernels.py), which knows the kernels' parameter structs.
 * Exit 1 with one line if anything is wrong; a touch outside the operands is a crash. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

enum { MAX_OPERANDS = 16, FILLING = 0xa5 };

typedef struct operand {
    uint32_t written;
    size_t n_bytes;
    const uint8_t *bytes; /* in the record */
    uint8_t *pages;       /* between two guard pages */
    size_t n_page_bytes;
    uint8_t *result; /* of the first pass */
} operand;

static bool fail(const char *what, uint32_t record) {
    fprintf(stderr, "harness: record %u: %s\n", record, what);
    return false;
}

static bool map_operand(operand *o) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    o->n_page_bytes = (o->n_bytes + page - 1) / page * page;
    uint8_t *all =
        mmap(NULL, o->n_page_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        return false;
    }
    o->pages = all + page;
    o->result = malloc(o->n_bytes + 1);
    return o->result != NULL && mprotect(o->pages, o->n_page_bytes, PROT_READ | PROT_WRITE) == 0;
}

static void unmap_operand(operand *o) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(o->pages - page, o->n_page_bytes + 2 * page);
    free(o->result);
}

static bool all_filling(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] != FILLING) {
            return false;
        }
    }
    return true;
}

/* What a kernel must leave alone: read-only operands, and the pages around every one. */
static bool untouched(const operand *o, const uint8_t *at) {
    size_t before = (size_t)(at - o->pages);
    return all_filling(o->pages, before) &&
           all_filling(at + o->n_bytes, o->n_page_bytes - before - o->n_bytes) &&
           (o->written || memcmp(at, o->bytes, o->n_bytes) == 0);
}

static void call_pieces(const kernel_entry *k, void *const *params, uint32_t n_ctas, int pass) {
    if (pass == 0) {
        k->call(params, 0, n_ctas);
        return;
    }
    k->call(params, 0, 0); /* no ctas: nothing may happen */
    for (uint32_t begin = 0, n = 1; begin < n_ctas; begin += n, n = n * 2 % 7 + 1) {
        uint32_t end = n_ctas - begin < n ? n_ctas : begin + n;
        k->call(params, begin, end);
    }
}

static bool run_pass(const kernel_entry *k, operand *o, uint32_t n, const rt_step *step,
                     uint32_t n_ctas, int pass, uint32_t record) {
    void *params[MAX_OPERANDS + 1];
    uint8_t *at[MAX_OPERANDS];
    for (uint32_t i = 0; i < n; i++) {
        at[i] = pass == 0 ? o[i].pages + (o[i].n_page_bytes - o[i].n_bytes) : o[i].pages;
        memset(o[i].pages, FILLING, o[i].n_page_bytes);
        memcpy(at[i], o[i].bytes, o[i].n_bytes);
        params[i] = at[i];
    }
    rt_step copy = *step;
    params[n] = &copy;
    call_pieces(k, params, n_ctas, pass);
    for (uint32_t i = 0; i < n; i++) {
        if (!untouched(&o[i], at[i])) {
            return fail("bytes outside the written operands changed", record);
        }
        if (pass == 0) {
            memcpy(o[i].result, at[i], o[i].n_bytes);
        } else if (memcmp(o[i].result, at[i], o[i].n_bytes) != 0) {
            return fail("ctas in pieces give other bytes", record);
        }
    }
    return true;
}

/* Reading the record: a cursor over the whole file. */
static uint32_t take_u32(const uint8_t **at) {
    uint32_t v;
    memcpy(&v, *at, sizeof v);
    *at += sizeof v;
    return v;
}

static const uint32_t *take_array(const uint8_t **at, uint32_t n) {
    const uint32_t *a = (const uint32_t *)(const void *)*at;
    *at += n * sizeof(uint32_t);
    return a;
}

static bool run_record(const uint8_t **at, FILE *out, uint32_t record) {
    uint32_t which = take_u32(at), n_ctas = take_u32(at);
    rt_step step = {.n_rows = take_u32(at)};
    step.n_seqs = take_u32(at);
    step.n_logits = take_u32(at);
    step.token_of_row = take_array(at, step.n_rows);
    step.seq_of_row = take_array(at, step.n_rows);
    step.pos_of_row = take_array(at, step.n_rows);
    step.slot_of_seq = take_array(at, step.n_seqs);
    step.logit_rows = take_array(at, step.n_logits);
    uint32_t n = take_u32(at);
    operand o[MAX_OPERANDS];
    if (which >= n_kernels || n > MAX_OPERANDS || n != kernels[which].n_operands) {
        return fail("no such kernel, or other operands", record);
    }
    for (uint32_t i = 0; i < n; i++) {
        o[i].written = take_u32(at);
        o[i].n_bytes = take_u32(at);
        o[i].bytes = *at;
        *at += (o[i].n_bytes + 3) / 4 * 4;
        if (!map_operand(&o[i])) {
            return fail("no memory", record);
        }
    }
    bool ok = run_pass(&kernels[which], o, n, &step, n_ctas, 0, record) &&
              run_pass(&kernels[which], o, n, &step, n_ctas, 1, record);
    for (uint32_t i = 0; i < n; i++) {
        if (ok && o[i].written) {
            ok = fwrite(o[i].result, 1, o[i].n_bytes, out) == o[i].n_bytes;
        }
        unmap_operand(&o[i]);
    }
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
    uint32_t record = 0;
    for (const uint8_t *at = data; ok && at < data + n; record++) {
        ok = run_record(&at, out, record);
    }
    ok = fclose(out) == 0 && ok;
    free(data);
    return ok ? 0 : 1;
}
