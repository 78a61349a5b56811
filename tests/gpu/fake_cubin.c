#include "gpu/fake_cubin.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { EHDR = 64, SHDR = 64, SYM = 24, N_SECTIONS = 7 };

typedef struct image {
    uint8_t *data;
    size_t n, size;
} image;

static void put(image *m, const void *from, size_t n) {
    assert(n <= m->size - m->n);
    memcpy(m->data + m->n, from, n);
    m->n += n;
}

static void put_le(image *m, uint64_t v, int n) {
    uint8_t bytes[8];
    for (int i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(v >> (8 * i));
    }
    put(m, bytes, (size_t)n);
}

typedef struct part {
    uint32_t name, type, link;
    size_t at, n;
} part;

static part begin(const image *m, uint32_t name, uint32_t type) {
    return (part){.name = name, .type = type, .at = m->n};
}

static void end(const image *m, part *p) {
    p->n = m->n - p->at;
}

/* Records {4, attribute, 8, symbol, value}. */
static void put_pair(image *m, uint8_t attribute, uint32_t symbol, uint32_t value) {
    put_le(m, 4, 1);
    put_le(m, attribute, 1);
    put_le(m, 8, 2);
    put_le(m, symbol, 4);
    put_le(m, value, 4);
}

static void put_own(image *m, const fake_kernel *k) {
    put_le(m, 4, 1);
    put_le(m, 0x05, 1);
    put_le(m, 12, 2);
    put_le(m, k->max_threads, 4);
    put_le(m, 1, 4);
    put_le(m, 1, 4);
    put_le(m, 3, 1);
    put_le(m, 0x19, 1);
    put_le(m, k->param_bytes, 2);
}

static void put_header(image *m, uint32_t arch, size_t sections) {
    static const uint8_t ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8};
    put(m, ident, sizeof ident);
    put_le(m, 2, 2);   /* executable */
    put_le(m, 190, 2); /* CUDA */
    put_le(m, 1, 4);
    put_le(m, 0, 8);
    put_le(m, 0, 8);
    put_le(m, sections, 8);
    put_le(m, 0x6000004U | arch << 8, 4);
    put_le(m, EHDR, 2);
    put_le(m, 0, 2);
    put_le(m, 0, 2);
    put_le(m, SHDR, 2);
    put_le(m, N_SECTIONS, 2);
    put_le(m, 1, 2);
}

static void put_section(image *m, const part *p) {
    put_le(m, p->name, 4);
    put_le(m, p->type, 4);
    put_le(m, 0, 8);
    put_le(m, 0, 8);
    put_le(m, p->at, 8);
    put_le(m, p->n, 8);
    put_le(m, p->link, 4);
    put_le(m, 0, 4);
    put_le(m, 1, 8);
    put_le(m, 0, 8);
}

size_t fake_cubin(uint32_t arch, const fake_kernel *k, uint8_t *out, size_t size) {
    char names[512];
    image m = {out, EHDR, size};
    /* .shstrtab: each name after the one before */
    int n = snprintf(names, sizeof names,
                     "%c.shstrtab%c.strtab%c.symtab%c.nv.info%c.nv.info.%s%c.nv.shared.%s", 0, 0, 0,
                     0, 0, k->name, 0, k->name);
    uint32_t own = 1 + 10 + 8 + 8 + 9;
    uint32_t shared = own + 9 + (uint32_t)strlen(k->name) + 1;
    part parts[N_SECTIONS] = {{0}};
    parts[1] = begin(&m, 1, 3);
    put(&m, names, (size_t)n + 1);
    end(&m, &parts[1]);
    parts[2] = begin(&m, 11, 3);
    put_le(&m, 0, 1);
    put(&m, k->name, strlen(k->name) + 1);
    end(&m, &parts[2]);
    parts[3] = begin(&m, 19, 2);
    parts[3].link = 2;
    for (int i = 0; i < SYM; i++) {
        put_le(&m, 0, 1);
    }
    put_le(&m, 1, 4); /* symbol 1: the kernel, a global function */
    put_le(&m, 0x12, 1);
    put_le(&m, 0x10, 1);
    put_le(&m, 4, 2);
    put_le(&m, 0, 8);
    put_le(&m, 0, 8);
    end(&m, &parts[3]);
    parts[4] = begin(&m, 27, 0x70000000);
    put_pair(&m, 0x2f, 1, k->regs);
    put_pair(&m, 0x12, 1, k->local_bytes);
    end(&m, &parts[4]);
    parts[5] = begin(&m, own, 0x70000000);
    put_own(&m, k);
    end(&m, &parts[5]);
    parts[6] = (part){.name = shared, .type = 8, .at = m.n, .n = k->static_smem_bytes};
    size_t sections = m.n;
    for (int i = 0; i < N_SECTIONS; i++) {
        put_section(&m, &parts[i]);
    }
    image head = {out, 0, EHDR};
    put_header(&head, arch, sections);
    return m.n;
}
