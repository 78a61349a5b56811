-- moe_parts.lua -- what the kernels of a mixture of experts share. A row goes to P pairs: its n_used picks, and one more
-- where a shared expert of the routed ones' width is computed with them (op.shared); that one is expert number E.
-- Pair p of a step is pick p % P of row p / P.
local descr = import("lib/descr.lua")
local name = import("lib/name.lua")

local M = {}

-- Pairs of a tile: rows of one expert that a cta multiplies together.
M.TILE = 32
-- Words of a tile's entry in the map: its expert, its first place in the sorted pairs, how many it has, 0.
M.ENTRY = 4

local MOST_EXPERTS = 1024
local MOST_PICKS = 32

function M.shared(op) return get(op, "shared", false) ~= false end

function M.per_row(op) return op.n_used + (M.shared(op) and 1 or 0) end

function M.experts(op) return op.E + (M.shared(op) and 1 or 0) end

function M.check(op)
  if op.E < 1 or op.E > MOST_EXPERTS then
    fail(op.family .. ": " .. op.E .. " experts; 1 to " .. MOST_EXPERTS .. " have kernels")
  end
  if op.n_used < 1 or op.n_used > MOST_PICKS or op.n_used > op.E then
    fail(op.family .. ": " .. op.n_used .. " picks of " .. op.E .. " experts; at most " .. MOST_PICKS .. " have kernels")
  end
end

local function times(n) return n == 1 and "T" or "T * " .. n end

-- Pairs of a step, as an expression.
function M.n_pairs(op) return times(M.per_row(op)) end

-- The most tiles that T rows can make, whatever the router does: each expert's last tile may hold one pair, and no
-- tile is empty.
function M.n_tiles(op)
  local spare = mul(M.experts(op) - 1, M.TILE - 1)
  return "min(" .. M.n_pairs(op) .. ", ceil_div(" .. M.n_pairs(op) .. " + " .. spare .. ", " .. M.TILE .. "))"
end

-- The same as C text; `rows` is C text of type uint32_t.
function M.n_tiles_c(op, rows)
  local n, spare = rows .. " * " .. M.per_row(op), mul(M.experts(op) - 1, M.TILE - 1) + M.TILE - 1
  return "(" .. n .. " + " .. spare .. ") / " .. M.TILE .. " < " .. n .. " ? (" .. n .. " + " .. spare .. ") / " .. M.TILE
    .. " : " .. n
end

-- The axis of a step's pairs; `tile` of them to a cta.
function M.pairs_axis(op, tile)
  return { name = "pairs", kind = "rows", bound = M.n_pairs(op), tile = tile, on = "x", fold = "none" }
end

-- The cover of an output that has a row of `width` for each pair: `tile` pairs to a position of axis, `per_piece` columns
-- to one of axis "pieces".
function M.pair_cover(op, param, axis, tile, per_piece, width)
  return { param = param, rows = { axis = axis, tile = tile, n = M.n_pairs(op) },
           cols = { { axis = "pieces", first = 0, tile = per_piece, begin = 0, n = width } } }
end

-- The order that moe_sort makes and moe_matmul follows.
function M.sorted(op)
  return { pairs = "pairs", map = "map", tile = M.TILE, groups = M.experts(op) }
end

-- ---- products: op.stage "gated" is silu(gate x) * (up x) of every pair, "down" the product of every pair's result

