-- IQ4_XS: w = (d * (ls - 32)) * level[q], q of 4 bits; ls of 6 bits, one for 32 elements.
local nl16 = import("quant/nl16.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq4_xs"
module.qblock_elems = 256
module.qblock_bytes = 136
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "ISA_S8_BIAS" } -- taken from the code, for each part of a group
-- Of the sub-scales the low four bits stand in nibble g of sl, the high two in bits 2 g of the two bytes sh.
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "sh", src_offset = 2, n_bytes = 2, word_bytes = 1, check = 0 },
  { name = "sl", src_offset = 4, n_bytes = 4, word_bytes = 1, check = 0 },
  { name = "qs", src_offset = 8, n_bytes = 128, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
/* iq4_xs: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. Word 4g + i holds
 * columns 4i..4i+3 in its low nibbles and 16 more in its high ones. */
static const int8_t iq4_xs_levels[16] = {${table16.bytes(nl16.values, 0)}};

typedef struct iq4_xs_group {
    isa_i w[8];
    isa_f scale, sub;
} iq4_xs_group;

ISA_FN iq4_xs_group iq4_xs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq4_xs_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f), levels = isa_s8_prep(isa_table16(iq4_xs_levels));
    const uint8_t *qs = ${atom("qs")} + g * 256 + row * 4;
    (void)nq;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i x = isa_iload(qs + 64 * i);
        v.w[i] = isa_lookup16(levels, isa_iand(x, low));
        v.w[i + 4] = isa_lookup16(levels, isa_iand(isa_ishr(x, 4), low));
    }
    isa_i sl = isa_ishr(isa_load_u8(${atom("sl")} + g / 2 * 16 + row), g % 2 * 4);
    isa_i sh = isa_ishr(isa_load_u8(${atom("sh")} + g / 4 * 16 + row), g % 4 * 2);
    sh = isa_ishl(isa_iand(sh, isa_iset1(3)), 4);
    isa_i sub = isa_ior(isa_iand(sl, isa_iset1(15)), sh);
    v.sub = isa_cvt_f(isa_iadd(sub, isa_iset1(-32)));
    v.scale = isa_load_half(atom + row * 2);
    return v;
}

/* The sum of sub-scale * level * activation over the group: at most 32 * 127 * 32 * 127 < 2^24, so
 * exact as a float product too. start[0] is minus ISA_S8_BIAS times sum(q). */
ISA_FN isa_f iq4_xs_dot(const iq4_xs_group *v, const int8_t *q, const int32_t *start) {
    return isa_mul(v->sub, isa_cvt_f(isa_dot_s8(isa_iset1(start[0]), v->w, q, 8)));
}

%%template c_dequant()
/* iq4_xs: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void iq4_xs_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const int8_t level[16] = {${table16.bytes(nl16.values, 0)}};
    const uint8_t *qs = ${atom("qs")} + row * 4, *sl = ${atom("sl")} + row;
    const uint8_t *sh = ${atom("sh")} + row;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t g = e / 32, word = g * 256 + e % 16 / 4 * 64 + e % 4;
        uint32_t code = (uint32_t)qs[word] >> (e % 32 / 16 * 4) & 15u;
        uint32_t sub = (uint32_t)sl[g / 2 * 16] >> (g % 2 * 4) & 15u;
        sub |= ((uint32_t)sh[g / 4 * 16] >> (g % 4 * 2) & 3u) << 4;
        y[e] = d * ((float)sub - 32.0f) * (float)level[code];
    }
}

%%template cu_load()
/* iq4_xs: what a lane loads of one row of group g of an atom, which is one qblock: a word with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scales. */
typedef struct iq4_xs_word {
    uint32_t x;
} iq4_xs_word;
typedef struct iq4_xs_raw {
    uint32_t d, sl, sh;
} iq4_xs_raw;
typedef struct iq4_xs_scale {
    float d;
    int32_t sub;
} iq4_xs_scale;

ISA_FN iq4_xs_word iq4_xs_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    iq4_xs_word w;
    (void)nq;
    w.x = isa_load_w32(${atom("qs")} + g * 256 + i * 64 + row * 4);
    return w;
}

ISA_FN iq4_xs_raw iq4_xs_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq4_xs_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.sl = isa_load_w8(${atom("sl")} + g / 2 * 16 + row);
    r.sh = isa_load_w8(${atom("sh")} + g / 4 * 16 + row);
    return r;
}

ISA_FN void iq4_xs_codes(const iq4_xs_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)g, (void)i;
    isa_lookup16(${table16.words(nl16.values)}, w.x, lo, hi);
}

ISA_FN iq4_xs_scale iq4_xs_scales(const iq4_xs_raw &r, uint32_t g) {
    iq4_xs_scale s;
    s.d = isa_half(r.d);
    s.sub = (int32_t)((r.sl >> g % 2 * 4 & 15u) | (r.sh >> g % 4 * 2 & 3u) << 4) - 32;
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t iq4_xs_total(const iq4_xs_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s0, (void)s1;
    return s.sub * (lo + hi);
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float iq4_xs_value(const iq4_xs_scale &s, uint32_t code, uint32_t half) {
    (void)half;
    return s.d * (float)s.sub * (float)(int8_t)code;
}
