-- A warp has 16 rows of one atom of W, 128 columns in each half: all of it is loaded at once, before the launch in front
-- has ended. The chain over an atom's columns goes through the lower half and then through the upper one; while a row of
-- x is in the upper, the next one is in the lower.
local cuda = import("lib/descr_cuda.lua")
local descr = import("lib/descr.lua")
local c_kernel = import("kernel/router_parts.c.lua")
local term = import("lib/term.lua")

local HALF = 128

function module.describe(op)
  local c = c_kernel.describe(op)
  return cuda.of(c, { axes = c.axes, grid = c.grid, block = 32, ctas_per_sm = 8, features = { "f16", "shuffle" },
                    early = { "w" } })
end

%%template whole_chain(op)
#pragma unroll
% if op.K % 4 == 0 then
for (uint32_t c = 0; c < ${HALF}; c += 4) {
    const isa_x4 v = isa_load_x4(x + c);
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        acc = isa_fma(w[c + k], isa_float(v.w[k]), acc);
    }
}
% else
for (uint32_t c = 0; c < ${HALF}; c++) {
    acc = isa_fma(w[c], x[c], acc);
}
% end

%%template narrow_chain(op)
% local type = import("quant/" .. op.wtype .. ".lua").type
#pragma unroll 4
for (uint32_t c = 0; c < n_mine; c++) {
    acc = isa_fma(${type}_at(mine, c, 0), x[c], acc);
}

%%template rows(op, chain)
% local n_atoms = c_kernel.n_atoms(op)
const uint32_t row0 = isa_cta_x() * ${c_kernel.ROWS}, left_rows = p.step->n_rows - row0;
const uint32_t n_rows = left_rows < ${c_kernel.ROWS} ? left_rows : ${c_kernel.ROWS};
float acc = 0.0f;
for (uint32_t i = 0; i <= n_rows; i++) {
    /* The lower half begins with row i, the upper one goes on with the row before. */
    const float handed = isa_float(isa_warp_xor(isa_bits(acc), 16));
    const uint32_t t = upper ? (i > 0 ? i - 1 : 0) : (i < n_rows ? i : n_rows - 1);
    const float *x = p.x + (size_t)(row0 + t) * ${op.K} + 256 * a + first;
    acc = upper ? handed : 0.0f;
    ${chain(op)}
    const uint32_t e = 16 * strip + row;
    if (upper && i > 0 && e < ${op.E}) {
        p.y[(size_t)(row0 + t) * ${n_atoms * op.E} + a * ${op.E} + e] = acc;
    }
}

%%template
% local d = module.describe(params)
% local quant, n_atoms, strips = import("quant/" .. wtype .. ".lua"), c_kernel.n_atoms(params), ceil_div(E, 16)
% local a = descr.atoms(quant, K)
% local strip_bytes = 16 * exact_div(K, quant.qblock_elems) * quant.qblock_bytes
% local does = "y[a] = atom a of each row of W times x, their sum still to come; 16 rows of an atom by " .. c_kernel.ROWS .. " rows a cta"
${cuda.head(d, "kernel/router_parts/decode.cu.lua", does, "W [" .. E .. "][" .. K .. "];  y [n_rows][" .. n_atoms .. "][" .. E .. "]")}

${cuda.params(d)}

${quant.cu_load()}

${cuda.open(d)}
    const uint32_t a = ${term.over("isa_cta_y()", strips)}, strip = ${term.mod("isa_cta_y()", strips)};
    const uint32_t row = isa_lane() % 16, upper = isa_lane() / 16, first = upper * ${HALF};
    /* One address, of the thread's first weight, and constants from there: 128 addresses would take the registers. */
    const uint8_t *mine = p.w + (size_t)strip * ${strip_bytes} + (size_t)a * ${a.bytes} + (first * 16 + row) * ${quant.qblock_bytes};
% if K >= 256 then
% if K % 256 > 0 then
    if (a < ${K // 256}) {
% end
        float w[${HALF}];
#pragma unroll
        for (uint32_t c = 0; c < ${HALF}; c++) {
            w[c] = ${quant.type}_at(mine, c, 0);
        }
        isa_wait_launch();
        isa_let_launch();
        ${module.rows(params, module.whole_chain)}
% if K % 256 > 0 then
        return;
    }
% end
% end
% if K % 256 > 0 then
    /* The last atom is narrower: its weights come as they are needed. */
    const uint32_t left = ${K % 256} > first ? ${K % 256} - first : 0, n_mine = left < ${HALF} ? left : ${HALF};
    isa_wait_launch();
    isa_let_launch();
    ${module.rows(params, module.narrow_chain)}
% end
}
