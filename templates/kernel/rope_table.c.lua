local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  if #op.freq * 2 ~= op.n_rot then fail("rope_table: freq must hold n_rot / 2 numbers") end
  return {
    name = name.kernel("rope_table", {}, "f32",
      { op.n_rot, name.f64_hash(op.freq), name.f32(op.mscale) }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("y", "float *"), descr.step_param() },
    operands = { descr.operand("y", "write", "T * " .. op.n_rot, 4, 64) },
    covers = { descr.whole_rows("y", "T", 1, op.n_rot) },
    scratch = 0, reduction = "none", tolerance = 1e-7,
    bytes = "T * " .. (op.n_rot * 4), flops = "T * " .. (op.n_rot * 15),
    includes = { op.hw.isa, "isa_math.h" }, features = {},
  }
end
%%template
