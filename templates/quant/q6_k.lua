-- Q6_K: w = (d * sc) * (q - 32), q of 6 bits; sc a signed byte for each 16 elements.
local plane = import("lib/plane.lua")

module.type = "q6_k"
module.qblock_elems = 256
module.qblock_bytes = 210
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = true -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub0", "s.sub1" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "32", "32" } -- taken from the code, for each part of a group
module.planes = {
  { name = "sc", src_offset = 192, n_bytes = 16, word_bytes = 1, check = 0 },
  { name = "qh", src_offset = 128, n_bytes = 64, word_bytes = 4, check = 0 },
  { name = "ql", src_offset = 0, n_bytes = 128, word_bytes = 4, check = 0 },
  { name = "d", src_offset = 208, n_bytes = 2, word_bytes = 2, check = 1 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

%%template c_functions()
/* q6_k: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. With n = g / 4 and
 * j = g % 4, low bits are a nibble of words 16n + 8(j % 2) + i, high bits two of words 8n + i. */
typedef struct q6_k_group {
    isa_i w[8];
    isa_f scale, sub[2];
} q6_k_group;

ISA_FN q6_k_group q6_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q6_k_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f), two = isa_iset1(0x30303030);
    const uint8_t *ql = atom + 1280 + g / 4 * 1024 + g % 2 * 512 + row * 4;
    const uint8_t *qh = atom + 256 + g / 4 * 512 + row * 4;
    const uint8_t *sc = atom + g * 32 + row;
    (void)nq;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        isa_i nibble = isa_iand(isa_ishr(isa_iload(ql + 64 * i), g % 4 / 2 * 4), low);
        isa_i high = isa_ishl(isa_ishr(isa_iload(qh + 64 * i), g % 4 * 2), 4);
        v.w[i] = isa_ior(nibble, isa_iand(high, two));
    }
    v.scale = isa_load_half(atom + 3328 + row * 2);
    v.sub[0] = isa_cvt_f(isa_load_s8(sc));
    v.sub[1] = isa_cvt_f(isa_load_s8(sc + 16));
    return v;
}

/* The sum of sc * (code - 32) * activation over the group. Both halves and the whole are integers
 * below 2^24, so the float product and the fma are exact. sum[i] = -32 * sum of q of half i. */
ISA_FN isa_f q6_k_dot(const q6_k_group *v, const int8_t *q, const int32_t *sum) {
    isa_f a = isa_cvt_f(isa_dot_u6(isa_iset1(sum[0]), v->w, q, 4));
    isa_f b = isa_cvt_f(isa_dot_u6(isa_iset1(sum[1]), v->w + 4, q + 16, 4));
    return isa_fma(v->sub[1], b, isa_mul(v->sub[0], a));
}

%%template c_dequant()
/* q6_k: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void q6_k_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *ql = atom + 1280 + row * 4, *qh = atom + 256 + row * 4, *sc = atom + row;
    float d = isa_half1(atom + 3328 + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t n = e / 128, j = e % 128 / 32, at = e % 32 / 4 * 64 + e % 4;
        uint32_t lo = (uint32_t)ql[n * 1024 + j % 2 * 512 + at] >> (j / 2 * 4) & 15u;
        uint32_t hi = (uint32_t)qh[n * 512 + at] >> (j * 2) & 3u;
        float code = (float)(lo | hi << 4) - 32.0f;
        y[e] = d * (float)(int8_t)sc[e / 16 * 16] * code;
    }
}

%%template cu_load()
/* q6_k: what a lane loads of one row of group g of an atom, which is one qblock: a word (or more) with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scales. */
typedef struct q6_k_word {
    uint32_t low_lo, low_hi, high_lo, high_hi;
} q6_k_word;
typedef struct q6_k_raw {
    uint32_t d, sub0, sub1;
} q6_k_raw;
typedef struct q6_k_scale {
    float d;
    int32_t sub0, sub1;
} q6_k_scale;

ISA_FN q6_k_word q6_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *ql = ${atom("ql")} + g / 4 * 1024 + g % 2 * 512 + i * 64 + row * 4;
    const uint8_t *qh = ${atom("qh")} + g / 4 * 512 + i * 64 + row * 4;
    q6_k_word w;
    (void)nq;
    w.low_lo = isa_load_w32(ql);
    w.low_hi = isa_load_w32(ql + 256);
    w.high_lo = isa_load_w32(qh);
    w.high_hi = isa_load_w32(qh + 256);
    return w;
}

ISA_FN q6_k_raw q6_k_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    const uint8_t *sc = ${atom("sc")} + g * 32 + row;
    q6_k_raw r;
    (void)nq;
    r.d = isa_load_w16(${atom("d")} + row * 2);
    r.sub0 = isa_load_w8(sc);
    r.sub1 = isa_load_w8(sc + 16);
    return r;
}

ISA_FN void q6_k_codes(const q6_k_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t shift = g % 4 / 2 * 4, top = g % 4 * 2;
    (void)i;
    *lo = (w.low_lo >> shift & 0x0f0f0f0fu) | (w.high_lo >> top & 0x03030303u) << 4;
    *hi = (w.low_hi >> shift & 0x0f0f0f0fu) | (w.high_hi >> top & 0x03030303u) << 4;
}

ISA_FN q6_k_scale q6_k_scales(const q6_k_raw &r, uint32_t g) {
    q6_k_scale s;
    (void)g;
    s.d = isa_half(r.d);
    s.sub0 = (int8_t)r.sub0;
    s.sub1 = (int8_t)r.sub1;
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t q6_k_total(const q6_k_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    return s.sub0 * (lo - 32 * s0) + s.sub1 * (hi - 32 * s1);
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float q6_k_value(const q6_k_scale &s, uint32_t code, uint32_t half) {
    return s.d * (float)(half ? s.sub1 : s.sub0) * ((float)code - 32.0f);
}
