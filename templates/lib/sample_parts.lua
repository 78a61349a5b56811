-- sample_parts.lua -- the three stages of sampling on a device (docs/sampling.md, "On a device"): what their kernels
-- have in common in C and CUDA.
--   tiles   every tile of the vocabulary keeps its first 64 candidates, in order
--   total   every tile's sum of weights, where a row needs the sum over the vocabulary
--   pick    one candidate for each row
local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local M = { HEAD = 64, TILES_MAX = 64, LEAST = 1024, MOST = 16384 }

-- What a choice is where it is no token (rt_picked_kind of model_abi.h).
M.UNDECIDED, M.NONE_ALLOWED = 1, 4

-- Words of a tile's head: its keys and, last, the first bad token.
M.WORDS = M.HEAD + 1

-- Tokens of a tile: a power of two, and at most 64 tiles.
function M.tile(V)
  local tile = M.LEAST
  while tile * M.TILES_MAX < V do tile = tile * 2 end
  if tile > M.MOST then fail("sample: a vocabulary of " .. V .. "; " .. M.MOST * M.TILES_MAX .. " is the most") end
  return tile
end

function M.tiles(V) return ceil_div(V, M.tile(V)) end

-- Elements of a row of what lies between the stages, for the planner.
function M.widths(op)
  return { heads = M.tiles(op.V) * M.WORDS, totals = M.tiles(op.V) }
end

local function tile_columns(param, words, tiles)
  return { param = param, rows = { axis = "rows", tile = 1, n = "L" },
           cols = { { axis = "tiles", first = 0, tile = words, begin = 0, n = words * tiles } } }
end

local function logits(V) return descr.operand("logits", "read", "L * " .. V, 4, 64) end
local function heads(access, n) return descr.operand("heads", access, "L * " .. n * M.WORDS, 8, 64) end
local function totals(access, n) return descr.operand("totals", access, "L * " .. n, 8, 64) end

local function params(list, operands)
  local types = { logits = "float *", heads = "uint64_t *", totals = "uint64_t *", choices = "uint64_t *" }
  for i, o in ipairs(operands) do
    list[i] = descr.param(o.param, (o.access == "read" and "const " or "") .. types[o.param])
  end
  list[#list + 1] = descr.step_param()
  return list
end

-- Operands, covers, bytes and flops of each stage; n is the number of tiles.
local STAGES = {
  tiles = function(V, n)
    return { logits(V), heads("write", n) }, { tile_columns("heads", M.WORDS, n) }, V * 4 + n * M.WORDS * 8, V * 8
  end,
  total = function(V, n)
    return { logits(V), heads("read", n), totals("write", n) }, { tile_columns("totals", 1, n) }, V * 4, V * 30
  end,
  pick = function(_, n)
    local choices = descr.operand("choices", "write", "L", 8, 64)
    return { heads("read", n), totals("read", n), choices }, { descr.whole_rows("choices", "L", 1, 1) },
           n * M.WORDS * 8, n * M.HEAD * 60
  end,
}

function M.describe(op)
  local n, V = M.tiles(op.V), op.V
  local operands, covers, bytes, flops = STAGES[op.stage](V, n)
  local axes = { descr.rows_axis("L", 1) }
  if op.stage ~= "pick" then axes[2] = descr.dim_axis("tiles", n, "y") end
  return {
    name = name.kernel("sample", {}, "f32", { V, op.stage }),
    axes = axes, grid = { "L", op.stage == "pick" and "1" or tostring(n), "1" }, block = 1,
    params = params({}, operands), operands = operands, covers = covers,
    scratch = 4096 * 8 + 4096, reduction = "none", tolerance = 0.0,
    bytes = "L * " .. bytes, flops = "L * " .. flops,
    includes = { op.hw.isa, "isa_sample.h" }, features = { "f64" },
  }
end

local DOES = {
  tiles = "heads = the first 64 candidates of every tile, in order, and its first bad token",
  total = "totals = sums of weights of every tile, for rows that need the whole vocabulary's",
  pick = "choices = the token of every row",
}

-- What a stage does and its shapes, for the kernel's head.
function M.head(op)
  local n = M.tiles(op.V)
  local shapes = {
    tiles = "logits [n_logits][" .. op.V .. "];  heads [n_logits][" .. n .. "][" .. M.WORDS .. "]",
    total = "logits [n_logits][" .. op.V .. "];  totals [n_logits][" .. n .. "]",
    pick = "heads [n_logits][" .. n .. "][" .. M.WORDS .. "];  choices [n_logits]",
  }
  return DOES[op.stage], shapes[op.stage]
end

return M
