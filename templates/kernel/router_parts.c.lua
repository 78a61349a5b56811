local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local product = import("kernel/matmul.c.lua")
local term = import("lib/term.lua")

-- Rows of one cta.
module.ROWS = 8

local function quant_of(op) return import("quant/" .. op.wtype .. ".lua") end

function module.n_atoms(op) return ceil_div(op.K, 256) end

-- Columns of y: for each atom E of them, `tile` to a position of axis "pieces".
local function segments(op, tile)
  local list, tiles = {}, ceil_div(op.E, tile)
  for a = 0, module.n_atoms(op) - 1 do
    list[a + 1] = { axis = "pieces", first = a * tiles, tile = tile, begin = a * op.E, n = op.E }
  end
  return list
end

-- The descriptor of a kernel whose cta has an atom of `tile` rows of W and `rows` rows of x.
function module.describe_pieces(op, rows, tile)
  local quant, width, pieces = quant_of(op), mul(module.n_atoms(op), op.E), mul(module.n_atoms(op), ceil_div(op.E, tile))
  if quant.kind ~= "float" then fail("router_parts: " .. op.wtype .. " is not of plain numbers") end
  if module.n_atoms(op) > 64 then fail("router_parts: " .. op.K .. " columns are more than 64 atoms") end
  return {
    name = name.kernel("router_parts", { op.wtype }, "f32", { op.K, op.E }),
    axes = { descr.rows_axis("T", rows), descr.dim_axis("pieces", pieces, "y") },
    grid = { descr.row_ctas("T", rows), tostring(pieces), "1" }, block = 1,
    params = { descr.param("x", "const float *"), descr.param("w", "const uint8_t *"), descr.param("y", "float *"),
               descr.step_param() },
    operands = { descr.operand("x", "read", "T * " .. op.K, 4, 64),
                 descr.operand("w", "read", tostring(descr.image_bytes(quant, op.E, op.K)), 1, 64),
                 descr.operand("y", "write", "T * " .. width, 4, 64) },
    covers = { { param = "y", rows = { axis = "rows", tile = rows, n = "T" }, cols = segments(op, tile) } },
    scratch = 1024, reduction = "atoms256", tolerance = 2e-6,
    bytes = descr.image_bytes(quant, op.E, op.K) .. " + T * " .. 4 * (op.K + width),
    flops = "T * " .. 2 * op.K * op.E, includes = { op.hw.isa }, features = { "f16" },
  }
end

function module.describe(op) return module.describe_pieces(op, module.ROWS, 16) end

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
        const uint32_t piece = cta / n_tiles, a = ${term.over("piece", strips)}, strip = ${term.mod("piece", strips)};
        const uint32_t n_cols = ${K} - 256 * a < 256 ? ${K} - 256 * a : 256;
        const uint32_t left = ${E} - 16 * strip, n = left < 16 ? left : 16;
        const uint8_t *atom = p.w + (size_t)strip * ${strip_bytes} + (size_t)a * ${a.bytes};
        const uint32_t t = cta % n_tiles * ${module.ROWS}, m = n_rows - t < ${module.ROWS} ? n_rows - t : ${module.ROWS};
        const float *x = p.x + (size_t)t * ${K} + 256 * a;
        float out[${module.ROWS}][16];
        uint32_t i = 0;
% for _, rows in ipairs({ 8, 4, 2, 1 }) do
        for (; ISA_TOKENS >= ${rows} && i + ${rows} <= m; i += ${rows}) {
            ${quant.type}_atom(atom, n_cols, x + (size_t)i * ${K}, ${rows}, true, out + i);
        }
% end
        for (i = 0; i < m; i++) {
            memcpy(p.y + (size_t)(t + i) * ${n_atoms * E} + a * ${E} + 16 * strip, out[i], n * sizeof(float));
        }
    }
}
