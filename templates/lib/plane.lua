-- plane.lua -- where the planes of an atom begin (docs/kernels.md, "The weight image"), from a quant file's list.
local M = {}

-- Bytes of 16 rows of one qblock that stand before plane `name`: it begins that often the atom's qblocks in.
function M.at(planes, name)
  local bytes = 0
  for _, p in ipairs(planes) do
    if p.name == name then return 16 * bytes end
    bytes = bytes + p.n_bytes
  end
  fail("no plane '" .. name .. "'")
end

return M
