-- IQ2_XXS: w = (d / 8) * (2 s + 1) * +-g, one s of 4 bits for 32 elements; 8 elements g are an entry of a grid of 256 by number,
-- their signs 7 bits, the eighth sign makes the number of minus signs even.
local book = import("quant/grid/iq2_xxs.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq2_xxs"
module.qblock_elems = 256
module.qblock_bytes = 66
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "43" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 128)
-- Words 2g of qs are four numbers, words 2g + 1 four times 7 signs and s.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "qs", src_offset = 2, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq2_xxs_grid")}
/* Levels plus 43 by their number, from 4 on the negative ones. */
static const int8_t iq2_xxs_levels[16] = {${table16.bytes(grid.signed(book, 4, 43), 0)}};

${iq.c_pairs("iq2_xxs")}

${iq.c_words8("iq2_xxs")}

${iq.c_even28("iq2_xxs")}

/* iq2_xxs: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. */
typedef struct iq2_xxs_group {
    isa_i w[8];
    isa_f scale, sub;
} iq2_xxs_group;

ISA_FN iq2_xxs_group iq2_xxs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_xxs_group v;
    const isa_i levels = isa_table16(iq2_xxs_levels);
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    isa_i numbers = isa_iload(qs), rest = isa_iload(qs + 64), signs = iq2_xxs_even28(rest);
    (void)nq;
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 2; i++) {
        isa_i pair = iq2_xxs_pair(numbers, i);
        iq2_xxs_words(isa_lookup_u16(iq2_xxs_grid, 256, pair), v.w + 4 * i);
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_lookup16(levels, isa_ior(v.w[i], isa_spread4(signs, i, 2)));
    }
    isa_i s = isa_ior(isa_iand(isa_ishr(rest, 27), isa_iset1(30)), isa_iset1(1));
    v.sub = isa_cvt_f(s);
    v.scale = isa_mul(isa_load_half(atom + row * 2), isa_set1(0.125f));
    return v;
}

${iq.c_dot("iq2_xxs", "u7", 43, false)}

%%template c_dequant()
${grid.c_table(book, "iq2_xxs_grid")}

${iq.c_element("iq2_xxs", 8)}

/* iq2_xxs: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq2_xxs_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const float level[3] = {${join(book.levels, ", ")}};
    const uint8_t *qs = ${atom("qs")} + row * 4;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, l = e % 32 / 8, rest;
        memcpy(&rest, qs + g * 128 + 64, 4);
        uint32_t signs = rest >> (7 * l) & 127u;
        signs |= (uint32_t)__builtin_parity(signs) << 7;
        float v = level[iq2_xxs_element(iq2_xxs_grid[qs[g * 128 + l]], e % 8)];
        y[e] = d * 0.125f * (float)(2 * (rest >> 28) + 1) * ((signs >> (e % 8) & 1u) != 0 ? -v : v);
    }
}

%%template cu_book()
${grid.cu_table(book, 128, "iq2_xxs_book")}

%%template cu_load(book_at)
/* iq2_xxs: what a lane loads of one row of group g of an atom, which is one qblock: four numbers of entries, and signs
 * with the sub-scale. */
typedef struct iq2_xxs_word {
    uint32_t numbers, rest;
} iq2_xxs_word;
typedef struct iq2_xxs_raw {
    uint32_t d, rest;
} iq2_xxs_raw;
typedef struct iq2_xxs_scale {
    float d;
    int32_t sub;
} iq2_xxs_scale;

${iq.cu_four8("iq2_xxs", book_at, grid.n_entries(book), table16.words(grid.signed(book, 4, 0)))}

ISA_FN iq2_xxs_word iq2_xxs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    iq2_xxs_word w;
    (void)nq, (void)i;
    w.numbers = isa_load_w32(qs);
    w.rest = isa_load_w32(qs + 64);
    return w;
}

ISA_FN iq2_xxs_raw iq2_xxs_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_xxs_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.rest = isa_load_w32(${atom("qs")} + g * 128 + 64 + row * 4);
    return r;
}

ISA_FN void iq2_xxs_codes(const iq2_xxs_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t l = i / 2, numbers = w.numbers >> 8 * l, signs = w.rest >> 7 * l;
    (void)g;
    *lo = iq2_xxs_four(numbers & 255u, signs & 127u, i % 2);
    *hi = iq2_xxs_four(numbers >> 16 & 255u, signs >> 14 & 127u, i % 2);
}

ISA_FN iq2_xxs_scale iq2_xxs_scales(const iq2_xxs_raw &r, uint32_t g) {
    iq2_xxs_scale s;
    (void)g;
    s.d = isa_half(r.d) * 0.125f;
    s.sub = (int32_t)(r.rest >> 28 << 1 | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq2_xxs", false)}

%%template cu_value()
${iq.cu_value("iq2_xxs", false)}
