-- IQ1_M: w = (d / 8) * (2 s + 1) * (8 g +- 1), one s of 3 bits for 16 elements and one sign of delta for 8; 8 elements g = -1, 0, 1
-- are an entry of IQ1_S's grid of 2048 by number. d is a half in the top nibbles of four words, the rest of which are the s.
local book = import("quant/grid/iq1_s.lua")
local grid = import("lib/grid.lua")
local iq = import("quant/iq.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq1_m"
module.qblock_elems = 256
module.qblock_bytes = 56
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub[0]", "s.sub[1]" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "9", "9" } -- taken from the code, for each part of a group
module.book_bytes = grid.cu_bytes(book, 0)
-- Word g of qs are the low bytes of four numbers; half-word g of qh has, four times, three high bits and the sign of delta.
module.planes = {
  { name = "sc", src_offset = 48, n_bytes = 8, word_bytes = 2, check = 3 },
  { name = "qh", src_offset = 32, n_bytes = 16, word_bytes = 2, check = 0 },
  { name = "qs", src_offset = 0, n_bytes = 32, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${grid.c_table(book, "iq1_m_grid")}

${iq.c_pairs("iq1_m")}

${iq.c_words8("iq1_m")}

/* iq1_m: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`; codes are 8 g +- 1
 * plus 9: eight times the grid's number of the level, and 2 where delta is not negative. */
typedef struct iq1_m_group {
    isa_i w[8];
    isa_f scale, sub[2];
} iq1_m_group;

/* 16-bit words of ISA_N rows. */
ISA_FN isa_i iq1_m_u16(const uint8_t *p) {
    return isa_ishr(isa_as_i(isa_load_bf16(p)), 16);
}

/* The scale; sc is the first of the four words. */
ISA_FN isa_f iq1_m_scale(const uint8_t *sc) {
    isa_i bits = isa_ishr(iq1_m_u16(sc), 12);
    for (uint32_t i = 1; i < 4; i++) {
        isa_i nibble = isa_ishl(isa_ishr(iq1_m_u16(sc + 32 * i), 12), 4 * i);
        bits = isa_ior(bits, nibble);
    }
    return isa_mul(isa_cvt_half(bits), isa_set1(0.125f));
}

ISA_FN iq1_m_group iq1_m_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq1_m_group v;
    const isa_i low3 = isa_iset1(0x700), high3 = isa_iset1(0x7000000);
    const uint8_t *sc = atom + row * 2;
    isa_i numbers = isa_iload(${atom("qs")} + g * 64 + row * 4);
    isa_i qh = iq1_m_u16(${atom("qh")} + g * 32 + row * 2);
    (void)nq;
    for (uint32_t i = 0; i < 2; i++) {
        isa_i high = i == 0 ? isa_ior(isa_iand(isa_ishl(qh, 8), low3), isa_iand(isa_ishl(qh, 20), high3))
                            : isa_ior(isa_iand(qh, low3), isa_iand(isa_ishl(qh, 12), high3));
        isa_i pair = isa_ior(iq1_m_pair(numbers, i), high);
        iq1_m_words(isa_lookup_u16(iq1_m_grid, 2048, pair), v.w + 4 * i);
    }
    /* Bits 3, 7, 11, 15, each turned round, as bit 1 of bytes 0..3. */
    isa_i plus = isa_ixor(isa_iand(isa_ishr(qh, 2), isa_iset1(0x2222)), isa_iset1(0x2222));
    plus = isa_iand(isa_ior(plus, isa_ishl(plus, 8)), isa_iset1(0x00ff00ff));
    plus = isa_iand(isa_ior(plus, isa_ishl(plus, 4)), isa_iset1(0x02020202));
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_ior(isa_ishl(v.w[i], 3), isa_byte4(plus, i / 2));
    }
    isa_i subs = isa_ishr(iq1_m_u16(sc + g / 2 * 32), g % 2 * 6);
    for (uint32_t half = 0; half < 2; half++) {
        isa_i twice = isa_iand(isa_ishr(isa_ishl(subs, 1), 3 * half), isa_iset1(14));
        v.sub[half] = isa_cvt_f(isa_ior(twice, isa_iset1(1)));
    }
    v.scale = iq1_m_scale(sc);
    return v;
}

${iq.c_dot("iq1_m", "u5", 9, true)}

%%template c_dequant()
${grid.c_table(book, "iq1_m_grid")}

${iq.c_element("iq1_m", 8)}

/* iq1_m: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq1_m_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = ${atom("qs")} + row * 4, *qh = ${atom("qh")} + row * 2;
    uint16_t sc[4], bits = 0;
    (void)nq, (void)q;
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(&sc[i], atom + i * 32 + row * 2, 2);
        bits = (uint16_t)(bits | (uint32_t)sc[i] >> 12 << (4 * i));
    }
    float d = isa_half1(&bits);
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, l = e % 32 / 8;
        uint32_t h = (uint32_t)qh[g * 32 + l / 2] >> (l % 2 * 4);
        uint32_t number = qs[g * 64 + l] | (h & 7u) << 8;
        float v = (float)iq1_m_element(iq1_m_grid[number], e % 8) - 1.0f;
        float delta = (h & 8u) != 0 ? -0.125f : 0.125f;
        uint32_t s = (uint32_t)sc[g / 2] >> (g % 2 * 6 + l / 2 * 3) & 7u;
        y[e] = d * (float)(2 * s + 1) * (v + delta);
    }
}

%%template cu_book()
${grid.cu_table(book, 0, "iq1_m_book")}

%%template cu_load(book_at)
/* iq1_m: what a lane loads of one row of group g of an atom, which is one qblock: low bytes and high bits of four numbers,
 * and the scales. */
typedef struct iq1_m_word {
    uint32_t numbers, qh;
} iq1_m_word;
typedef struct iq1_m_raw {
    uint32_t sc[4];
} iq1_m_raw;
typedef struct iq1_m_scale {
    float d;
    int32_t sub[2];
} iq1_m_scale;

${iq.cu_four1("iq1_m", book_at, table16.words({ -7, 1, 9, 0, -9, -1, 7, 0 }))}

ISA_FN iq1_m_word iq1_m_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    iq1_m_word w;
    (void)nq, (void)i;
    w.numbers = isa_load_w32(${atom("qs")} + g * 64 + row * 4);
    w.qh = isa_load_w16(${atom("qh")} + g * 32 + row * 2);
    return w;
}