-- The matrices of the routed experts, and of the shared one: for each its parameter, that of its factors or false, quant
-- file, bytes of a strip and of a matrix.
local function matrices(op, list, letter, factor)
  local out = {}
  for i, part in ipairs(list) do
    local quant = import("quant/" .. part.type .. ".lua")
    if op.K % quant.qblock_elems ~= 0 then
      fail(op.family .. ": K = " .. op.K .. " is not a multiple of " .. quant.qblock_elems .. " (" .. part.type .. ")")
    end
    out[i] = { param = letter .. (i - 1), factor = get(part, "factor", false) and factor .. (i - 1), quant = quant, type = part.type,
               strip_bytes = 16 * (op.K // quant.qblock_elems) * quant.qblock_bytes,
               matrix_bytes = descr.image_bytes(quant, op.n, op.K) }
  end
  return out
end

-- { routed = matrices, shared = matrices or false }
function M.sets(op)
  return { routed = matrices(op, op.parts, "w", "f"), shared = M.shared(op) and matrices(op, op.shared, "s", "g") }
end

function M.each_set(op)
  local sets = M.sets(op)
  local list = { { name = "routed", of = sets.routed } }
  if sets.shared then list[2] = { name = "shared", of = sets.shared } end
  return list
end

-- Whether some matrix has factors.
function M.any_factor(op)
  for _, set in ipairs(M.each_set(op)) do
    for _, m in ipairs(set.of) do
      if m.factor then return true end
    end
  end
  return false
end

-- C text of value(m) for matrix i of the set that holds expert `e` (a name; number E is the shared one).
function M.of_expert(op, i, e, value)
  local sets = M.sets(op)
  local routed = value(sets.routed[i], e)
  if not sets.shared then return routed end
  local shared = value(sets.shared[i], "0")
  return routed == shared and routed or "(" .. e .. " == " .. op.E .. " ? " .. shared .. " : " .. routed .. ")"
end

-- C text of x times matrix i's factor of expert `e`.
function M.scaled(op, x, i, e)
  local any = false
  local factor = M.of_expert(op, i, e, function(m, number)
    any = any or m.factor
    return m.factor and "p." .. m.factor .. "[" .. number .. "]" or "1.0f"
  end)
  return any and x .. " * " .. factor or x
end

-- Each quant file once.
function M.types(op)
  local list, seen = {}, {}
  for _, set in ipairs(M.each_set(op)) do
    for _, m in ipairs(set.of) do
      if not seen[m.type] then list[#list + 1] = m.quant end
      seen[m.type] = true
    end
  end
  return list
end

-- Whether some matrix takes quantised activations ("int") or plain ones ("float").
function M.has_kind(op, kind)
  for _, quant in ipairs(M.types(op)) do
    if quant.kind == kind then return true end
  end
  return false
end

function M.out(op, kind) return op.stage == "gated" and get(op.outputs, kind, false) end

-- Rows of x: those of the step where a gated product reads one for all picks, else one for each pair.
function M.x_rows(op) return op.stage == "gated" and "T" or M.n_pairs(op) end

local function check_product(op)
  M.check(op)
  if op.stage ~= "gated" and op.stage ~= "down" then fail(op.family .. ": stage '" .. tostring(op.stage) .. "'") end
  local n = op.stage == "gated" and 2 or 1
  if #op.parts ~= n or (M.shared(op) and #op.shared ~= n) then
    fail(op.family .. ": a " .. op.stage .. " product has " .. n .. " matrices")
  end
  if op.stage == "gated" and not (M.out(op, "f32") or M.out(op, "q8")) then fail(op.family .. ": no outputs") end
  if M.out(op, "q8") and op.n % 32 ~= 0 then fail(op.family .. ": n must be a multiple of 32 for q8") end
end

local function x_params(op)
  local params, operands = {}, {}
  if M.has_kind(op, "float") then
    params[1] = descr.param("x", "const float *")
    operands[1] = descr.operand("x", "read", M.x_rows(op) .. " * " .. op.K, 4, 64)
  end
  if M.has_kind(op, "int") then
    for _, p in ipairs({ descr.q8_params("x", true) }) do params[#params + 1] = p end
    for _, o in ipairs({ descr.q8_operands("x", "read", M.x_rows(op), op.K) }) do operands[#operands + 1] = o end
  end
  return params, operands
end

-- The descriptor of a product's C kernel but for axes, grid and covers. `index` lists what leads to the experts, the
-- one that chooses matrices first, and `outputs` what is written: { param, ctype, count (expression), bytes of one,
-- access }. rows_by: the parameter that chooses rows of x, or nil.
function M.product(op, index, outputs, rows_by)
  check_product(op)
  local params, operands = x_params(op)
  local function add(param, ctype, access, count, bytes)
    params[#params + 1] = descr.param(param, ctype)
    operands[#operands + 1] = descr.operand(param, access, count, bytes, 64)
  end
  for _, o in ipairs(operands) do o.index_by = rows_by end
  for _, o in ipairs(index) do
    add(o.param, o.ctype, "read", o.count, 4)
    operands[#operands].below = get(o, "below", nil)
  end
  -- each: bytes of a routed expert's matrices; all: of those that every row reads
  local types, each, all, factors = {}, 0, 0, ""
  for _, set in ipairs(M.each_set(op)) do
    for _, m in ipairs(set.of) do
      local bytes = set.name == "routed" and mul(m.matrix_bytes, op.E) or m.matrix_bytes
      add(m.param, "const uint8_t *", "read", tostring(bytes), 1)
      if set.name == "routed" then operands[#operands].index_by = index[1].param end
      if m.factor then
        add(m.factor, "const float *", "read", tostring(set.name == "routed" and op.E or 1), 4)
        operands[#operands].align = 4
        if set.name == "routed" then operands[#operands].index_by = index[1].param end
        factors = factors .. m.factor
      end
      types[#types + 1] = m.type
      each = each + (set.name == "routed" and m.matrix_bytes or 0)
      all = all + (set.name == "routed" and 0 or m.matrix_bytes)
    end
  end
  for _, o in ipairs(outputs) do add(o.param, o.ctype, o.access, o.count, o.bytes) end
  params[#params + 1] = descr.step_param()
  local act = (M.has_kind(op, "int") and "q8" or "") .. (M.has_kind(op, "float") and "f32" or "")
  local out = op.stage == "down" and "f32" or (M.out(op, "q8") and "q8" or "") .. (M.out(op, "f32") and "f32" or "")
  return {
    name = name.kernel(op.family, types, act, { op.stage, op.E, op.n_used, M.shared(op) and "shared" or "routed",
      op.K, op.n, out .. factors }),
    block = 1, params = params, operands = operands,
    scratch = 49152, reduction = "atoms256", tolerance = 2e-6,
    bytes = "min(T * " .. op.n_used .. ", " .. op.E .. ") * " .. each .. " + " .. all,
    flops = M.n_pairs(op) .. " * " .. (2 * op.K * op.n * #op.parts),
    includes = { op.hw.isa, "isa_math.h" }, features = { "dot4", "f16" },
  }
end

-- For a kernel's head.
function M.shapes(op)
  return M.experts(op) .. " experts of " .. op.n .. " x " .. op.K .. ", " .. M.per_row(op) .. " pairs a row"
end

-- What a gated product writes, a row for each pair: { param, ctype, count, bytes, access }, and their columns for each 32
-- of the product.
function M.gated_outputs(op)
  local list = {}
  local function add(param, ctype, bytes, per32)
    list[#list + 1] = { param = param, ctype = ctype, bytes = bytes, access = "write", per32 = per32,
                        width = op.n * per32 // 32, count = M.n_pairs(op) .. " * " .. op.n * per32 // 32 }
  end
  if M.out(op, "f32") then add("y", "float *", 4, 32) end
  if M.out(op, "q8") then
    add("y_q", "int8_t *", 1, 32)
    add("y_d", "float *", 4, 1)
    add("y_s", "int16_t *", 2, 2)
  end
  return list
end

return M
