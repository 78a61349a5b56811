-- grid.lua -- tables of the types whose codes number entries of a grid (templates/quant/grid/), as kernels hold them: 16 bits
-- an entry, with the bits of its elements where few instructions bring them into bytes.
--
-- An entry of 8 elements has two bits for each: nibble n holds those of element e in front of element e + 4, one of 4
-- elements has a nibble for each. In C the nibbles are those of e = 0, 2, 1, 3, so that x | x << 12 has them in order in the low
-- halves of four bytes; in CUDA e = 0, 1, 2, 3, the order in which isa_pick takes them.
local M = {}

-- Levels of the elements of an entry by number.
local function levels_of(grid, entry)
  local bits, list = 16 // grid.elems, {}
  for i = 0, grid.elems - 1 do list[i + 1] = entry >> bits * i & (1 << bits) - 1 end
  return list
end

local function arranged(grid, order)
  local list = {}
  for hex in grid.entries:gmatch("%x+") do
    local level, x = levels_of(grid, tonumber(hex, 16)), 0
    for n, e in ipairs(order) do
      local nibble = level[e + 1] | (grid.elems == 8 and level[e + 5] << 2 or 0)
      x = x | nibble << 4 * (n - 1)
    end
    list[#list + 1] = x
  end
  return list
end

local function rows(list, format, per_row)
  local lines, row = {}, {}
  for i, v in ipairs(list) do
    row[#row + 1] = string.format(format, v)
    if #row == per_row or i == #list then
      lines[#lines + 1] = "    " .. join(row, ", ") .. ","
      row = {}
    end
  end
  return join(lines, "\n")
end

-- The C table: one entry more, because some instruction sets read 32 bits of an entry.
function M.c_table(grid, name)
  local list = arranged(grid, { 0, 2, 1, 3 })
  return "static const _Alignas(64) uint16_t " .. name .. "[" .. #list + 1 .. "] = {\n" ..
    rows(list, "0x%04x", 11) .. "\n};"
end

-- Masks of signs for CUDA, by number: the 8 signs themselves (n = 256), or 7 of them, the last one making an even number (128).
-- Nibble j has bit 2 for element j and bit 3 for element j + 4.
local function signs(n)
  local list = {}
  for s = 0, n - 1 do
    local x, ones = 0, 0
    for j = 0, 7 do
      local bit = s >> j & 1
      if n == 128 and j == 7 then bit = ones & 1 end
      ones = ones + bit
      x = x | bit << 4 * (j % 4) + 2 + j // 4
    end
    list[s + 1] = x
  end
  return list
end

-- The CUDA table: a grid's entries, then n_signs masks, two 16-bit ones to a word.
function M.cu_table(grid, n_signs, name)
  local list, words = arranged(grid, { 0, 1, 2, 3 }), {}
  for _, x in ipairs(signs(n_signs)) do list[#list + 1] = x end
  for i = 1, #list, 2 do words[#words + 1] = list[i] | list[i + 1] << 16 end
  return "ISA_TABLE uint32_t " .. name .. "[" .. #words .. "] = {\n" .. rows(words, "0x%08xu", 9) .. "\n};"
end

function M.n_entries(grid)
  local n = 0
  for _ in grid.entries:gmatch("%x+") do n = n + 1 end
  return n
end

-- Bytes of that table.
function M.cu_bytes(grid, n_signs) return 2 * (M.n_entries(grid) + n_signs) end

-- 2 * half bytes: a grid's levels plus `plus`, and from number `half` on the negative ones.
function M.signed(grid, half, plus)
  local list = {}
  for i = 1, 2 * half do list[i] = 0 end
  for i, v in ipairs(grid.levels) do
    list[i], list[half + i] = v + plus, plus - v
  end
  return list
end

return M
