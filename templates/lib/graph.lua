-- graph.lua -- the builder with which architecture files describe a model.
--
-- new(input) gives a builder g. input is what the generator knows: `meta` (the file's keys, arrays left
-- out when long), `tensors` (name -> { type, ne = {...} }), `options` { ctx, slots, chunk, kv }.
-- Methods add one op each and return the number of the value it writes; g:finish(fields) returns the
-- plain table that the generator turns into its graph. All sizes are integers; shapes are checked
-- here against the file, with the tensor's name in the message, and again by the generator's verifier.

local M = {} -- the builder's methods

-- ---- what the file says

-- The key's value; `default` if absent (no default: the key is required). kind: "int", "number",
-- "bool" or "string".
function M:key(name, kind, default)
  local v = get(self.meta, name, nil)
  if v == nil then
    if default == nil then
      fail("the model file has no key '" .. name .. "', which its architecture requires")
    end
    return default
  end
  local is = math.type(v) or (type(v) == "table" and "array" or type(v))
  local ok = (kind == "int" and is == "integer") or (kind == "bool" and is == "boolean")
    or (kind == "number" and is == "float") or (kind == "string" and is == "string")
  if not ok then
    fail("key '" .. name .. "' must be " .. kind .. ", the file holds " .. is)
  end
  return v
end

