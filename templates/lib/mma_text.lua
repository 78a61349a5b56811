-- mma_text.lua -- pieces of CUDA text for products of 16 rows of quantised weights by up to 64 rows of activations, in
-- the fragments of isa_mma_s8: lane l of a warp has weight rows l / 4 and l / 4 + 8, and of each 8 activation rows numbers
-- 2 (l % 4) and 2 (l % 4) + 1. Activations of an atom's columns are staged in shared memory.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local group = import("lib/group.lua")

module.ROWS = 64 -- of activations, at most
local ROWS = 64
-- Bytes of a row's staged columns: 16 more than 256, so that the words of 8 rows lie in 32 banks.
local STRIDE = 272
-- Rows that a group's scales have room for: 2 more, so that groups do not lie in the same banks.
local ROOM = 66

-- Whether some quantised type of a list of quant files has this.
local function any(list, key, value)
  for _, quant in ipairs(list) do
    if quant.kind == "int" and quant[key] == value then return true end
  end
  return false
end

-- What is staged beside bytes and scales: scale times sum of a group (behind the scale), or of its halves.
local function has_min(list) return any(list, "n_mins", 1) end
local function has_mins(list) return any(list, "n_mins", 2) end

local function any_int(list)
  for _, quant in ipairs(list) do
    if quant.kind == "int" then return true end
  end
  return false
end

-- Shared memory for what is staged: q, d and h; and for the code books.
function module.carve(list)
  if not any_int(list) then return {} end
  local per_group = 8 * ROOM * 4
  local out = { cuda.smem("q", ROWS * STRIDE), cuda.smem("d", has_min(list) and 2 * per_group or per_group) }
  if has_mins(list) then out[3] = cuda.smem("h", 2 * per_group) end
  book.carve(out, list)
  return out
end

%%template staged_type(list)
/* An atom's columns of the activations in shared memory: bytes [row][${STRIDE}], and by [group][${ROOM} rows] their
 * scales d${has_min(list) and ", each with scale times sum behind it" or ""}${has_mins(list) and ", and h, that of each half" or ""}. */
typedef struct staged {
    int8_t *q;
    float *d;
% if has_mins(list) then
    float *h;
% end
} staged;

%%template staged_x(list, at)
staged x;
x.q = (int8_t *)isa_smem(${at.q});
x.d = (float *)(void *)isa_smem(${at.d});
% if has_mins(list) then
x.h = (float *)(void *)isa_smem(${at.h});
% end

