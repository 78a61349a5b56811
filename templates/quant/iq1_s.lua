-- IQ1_S: w = (d / 8) * (2 s + 1) * (8 g +- 1), one s of 3 bits and one sign of delta for 32 elements; 8 elements g = -1, 0, 1 are an
-- entry of a grid of 2048 by number.
local book = import("quant/grid/iq1_s.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq1_s"
module.qblock_elems = 256
module.qblock_bytes = 50
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "9" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 0)
-- Word g of qs are the low bytes of four numbers; half-word g of qh has four times three high bits, s and the sign of delta.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "qh", src_offset = 34, n_bytes = 16, word_bytes = 2, check = 0 },
  { name = "qs", src_offset = 2, n_bytes = 32, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq1_s_grid")}

${iq.c_pairs("iq1_s")}

${iq.c_words8("iq1_s")}

/* iq1_s: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`; codes are 8 g +- 1
 * plus 9: eight times the grid's number of the level, and 2 where delta is not negative. */
typedef struct iq1_s_group {
    isa_i w[8];
    isa_f scale, sub;
} iq1_s_group;

ISA_FN iq1_s_group iq1_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq1_s_group v;
    const isa_i low3 = isa_iset1(0x700), high3 = isa_iset1(0x7000000);
    isa_i numbers = isa_iload(${atom("qs")} + g * 64 + row * 4);
    isa_i qh = isa_ishr(isa_as_i(isa_load_bf16(${atom("qh")} + g * 32 + row * 2)), 16);
    (void)nq;
    for (uint32_t i = 0; i < 2; i++) {
        isa_i high = i == 0 ? isa_ior(isa_iand(isa_ishl(qh, 8), low3), isa_iand(isa_ishl(qh, 21), high3))
                            : isa_ior(isa_iand(isa_ishl(qh, 2), low3), isa_iand(isa_ishl(qh, 15), high3));
        isa_i pair = isa_ior(iq1_s_pair(numbers, i), high);
        iq1_s_words(isa_lookup_u16(iq1_s_grid, 2048, pair), v.w + 4 * i);
    }
    isa_i plus = isa_ixor(isa_iand(isa_ishr(qh, 14), isa_iset1(2)), isa_iset1(2));
    plus = isa_byte4(plus, 0);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_ior(isa_ishl(v.w[i], 3), plus);
    }
    isa_i s = isa_ior(isa_iand(isa_ishr(qh, 11), isa_iset1(14)), isa_iset1(1));
    v.sub = isa_cvt_f(s);
    v.scale = isa_mul(isa_load_half(atom + row * 2), isa_set1(0.125f));
    return v;
}

${iq.c_dot("iq1_s", "u5", 9, false)}

%%template c_dequant()
${grid.c_table(book, "iq1_s_grid")}

${iq.c_element("iq1_s", 8)}

/* iq1_s: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq1_s_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = ${atom("qs")} + row * 4, *qh = ${atom("qh")} + row * 2;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, l = e % 32 / 8;
        uint32_t h = qh[g * 32] | (uint32_t)qh[g * 32 + 1] << 8;
        uint32_t number = qs[g * 64 + l] | (h >> (3 * l) & 7u) << 8;
        float v = (float)iq1_s_element(iq1_s_grid[number], e % 8) - 1.0f;
        float delta = (h & 0x8000u) != 0 ? -0.125f : 0.125f;
        y[e] = d * (float)(2 * (h >> 12 & 7u) + 1) * (v + delta);
    }
}

%%template cu_book()
${grid.cu_table(book, 0, "iq1_s_book")}

%%template cu_load(book_at)
/* iq1_s: what a lane loads of one row of group g of an atom, which is one qblock: low bytes and high bits of four numbers,
 * and the scales. */
typedef struct iq1_s_word {
    uint32_t numbers, qh;
} iq1_s_word;
typedef struct iq1_s_raw {
    uint32_t d, qh;
} iq1_s_raw;
typedef struct iq1_s_scale {
    float d;
    int32_t sub;
} iq1_s_scale;

${iq.cu_four1("iq1_s", book_at, table16.words({ -7, 1, 9, 0, -9, -1, 7, 0 }))}

ISA_FN iq1_s_word iq1_s_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    iq1_s_word w;
    (void)nq, (void)i;
    w.numbers = isa_load_w32(${atom("qs")} + g * 64 + row * 4);
    w.qh = isa_load_w16(${atom("qh")} + g * 32 + row * 2);
    return w;
}

ISA_FN iq1_s_raw iq1_s_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq1_s_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.qh = isa_load_w16(${atom("qh")} + g * 32 + row * 2);
    return r;
}

ISA_FN void iq1_s_codes(const iq1_s_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t l = i / 2, numbers = w.numbers >> 8 * l, high = w.qh >> 3 * l, minus = w.qh & 0x8000u;
    (void)g;
    *lo = iq1_s_four((numbers & 255u) | (high << 8 & 0x700u), minus, i % 2);
    *hi = iq1_s_four((numbers >> 16 & 255u) | (high << 2 & 0x700u), minus, i % 2);
}

ISA_FN iq1_s_scale iq1_s_scales(const iq1_s_raw &r, uint32_t g) {
    iq1_s_scale s;
    (void)g;
    s.d = isa_half(r.d) * 0.125f;
    s.sub = (int32_t)((r.qh >> 11 & 14u) | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq1_s", false)}

%%template cu_value()
${iq.cu_value("iq1_s", false)}
