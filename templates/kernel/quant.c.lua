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
