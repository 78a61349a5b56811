local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  if op.pairing ~= "norm" and op.pairing ~= "neox" then fail("rope_kv: pairing '" .. tostring(op.pairing) .. "'") end
  if op.cap % 256 ~= 0 then fail("rope_kv: cap must be a multiple of 256") end
  local width = (op.n_head + 2 * op.n_kv) * op.hd
  local cells = op.slots * op.n_kv * op.cap * op.hd
  local guard = "step: slot < slots, pos % cap < cap"
  local k, v = descr.operand("k", "write", tostring(cells), 2, 64), descr.operand("v", "write", tostring(cells), 2, 64)
  k.indexed, v.indexed = guard, guard
  return {
    name = name.kernel("rope_kv", { "f16" }, "f32",
      { op.n_head, op.n_kv, op.hd, op.n_rot, op.pairing, op.cap, op.slots }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("qkv", "float *"), descr.param("table", "const float *"), descr.param("k", "uint16_t *"),
               descr.param("v", "uint16_t *"), descr.step_param() },
    operands = { descr.operand("qkv", "both", "T * " .. width, 4, 64),
                 descr.operand("table", "read", "T * " .. op.n_rot, 4, 64), k, v },
    covers = { { param = "qkv", rows = { axis = "rows", tile = 1, n = "T" },
                 cols = { { first = 0, tile = op.n_head * op.hd, begin = 0, n = op.n_head * op.hd } } } },
    scratch = 4 * op.hd + 64, reduction = "none", tolerance = 1e-6,
    bytes = "T * " .. (width * 8), flops = "T * " .. ((op.n_head + op.n_kv) * op.n_rot * 3),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f16" },
  }
end
%%template
