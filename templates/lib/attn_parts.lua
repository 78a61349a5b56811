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

-- The cover of y: `tile` rows by one head, or `heads` of them, for each cta.
function M.covers(op, tile, heads)
  return { { param = "y", rows = { axis = "rows", tile = tile, n = "T" },
             cols = { { axis = "heads", first = 0, tile = (heads or 1) * op.hd, begin = 0, n = op.n_head * op.hd } } } }
end

-- What kernel/attn/exact.lua takes: the op, the kernel's name, the offsets of its buffers in shared memory.
function M.exact_params(op, kernel, at)
  local all = { kernel = kernel, at = at }
  for key, value in sorted_pairs(op) do all[key] = value end
  return all
end

-- The axis of splits, which a cta goes through in order, or in strides.
function M.blocks(positions)
  return { name = "splits", kind = "kv", bound = "ctx", tile = positions, on = "loop", fold = "none" }
end

M.splits = M.blocks(256)

-- ---- splits of a row on ctas of their own (op.split)

-- Splits that the positions a row sees can touch: a window of w of them may begin at the end of one.
local function most_splits(op)
  if op.window == 0 or op.window >= op.cap then return op.cap // 256 end
  return (op.window + 254) // 256 + 1
end

-- Heads of a key head that a cta takes together, a divisor of them: accumulators of a thread are its bound.
local function heads_together(op)
  local heads, most = exact_div(op.n_head, op.n_kv), 40 // M.vector(op.hd)
  for n = math.min(heads, most, 10), 1, -1 do
    if heads % n == 0 then return n end
  end
end

-- Dimensions of a value that a thread takes side by side, so that a warp has them all.
function M.vector(hd) return hd <= 64 and 2 or hd <= 128 and 4 or 8 end

local CTAS = 512 -- of one row at least, if it has as many splits: four on each SM of the largest GPUs

-- How splits lie on ctas: heads of one, groups of them; splits of a row at most; a split's numbers: o of each head, then their
-- m, then their l; lanes of ctas, which go through the splits in strides.
function M.split(op)
  local heads, splits = heads_together(op), most_splits(op)
  local groups = op.n_head // heads
  return { heads = heads, groups = groups, splits = splits, tile = heads * (op.hd + 2),
           lanes = math.min(splits, ceil_div(CTAS, groups)) }
end

-- Elements of a row of `part` and of `count`.
function M.split_widths(op)
  M.width(op)
  local s = M.split(op)
  return { part = s.groups * s.splits * s.tile, count = s.groups }
end

-- What a kernel of splits has beside the others: parameters, operands, and covers of memory that its ctas share.
function M.split_params()
  return { name = "part", ctype = "float *" }, { name = "count", ctype = "int32_t *" }
end

function M.split_operands(op, operand)
  local w = M.split_widths(op)
  return operand("part", "write", "T * " .. w.part, 4, 64), operand("count", "both", "T * " .. w.count, 4, 64)
end

-- `axis`: the one of groups, or nil where one cta has all of a row.
function M.split_covers(op, axis)
  local s = M.split(op)
  return { param = "part", own = { axis = axis, tile = s.tile, splits = s.splits, of = "k" } },
         { param = "count", own = { axis = axis, tile = 1, splits = 1 } }
end

return M
