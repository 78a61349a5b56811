local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  local quant = import("quant/" .. op.wtype .. ".lua")
  local image = descr.image_bytes(quant, op.V, op.H)
  return {
    name = name.kernel("embed", { op.wtype }, "f32", { op.V, op.H }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("w", "const uint8_t *"), descr.param("y", "float *"),
               descr.step_param() },
    operands = {
      { param = "w", access = "read", bytes = tostring(image), align = 64,
        max_index = tostring(image - 1), index_bits = 64, indexed = "step: token_of_row < V" },
      descr.operand("y", "write", "T * " .. op.H, 4, 64),
    },
    covers = { descr.whole_rows("y", "T", 1, op.H) },
    scratch = 0, reduction = "none", tolerance = 0.0,
    bytes = "T * " .. (op.H // quant.qblock_elems * quant.qblock_bytes + op.H * 4),
    flops = "T * " .. op.H,
    includes = { op.hw.isa }, features = { "f16" },
  }
end

%%template
% local d = module.describe(params)
% local quant = import("quant/" .. wtype .. ".lua")
% local a = descr.atoms(quant, H)
% local strip_bytes = 16 * exact_div(H, quant.qblock_elems) * quant.qblock_bytes
% local does = "y[t] = row token_of_row[t] of w, dequantised; one token for each cta"
% local shapes = "w [" .. V .. "][" .. H .. "] " .. wtype .. ";  y [n_rows][" .. H .. "]"
${descr.c_head(d, "kernel/embed.c.lua", does, shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

${quant.c_dequant()}

/* The qblocks of one row of an atom of nq qblocks. */
static void embed_atom(const uint8_t *atom, uint32_t nq, uint32_t row, float *y) {
    for (uint32_t q = 0; q < nq; q++) {
        ${wtype}_dequant(atom, nq, q, row, y + q * ${quant.qblock_elems});
    }
}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const uint32_t token = p.step->token_of_row[t];
        const uint8_t *strip = p.w + (size_t)(token / 16) * ${strip_bytes};
        float *y = p.y + (size_t)t * ${H};
% if a.whole > 0 then
        for (uint32_t a = 0; a < ${a.whole}; a++) {
            embed_atom(strip + (size_t)a * ${a.bytes}, ${a.per}, token % 16, y + 256 * a);
        }
% end
% if a.rest > 0 then
        embed_atom(strip + ${a.whole * a.bytes}, ${a.rest}, token % 16, y + ${256 * a.whole});
% end
    }
}