-- An integer key inside [low, high] for each of n layers: one number for all, or an array.
function M:per_layer(name, n, low, high, default)
  local v = get(self.meta, name, default)
  if v == nil or type(v) ~= "table" then
    local one, list = self:int(name, low, high, default), {}
    for i = 1, n do
      list[i] = one
    end
    return list
  end
  if has(v, "long_array") or #v ~= n then
    fail("key '" .. name .. "' has " .. (has(v, "long_array") and v.long_array or #v) .. " numbers for " .. n
      .. " layers")
  end
  local list = {}
  for i = 1, n do
    if math.type(v[i]) ~= "integer" or v[i] < low or v[i] > high then
      local got = math.type(v[i]) == "integer" and tostring(v[i]) or "no integer"
      fail("key '" .. name .. "' of layer " .. i - 1 .. " is " .. got .. "; lagen takes " .. low .. " to " .. high)
    end
    list[i] = v[i]
  end
  return list
end

-- An integer key inside [low, high].
function M:int(name, low, high, default)
  local v = self:key(name, "int", default)
  if v < low or v > high then
    fail("key '" .. name .. "' is " .. v .. "; lagen takes " .. low .. " to " .. high)
  end
  return v
end

-- A finite number key inside [low, high].
function M:number(name, low, high, default)
  local v = self:key(name, "number", default)
  if not (v >= low and v <= high) then
    fail("key '" .. name .. "' is " .. string.format("%g", v) .. "; lagen takes "
      .. string.format("%g", low) .. " to " .. string.format("%g", high))
  end
  return v + 0.0
end

function M:has(tensor)
  return has(self.file_tensors, tensor)
end

local function shape_text(ne)
  local parts = {}
  for i = 1, #ne do
    parts[i] = tostring(ne[i])
  end
  return join(parts, " x ")
end

-- The number of a weight tensor of exactly this shape: row length, rows, and of expert tensors matrices.
function M:weight(name, ...)
  local want = { ... }
  local t = get(self.file_tensors, name, nil)
  if t == nil then
    fail("the model file has no tensor '" .. name .. "', which architecture '" .. self.arch .. "' requires")
  end
  local same = #want <= #t.ne
  for i = 1, #t.ne do
    same = same and t.ne[i] == (want[i] or 1)
  end
  if not same then
    fail("tensor '" .. name .. "' is " .. shape_text(t.ne) .. "; its metadata asks for " .. shape_text(want))
  end
  if self.tensor_ids[name] == nil then
    self.tensors[#self.tensors + 1] = { name = name, cols = want[1], rows = want[2] or 1, mats = want[3] or 1 }
    self.tensor_ids[name] = #self.tensors - 1
  end
  return self.tensor_ids[name]
end

-- The number of rows of a matrix in the file.
function M:rows_of(name)
  local t = get(self.file_tensors, name, nil)
  if t == nil or #t.ne ~= 2 then
    fail("the model file has no matrix '" .. name .. "', which architecture '" .. self.arch .. "' requires")
  end
  return t.ne[2]
end

-- weight() for a tensor that a file may leave out: nil then.
function M:optional(name, ...)
  if self:has(name) then
    return self:weight(name, ...)
  end
  return nil
end

-- Values of a tensor that configures the graph (rope_freqs): read by the generator.
function M:numbers(name, n)
  local t = get(self.file_tensors, name, nil)
  if t == nil then
    return nil
  end
  if not has(t, "values") or #t.values ~= n then
    fail("tensor '" .. name .. "' must hold " .. n .. " F32 numbers")
  end
  return t.values
end

-- ---- values and ops

local function value(g, name, rows, width)
  g.values[#g.values + 1] = { name = name, rows = rows, width = width, type = "f32" }
  return #g.values - 1
end

-- Whole numbers from 0 up to, but not including, `below`.
local function integers(g, name, rows, width, below)
  g.values[#g.values + 1] = { name = name, rows = rows, width = width, type = "i32", below = below }
  return #g.values - 1
end

local function node(g, op, operands, attrs)
  g.nodes[#g.nodes + 1] = { op = op, layer = g.layer, operands = operands, attrs = attrs or {} }
end

local function read(role, id) return { role = role, value = id } end
local function tensor(role, id) return { role = role, tensor = id } end

function M:width(v) return self.values[v + 1].width end
function M:rows(v) return self.values[v + 1].rows end

-- What is kept between steps: a ring of `positions` for each slot, each of position_bytes (elem "f16" or
-- "i8"), of which a row reads the last `window` (0 = all).
function M:state(name, positions, position_bytes, elem, window)
  self.values[#self.values + 1] = { name = name, rows = "state", width = 0, type = "state", elem = elem,
    slots = self.options.slots, positions = positions, position_bytes = position_bytes, window = window }
  return #self.values - 1
end

-- The tensor X.scale that may stand beside X.weight (NVFP4 files have it): the product is multiplied by it, before a bias is
-- added. One number for each of n matrices.
local function scale_beside(self, w, n)
  local name = self.tensors[w + 1].name
  local stem = name:match("^(.*)%.weight$")
  return stem and self:optional(stem .. ".scale", n) or nil
end

function M:embed(w, n_embd)
  if scale_beside(self, w, 1) then
    fail("tensor '" .. self.tensors[w + 1].name .. "' has a scale of its own: embeddings that have one are not supported")
  end
  local y = value(self, "x", "T", n_embd)
  node(self, "embed", { tensor("w", w), read("y", y) })
  return y
end

-- Angles of every row of the step: freq[] are radians per position for each pair.
function M:rope_table(freq, mscale)
  local y = value(self, "rope_table", "T", 2 * #freq)
  node(self, "rope_table", { read("y", y) }, { freq = freq, mscale = mscale })
  return y
end

function M:rms_norm(name, x, w, eps)
  local y = value(self, name, self:rows(x), self:width(x))
  node(self, "rms_norm", { read("x", x), tensor("w", w), read("y", y) }, { eps = eps })
  return y
end

-- The same for each head of x by itself; w has one weight for each element of a head.
function M:head_norm(name, x, w, head_dim, eps)
  local y = value(self, name, self:rows(x), self:width(x))
  node(self, "head_norm", { read("x", x), tensor("w", w), read("y", y) }, { head_dim = head_dim, eps = eps })
  return y
end

function M:linear(name, x, w, n, bias)
  local y = value(self, name, self:rows(x), n)
  local operands, scale = { read("x", x), tensor("w", w) }, scale_beside(self, w, 1)
  if scale then
    operands[#operands + 1] = tensor("f", scale)
  end
  if bias then
    operands[#operands + 1] = tensor("b", bias)
  end
  operands[#operands + 1] = read("y", y)
  node(self, "linear", operands)
  return y
end

-- a: { n_head, head_dim, n_rot, pairing = "norm" | "neox" }
function M:rope(name, x, tab, a)
  local y = value(self, name, self:rows(x), self:width(x))
  node(self, "rope", { read("x", x), read("table", tab), read("y", y) }, a)
  return y
end

-- Writes the rows' keys and values into their slots' caches.
function M:kv_store(k, v, cache)
  node(self, "kv_store", { read("k", k), read("v", v), read("k_cache", cache.k), read("v_cache", cache.v) },
    { n_kv = cache.n_kv, head_dim = cache.head_dim, cap = cache.cap, kv = cache.kv })
end

-- a: { n_head, scale }
function M:attention(name, q, cache, a)
  local y = value(self, name, self:rows(q), self:width(q))
  node(self, "attention",
    { read("q", q), read("k_cache", cache.k), read("v_cache", cache.v), read("y", y) },
    { n_head = a.n_head, n_kv = cache.n_kv, head_dim = cache.head_dim, cap = cache.cap,
      scale = a.scale, window = cache.window, kv = cache.kv })
  return y
end

-- x times act(gate); gate has a number for each element of x or for each head. act: "softplus"
function M:gate(name, x, gate, head_dim, act)
  local y = value(self, name, self:rows(x), self:width(x))
  node(self, "gate", { read("x", x), read("gate", gate), read("y", y) }, { head_dim = head_dim, act = act })
  return y
end

-- Positions that a slot's ring must hold for attention over the last `window` (0 = all of the context):
-- what a row reads and the rows of the largest step, which are all stored before the first of them reads;
-- in whole splits of attention.
function M:ring(window)
  local ctx = self.options.ctx
  if window == 0 then
    return round_up(ctx, 256)
  end
  return round_up(math.min(ctx, window - 1 + math.max(self.options.chunk, self.options.slots)), 256)
end

-- One layer's cache for attention over the last `window` positions (0 = all).
function M:kv_cache(n_kv, head_dim, window)
  local kind = import("kv/" .. self.options.kv .. ".lua")
  kind.check({ hd = head_dim })
  local cap, bytes = self:ring(window), mul(n_kv, exact_div(mul(kind.block(head_dim), kind.elem_bytes), 16))
  local name = "kv." .. self.layer
  return { n_kv = n_kv, head_dim = head_dim, cap = cap, window = window, kv = self.options.kv,
    k = self:state(name .. ".k", cap, bytes, kind.elem, window),
    v = self:state(name .. ".v", cap, bytes, kind.elem, window) }
end

function M:add(name, a, b)
  local y = value(self, name, self:rows(a), self:width(a))
  node(self, "add", { read("a", a), read("b", b), read("y", y) })
  return y
end

function M:silu_mul(name, gate, up)
  local y = value(self, name, self:rows(gate), self:width(gate))
  node(self, "silu_mul", { read("gate", gate), read("up", up), read("y", y) })
  return y
end

-- A mixture of experts. Row t goes to a.n_used experts, its picks; what belongs to pairs of a row and a pick
-- is one value of T rows, the picks' parts side by side, n_used times as wide.

-- logits: one number for each expert; bias (a tensor or nil) is added for the choice only.
-- a: { n_used, gating = "sigmoid" | "softmax", norm = whether a row's weights are divided by their sum,
-- scale = what they are multiplied with then }. Returns the picks and their weights.
function M:router(name, logits, bias, a)
  local ids = integers(self, name .. ".ids", "T", a.n_used, self:width(logits))
  local weights = value(self, name .. ".weights", "T", a.n_used)
  local operands = { read("logits", logits) }
  if bias then
    operands[#operands + 1] = tensor("bias", bias)
  end
  operands[#operands + 1] = read("ids", ids)
  operands[#operands + 1] = read("weights", weights)
  node(self, "router", operands, { n_used = a.n_used, gating = a.gating, norm = a.norm, scale = a.scale + 0.0 })
  return ids, weights
end

-- For every pick its expert of w (columns x n x experts) times the row of x, or times the pick's part of it.
function M:expert_linear(name, x, ids, w, n)
  local picks = self:width(ids)
  local y = value(self, name, self:rows(x), mul(picks, n))
  local operands, scale = { read("x", x), read("ids", ids), tensor("w", w) }, scale_beside(self, w, self.tensors[w + 1].mats)
  if scale then
    operands[#operands + 1] = tensor("f", scale)
  end
  operands[#operands + 1] = read("y", y)
  node(self, "expert_linear", operands, { n_used = picks })
  return y
end

-- The picks' parts of x, weighted, in order of the picks.
function M:expert_sum(name, x, weights)
  local picks = self:width(weights)
  local y = value(self, name, self:rows(x), exact_div(self:width(x), picks))
  node(self, "expert_sum", { read("x", x), read("weights", weights), read("y", y) }, { n_used = picks })
  return y
end

-- Only the rows whose logits are wanted.
function M:take_rows(name, x)
  local y = value(self, name, "L", self:width(x))
  node(self, "take_rows", { read("x", x), read("y", y) })
  return y
end

-- A line for the program's manifest.
function M:note(name, text)
  self.notes[name] = text
end

-- fields: { n_layers, n_embd, n_vocab, ctx_train, logits }
function M:finish(fields)
  fields.values = self.values
  fields.tensors = self.tensors
  fields.nodes = self.nodes
  fields.notes = self.notes
  return fields
end

local function new(input)
  local g = {
    meta = input.meta,
    file_tensors = input.tensors,
    options = input.options,
    values = {},
    tensors = {},
    tensor_ids = {},
    nodes = {},
    notes = {},
    layer = -1,
  }
  for name, method in sorted_pairs(M) do
    g[name] = method
  end
  return g
end

return { new = new }
