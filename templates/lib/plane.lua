-- plane.lua -- where the planes of an atom begin (docs/kernels.md, "The weight image"), from a quant file's list.
local term = import("lib/term.lua")
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

-- C text: where plane `name` begins in an atom that is one qblock, and in one of nq qblocks.
function M.in_qblock(planes, name) return term.plus("atom", M.at(planes, name)) end

function M.in_atom(planes, name)
  local before = M.at(planes, name)
  return before == 0 and "atom" or "atom + nq * " .. before
end

return M
