local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  local quant = import("quant/" .. op.wtype .. ".lua")
  local image = descr.image_bytes(quant, op.V, op.H)
  return {
    name = name.kernel("embed", { op.wtype }, "f32", { op.V, op.H }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("w", "const uint8_t *"), descr.param("y", "float *"), descr.step_param() },
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
