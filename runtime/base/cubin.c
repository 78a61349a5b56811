/* cubin.c -- see cubin.h. */
#include "base/cubin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    EHDR_BYTES = 64,
    SHDR_BYTES = 64,
    SYM_BYTES = 24,
    EM_CUDA = 190,
    STT_FUNC = 2,
    STB_GLOBAL = 1,
    SHT_SYMTAB = 2,
    SHT_NOBITS = 8,
    RESERVED_SMEM_BYTES =
        1024 /* counted in .nv.shared.<kernel> where there is a section .nv.shared.reserved.0 */
};

/* Attributes of .nv.info; a record is {format u8, attribute u8, value u16}, and for format 4 that
 * many bytes follow. */
enum {
    FORMAT_BYTES = 4,
    MAX_THREADS = 0x05,
    MIN_STACK_BYTES = 0x12,
    PARAM_BYTES = 0x19,
    REG_COUNT = 0x2f
};

typedef struct section {
    const char *name;
    uint32_t type, link;
    uint64_t offset, n_bytes;
} section;

static uint64_t read_le(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

static bool inside(const lb_cubin *c, uint64_t offset, uint64_t n) {
    return offset <= c->n_bytes && n <= c->n_bytes - offset;
}

/* A NUL-terminated string at `at` of the section's bytes, or NULL. */
static const char *string_at(const lb_cubin *c, const section *s, uint64_t at) {
    if (at >= s->n_bytes) {
        return NULL;
    }
    const char *p = (const char *)c->data + s->offset + at;
    return memchr(p, '\0', (size_t)(s->n_bytes - at)) == NULL ? NULL : p;
}

static bool section_raw(const lb_cubin *c, uint32_t i, section *out, uint32_t *name) {
    if (i >= c->n_sections) {
        return false;
    }
    const uint8_t *h = c->data + c->sections + (uint64_t)i * SHDR_BYTES;
    *name = (uint32_t)read_le(h, 4);
    *out = (section){.type = (uint32_t)read_le(h + 4, 4),
                     .offset = read_le(h + 24, 8),
                     .n_bytes = read_le(h + 32, 8),
                     .link = (uint32_t)read_le(h + 40, 4)};
    return out->type == SHT_NOBITS || inside(c, out->offset, out->n_bytes);
}

static bool section_at(const lb_cubin *c, uint32_t i, section *out) {
    section names;
    uint32_t name = 0;
    uint32_t unused = 0;
    if (!section_raw(c, c->names, &names, &unused) || names.type == SHT_NOBITS ||
        !section_raw(c, i, out, &name)) {
        return false;
    }
    out->name = string_at(c, &names, name);
    return out->name != NULL;
}

/* The section called prefix + name. */
static bool find_section(const lb_cubin *c, const char *prefix, const char *name, section *out) {
    size_t n = strlen(prefix);
    for (uint32_t i = 0; i < c->n_sections; i++) {
        if (section_at(c, i, out) && strncmp(out->name, prefix, n) == 0 &&
            strcmp(out->name + n, name) == 0) {
            return true;
        }
    }
    return false;
}

uint64_t lb_cubin_size(const void *data) {
    const uint8_t *d = data;
    if (memcmp(d, "\177ELF\2\1", 6) != 0 || read_le(d + 18, 2) != EM_CUDA) {
        return 0;
    }
    uint64_t a = read_le(d + 40, 8) + read_le(d + 58, 2) * read_le(d + 60, 2);
    uint64_t b = read_le(d + 32, 8) + read_le(d + 54, 2) * read_le(d + 56, 2);
    return a > b ? a : b;
}

static bool bad(lb_err *err, const char *what) {
    return lb_err_set(err, LB_BAD_FORMAT, "cubin: %s", what);
}

bool lb_cubin_open(const void *data, uint64_t n_bytes, lb_cubin *out, lb_err *err) {
    lb_cubin c = {.data = data, .n_bytes = n_bytes};
    if (n_bytes < EHDR_BYTES || lb_cubin_size(data) == 0) {
        return bad(err, "no 64-bit ELF file for a GPU");
    }
    c.sections = read_le(c.data + 40, 8);
    c.n_sections = (uint32_t)read_le(c.data + 60, 2);
    c.names = (uint32_t)read_le(c.data + 62, 2);
    c.arch = (uint32_t)(read_le(c.data + 48, 4) >> 8 & 0xff);
    if (read_le(c.data + 58, 2) != SHDR_BYTES ||
        !inside(&c, c.sections, (uint64_t)c.n_sections * SHDR_BYTES)) {
        return bad(err, "its section headers lie outside");
    }
    for (uint32_t i = 0; i < c.n_sections; i++) {
        section s;
        if (!section_at(&c, i, &s)) {
            return bad(err, "a section lies outside or has no name");
        }
        if (s.type == SHT_SYMTAB) {
            c.symbols = i;
        }
    }
    if (c.symbols == 0) {
        return bad(err, "it has no symbols");
    }
    *out = c;
    return true;
}

/* Symbol i: its name if it is a kernel (a global function), else "". False behind the end. */
static bool symbol_at(const lb_cubin *c, uint32_t i, const char **name) {
    section symbols;
    section strings;
    uint32_t unused = 0;
    if (!section_at(c, c->symbols, &symbols) || i >= symbols.n_bytes / SYM_BYTES) {
        return false;
    }
    const uint8_t *s = c->data + symbols.offset + (uint64_t)i * SYM_BYTES;
    bool kernel = s[4] == (STB_GLOBAL << 4 | STT_FUNC);
    *name = "";
    if (kernel && section_raw(c, symbols.link, &strings, &unused) && strings.type != SHT_NOBITS) {
        const char *text = string_at(c, &strings, read_le(s, 4));
        *name = text == NULL ? "" : text;
    }
    return true;
}

/* One record of an .nv.info section; advances *at. False at the end or for a record that lies
 * outside. */
typedef struct record {
    uint8_t attribute;
    uint32_t value;       /* of the short formats */
    const uint8_t *bytes; /* of the long one */
    uint32_t n_bytes;
} record;

static bool next_record(const lb_cubin *c, const section *s, uint64_t *at, record *out) {
    if (s->n_bytes - *at < 4) {
        return false;
    }
    const uint8_t *p = c->data + s->offset + *at;
    uint32_t value = (uint32_t)read_le(p + 2, 2);
    *at += 4;
    *out = (record){.attribute = p[1], .value = value};
    if (p[0] == FORMAT_BYTES) {
        if (value > s->n_bytes - *at) {
            return false;
        }
        out->bytes = p + 4;
        out->n_bytes = value;
        *at += value;
    }
    return true;
}

/* What .nv.info says of symbol `symbol`: registers and stack. */
static bool read_global(const lb_cubin *c, uint32_t symbol, lb_cubin_kernel *k) {
    section s;
    record r;
    uint64_t at = 0;
    bool regs = false;
    bool stack = false;
    if (!find_section(c, ".nv.info", "", &s)) {
        return false;
    }
    while (next_record(c, &s, &at, &r)) {
        if (r.n_bytes != 8 || read_le(r.bytes, 4) != symbol) {
            continue;
        }
        if (r.attribute == REG_COUNT) {
            k->regs = (uint32_t)read_le(r.bytes + 4, 4);
            regs = true;
        }
        if (r.attribute == MIN_STACK_BYTES) {
            k->local_bytes = (uint32_t)read_le(r.bytes + 4, 4);
            stack = true;
        }
    }
    return regs && stack;
}

/* What .nv.info.<kernel> says: threads and parameters. A kernel without parameters has no record
 * for them. */
static bool read_own(const lb_cubin *c, lb_cubin_kernel *k) {
    section s;
    record r;
    uint64_t at = 0;
    if (!find_section(c, ".nv.info.", k->name, &s)) {
        return false;
    }
    while (next_record(c, &s, &at, &r)) {
        if (r.attribute == PARAM_BYTES && r.bytes == NULL) {
            k->param_bytes = r.value;
        }
        if (r.attribute == MAX_THREADS && r.n_bytes == 12) {
            uint64_t n = read_le(r.bytes, 4) * read_le(r.bytes + 4, 4); /* below 2^64 */
            k->max_threads = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
        }
    }
    if (find_section(c, ".nv.shared.", k->name, &s)) {
        section reserved;
        uint64_t n = s.n_bytes > UINT32_MAX ? UINT32_MAX : s.n_bytes;
        bool counted =
            find_section(c, ".nv.shared.reserved.0", "", &reserved) && n >= RESERVED_SMEM_BYTES;
        k->static_smem_bytes = (uint32_t)n - (counted ? RESERVED_SMEM_BYTES : 0);
    }
    return true;
}

bool lb_cubin_kernel_at(const lb_cubin *c, uint32_t i, lb_cubin_kernel *out, lb_err *err) {
    const char *name = NULL;
    for (uint32_t symbol = 0, n = 0; symbol_at(c, symbol, &name); symbol++) {
        if (name[0] == '\0' || n++ != i) {
            continue;
        }
        lb_cubin_kernel k = {.name = name};
        if (!read_global(c, symbol, &k) || !read_own(c, &k)) {
            return lb_err_set(err, LB_BAD_FORMAT,
                              "cubin: kernel '%s' has no registers, stack or .nv.info section",
                              name);
        }
        *out = k;
        return true;
    }
    return false;
}

bool lb_cubin_find(const lb_cubin *c, const char *name, lb_cubin_kernel *out, lb_err *err) {
    lb_cubin_kernel k;
    lb_err own = {0};
    for (uint32_t i = 0; lb_cubin_kernel_at(c, i, &k, &own); i++) {
        if (strcmp(k.name, name) == 0) {
            *out = k;
            return true;
        }
    }
    if (own.code != LB_OK) {
        if (err != NULL) {
            *err = own;
        }
        return false;
    }
    return lb_err_set(err, LB_MISSING, "cubin: no kernel '%s'", name);
}
