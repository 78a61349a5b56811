local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

local function operands(op, rows)
  local list = { descr.operand("x", "read", "T * " .. op.H, 4, 64),
                 descr.operand("w", "read", tostring(op.H), 4, 64) }
  if rows == "L" then list[1].indexed = "step: logit_rows[i] < T" end
  if get(op.outputs, "f32", false) then list[#list + 1] = descr.operand("y", "write", rows .. " * " .. op.H, 4, 64) end
  if get(op.outputs, "q8", false) then
    for _, o in ipairs({ descr.q8_operands("y", "write", rows, op.H) }) do list[#list + 1] = o end
  end
  return list
end

local function params(op)
  local list = { descr.param("x", "const float *"), descr.param("w", "const float *") }
  if get(op.outputs, "f32", false) then list[#list + 1] = descr.param("y", "float *") end
  if get(op.outputs, "q8", false) then
    for _, p in ipairs({ descr.q8_params("y", false) }) do list[#list + 1] = p end
  end
  list[#list + 1] = descr.step_param()
  return list
end

local function covers(op, rows)
  local list = {}
  if get(op.outputs, "f32", false) then list[#list + 1] = descr.whole_rows("y", rows, 1, op.H) end
  if get(op.outputs, "q8", false) then
    list[#list + 1] = descr.whole_rows("y_q", rows, 1, op.H)
    list[#list + 1] = descr.whole_rows("y_d", rows, 1, op.H // 32)
    list[#list + 1] = descr.whole_rows("y_s", rows, 1, op.H // 16)
  end
  return list
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local out = (get(op.outputs, "f32", false) and "f32" or "") .. (get(op.outputs, "q8", false) and "q8" or "")
  if out == "" then fail("norm_quant: no outputs") end
  if get(op.outputs, "q8", false) and op.H % 32 ~= 0 then fail("norm_quant: H must be a multiple of 32 for q8") end
  return {
    name = name.kernel("norm_quant", { "f32" }, out, { op.H, name.f32(op.eps), rows }),
    axes = { descr.rows_axis(rows, 1) },
    grid = { rows, "1", "1" }, block = 1,
    params = params(op), operands = operands(op, rows), covers = covers(op, rows),
    scratch = 1024 + 4 * (op.H + 64), reduction = "lanes256", tolerance = 1e-6,
    bytes = rows .. " * " .. (op.H * 8) .. " + " .. (op.H * 4), flops = rows .. " * " .. (op.H * 7),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f32" },
  }
end
%%template
