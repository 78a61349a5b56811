-- Q3_K: w = (d * sc) * (q - 4), q of 3 bits; sc of 6 bits with offset 32 for each 16 elements.
local plane = import("lib/plane.lua")

module.type = "q3_k"
module.qblock_elems = 256
module.qblock_bytes = 110
module.kind = "int"
module.n_scales = 1
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true -- each half of a group has its own sub-scale
module.cu_sub = { "s.sub[0]", "s.sub[1]" } -- integers that a group's sums are multiplied with, as C text
module.c_offsets = { "4", "4" } -- taken from the code, for each part of a group
module.planes = {
  { name = "d", src_offset = 108, n_bytes = 2, word_bytes = 2, check = 1 },
  { name = "s", src_offset = 96, n_bytes = 12, word_bytes = 1, check = 0 },
  { name = "hmask", src_offset = 0, n_bytes = 32, word_bytes = 4, check = 0 },
  { name = "qs", src_offset = 32, n_bytes = 64, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_qblock(module.planes, name) end

-- Sub-scale k = 0..15 less 32 is the low four bits of s[k] (k < 8) or the high ones of s[k - 8], with bits 2 (k / 4) and the
-- next of s[8 + k % 4] on top. Byte i of 16 rows lies at s + 16 i.

%%template c_functions()
/* q3_k: group g of an atom, which is one qblock (nq = 1), ISA_N rows from `row`. Groups 4n..4n + 3
 * share words 8n..8n + 7 with their low two bits; bit g of the mask's words is the third. */
typedef struct q3_k_group {
    isa_i w[8];
    isa_f scale, sub[2];
} q3_k_group;

/* Sub-scale k for ISA_N rows; s points at byte 0 of the first. */
ISA_FN isa_f q3_k_sub(const uint8_t *s, uint32_t k) {
    isa_i low = isa_ishr(isa_load_u8(s + 16 * (k % 8)), k / 8 * 4);
    isa_i top = isa_ishr(isa_load_u8(s + 16 * (8 + k % 4)), k / 4 * 2);
    top = isa_ishl(isa_iand(top, isa_iset1(3)), 4);
    isa_i sub = isa_ior(isa_iand(low, isa_iset1(15)), top);
    return isa_cvt_f(isa_iadd(sub, isa_iset1(-32)));
}

ISA_FN q3_k_group q3_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    q3_k_group v;
    const isa_i low = isa_iset1(0x03030303), bit = isa_iset1(0x04040404);
    const uint8_t *qs = ${atom("qs")} + g / 4 * 512 + row * 4;
    const uint8_t *hmask = ${atom("hmask")} + row * 4;
    (void)nq;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
        isa_i two = isa_iand(isa_ishr(isa_iload(qs + 64 * i), g % 4 * 2), low);
        isa_i high = isa_ishl(isa_ishr(isa_iload(hmask + 64 * i), g), 2);
        v.w[i] = isa_ior(two, isa_iand(high, bit));
    }
    v.scale = isa_load_half(atom + row * 2);
    v.sub[0] = q3_k_sub(${atom("s")} + row, 2 * g);
    v.sub[1] = q3_k_sub(${atom("s")} + row, 2 * g + 1);
    return v;
}

/* The sum of sc * (code - 4) * activation over the group: below 2^24, so exact as floats too.
 * start[i] = -4 * sum of q of half i. */
ISA_FN isa_f q3_k_dot(const q3_k_group *v, const int8_t *q, const int32_t *start) {
    isa_f a = isa_cvt_f(isa_dot_u4(isa_iset1(start[0]), v->w, q, 4));
    isa_f b = isa_cvt_f(isa_dot_u4(isa_iset1(start[1]), v->w + 4, q + 16, 4));
    return isa_fma(v->sub[1], b, isa_mul(v->sub[0], a));
}

%%template c_dequant()
/* q3_k: the 256 elements of the qblock of one row of an atom (nq = 1, q = 0). */
ISA_FN void q3_k_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    const uint8_t *qs = ${atom("qs")} + row * 4, *s = ${atom("s")} + row;
    const uint8_t *hmask = ${atom("hmask")} + row * 4;
    float d = isa_half1(atom + row * 2);
    (void)nq, (void)q;
    for (uint32_t e = 0; e < 256; e++) {
        uint32_t n = e / 128, j = e % 128 / 32, word = e % 32 / 4 * 64 + e % 4, k = e / 16;
        uint32_t code = (uint32_t)qs[n * 512 + word] >> (j * 2) & 3u;
        code |= ((uint32_t)hmask[word] >> (e / 32) & 1u) << 2;
        uint32_t sub = (uint32_t)s[k % 8 * 16] >> (k / 8 * 4) & 15u;
        sub |= ((uint32_t)s[(8 + k % 4) * 16] >> (k / 4 * 2) & 3u) << 4;
        y[e] = d * ((float)sub - 32.0f) * ((float)code - 4.0f);
    }
}

%%template cu_load()
/* q3_k: what a lane loads of one row of group g of an atom, which is one qblock: words with the codes of columns
 * 4i..4i+3 and of those 16 on, and the scales. */
typedef struct q3_k_word {
    uint32_t lo, hi, mask_lo, mask_hi;
} q3_k_word;
typedef struct q3_k_raw {
    uint32_t d, low[2], top[2];
} q3_k_raw;
typedef struct q3_k_scale {
    float d;
    int32_t sub[2];
} q3_k_scale;

ISA_FN q3_k_word q3_k_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g / 4 * 512 + i * 64 + row * 4;
    const uint8_t *hmask = ${atom("hmask")} + i * 64 + row * 4;
    q3_k_word w;
    (void)nq;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 256);
    w.mask_lo = isa_load_w32(hmask);
    w.mask_hi = isa_load_w32(hmask + 256);
    return w;
}

ISA_FN q3_k_raw q3_k_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    const uint8_t *s = ${atom("s")} + row;
    q3_k_raw r;
    (void)nq;
    r.d = isa_load_w16(atom + row * 2);
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t k = 2 * g + half;
        r.low[half] = isa_load_w8(s + k % 8 * 16);
        r.top[half] = isa_load_w8(s + (8 + k % 4) * 16);
    }
    return r;
}

/* Less 4: where the mask's bit is not set, all bits above the two are. */
ISA_FN void q3_k_codes(const q3_k_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    (void)i;
    *lo = (w.lo >> g % 4 * 2 & 0x03030303u) | (~w.mask_lo >> g & 0x01010101u) * 0xfcu;
    *hi = (w.hi >> g % 4 * 2 & 0x03030303u) | (~w.mask_hi >> g & 0x01010101u) * 0xfcu;
}

ISA_FN q3_k_scale q3_k_scales(const q3_k_raw &r, uint32_t g) {
    q3_k_scale s;
    s.d = isa_half(r.d);
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t k = 2 * g + half;
        s.sub[half] = (int32_t)((r.low[half] >> k / 8 * 4 & 15u) | (r.top[half] >> k / 4 * 2 & 3u) << 4) - 32;
    }
    return s;
}

%%template cu_sum()
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t q3_k_total(const q3_k_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s0, (void)s1;
    return s.sub[0] * lo + s.sub[1] * hi;
}

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float q3_k_value(const q3_k_scale &s, uint32_t code, uint32_t half) {
    return s.d * (float)s.sub[half] * (float)(int8_t)code;
}
