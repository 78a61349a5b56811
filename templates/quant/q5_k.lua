-- Q5_K: w = (d * sc) * q - dmin * m, q of 5 bits; sc and m of 6 bits, one pair for 32 elements.
local pair6 = import("quant/pair6.lua")
local plane = import("lib/plane.lua")

module.type = "q5_k"
module.qblock_elems = 256
module.qblock_bytes = 176
module.kind = "int"
module.n_scales = 1
module.n_mins = 1 -- w = scale * code + min
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = false
module.cu_sub = { "s.sub" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = {} -- taken from the code, for each part of a group
module.planes = {
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "dmin", src_offset = 2, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "s", src_offset = 4, n_bytes = 12, word_bytes = 1, check = 0 },
  { name = "qh", src_offset = 16, n_bytes = 32, word_bytes = 4, check = 0 },
  { name = "qs", src_offset = 48, n_bytes = 128, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
${pair6.c_functions("q5_k")}

/* q5_k: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. Groups 2i and
 * 2i + 1 share words: low and high nibbles. */
typedef struct q5_k_group {
    isa_i w[8];
    isa_f scale, min, sub;
} q5_k_group;

ISA_FN q5_k_group q5_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q5_k_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f);
    const uint8_t *qs = atom + 768 + g / 2 * 512 + row * 4;
    const isa_i bit = isa_iset1(0x10101010);
    const uint8_t *qh = atom + 256 + row * 4;
    (void)nq;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_iand(isa_ishr(isa_iload(qs + 64 * i), g % 2 * 4), low);
        isa_i high = isa_ishl(isa_ishr(isa_iload(qh + 64 * i), g), 4);
        v.w[i] = isa_ior(v.w[i], isa_iand(high, bit));
    }
    isa_i sc, m;
    q5_k_pair6(atom + 64 + row, g, &sc, &m);
    isa_f dmin = isa_load_half(atom + 32 + row * 2);
    v.scale = isa_load_half(atom + row * 2);
    v.min = isa_neg(isa_mul(dmin, isa_cvt_f(m)));
    v.sub = isa_cvt_f(sc);
    return v;
}

/* The sum of sc * code * activation over the group: below 2^24, so exact as a float product too. */
ISA_FN isa_f q5_k_dot(const q5_k_group *v, const int8_t *q, const int32_t *sum) {
    (void)sum;
    return isa_mul(v->sub, isa_cvt_f(isa_dot_u5(isa_iset1(0), v->w, q, 8)));
}

%%template c_dequant()
${pair6.c_scalar("q5_k")}

/* q5_k: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void q5_k_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = atom + 768 + row * 4;
    const uint8_t *qh = atom + 256 + row * 4;
    float d = isa_half1(atom + row * 2);
    float dmin = isa_half1(atom + 32 + row * 2);
    (void)nq, (void)q;
    for (uint32_t g = 0; g < 8; g++) {
        uint32_t sc, m;
        q5_k_pair6_1(atom + 64 + row, g, &sc, &m);
        for (uint32_t e = 0; e < 32; e++) {
            uint32_t at = e / 4 * 64 + e % 4;
            uint32_t code = (uint32_t)qs[g / 2 * 512 + at] >> (g % 2 * 4) & 15u;
            code |= ((uint32_t)qh[at] >> g & 1u) << 4;
            y[32 * g + e] = d * (float)sc * (float)code - dmin * (float)m;
        }
    }
}

%%template cu_load()
${pair6.cu_load("q5_k")}

/* q5_k: what a lane loads of one row of group g of an atom, which is one qblock: a word (or more) with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scales. */
typedef struct q5_k_word {
    uint32_t lo, hi, high_lo, high_hi;
} q5_k_word;
typedef struct q5_k_raw {
    uint32_t d, dmin;
    q5_k_pair pair;
} q5_k_raw;
typedef struct q5_k_scale {
    float d, m; /* m: dmin times its sub-scale, exact */
    int32_t sub;
} q5_k_scale;

ISA_FN q5_k_word q5_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g / 2 * 512 + i * 64 + row * 4;
    const uint8_t *qh = ${atom("qh")} + i * 64 + row * 4;
    q5_k_word w;
    (void)nq;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 256);
    w.high_lo = isa_load_w32(qh);
    w.high_hi = isa_load_w32(qh + 256);
    return w;
}

ISA_FN q5_k_raw q5_k_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q5_k_raw r;
    (void)nq;
    r.d = isa_load_w16(${atom("d")} + row * 2);
    r.dmin = isa_load_w16(${atom("dmin")} + row * 2);
    r.pair = q5_k_load_pair(${atom("s")} + row, g);
    return r;
}

ISA_FN void q5_k_codes(const q5_k_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)i;
    *lo = (w.lo >> g % 2 * 4 & 0x0f0f0f0fu) | (w.high_lo >> g & 0x01010101u) << 4;
    *hi = (w.hi >> g % 2 * 4 & 0x0f0f0f0fu) | (w.high_hi >> g & 0x01010101u) << 4;
}

ISA_FN q5_k_scale q5_k_scales(const q5_k_raw &r, uint32_t g) {
    q5_k_scale s;
    uint32_t sub, m;
    q5_k_pair_of(r.pair, g, &sub, &m);
    s.d = isa_half(r.d);
    s.m = isa_half(r.dmin) * (float)m;
    s.sub = (int32_t)sub;
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t q5_k_total(const q5_k_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s0, (void)s1;
    return s.sub * (lo + hi);
}

%%template cu_min()
ISA_FN float q5_k_min(const q5_k_scale &s) {
    return 0.0f - s.m;
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float q5_k_value(const q5_k_scale &s, uint32_t code, uint32_t half) {
    (void)half;
    return s.d * (float)s.sub * (float)code - s.m;
}