%%template stage(list, K, block, n, row)
/* The columns of atom a of x, a 16-byte piece a turn; rows from ${n} on are zeros. */
const uint32_t n_pieces = ${cuda.by_atom(K, "a", 16, K % 256 // 16)};
#pragma unroll 4
for (uint32_t i = isa_thread(); i < ${ROWS} * n_pieces; i += ${block}) {
    const uint32_t t = i / n_pieces, at = i % n_pieces * 16;
    isa_x4 v = {};
    if (t < ${n}) {
        v = isa_load_x4(p.x_q + (${row}) * ${K} + 256 * a + at);
    }
    isa_store_x4(x.q + t * ${STRIDE} + at, v);
}
#pragma unroll 4
for (uint32_t i = isa_thread(); i < ${ROWS} * (n_pieces / 2); i += ${block}) {
    const uint32_t t = i / (n_pieces / 2), g = i % (n_pieces / 2), at = g * ${ROOM} + t;
    const bool there = t < ${n};
    const size_t row = ${row};
    const float d = there ? p.x_d[row * ${K // 32} + 8 * a + g] : 0.0f;
% if has_min(list) or has_mins(list) then
    const int16_t *s = p.x_s + row * ${K // 16} + 16 * a + 2 * g;
    const isa_act act = isa_act_of(d, there ? (int32_t)isa_load_x1(s) : 0);
% end
% if has_min(list) then
    x.d[2 * at] = d;
    x.d[2 * at + 1] = act.m;
% else
    x.d[at] = d;
% end
% if has_mins(list) then
    x.h[at] = act.m_half[0];
    x.h[${8 * ROOM} + at] = act.m_half[1];
% end
}

%%template int_type(quant, K, list, smem)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
% -- Two groups at once hide latency; more than one scale and minimum each, or a second type's part of the same loop, and
% -- registers do not hold them.
% local at_once = (#list > 1 or quant.n_scales + quant.n_mins > 2) and 1 or 2
${group.cu_on_top(quant, smem)}

/* Group g of an atom of nq qblocks for the first 8 n_eights rows of x: acc[n] has the fragment of rows 8n .. 8n + 7. */
ISA_FN void ${t}_group(const uint8_t *atom, uint32_t nq, uint32_t g, const staged &x, const uint32_t n_eights,
    float (&acc)[${ROWS // 8}][4]) {
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    const ${t}_scale s[2] = {${t}_scales(${t}_load_scale(atom, nq, g, row), g),
                             ${t}_scales(${t}_load_scale(atom, nq, g, row + 8), g)};
    uint32_t a[4];
    ${t}_codes(${t}_load(atom, nq, g, row, i), g, i, &a[0], &a[2]);
    ${t}_codes(${t}_load(atom, nq, g, row + 8, i), g, i, &a[1], &a[3]);
% if quant.needs_sums then
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        a[k] = isa_minus4(a[k], ${quant.c_offsets[1]});
    }
% end
#pragma unroll
    for (uint32_t n = 0; n < n_eights; n++) {
        const int8_t *q = x.q + (8 * n + row) * ${STRIDE} + 32 * g + 4 * i;
        const uint32_t b[2] = {isa_load_x1(q), isa_load_x1(q + 16)};
% if quant.halves then
        int32_t lo[4], hi[4];
        isa_mma_s8_half_on(lo, a[0], a[1], b[0], ISA_TOP);
        isa_mma_s8_half_on(hi, a[2], a[3], b[1], ISA_TOP);
% else
        int32_t lo[4];
        const int32_t hi[4] = {};
        isa_mma_s8_on(lo, a, b, ISA_TOP);
% end

        /* The lane's two rows of x: their scales, and scale times sum. */
        const uint32_t at = g * ${ROOM} + 8 * n + 2 * i;
% if has_min(list) then
        const isa_x4 both = isa_load_x4(x.d + 2 * at);
        const uint32_t d[2] = {both.w[0], both.w[2]};
% else
        const isa_x2 both = isa_load_x2(x.d + at);
        const uint32_t d[2] = {both.w[0], both.w[1]};
% end
% if quant.n_mins == 2 then
        const isa_x2 scaled[2] = {isa_load_x2(x.h + at), isa_load_x2(x.h + ${8 * ROOM} + at)};
% end
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            isa_act act = {};
            act.d = isa_float(d[e % 2]);
% if quant.n_mins == 1 then
            act.m = isa_float(both.w[2 * (e % 2) + 1]);
% elseif quant.n_mins == 2 then
            act.m_half[0] = isa_float(scaled[0].w[e % 2]);
            act.m_half[1] = isa_float(scaled[1].w[e % 2]);
% end
            acc[n][e] = ${t}_add_on_top(acc[n][e], s[e / 2], lo[e], hi[e], act);
        }
    }
}

/* Atom a of a strip; what the next one needs is on its way meanwhile. */
ISA_FN void ${t}_atom(const uint8_t *strip, uint32_t a, const staged &x, const uint32_t n_eights,
    float (&acc)[${ROWS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t nq = ${cuda.by_atom(K, "a", a.per, a.rest)};
    if (a + 1 < ${ceil_div(K, 256)} && isa_lane() < ${ceil_div(a.bytes, 128)}) {
        isa_prefetch(atom + ${a.bytes} + 128 * isa_lane());
    }
#pragma unroll ${at_once}
    for (uint32_t g = 0; g < nq * ${groups}; g++) {
        ${t}_group(atom, nq, g, x, n_eights, acc);
    }
}

/* The same for n rows of x: few of them are less work. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const staged &x, uint32_t n, float (&acc)[${ROWS // 8}][4]) {
    if (n <= 16) {
        ${t}_atom(strip, a, x, 2, acc);
    } else if (n <= 32) {
        ${t}_atom(strip, a, x, 4, acc);
    } else {
        ${t}_atom(strip, a, x, ${ROWS // 8}, acc);
    }
}

%%lua
-- Columns of x that are staged at once for weights that are plain numbers, and floats of a row of them: 4 more, so that
-- 16 bytes of every other row lie in 32 banks.
local CHUNK = 64
local CHUNK_STRIDE = 68

local function any_float(list)
  for _, quant in ipairs(list) do
    if quant.kind == "float" then return true end
  end
  return false
end

-- Shared memory for x in front of plain numbers: f.
function module.carve_float(list)
  if not any_float(list) then return {} end
  return { cuda.smem("f", ROWS * CHUNK_STRIDE * 4) }
end

%%template float_type(quant, K)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* Columns begin .. begin + n_cols - 1 of atom a of a strip, those of x staged, for the first 8 n_eights rows of x: acc[n]
 * has the fragment of rows 8n .. 8n + 7. */
ISA_FN void ${t}_columns(const uint8_t *atom, uint32_t begin, uint32_t n_cols, const float *x, const uint32_t n_eights,
    float (&acc)[${ROWS // 8}][4]) {
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    uint32_t col = 0;
#pragma unroll 2
    for (; col + 4 <= n_cols; col += 4) {
        float w[4][2];
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            w[k][0] = ${t}_at(atom, begin + col + k, row);
            w[k][1] = ${t}_at(atom, begin + col + k, row + 8);
        }
#pragma unroll
        for (uint32_t n = 0; n < 2 * n_eights; n++) {
            const isa_x4 v = isa_load_x4(x + (8 * (n / 2) + 2 * i + n % 2) * ${CHUNK_STRIDE} + col);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                acc[n / 2][n % 2] = isa_fma(w[k][0], isa_float(v.w[k]), acc[n / 2][n % 2]);
                acc[n / 2][n % 2 + 2] = isa_fma(w[k][1], isa_float(v.w[k]), acc[n / 2][n % 2 + 2]);
            }
        }
    }
    for (; col < n_cols; col++) {
        const float w[2] = {${t}_at(atom, begin + col, row), ${t}_at(atom, begin + col, row + 8)};
#pragma unroll
        for (uint32_t n = 0; n < 2 * n_eights; n++) {
            const float v = x[(8 * (n / 2) + 2 * i + n % 2) * ${CHUNK_STRIDE} + col];
            acc[n / 2][n % 2] = isa_fma(w[0], v, acc[n / 2][n % 2]);
            acc[n / 2][n % 2 + 2] = isa_fma(w[1], v, acc[n / 2][n % 2 + 2]);
        }
    }
}

/* The same for n rows of x: few of them are less work. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, uint32_t begin, uint32_t n_cols, const float *x, uint32_t n,
    float (&acc)[${ROWS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    if (n <= 16) {
        ${t}_columns(atom, begin, n_cols, x, 2, acc);
    } else {
        ${t}_columns(atom, begin, n_cols, x, ${ROWS // 8}, acc);
    }
}

%%template float_atom(K, block, n, row, part)
/* Atom a for weights that are plain numbers, ${CHUNK} columns at a time; rows of x from ${n} on are zeros. */
const uint32_t columns = ${cuda.by_atom(K, "a", 256, K % 256)};
for (uint32_t begin = 0; begin < columns; begin += ${CHUNK}) {
    const uint32_t width = columns - begin < ${CHUNK} ? columns - begin : ${CHUNK};
    isa_barrier();
% if K % 4 == 0 then
#pragma unroll 4
    for (uint32_t i = isa_thread(); i < ${ROWS * CHUNK // 4}; i += ${block}) {
        const uint32_t t = i / ${CHUNK // 4}, col = i % ${CHUNK // 4} * 4;
        isa_x4 v = {};
        if (t < ${n} && col < width) {
            v = isa_load_x4(p.x + (${row}) * ${K} + 256 * a + begin + col);
        }
        isa_store_x4(x_f + t * ${CHUNK_STRIDE} + col, v);
    }
% else
    for (uint32_t i = isa_thread(); i < ${ROWS * CHUNK}; i += ${block}) {
        const uint32_t t = i / ${CHUNK}, col = i % ${CHUNK};
        const bool there = t < ${n} && col < width;
        x_f[t * ${CHUNK_STRIDE} + col] = there ? p.x[(${row}) * ${K} + 256 * a + begin + col] : 0.0f;
    }
% end
    isa_barrier();
    if (here) {
        ${part}
    }
}
