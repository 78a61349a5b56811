-- IQ2_XS: w = (d / 8) * (2 s + 1) * +-g, one s of 4 bits for 16 elements; 8 elements g are an entry of a grid of 512 by number,
-- their signs 7 bits, the eighth sign makes the number of minus signs even.
local book = import("quant/grid/iq2_xs.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq2_xs"
module.qblock_elems = 256
module.qblock_bytes = 74
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub[0]", "s.sub[1]" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "43", "43" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 128)
-- Words 2g and 2g + 1 of qs are four times 16 bits: 9 of number, 7 of signs.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "sc", src_offset = 66, n_bytes = 8, word_bytes = 1, check = 0 },
  { name = "qs", src_offset = 2, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq2_xs_grid")}
/* Levels plus 43 by their number, from 4 on the negative ones. */
static const int8_t iq2_xs_levels[16] = {${table16.bytes(grid.signed(book, 4, 43), 0)}};

${iq.c_words8("iq2_xs")}

${iq.c_even("iq2_xs")}

/* iq2_xs: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. */
typedef struct iq2_xs_group {
    isa_i w[8];
    isa_f scale, sub[2];
} iq2_xs_group;

/* Four times 7 signs, those of words a and b, in bytes. */
ISA_FN isa_i iq2_xs_signs(isa_i a, isa_i b) {
    isa_i low = isa_ior(isa_iand(isa_ishr(a, 9), isa_iset1(0x7f)),
        isa_iand(isa_ishr(a, 17), isa_iset1(0x7f00)));
    isa_i high = isa_ior(isa_iand(isa_ishl(b, 7), isa_iset1(0x7f0000)),
        isa_iand(isa_ishr(b, 1), isa_iset1(0x7f000000)));
    return iq2_xs_even(isa_ior(low, high));
}

ISA_FN iq2_xs_group iq2_xs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_xs_group v;
    const isa_i levels = isa_table16(iq2_xs_levels), nine = isa_iset1(0x01ff01ff);
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    isa_i a = isa_iload(qs), b = isa_iload(qs + 64), signs = iq2_xs_signs(a, b);
    (void)nq;
    iq2_xs_words(isa_lookup_u16(iq2_xs_grid, 512, isa_iand(a, nine)), v.w);
    iq2_xs_words(isa_lookup_u16(iq2_xs_grid, 512, isa_iand(b, nine)), v.w + 4);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_lookup16(levels, isa_ior(v.w[i], isa_spread4(signs, i, 2)));
    }
    isa_i s = isa_load_u8(${atom("sc")} + g * 16 + row);
    for (uint32_t half = 0; half < 2; half++) {
        isa_i twice = isa_iand(isa_ishr(isa_ishl(s, 1), 4 * half), isa_iset1(30));
        v.sub[half] = isa_cvt_f(isa_ior(twice, isa_iset1(1)));
    }
    v.scale = isa_mul(isa_load_half(atom + row * 2), isa_set1(0.125f));
    return v;
}

${iq.c_dot("iq2_xs", "u7", 43, true)}

%%template c_dequant()
${grid.c_table(book, "iq2_xs_grid")}

${iq.c_element("iq2_xs", 8)}

/* iq2_xs: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq2_xs_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const float level[3] = {${join(book.levels, ", ")}};
    const uint8_t *qs = ${atom("qs")} + row * 4, *sc = ${atom("sc")} + row;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        const uint8_t *two = qs + e / 16 * 64 + e % 16 / 8 * 2;
        uint32_t x = two[0] | (uint32_t)two[1] << 8, signs = x >> 9;
        signs |= (uint32_t)__builtin_parity(signs) << 7;
        float v = level[iq2_xs_element(iq2_xs_grid[x & 511u], e % 8)];
        uint32_t s = (uint32_t)sc[e / 32 * 16] >> (e % 32 / 16 * 4) & 15u;
        y[e] = d * 0.125f * (float)(2 * s + 1) * ((signs >> (e % 8) & 1u) != 0 ? -v : v);
    }
}

%%template cu_book()
${grid.cu_table(book, 128, "iq2_xs_book")}

%%template cu_load(book_at)
/* iq2_xs: what a lane loads of one row of group g of an atom, which is one qblock: the words that number the entries of
 * columns 4i..4i+3 (lo) and of those 16 on (hi) and have their signs, and the scales. */
typedef struct iq2_xs_word {
    uint32_t lo, hi;
} iq2_xs_word;
typedef struct iq2_xs_raw {
    uint32_t d, sc;
} iq2_xs_raw;
typedef struct iq2_xs_scale {
    float d;
    int32_t sub[2];
} iq2_xs_scale;

${iq.cu_four8("iq2_xs", book_at, grid.n_entries(book), table16.words(grid.signed(book, 4, 0)))}

ISA_FN iq2_xs_word iq2_xs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    iq2_xs_word w;
    (void)nq, (void)i;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 64);
    return w;
}

ISA_FN iq2_xs_raw iq2_xs_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_xs_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.sc = isa_load_w8(${atom("sc")} + g * 16 + row);
    return r;
}

ISA_FN void iq2_xs_codes(const iq2_xs_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t a = w.lo >> i / 2 * 16, b = w.hi >> i / 2 * 16;
    (void)g;
    *lo = iq2_xs_four(a & 511u, a >> 9 & 127u, i % 2);
    *hi = iq2_xs_four(b & 511u, b >> 9 & 127u, i % 2);
}

ISA_FN iq2_xs_scale iq2_xs_scales(const iq2_xs_raw &r, uint32_t g) {
    iq2_xs_scale s;
    (void)g;
    s.d = isa_half(r.d) * 0.125f;
    s.sub[0] = (int32_t)((r.sc << 1 & 30u) | 1u);
    s.sub[1] = (int32_t)((r.sc >> 3 & 30u) | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq2_xs", true)}

%%template cu_value()
${iq.cu_value("iq2_xs", true)}
