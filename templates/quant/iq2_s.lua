-- IQ2_S: w = (d / 8) * (2 s + 1) * +-g, one s of 4 bits for 16 elements; 8 elements g are an entry of a grid of 1024 by number,
-- and have 8 signs.
local book = import("quant/grid/iq2_s.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq2_s"
module.qblock_elems = 256
module.qblock_bytes = 82
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub[0]", "s.sub[1]" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "43", "43" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 256)
-- Word g of qs are the low bytes of four numbers, byte g of qh twice four high bits, word g of signs the signs.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "sc", src_offset = 74, n_bytes = 8, word_bytes = 1, check = 0 },
  { name = "qh", src_offset = 66, n_bytes = 8, word_bytes = 1, check = 0 },
  { name = "signs", src_offset = 34, n_bytes = 32, word_bytes = 4, check = 0 },
  { name = "qs", src_offset = 2, n_bytes = 32, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq2_s_grid")}
/* Levels plus 43 by their number, from 4 on the negative ones. */
static const int8_t iq2_s_levels[16] = {${table16.bytes(grid.signed(book, 4, 43), 0)}};

${iq.c_pairs("iq2_s")}

${iq.c_words8("iq2_s")}

/* iq2_s: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. */
typedef struct iq2_s_group {
    isa_i w[8];
    isa_f scale, sub[2];
} iq2_s_group;

ISA_FN iq2_s_group iq2_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_s_group v;
    const isa_i levels = isa_table16(iq2_s_levels);
    const isa_i low2 = isa_iset1(0x300), high2 = isa_iset1(0x3000000);
    isa_i numbers = isa_iload(${atom("qs")} + g * 64 + row * 4);
    isa_i signs = isa_iload(${atom("signs")} + g * 64 + row * 4);
    isa_i qh = isa_load_u8(${atom("qh")} + g * 16 + row);
    (void)nq;
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 2; i++) {
        isa_i high = isa_ior(isa_iand(isa_ishl(qh, 8 - 4 * i), low2),
            isa_iand(isa_ishl(qh, 22 - 4 * i), high2));
        isa_i pair = isa_ior(iq2_s_pair(numbers, i), high);
        iq2_s_words(isa_lookup_u16(iq2_s_grid, 1024, pair), v.w + 4 * i);
    }
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

${iq.c_dot("iq2_s", "u7", 43, true)}

%%template c_dequant()
${grid.c_table(book, "iq2_s_grid")}

${iq.c_element("iq2_s", 8)}

/* iq2_s: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq2_s_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const float level[3] = {${join(book.levels, ", ")}};
    const uint8_t *qs = ${atom("qs")} + row * 4, *signs = ${atom("signs")} + row * 4;
    const uint8_t *sc = ${atom("sc")} + row, *qh = ${atom("qh")} + row;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, l = e % 32 / 8;
        uint32_t number = qs[g * 64 + l] | ((uint32_t)qh[g * 16] >> (2 * l) & 3u) << 8;
        float v = level[iq2_s_element(iq2_s_grid[number], e % 8)];
        uint32_t s = (uint32_t)sc[g * 16] >> (l / 2 * 4) & 15u;
        bool minus = ((uint32_t)signs[g * 64 + l] >> (e % 8) & 1u) != 0;
        y[e] = d * 0.125f * (float)(2 * s + 1) * (minus ? -v : v);
    }
}

%%template cu_book()
${grid.cu_table(book, 256, "iq2_s_book")}

%%template cu_load(book_at)
/* iq2_s: what a lane loads of one row of group g of an atom, which is one qblock: four numbers of entries in low bytes
 * and high bits, four masks of signs, and the scales. */
typedef struct iq2_s_word {
    uint32_t numbers, signs, qh;
} iq2_s_word;
typedef struct iq2_s_raw {
    uint32_t d, sc;
} iq2_s_raw;
typedef struct iq2_s_scale {
    float d;
    int32_t sub[2];
} iq2_s_scale;

${iq.cu_four8("iq2_s", book_at, grid.n_entries(book), table16.words(grid.signed(book, 4, 0)))}

ISA_FN iq2_s_word iq2_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    iq2_s_word w;
    (void)nq, (void)i;
    w.numbers = isa_load_w32(${atom("qs")} + g * 64 + row * 4);
    w.signs = isa_load_w32(${atom("signs")} + g * 64 + row * 4);
    w.qh = isa_load_w8(${atom("qh")} + g * 16 + row);
    return w;
}

ISA_FN iq2_s_raw iq2_s_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq2_s_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.sc = isa_load_w8(${atom("sc")} + g * 16 + row);
    return r;
}

ISA_FN void iq2_s_codes(const iq2_s_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t l = i / 2, numbers = w.numbers >> 8 * l, signs = w.signs >> 8 * l, high = w.qh << 8 >> 2 * l;
    (void)g;
    *lo = iq2_s_four((numbers & 255u) | (high & 0x300u), signs & 255u, i % 2);
    *hi = iq2_s_four((numbers >> 16 & 255u) | (high >> 4 & 0x300u), signs >> 16 & 255u, i % 2);
}

ISA_FN iq2_s_scale iq2_s_scales(const iq2_s_raw &r, uint32_t g) {
    iq2_s_scale s;
    (void)g;
    s.d = isa_half(r.d) * 0.125f;
    s.sub[0] = (int32_t)((r.sc << 1 & 30u) | 1u);
    s.sub[1] = (int32_t)((r.sc >> 3 & 30u) | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq2_s", true)}

%%template cu_value()
${iq.cu_value("iq2_s", true)}
