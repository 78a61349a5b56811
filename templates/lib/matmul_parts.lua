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
    list[i] = { i = i - 1, quant = quant, type = part.type, n = part.n, bias = get(part, "bias", false),
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

-- The 1-based place of a quant file among those of `types`.
function M.type_index(types, type)
  for i, quant in ipairs(types) do
    if quant.type == type then return i end
  end
  return nil
end

-- C text that does text(part, strip) for the part that `strip` (a name) falls to.
function M.by_strip(facts, text)
  if #facts == 1 then return text(facts[1], "strip") end
  local lines = {}
  for i, part in ipairs(facts) do
    local head = i == 1 and "if (" or i < #facts and "} else if (" or "} else {"
    lines[#lines + 1] = i < #facts and head .. "strip < " .. part.last .. ") {" or head
    lines[#lines + 1] = indent(text(part, i == 1 and "strip" or "strip - " .. part.first), 4)
  end
  lines[#lines + 1] = "}"
  return join(lines, "\n")
end

-- The cover of y by tiles of rows.
function M.row_cover(rows, tile, cols)
  return { { param = "y", rows = { axis = "rows", tile = tile, n = rows }, cols = cols } }
end

return M
