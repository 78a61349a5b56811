-- IQ3_S: w = d * (2 s + 1) * +-g, one s of 4 bits for 32 elements; 4 elements g are an entry of a grid of 512 by number, 8 of
-- them have 8 signs.
local book = import("quant/grid/iq3_s.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq3_s"
module.qblock_elems = 256
module.qblock_bytes = 110
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "15" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 256)
-- Words 2g and 2g + 1 of qs are the low bytes of eight numbers, byte g of qh their high bits, word g of signs the signs.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "sc", src_offset = 106, n_bytes = 4, word_bytes = 1, check = 0 },
  { name = "qh", src_offset = 66, n_bytes = 8, word_bytes = 1, check = 0 },
  { name = "signs", src_offset = 74, n_bytes = 32, word_bytes = 4, check = 0 },
  { name = "qs", src_offset = 2, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq3_s_grid")}
/* Levels plus 15 by their number, from 8 on the negative ones. */
static const int8_t iq3_s_levels[16] = {${table16.bytes(grid.signed(book, 8, 15), 0)}};

${iq.c_pairs("iq3_s")}

${iq.c_words4("iq3_s")}

/* iq3_s: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. */
typedef struct iq3_s_group {
    isa_i w[8];
    isa_f scale, sub;
} iq3_s_group;

ISA_FN iq3_s_group iq3_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq3_s_group v;
    const isa_i levels = isa_table16(iq3_s_levels);
    const isa_i low1 = isa_iset1(0x100), high1 = isa_iset1(0x1000000);
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    isa_i signs = isa_iload(${atom("signs")} + g * 64 + row * 4);
    isa_i qh = isa_load_u8(${atom("qh")} + g * 16 + row);
    (void)nq;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i high = isa_ior(isa_iand(isa_ishl(qh, 8 - 2 * i), low1),
            isa_iand(isa_ishl(qh, 23 - 2 * i), high1));
        isa_i pair = isa_ior(iq3_s_pair(isa_iload(qs + i / 2 * 64), i % 2), high);
        iq3_s_words(isa_lookup_u16(iq3_s_grid, 512, pair), v.w + 2 * i);
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_lookup16(levels, isa_ior(v.w[i], isa_spread4(signs, i, 3)));
    }
    isa_i s = isa_ishr(isa_load_u8(${atom("sc")} + g / 2 * 16 + row), g % 2 * 4);
    s = isa_ior(isa_iand(isa_ishl(s, 1), isa_iset1(30)), isa_iset1(1));
    v.sub = isa_cvt_f(s);
    v.scale = isa_load_half(atom + row * 2);
    return v;
}

${iq.c_dot("iq3_s", "u5", 15, false)}

%%template c_dequant()
${grid.c_table(book, "iq3_s_grid")}

${iq.c_element("iq3_s", 4)}

/* iq3_s: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq3_s_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const float level[8] = {${join(book.levels, ", ")}};
    const uint8_t *qs = ${atom("qs")} + row * 4, *signs = ${atom("signs")} + row * 4;
    const uint8_t *sc = ${atom("sc")} + row, *qh = ${atom("qh")} + row;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32;
        uint32_t number = qs[e / 16 * 64 + e % 16 / 4];
        number |= ((uint32_t)qh[g * 16] >> (e % 32 / 4) & 1u) << 8;
        float v = level[iq3_s_element(iq3_s_grid[number], e % 4)];
        uint32_t s = (uint32_t)sc[g / 2 * 16] >> (g % 2 * 4) & 15u;
        bool minus = ((uint32_t)signs[g * 64 + e % 32 / 8] >> (e % 8) & 1u) != 0;
        y[e] = d * (float)(2 * s + 1) * (minus ? -v : v);
    }
}

%%template cu_book()
${grid.cu_table(book, 256, "iq3_s_book")}

%%template cu_load(book_at)
/* iq3_s: what a lane loads of one row of group g of an atom, which is one qblock: four numbers of entries for each half, in
 * low bytes and high bits, four masks of signs, and the scales. */
typedef struct iq3_s_word {
    uint32_t lo, hi, signs, qh;
} iq3_s_word;
typedef struct iq3_s_raw {
    uint32_t d, sc;
} iq3_s_raw;
typedef struct iq3_s_scale {
    float d;
    int32_t sub;
} iq3_s_scale;

${iq.cu_four4("iq3_s", book_at, grid.n_entries(book), iq.halves_of(table16.words(grid.signed(book, 8, 0))))}

ISA_FN iq3_s_word iq3_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 128 + row * 4;
    iq3_s_word w;
    (void)nq, (void)i;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 64);
    w.signs = isa_load_w32(${atom("signs")} + g * 64 + row * 4);
    w.qh = isa_load_w8(${atom("qh")} + g * 16 + row);
    return w;
}

ISA_FN iq3_s_raw iq3_s_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq3_s_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.sc = isa_load_w8(${atom("sc")} + g / 2 * 16 + row);
    return r;
}

ISA_FN void iq3_s_codes(const iq3_s_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t signs = w.signs >> 8 * (i / 2), high = w.qh << 8 >> i;
    (void)g;
    *lo = iq3_s_four((w.lo >> 8 * i & 255u) | (high & 0x100u), signs & 255u, i % 2);
    *hi = iq3_s_four((w.hi >> 8 * i & 255u) | (high >> 4 & 0x100u), signs >> 16 & 255u, i % 2);
}

ISA_FN iq3_s_scale iq3_s_scales(const iq3_s_raw &r, uint32_t g) {
    iq3_s_scale s;
    s.d = isa_half(r.d);
    s.sub = (int32_t)((r.sc >> g % 2 * 4 << 1 & 30u) | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq3_s", false)}

%%template cu_value()
${iq.cu_value("iq3_s", false)}
