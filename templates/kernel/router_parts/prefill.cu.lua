-- For many rows of x: a cta has 64 rows of one atom of W by 64 rows of x; a warp 16 of the first by all of the second, as
-- lib/mma_text.lua has it for plain numbers.
local cuda = import("lib/descr_cuda.lua")
local descr = import("lib/descr.lua")
local mma = import("lib/mma_text.lua")
local c_kernel = import("kernel/router_parts.c.lua")
local term = import("lib/term.lua")

local ROWS = mma.ROWS
local WARPS = 4
local TILE = 16 * WARPS

local function quant_of(op) return import("quant/" .. op.wtype .. ".lua") end

function module.describe(op)
  local c = c_kernel.describe_pieces(op, ROWS, TILE)
  return cuda.of(c, { name_suffix = "xprefill", axes = c.axes, grid = c.grid, block = 32 * WARPS, ctas_per_sm = 3,
                      smem = mma.carve_float({ quant_of(op) }, ROWS), features = { "f16" } })
end

%%template
% local d = module.describe(params)
% local quant, n_atoms, tiles = quant_of(params), c_kernel.n_atoms(params), ceil_div(E, TILE)
% local strip_bytes = 16 * exact_div(K, quant.qblock_elems) * quant.qblock_bytes
% local does = "y[a] = atom a of each row of W times x, their sum still to come; " .. TILE .. " rows of an atom by " .. ROWS .. " rows a cta"
${cuda.head(d, "kernel/router_parts/prefill.cu.lua", does, "W [" .. E .. "][" .. K .. "];  y [n_rows][" .. n_atoms .. "][" .. E .. "]")}

${cuda.params(d)}

${mma.float_type(quant, K, ROWS, false)}

${cuda.open(d)}
    const uint32_t a = ${term.over("isa_cta_y()", tiles)};
    const uint32_t strip = ${tiles == 1 and "isa_warp()" or "isa_cta_y() % " .. tiles .. " * " .. WARPS .. " + isa_warp()"};
    const bool here = 16 * strip < ${E};
    const uint8_t *weights = p.w + (size_t)strip * ${strip_bytes};
    float *x_f = (float *)(void *)isa_smem(0);
    isa_wait_launch();
    isa_let_launch();
    const size_t row0 = (size_t)isa_cta_x() * ${ROWS};
    const uint32_t left = p.step->n_rows - (uint32_t)row0, n_rows = left < ${ROWS} ? left : ${ROWS};
    float acc[${ROWS // 8}][4] = {};
    ${mma.float_atom(K, d.block, ROWS, "n_rows", "row0 + t", quant.type .. "_part(weights, a, begin, width, x_f, n_rows, acc);")}
#pragma unroll
    for (uint32_t k = 0; k < ${ROWS // 2}; k++) {
        const uint32_t t = k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2;
        const uint32_t e = 16 * strip + isa_lane() / 4 + k % 4 / 2 * 8;
        if (t < n_rows && e < ${E}) {
            p.y[(row0 + t) * ${n_atoms * E} + a * ${E} + e] = acc[k / 4][k % 4];
        }
    }
}
