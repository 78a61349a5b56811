local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local product = import("kernel/matmul.c.lua")

-- Rows of one cta.
module.ROWS = 8

local function quant_of(op) return import("quant/" .. op.wtype .. ".lua") end

function module.n_atoms(op) return ceil_div(op.K, 256) end

-- Columns of y: for each atom E of them, 16 to a position of axis "pieces".
local function segments(op)
  local list, strips = {}, ceil_div(op.E, 16)
  for a = 0, module.n_atoms(op) - 1 do
    list[a + 1] = { axis = "pieces", first = a * strips, tile = 16, begin = a * op.E, n = op.E }
  end
  return list
end

function module.describe(op)
  local quant, width, pieces = quant_of(op), mul(module.n_atoms(op), op.E), mul(module.n_atoms(op), ceil_div(op.E, 16))
  if quant.kind ~= "float" then fail("router_parts: " .. op.wtype .. " is not of plain numbers") end
  if module.n_atoms(op) > 64 then fail("router_parts: " .. op.K .. " columns are more than 64 atoms") end
  return {
    name = name.kernel("router_parts", { op.wtype }, "f32", { op.K, op.E }),
    axes = { descr.rows_axis("T", module.ROWS), descr.dim_axis("pieces", pieces, "y") },
    grid = { descr.row_ctas("T", module.ROWS), tostring(pieces), "1" }, block = 1,
    params = { descr.param("x", "const float *"), descr.param("w", "const uint8_t *"), descr.param("y", "float *"),
               descr.step_param() },
    operands = { descr.operand("x", "read", "T * " .. op.K, 4, 64),
                 descr.operand("w", "read", tostring(descr.image_bytes(quant, op.E, op.K)), 1, 64),
                 descr.operand("y", "write", "T * " .. width, 4, 64) },
    covers = { { param = "y", rows = { axis = "rows", tile = module.ROWS, n = "T" }, cols = segments(op) } },
    scratch = 1024, reduction = "atoms256", tolerance = 2e-6,
    bytes = descr.image_bytes(quant, op.E, op.K) .. " + T * " .. 4 * (op.K + width),
    flops = "T * " .. 2 * op.K * op.E, includes = { op.hw.isa }, features = { "f16" },
  }
end

%%template
% local d = module.describe(params)
% local quant, n_atoms, strips = quant_of(params), module.n_atoms(params), ceil_div(E, 16)
% local a = descr.atoms(quant, K)
% local strip_bytes = 16 * exact_div(K, quant.qblock_elems) * quant.qblock_bytes
% local does = "y[a] = atom a of each row of W times x, their sum still to come; 16 rows of an atom by " .. module.ROWS .. " rows a cta"
${descr.c_head(d, "kernel/router_parts.c.lua", does, "W [" .. E .. "][" .. K .. "];  y [n_rows][" .. n_atoms .. "][" .. E .. "]")}
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"

${descr.c_params(d)}

${product.float_atom(quant, K)}

${descr.c_open(d)}
    const uint32_t n_rows = p.step->n_rows, n_tiles = (n_rows + ${module.ROWS - 1}) / ${module.ROWS};
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const uint32_t piece = cta / n_tiles, a = piece / ${strips}, strip = piece % ${strips};
        const uint32_t n_cols = ${K} - 256 * a < 256 ? ${K} - 256 * a : 256;
        const uint32_t left = ${E} - 16 * strip, n = left < 16 ? left : 16;
        const uint8_t *atom = p.w + (size_t)strip * ${strip_bytes} + (size_t)a * ${a.bytes};
        for (uint32_t t = cta % n_tiles * ${module.ROWS}; t < n_rows && t < (cta % n_tiles + 1) * ${module.ROWS}; t++) {
            float out[1][16];
            ${quant.type}_atom(atom, n_cols, p.x + (size_t)t * ${K} + 256 * a, 1, true, out);
            memcpy(p.y + (size_t)t * ${n_atoms * E} + a * ${E} + 16 * strip, out[0], n * sizeof(float));
        }
    }
}
