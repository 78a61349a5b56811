local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  if op.K % 32 ~= 0 then fail("quant: K must be a multiple of 32") end
  local operands = { descr.operand("x", "read", "T * " .. op.K, 4, 64),
                     descr.q8_operands("y", "write", "T", op.K) }
  local params = { descr.param("x", "const float *"), descr.q8_params("y", false) }
  params[#params + 1] = descr.step_param()
  return {
    name = name.kernel("quant", {}, "f32", { op.K }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = params, operands = operands,
    covers = { descr.whole_rows("y_q", "T", 1, op.K), descr.whole_rows("y_d", "T", 1, op.K // 32),
               descr.whole_rows("y_s", "T", 1, op.K // 16) },
    scratch = 256, reduction = "none", tolerance = 0.0,
    bytes = "T * " .. (op.K * 5 + op.K // 4), flops = "T * " .. (op.K * 4),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f32" },
  }
end

%%template
% local d = module.describe(params)
% local does = "y_q, y_d, y_s = x as bytes, scales and sums for each 32 columns; one row a cta"
${descr.c_head(d, "kernel/quant.c.lua", does, "x [n_rows][" .. K .. "]")}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const size_t row = t;
        for (uint32_t g = 0; g < ${K // 32}; g++) {
            isa_f v[32 / ISA_N];
            for (uint32_t k = 0; k < 32 / ISA_N; k++) {
                v[k] = isa_load(p.x + row * ${K} + 32 * g + k * ISA_N);
            }
            isa_q8_group(v, p.y_q + row * ${K} + 32 * g, p.y_d + row * ${K // 32} + g,
                p.y_s + row * ${K // 16} + 2 * g);
        }
    }
}
