-- matmul_parts.lua -- what the texts of a matrix product need to know of its parts (docs/kernels.md, matmul).
local descr = import("lib/descr.lua")
local M = {}

-- For each part: its number, quant file, rows n, whether it has a bias, its first column of y, the bytes of one
-- strip, and its positions [first, last) where `tile` columns of y make one. The parts of a swiglu share them.
function M.facts(op, tile)
  local list, first, begin = {}, 0, 0
  for i, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    if op.epilogue == "swiglu" then first, begin = 0, 0 end
    local last = first + ceil_div(part.n, tile)
    list[i] = { i = i - 1, quant = quant, type = part.type, n = part.n, factor = get(part, "factor", false), bias = get(part, "bias", false),
                begin = begin, first = first, last = last,
                strip_bytes = 16 * exact_div(op.K, quant.qblock_elems) * quant.qblock_bytes }
    first, begin = last, begin + part.n
  end
  return list
end

-- Columns of y that the positions of an axis "strips" write, and how many positions there are.
function M.segments(op, facts, tile)
  local list = {}
  for i, part in ipairs(facts) do
    if i == 1 or op.epilogue ~= "swiglu" then
      list[#list + 1] = { axis = "strips", first = part.first, tile = tile, begin = part.begin, n = part.n }
    end
  end
  return list, facts[#facts].last
end

-- Columns of y.
function M.out_cols(op, facts)
  local last = facts[#facts]
  return last.begin + last.n
end

-- Each quant file once, in order of appearance.
function M.types(facts)
  local list, seen = {}, {}
  for _, part in ipairs(facts) do
    if not seen[part.type] then
      seen[part.type] = true
      list[#list + 1] = part.quant
    end
  end
  return list
end

function M.any(facts, key)
  for _, part in ipairs(facts) do
    if part[key] then return true end
  end
  return false
end

-- Whether some part takes quantised activations ("int") or plain ones ("float").
function M.has_kind(facts, kind)
  for _, part in ipairs(facts) do
    if part.quant.kind == kind then return true end
  end
  return false
end

-- Atoms of a row: whole ones and a narrower last one.
function M.n_atoms(op) return ceil_div(op.K, 256) end

-- C text that does text(part) for the part that `strip` (a position) falls to, parts of one type together.
function M.by_strip(facts, text)
  local lines, last = {}, #facts
  while last > 1 and facts[last - 1].type == facts[#facts].type do last = last - 1 end
  if last == 1 then return text(facts[1]) end
  for i = 1, last - 1 do
    lines[#lines + 1] = (i == 1 and "if (" or "} else if (") .. "strip < " .. facts[i].last .. ") {"
    lines[#lines + 1] = indent(text(facts[i]), 4)
  end
  lines[#lines + 1] = "} else {"
  lines[#lines + 1] = indent(text(facts[last]), 4)
  lines[#lines + 1] = "}"
  return join(lines, "\n")
end

-- C text of value(part) for the part of `list` that `strip` falls to.
function M.pick(list, value)
  local text = tostring(value(list[#list]))
  for i = #list - 1, 1, -1 do
    local mine = tostring(value(list[i]))
    if mine ~= text then text = "strip < " .. list[i].last .. " ? " .. mine .. " : " .. text end
  end
  return text
end

-- C text of a sum with the factor and the bias of its part; `factor` and `bias` are pointers where several parts share
-- the text.
function M.finished(list, value)
  if M.any(list, "factor") then
    value = value .. " * " .. (#list == 1 and "p.f" .. list[1].i .. "[0]" or "(factor != nullptr ? *factor : 1.0f)")
  end
  if not M.any(list, "bias") then return value end
  if #list == 1 then return value .. " + p.b" .. list[1].i .. "[at]" end
  return "bias != nullptr ? " .. value .. " + bias[at] : " .. value
end

-- C text that sets, for the part of `list` that `strip` falls to, first (its first position), n_cols, begin, bias and
-- matrix (its weights).
function M.place(list)
  local function of(value) return M.pick(list, value) end
  local lines = {
    "const uint32_t first = " .. of(function(part) return part.first end) .. ";",
    "const uint32_t n_cols = " .. of(function(part) return part.n end) .. ";",
    "const uint32_t begin = " .. of(function(part) return part.begin end) .. ";",
    "const uint8_t *matrix = " .. of(function(part) return "p.w" .. part.i end) .. ";",
  }
  if #list > 1 and M.any(list, "factor") then
    local text = of(function(part) return part.factor and "p.f" .. part.i or "nullptr" end)
    lines[#lines + 1] = "const float *factor = " .. text .. ";"
  end
  if #list > 1 and M.any(list, "bias") then
    local text = of(function(part) return part.bias and "p.b" .. part.i or "nullptr" end)
    lines[#lines + 1] = "const float *bias = " .. text .. ";"
  end
  return join(lines, "\n")
end

-- The parts of each type, in order of appearance; a swiglu's two are one.
function M.by_type(op, facts)
  if op.epilogue == "swiglu" then return { facts } end
  local list, at = {}, {}
  for _, part in ipairs(facts) do
    if at[part.type] == nil then
      list[#list + 1] = {}
      at[part.type] = #list
    end
    table.insert(list[at[part.type]], part)
  end
  return list
end

-- The cover of y by tiles of rows.
function M.row_cover(rows, tile, cols)
  return { { param = "y", rows = { axis = "rows", tile = tile, n = rows }, cols = cols } }
end

return M
