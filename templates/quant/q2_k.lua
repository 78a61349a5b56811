-- Q2_K: w = (d * sc) * q - dmin * m, q of 2 bits; sc and m of 4 bits, one pair for 16 elements.
local plane = import("lib/plane.lua")

module.type = "q2_k"
module.qblock_elems = 256
module.qblock_bytes = 84
module.kind = "int"
module.n_scales = 1
module.n_mins = 2 -- w = scale * code + min
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub[0]", "s.sub[1]" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = {} -- taken from the code, for each part of a group
module.planes = {
  { name = "d", src_offset = 80, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "dmin", src_offset = 82, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "sc", src_offset = 0, n_bytes = 16, word_bytes = 1, check = 0 },
  { name = "qs", src_offset = 16, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
/* q2_k: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. Groups 4n..4n + 3
 * share words 8n..8n + 7, two bits each. */
typedef struct q2_k_group {
    isa_i w[8];
    isa_f scale, sub[2], min[2];
} q2_k_group;

ISA_FN q2_k_group q2_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q2_k_group v;
    const isa_i low2 = isa_iset1(0x03030303), low4 = isa_iset1(15);
    const uint8_t *qs = ${atom("qs")} + g / 4 * 512 + row * 4;
    const uint8_t *sc = ${atom("sc")} + g * 32 + row;
    (void)nq;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        v.w[i] = isa_iand(isa_ishr(isa_iload(qs + 64 * i), g % 4 * 2), low2);
    }
    v.scale = isa_load_half(atom + row * 2);
    isa_f dmin = isa_neg(isa_load_half(${atom("dmin")} + row * 2));
    for (uint32_t half = 0; half < 2; half++) {
        isa_i both = isa_load_u8(sc + 16 * half);
        v.sub[half] = isa_cvt_f(isa_iand(both, low4));
        v.min[half] = isa_mul(dmin, isa_cvt_f(isa_ishr(both, 4)));
    }
    return v;
}

/* The sum of sc * code * activation over the group: below 2^24, so exact as floats too. */
ISA_FN isa_f q2_k_dot(const q2_k_group *v, const int8_t *q, const int32_t *start) {
    (void)start;
    isa_f a = isa_cvt_f(isa_dot_u4(isa_iset1(0), v->w, q, 4));
    isa_f b = isa_cvt_f(isa_dot_u4(isa_iset1(0), v->w + 4, q + 16, 4));
    return isa_fma(v->sub[1], b, isa_mul(v->sub[0], a));
}

%%template c_dequant()
/* q2_k: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void q2_k_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = ${atom("qs")} + row * 4, *sc = ${atom("sc")} + row;
    float d = isa_half1(atom + row * 2), dmin = isa_half1(${atom("dmin")} + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t n = e / 128, j = e % 128 / 32, both = sc[e / 16 * 16];
        uint32_t code = (uint32_t)qs[n * 512 + e % 32 / 4 * 64 + e % 4] >> (j * 2) & 3u;
        y[e] = d * (float)(both & 15u) * (float)code - dmin * (float)(both >> 4);
    }
}

%%template cu_load()
/* q2_k: what a lane loads of one row of group g of an atom, which is one qblock: words with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scales. */
typedef struct q2_k_word {
    uint32_t lo, hi;
} q2_k_word;
typedef struct q2_k_raw {
    uint32_t d, dmin, sc[2];
} q2_k_raw;
typedef struct q2_k_scale {
    float d, m[2]; /* m: dmin times its sub-scale, exact */
    int32_t sub[2];
} q2_k_scale;

ISA_FN q2_k_word q2_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g / 4 * 512 + i * 64 + row * 4;
    q2_k_word w;
    (void)nq;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 256);
    return w;
}

ISA_FN q2_k_raw q2_k_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    const uint8_t *sc = ${atom("sc")} + g * 32 + row;
    q2_k_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
    r.dmin = isa_load_w16(${atom("dmin")} + row * 2);
    r.sc[0] = isa_load_w8(sc);
    r.sc[1] = isa_load_w8(sc + 16);
    return r;
}

ISA_FN void q2_k_codes(const q2_k_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)i;
    *lo = w.lo >> g % 4 * 2 & 0x03030303u;
    *hi = w.hi >> g % 4 * 2 & 0x03030303u;
}

ISA_FN q2_k_scale q2_k_scales(const q2_k_raw &r, uint32_t g) {
    const float dmin = isa_half(r.dmin);
    q2_k_scale s;
    (void)g;
    s.d = isa_half(r.d);
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        s.sub[half] = (int32_t)(r.sc[half] & 15u);
        s.m[half] = dmin * (float)(r.sc[half] >> 4);
    }
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t q2_k_total(const q2_k_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s0, (void)s1;
    return s.sub[0] * lo + s.sub[1] * hi;
}

%%template cu_min()
ISA_FN float q2_k_min(const q2_k_scale &s, uint32_t half) {
    return 0.0f - s.m[half];
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float q2_k_value(const q2_k_scale &s, uint32_t code, uint32_t half) {
    return s.d * (float)s.sub[half] * (float)code - s.m[half];
}
