-- IQ3_XXS: w = (d / 4) * (2 s + 1) * +-g, one s of 4 bits for 32 elements; 4 elements g are an entry of a grid of 256 by number,
-- the signs of 8 have 7 bits, the eighth sign makes the number of minus signs even.
local book = import("quant/grid/iq3_xxs.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq3_xxs"
module.qblock_elems = 256
module.qblock_bytes = 98
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "62" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 128)
-- Words 2g and 2g + 1 of qs are eight numbers, word g of rest four times 7 signs and s.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "rest", src_offset = 66, n_bytes = 32, word_bytes = 4, check = 0 },
  { name = "qs", src_offset = 2, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq3_xxs_grid")}
/* Levels plus 62 by their number, from 8 on the negative ones. */
static const int8_t iq3_xxs_levels[16] = {${table16.bytes(grid.signed(book, 8, 62), 0)}};

${iq.c_pairs("iq3_xxs")}

${iq.c_words4("iq3_xxs")}

${iq.c_even28("iq3_xxs")}

/* iq3_xxs: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. */
typedef struct iq3_xxs_group {
    isa_i w[8];
    isa_f scale, sub;
} iq3_xxs_group;

ISA_FN iq3_xxs_group iq3_xxs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq3_xxs_group v;
    const isa_i levels = isa_table16(iq3_xxs_levels);
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    isa_i rest = isa_iload(${atom("rest")} + g * 64 + row * 4);
    isa_i signs = iq3_xxs_even28(rest);
    (void)nq;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i pair = iq3_xxs_pair(isa_iload(qs + i / 2 * 64), i % 2);
        iq3_xxs_words(isa_lookup_u16(iq3_xxs_grid, 256, pair), v.w + 2 * i);
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_lookup16(levels, isa_ior(v.w[i], isa_spread4(signs, i, 3)));
    }
    isa_i s = isa_ior(isa_iand(isa_ishr(rest, 27), isa_iset1(30)), isa_iset1(1));
    v.sub = isa_cvt_f(s);
    v.scale = isa_mul(isa_load_half(atom + row * 2), isa_set1(0.25f));
    return v;
}

${iq.c_dot("iq3_xxs", "u7", 62, false)}

%%template c_dequant()
${grid.c_table(book, "iq3_xxs_grid")}

${iq.c_element("iq3_xxs", 4)}

/* iq3_xxs: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq3_xxs_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const float level[8] = {${join(book.levels, ", ")}};
    const uint8_t *qs = ${atom("qs")} + row * 4;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, l = e % 32 / 8, rest;
        memcpy(&rest, ${atom("rest")} + g * 64 + row * 4, 4);
        uint32_t signs = rest >> (7 * l) & 127u;
        signs |= (uint32_t)__builtin_parity(signs) << 7;
        uint32_t number = qs[e / 16 * 64 + e % 16 / 4];
        float v = level[iq3_xxs_element(iq3_xxs_grid[number], e % 4)];
        y[e] = d * 0.25f * (float)(2 * (rest >> 28) + 1) * ((signs >> (e % 8) & 1u) != 0 ? -v : v);
    }
}

%%template cu_book()
${grid.cu_table(book, 128, "iq3_xxs_book")}

%%template cu_load(book_at)
/* iq3_xxs: what a lane loads of one row of group g of an atom, which is one qblock: four numbers of entries for each half,
 * and signs with the sub-scale. */
typedef struct iq3_xxs_word {
    uint32_t lo, hi, rest;
} iq3_xxs_word;
typedef struct iq3_xxs_raw {
    uint32_t d, rest;
} iq3_xxs_raw;
typedef struct iq3_xxs_scale {
    float d;
    int32_t sub;
} iq3_xxs_scale;

${iq.cu_four4("iq3_xxs", book_at, grid.n_entries(book), iq.halves_of(table16.words(grid.signed(book, 8, 0))))}

ISA_FN iq3_xxs_word iq3_xxs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    iq3_xxs_word w;
    (void)nq, (void)i;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 64);
    w.rest = isa_load_w32(${atom("rest")} + g * 64 + row * 4);
    return w;
}

ISA_FN iq3_xxs_raw iq3_xxs_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq3_xxs_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.rest = isa_load_w32(${atom("rest")} + g * 64 + row * 4);
    return r;
}

ISA_FN void iq3_xxs_codes(const iq3_xxs_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t signs = w.rest >> 7 * (i / 2);
    (void)g;
    *lo = iq3_xxs_four(w.lo >> 8 * i & 255u, signs & 127u, i % 2);
    *hi = iq3_xxs_four(w.hi >> 8 * i & 255u, signs >> 14 & 127u, i % 2);
}

ISA_FN iq3_xxs_scale iq3_xxs_scales(const iq3_xxs_raw &r, uint32_t g) {
    iq3_xxs_scale s;
    (void)g;
    s.d = isa_half(r.d) * 0.25f;
    s.sub = (int32_t)(r.rest >> 28 << 1 | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq3_xxs", false)}

%%template cu_value()
${iq.cu_value("iq3_xxs", false)}
