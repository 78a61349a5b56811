-- attn_parts.lua -- what rope_kv and the texts of attention have in common (docs/numerics.md, "Attention").
local M = {}

local gates = { none = function() return 0 end, head = function(op) return op.n_head end,
                element = function(op) return op.n_head * op.hd end }

-- Numbers of a row of qkv: queries, keys, values, then gates: none, one for each head of q or one for each element.
function M.width(op)
  if not has(gates, op.gate) then fail("attention: gate '" .. tostring(op.gate) .. "'") end
  return (op.n_head + 2 * op.n_kv) * op.hd + gates[op.gate](op)
end

-- The file of a type of keys and values (templates/kv), for this op.
function M.kv(op)
  local kv = import("kv/" .. op.kv .. ".lua")
  if op.cap % 256 ~= 0 then fail(op.family .. ": cap must be a multiple of 256") end
  kv.check(op)
  return kv
end

-- Elements of one head's cache, and of all.
function M.head_cells(op) return op.cap // 16 * M.kv(op).block(op.hd) end

function M.cells(op) return op.slots * op.n_kv * M.head_cells(op) end

-- The cover of y: `tile` rows by one head for each cta.
function M.covers(op, tile)
  return { { param = "y", rows = { axis = "rows", tile = tile, n = "T" },
             cols = { { axis = "heads", first = 0, tile = op.hd, begin = 0, n = op.n_head * op.hd } } } }
end

-- The axis of splits, which a cta goes through in order.
M.splits = { name = "splits", kind = "kv", bound = "ctx", tile = 256, on = "loop", fold = "none" }

return M
