-- MXFP4: w = 2^(E - 128) * value[q], q of 4 bits, E a byte; value is twice E2M1's. E = 255 is refused when packing.
local fp4 = import("quant/fp4.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "mxfp4"
module.qblock_elems = 32
module.qblock_bytes = 17
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = {} -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "12" } -- taken from the code, for each part of a group
module.planes = {
  { name = "e", src_offset = 0, n_bytes = 1, word_bytes = 1, check = 2 },
  { name = "qs", src_offset = 1, n_bytes = 16, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_atom(module.planes, name) end

-- 2^(E - 128): half of the float whose exponent bits are E; for E = 0 of the subnormal 2^-127.

%%template c_functions()
/* mxfp4: group g of an atom of nq qblocks, ISA_N rows from `row`. Word i of the codes holds columns
 * 4i..4i+3 in its low nibbles and 16 more in its high ones; codes are the values plus 12. */
static const int8_t mxfp4_values[16] = {${table16.bytes(fp4.values, 12)}};

typedef struct mxfp4_group {
    isa_i w[8];
    isa_f scale;
} mxfp4_group;

ISA_FN mxfp4_group mxfp4_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    mxfp4_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f), values = isa_table16(mxfp4_values);
    const uint8_t *qs = ${atom("qs")} + g * 256 + row * 4;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i x = isa_iload(qs + 64 * i);
        v.w[i] = isa_lookup16(values, isa_iand(x, low));
        v.w[i + 4] = isa_lookup16(values, isa_iand(isa_ishr(x, 4), low));
    }
    isa_i e = isa_ishl(isa_load_u8(atom + g * 16 + row), 23);
    v.scale = isa_mul(isa_as_f(isa_imax(e, isa_iset1(1 << 22))), isa_set1(0.5f));
    return v;
}

/* The sum of value * activation over the group, exact; start[0] is -12 times sum(q). */
ISA_FN isa_f mxfp4_dot(const mxfp4_group *v, const int8_t *q, const int32_t *start) {
    return isa_cvt_f(isa_dot_u5(isa_iset1(start[0]), v->w, q, 8));
}

%%template c_dequant()
/* mxfp4: the 32 elements of qblock q of one row of an atom of nq qblocks. */
ISA_FN void mxfp4_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const int8_t value[16] = {${table16.bytes(fp4.values, 0)}};
    const uint8_t *qs = ${atom("qs")} + q * 256 + row * 4;
    uint32_t e = atom[q * 16 + row];
    float d = isa_soft_float(e == 0 ? 1u << 22 : e << 23) * 0.5f;
    for (uint32_t k = 0; k < 16; k++) {
        uint32_t code = qs[k / 4 * 64 + k % 4];
        y[k] = d * (float)value[code & 15u];
        y[k + 16] = d * (float)value[code >> 4];
    }
}

%%template cu_load()
/* mxfp4: what a lane loads of one row of group g of an atom of nq qblocks: a word with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scale. */
typedef struct mxfp4_word {
    uint32_t x;
} mxfp4_word;
typedef struct mxfp4_raw {
    uint32_t e;
} mxfp4_raw;
typedef struct mxfp4_scale {
    float d;
} mxfp4_scale;

ISA_FN mxfp4_word mxfp4_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    mxfp4_word w;
    w.x = isa_load_w32(${atom("qs")} + g * 256 + i * 64 + row * 4);
    return w;
}

ISA_FN mxfp4_raw mxfp4_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    mxfp4_raw r;
    (void)nq;
    r.e = isa_load_w8(atom + g * 16 + row);
    return r;
}

ISA_FN void mxfp4_codes(const mxfp4_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)g, (void)i;
    isa_lookup16(${table16.words(fp4.values)}, w.x, lo, hi);
}

ISA_FN mxfp4_scale mxfp4_scales(const mxfp4_raw &r, uint32_t g) {
    mxfp4_scale s;
    (void)g;
    s.d = isa_float(r.e == 0 ? 1u << 22 : r.e << 23) * 0.5f;
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t mxfp4_total(const mxfp4_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s, (void)s0, (void)s1;
    return lo + hi;
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float mxfp4_value(const mxfp4_scale &s, uint32_t code, uint32_t half) {
    (void)half;
    return s.d * (float)(int8_t)code;
}
