-- mma_text.lua -- pieces of CUDA text for products of 16 rows of weights that are plain numbers by up to 64 rows of
-- activations, in the lanes of isa_mma_s8's fragments: lane l of a warp has weight rows l / 4 and l / 4 + 8 (or, where the
-- kernel says `beside`, 2 (l / 4) and the next one), and of each 8 activation rows numbers 2 (l % 4) and 2 (l % 4) + 1.
-- Activations of 64 columns at a time are staged in shared memory. Quantised weights: mma_stream.lua.
local cuda = import("lib/descr_cuda.lua")
local descr = import("lib/descr.lua")

module.ROWS = 64 -- of activations, at most

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
function module.carve_float(list, rows)
  if not any_float(list) then return {} end
  return { cuda.smem("f", rows * CHUNK_STRIDE * 4) }
end

%%template float_type(quant, K, rows, beside)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* Columns begin .. begin + n_cols - 1 of atom a of a strip, those of x staged, for the first 8 n_eights rows of x: acc[n]
 * has the fragment of rows 8n .. 8n + 7. */
ISA_FN void ${t}_columns(const uint8_t *atom, uint32_t begin, uint32_t n_cols, const float *x, const uint32_t n_eights,
    float (&acc)[${rows // 8}][4]) {
    const uint32_t row = isa_lane() / 4${beside and " * 2" or ""}, i = isa_lane() % 4;
    uint32_t col = 0;
#pragma unroll 2
    for (; col + 4 <= n_cols; col += 4) {
        float w[4][2];
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            w[k][0] = ${t}_at(atom, begin + col + k, row);
            w[k][1] = ${t}_at(atom, begin + col + k, row + ${beside and 1 or 8});
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
        const float w[2] = {${t}_at(atom, begin + col, row), ${t}_at(atom, begin + col, row + ${beside and 1 or 8})};
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
    float (&acc)[${rows // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    if (n <= 16) {
        ${t}_columns(atom, begin, n_cols, x, 2, acc);
    } else {
        ${t}_columns(atom, begin, n_cols, x, ${rows // 8}, acc);
    }
}

%%template float_atom(K, block, rows, n, row, part)
/* Atom a for weights that are plain numbers, ${CHUNK} columns at a time; rows of x from ${n} on are zeros. */
const uint32_t columns = ${cuda.by_atom(K, "a", 256, K % 256)};
for (uint32_t begin = 0; begin < columns; begin += ${CHUNK}) {
    const uint32_t width = columns - begin < ${CHUNK} ? columns - begin : ${CHUNK};
    isa_barrier();
% if K % 4 == 0 then
#pragma unroll 4
    for (uint32_t i = isa_thread(); i < ${rows * CHUNK // 4}; i += ${block}) {
        const uint32_t t = i / ${CHUNK // 4}, col = i % ${CHUNK // 4} * 4;
        isa_x4 v = {};
        if (t < ${n} && col < width) {
            v = isa_load_x4(p.x + (${row}) * ${K} + 256 * a + begin + col);
        }
        isa_store_x4(x_f + t * ${CHUNK_STRIDE} + col, v);
    }
% else
    for (uint32_t i = isa_thread(); i < ${rows * CHUNK}; i += ${block}) {
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
