local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

-- Tokens of one cta; the register tile inside is the instruction layer's affair.
local ROW_TILE = 16

local function activations(op)
  local a = { q8 = false, f32 = false }
  for _, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    if op.K % quant.qblock_elems ~= 0 then
      fail("matmul: K = " .. op.K .. " is not a multiple of " .. quant.qblock_elems .. " (" .. part.type .. ")")
    end
    if quant.kind == "int" then a.q8 = true else a.f32 = true end
  end
  return a
end

local function out_cols(op)
  if op.epilogue == "swiglu" then return op.parts[1].n end
  local n = 0
  for _, part in ipairs(op.parts) do n = n + part.n end
  return n
end

local function check(op)
  if #op.parts < 1 or #op.parts > 4 then fail("matmul: 1 to 4 parts, got " .. #op.parts) end
  local e = op.epilogue
  if e ~= "none" and e ~= "add" and e ~= "swiglu" then fail("matmul: epilogue '" .. tostring(e) .. "'") end
  if e == "swiglu" and (#op.parts ~= 2 or op.parts[1].n ~= op.parts[2].n) then
    fail("matmul: swiglu needs two parts of equal n")
  end
end

local function params_and_operands(op, rows, act, n_out)
  local params, operands = {}, {}
  local function add(p, o) params[#params + 1] = p; operands[#operands + 1] = o end
  if act.f32 then
    add(descr.param("x", "const float *"), descr.operand("x", "read", rows .. " * " .. op.K, 4, 64))
  end
  if act.q8 then
    local o = { descr.q8_operands("x", "read", rows, op.K) }
    for i, p in ipairs({ descr.q8_params("x", true) }) do add(p, o[i]) end
  end
  for i, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    add(descr.param("w" .. (i - 1), "const uint8_t *"),
        descr.operand("w" .. (i - 1), "read", tostring(descr.image_bytes(quant, part.n, op.K)), 1, 64))
    if get(part, "bias", false) then
      add(descr.param("b" .. (i - 1), "const float *"),
          descr.operand("b" .. (i - 1), "read", tostring(part.n), 4, 4))
    end
  end
  add(descr.param("y", "float *"),
      descr.operand("y", op.epilogue == "add" and "both" or "write", rows .. " * " .. n_out, 4, 64))
  params[#params + 1] = descr.step_param()
  return params, operands
end

-- Strips of 16 columns of y: those of part after part; one segment for each part.
local function segments(op)
  local list, first, begin = {}, 0, 0
  local n_parts = op.epilogue == "swiglu" and 1 or #op.parts
  for i = 1, n_parts do
    local n = op.parts[i].n
    list[i] = { axis = "strips", first = first, tile = 16, begin = begin, n = n }
    first = first + (n + 15) // 16
    begin = begin + n
  end
  return list, first
end

local function symbol(op, rows, act)
  local types, dims = {}, { op.K }
  for i, part in ipairs(op.parts) do
    types[i] = part.type
    dims[#dims + 1] = part.n .. (get(part, "bias", false) and "b" or "")
  end
  dims[#dims + 1] = op.epilogue
  dims[#dims + 1] = rows
  return name.kernel("matmul", types, (act.q8 and "q8" or "") .. (act.f32 and "f32" or ""), dims)
end

local function weight_bytes(op)
  local b = 0
  for _, part in ipairs(op.parts) do
    b = b + descr.image_bytes(import("quant/" .. part.type .. ".lua"), part.n, op.K)
  end
  return b
end

local function total_n(op)
  local n = 0
  for _, part in ipairs(op.parts) do n = n + part.n end
  return n
end

function module.describe(op)
  check(op)
  local rows = descr.rows_of(op)
  local act = activations(op)
  local n_out = out_cols(op)
  local params, operands = params_and_operands(op, rows, act, n_out)
  local cols, n_strips = segments(op)
  return {
    name = symbol(op, rows, act),
    axes = { descr.rows_axis(rows, ROW_TILE), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, ROW_TILE), tostring(n_strips), "1" }, block = 1,
    params = params, operands = operands,
    covers = { { param = "y", rows = { axis = "rows", tile = ROW_TILE, n = rows }, cols = cols } },
    scratch = 16384, reduction = "atoms256", tolerance = 2e-6,
    bytes = weight_bytes(op) .. " + " .. rows .. " * " .. (op.K + n_out * 4),
    flops = rows .. " * " .. (2 * op.K * total_n(op)),
    includes = { op.hw.isa, "isa_math.h" }, features = { "dot4", "f16" },
  }
end
%%template