ISA_FN iq1_m_raw iq1_m_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq1_m_raw r;
    (void)nq, (void)g;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        r.sc[i] = isa_load_w16(atom + i * 32 + row * 2);
    }
    return r;
}

ISA_FN void iq1_m_codes(const iq1_m_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t l = i / 2, numbers = w.numbers >> 8 * l, h = w.qh >> 4 * l;
    (void)g;
    *lo = iq1_m_four((numbers & 255u) | (h << 8 & 0x700u), h & 8u, i % 2);
    *hi = iq1_m_four((numbers >> 16 & 255u) | (h & 0x700u), h & 0x800u, i % 2);
}

ISA_FN iq1_m_scale iq1_m_scales(const iq1_m_raw &r, uint32_t g) {
    const uint32_t low = r.sc[0] >> 12 | (r.sc[1] >> 8 & 0xf0u), high = (r.sc[2] >> 4 & 0xf00u) | (r.sc[3] & 0xf000u);
    const uint32_t subs = (g / 2 == 0 ? r.sc[0] : g / 2 == 1 ? r.sc[1] : g / 2 == 2 ? r.sc[2] : r.sc[3]) >> g % 2 * 6;
    iq1_m_scale s;
    s.d = isa_half(low | high) * 0.125f;
    s.sub[0] = (int32_t)((subs << 1 & 14u) | 1u);
    s.sub[1] = (int32_t)((subs >> 2 & 14u) | 1u);
    return s;
}

%%template cu_sum()
${iq.cu_sum("iq1_m", true)}

%%template cu_value()
${iq.cu_value("iq1_m", true)}
