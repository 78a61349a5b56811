-- Q8_0: w = d * q, q a signed byte.
local plane = import("lib/plane.lua")

module.type = "q8_0"
module.qblock_elems = 32
module.qblock_bytes = 34
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code + min
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = {} -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "ISA_S8_BIAS" } -- taken from the code, for each part of a group
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "qs", src_offset = 2, n_bytes = 32, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_atom(module.planes, name) end

%%template c_functions()
/* q8_0: group g of an atom of nq qblocks, ISA_N rows from `row`. Word i of the codes holds columns
 * 4i..4i+3. */
typedef struct q8_0_group {
    isa_i w[8];
    isa_f scale;
} q8_0_group;

ISA_FN q8_0_group q8_0_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q8_0_group v;
    const uint8_t *qs = atom + nq * 32 + g * 512 + row * 4;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_s8_prep(isa_iload(qs + 64 * i));
    }
    v.scale = isa_load_half(atom + g * 32 + row * 2);
    return v;
}

/* The sum of code * activation over the group, exact; sum[0] is minus ISA_S8_BIAS times sum(q). */
ISA_FN isa_f q8_0_dot(const q8_0_group *v, const int8_t *q, const int32_t *sum) {
    return isa_cvt_f(isa_dot_s8(isa_iset1(sum[0]), v->w, q, 8));
}

%%template c_dequant()
/* q8_0: the 32 elements of qblock q of one row of an atom of nq qblocks. */
ISA_FN void q8_0_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = atom + nq * 32 + q * 512 + row * 4;
    float d = isa_half1(atom + q * 32 + row * 2);
    for (uint32_t e = 0; e < 32; e++) {
        y[e] = d * (float)(int8_t)qs[e / 4 * 64 + e % 4];
    }
}

%%template cu_load()
/* q8_0: what a lane loads of one row of group g of an atom of nq qblocks: a word (or more) with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scale. */
typedef struct q8_0_word {
    uint32_t lo, hi;
} q8_0_word;
typedef struct q8_0_raw {
    uint32_t d;
} q8_0_raw;
typedef struct q8_0_scale {
    float d;
} q8_0_scale;

ISA_FN q8_0_word q8_0_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 512 + i * 64 + row * 4;
    q8_0_word w;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 256);
    return w;
}

ISA_FN q8_0_raw q8_0_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q8_0_raw r;
    (void)nq;
    r.d = isa_load_w16(${atom("d")} + g * 32 + row * 2);
    return r;
}

ISA_FN void q8_0_codes(const q8_0_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)g, (void)i;
    *lo = w.lo;
    *hi = w.hi;
}

ISA_FN q8_0_scale q8_0_scales(const q8_0_raw &r, uint32_t g) {
    q8_0_scale s;
    (void)g;
    s.d = isa_half(r.d);
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t q8_0_total(const q8_0_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s, (void)s0, (void)s1;
    return lo + hi;
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float q8_0_value(const q8_0_scale &s, uint32_t code, uint32_t half) {
    (void)half;
    return s.d * (float)(int8_t)code;
}
