-- attn_parts.lua -- what the texts of attention have in common (docs/numerics.md, "Attention").
local M = {}

-- The cover of y: `tile` rows by one head for each cta.
function M.covers(op, tile)
  return { { param = "y", rows = { axis = "rows", tile = tile, n = "T" },
             cols = { { axis = "heads", first = 0, tile = op.hd, begin = 0, n = op.n_head * op.hd } } } }
end

-- The axis of splits, which a cta goes through in order.
M.splits = { name = "splits", kind = "kv", bound = "ctx", tile = 256, on = "loop", fold = "none" }

return M
