-- NVFP4: w = half(b) * value[q], q of 4 bits; b a byte for each 16 elements, value twice E2M1's. half(b) is half of the
-- unsigned E4M3 number in the low seven bits of b, and 0 for b = 0x7F (NaN there), as ggml reads it. The tensor's second
-- scale is no affair of these functions: kernels multiply the output by it.
local fp4 = import("quant/fp4.lua")
local plane = import("lib/plane.lua")
local table16 = import("lib/table16.lua")

module.type = "nvfp4"
module.qblock_elems = 64
module.qblock_bytes = 36
module.kind = "int"
module.n_scales = 2 -- for each half of a group
module.n_mins = 0 -- w = scale * code
module.needs_sums = false -- a GPU takes offset times sum of activations off
module.halves = true
module.c_offsets = { "12", "12" } -- taken from the code, for each part of a group
module.planes = {
  { name = "sc", src_offset = 0, n_bytes = 4, word_bytes = 1, check = 0 },
  { name = "qs", src_offset = 4, n_bytes = 32, word_bytes = 4, check = 0 },
}

local function atom(name) return plane.in_atom(module.planes, name) end

-- Seven bits of E4M3 in front of zeros are a float's exponent and mantissa, too small by 2^120; half of it: 2^119. This holds
-- for subnormal ones too.

%%template c_functions()
/* nvfp4: group g of an atom of nq qblocks, ISA_N rows from `row`. Words 4g + 2h and the next hold half h:
 * eight columns in low nibbles, the next eight in high ones; codes are the values plus 12. */
static const int8_t nvfp4_values[16] = {${table16.bytes(fp4.values, 12)}};

typedef struct nvfp4_group {
    isa_i w[8];
    isa_f scale[2];
} nvfp4_group;

ISA_FN nvfp4_group nvfp4_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    nvfp4_group v;
    const isa_i low = isa_iset1(0x0f0f0f0f), values = isa_table16(nvfp4_values);
    const uint8_t *qs = ${atom("qs")} + g * 256 + row * 4;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        isa_i x = isa_iload(qs + 64 * i);
        v.w[i / 2 * 4 + i % 2] = isa_lookup16(values, isa_iand(x, low));
        v.w[i / 2 * 4 + i % 2 + 2] = isa_lookup16(values, isa_iand(isa_ishr(x, 4), low));
    }
    for (uint32_t half = 0; half < 2; half++) {
        isa_i b = isa_load_u8(atom + g * 32 + half * 16 + row);
        isa_i number = isa_ishl(isa_iand(b, isa_iset1(0x7f)), 20);
        isa_m real = isa_gt(isa_as_f(isa_ixor(b, isa_iset1(0x7f))), isa_set1(0.0f));
        isa_f scale = isa_mul(isa_as_f(number), isa_set1(0x1p119f));
        v.scale[half] = isa_sel(real, scale, isa_set1(0.0f));
    }
    return v;
}

/* The sum of value * activation over a half, exact; start[half] is -12 times its sum of q. */
ISA_FN isa_f nvfp4_dot(const nvfp4_group *v, const int8_t *q, const int32_t *start, uint32_t half) {
    return isa_cvt_f(
        isa_dot_u5(isa_iset1(start[half]), v->w + 4 * half, q + 16 * half, 4));
}

%%template c_dequant()
/* nvfp4: the 64 elements of qblock q of one row of an atom of nq qblocks. */
ISA_FN void nvfp4_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    static const int8_t value[16] = {${table16.bytes(fp4.values, 0)}};
    const uint8_t *qs = ${atom("qs")} + q * 512 + row * 4;
    for (uint32_t e = 0; e < 64; e++) {
        uint32_t b = atom[q * 64 + e / 16 * 16 + row];
        float d = b == 0x7f ? 0.0f : isa_soft_float((b & 0x7fu) << 20) * 0x1p119f;
        uint32_t code = (uint32_t)qs[e / 16 * 128 + e % 8 / 4 * 64 + e % 4] >> (e % 16 / 8 * 4);
        y[e] = d * (float)value[code & 15u];
    }
}

%%template cu_load()
/* nvfp4: what a lane loads of one row of group g of an atom of nq qblocks: the words with the codes of columns
 * 4i..4i+3 and of those 16 on, in their low nibbles for i < 2 and in their high ones else, and the scales. */
typedef struct nvfp4_word {
    uint32_t lo, hi;
} nvfp4_word;
typedef struct nvfp4_raw {
    uint32_t b[2];
} nvfp4_raw;
typedef struct nvfp4_scale {
    float d[2];
} nvfp4_scale;

ISA_FN nvfp4_word nvfp4_load(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row, uint32_t i) {
    const uint8_t *qs = ${atom("qs")} + g * 256 + i % 2 * 64 + row * 4;
    nvfp4_word w;
    w.lo = isa_load_w32(qs);
    w.hi = isa_load_w32(qs + 128);
    return w;
}

ISA_FN nvfp4_raw nvfp4_load_scale(const uint8_t *atom, uint32_t nq, uint32_t g, uint32_t row) {
    nvfp4_raw r;
    (void)nq;
    r.b[0] = isa_load_w8(atom + g * 32 + row);
    r.b[1] = isa_load_w8(atom + g * 32 + 16 + row);
    return r;
}

ISA_FN void nvfp4_codes(const nvfp4_word &w, uint32_t g, uint32_t i, uint32_t *lo, uint32_t *hi) {
    const uint32_t a = w.lo >> i / 2 * 4 & 0x0f0f0f0fu, b = w.hi >> i / 2 * 4 & 0x0f0f0f0fu;
    (void)g;
    isa_lookup16(${table16.words(fp4.values)}, a | b << 4, lo, hi);
}

ISA_FN nvfp4_scale nvfp4_scales(const nvfp4_raw &r, uint32_t g) {
    nvfp4_scale s;
    (void)g;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        s.d[half] = r.b[half] == 0x7fu ? 0.0f : isa_float((r.b[half] & 0x7fu) << 20) * 0x1p119f;
    }
    return s;
}

%%template cu_sum()
/* Nothing to do here: each half has a scale of its own, and codes are signed. */

%%template cu_value()
/* The weight of a code in half `half` of a group. */
ISA_FN float nvfp4_value(const nvfp4_scale &s, uint32_t code, uint32_t half) {
    return s.d[half] * (float)(int8_t)code;
}
