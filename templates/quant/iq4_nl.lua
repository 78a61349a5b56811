-- IQ4_NL: w = d * level[q], q of 4 bits.
local nl16 = import("quant/nl16.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "iq4_nl"
module.qblock_elems = 32
module.qblock_bytes = 18
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = {} -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "ISA_S8_BIAS" } -- taken from the code, for each part of a group
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "qs", src_offset = 2, n_bytes = 16, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_atom(module.planes, name) end

%%template c_functions()
/* iq4_nl: group g of an atom of nq qblocks, ISA_N rows from `row`. Word i of the codes holds columns
 * 4i..4i+3 in its low nibbles and 16 more in its high ones. */
static const int8_t iq4_nl_levels[16] = {${table16.bytes(nl16.values, 0)}};

typedef struct iq4_nl_group {
    isa_i w[8];
    isa_f scale;
} iq4_nl_group;

ISA_FN iq4_nl_group iq4_nl_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq4_nl_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f), levels = isa_s8_prep(isa_table16(iq4_nl_levels));
    const uint8_t *qs = ${atom("qs")} + g * 256 + row * 4;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i x = isa_iload(qs + 64 * i);
        v.w[i] = isa_lookup16(levels, isa_iand(x, low));
        v.w[i + 4] = isa_lookup16(levels, isa_iand(isa_ishr(x, 4), low));
    }
    v.scale = isa_load_half(atom + g * 32 + row * 2);
    return v;
}

/* The sum of level * activation over the group, exact; start[0] is minus ISA_S8_BIAS times sum(q). */
ISA_FN isa_f iq4_nl_dot(const iq4_nl_group *v, const int8_t *q, const int32_t *start) {
    return isa_cvt_f(isa_dot_s8(isa_iset1(start[0]), v->w, q, 8));
}

%%template c_dequant()
/* iq4_nl: the 32 elements of qblock q of one row of an atom of nq qblocks. */
ISA_FN void iq4_nl_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const int8_t level[16] = {${table16.bytes(nl16.values, 0)}};
    const uint8_t *qs = ${atom("qs")} + q * 256 + row * 4;
    float d = isa_half1(atom + q * 32 + row * 2);
    for (uint32_t e = 0; e < 16; e++) {
        uint32_t code = qs[e / 4 * 64 + e % 4];
        y[e] = d * (float)level[code & 15u];
        y[e + 16] = d * (float)level[code >> 4];
    }
}

%%template cu_load()
/* iq4_nl: what a lane loads of one row of group g of an atom of nq qblocks: a word with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scale. */
typedef struct iq4_nl_word {
    uint32_t x;
} iq4_nl_word;
typedef struct iq4_nl_raw {
    uint32_t d;
} iq4_nl_raw;
typedef struct iq4_nl_scale {
    float d;
} iq4_nl_scale;

ISA_FN iq4_nl_word iq4_nl_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    iq4_nl_word w;
    w.x = isa_load_w32(${atom("qs")} + g * 256 + i * 64 + row * 4);
    return w;
}

ISA_FN iq4_nl_raw iq4_nl_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    iq4_nl_raw r;
    (void)nq;
    r.d = isa_load_w16(${atom("d")} + g * 32 + row * 2);
    return r;
}

ISA_FN void iq4_nl_codes(const iq4_nl_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)g, (void)i;
    isa_lookup16(${table16.words(nl16.values)}, w.x, lo, hi);
}

ISA_FN iq4_nl_scale iq4_nl_scales(const iq4_nl_raw &r, uint32_t g) {
    iq4_nl_scale s;
    (void)g;
    s.d = isa_half(r.d);
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t iq4_nl_total(const iq4_nl_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s, (void)s0, (void)s1;
    return lo + hi;
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float iq4_nl_value(const iq4_nl_scale &s, uint32_t code, uint32_t half) {
    (void)half;
    return s.d * (float)(int8_t)code;
}
