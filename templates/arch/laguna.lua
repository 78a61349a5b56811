-- laguna.lua -- poolside's Laguna: pre-norm; grouped-query attention whose number of heads is a layer's own, with norms
-- of the heads of q and k, rotary embedding on pairs half a rotation apart and an output gate; every fourth layer sees
-- all positions (partial YaRN rotation), the others a window (plain rotation); behind leading dense layers a mixture
-- of experts with a shared one.
-- Facts: GGUF metadata keys "laguna.*" and llama.cpp's defaults for those that a file leaves out. What the gate has a
-- number for, a head or an element, is told by the shape of its tensor, layer by layer.

local graph = import("lib/graph.lua")
local rope = import("lib/rope.lua")

local GATINGS = { [0] = "sigmoid", [1] = "softmax", [2] = "sigmoid" } -- 0: the file leaves it open

-- Keys that ask for what no released model has, and lagen would leave out: refused unless 0.
local UNKNOWN = { "attn_logit_softcapping", "final_logit_softcapping", "router_logit_softcapping" }

local function refuse_unknown(g)
  for _, name in ipairs(UNKNOWN) do
    if g:number("laguna." .. name, -1e30, 1e30, 0) ~= 0 then
      fail("key 'laguna." .. name .. "' is not 0: lagen computes Laguna without it")
    end
  end
  if g:int("laguna.nextn_predict_layers", 0, 1 << 16, 0) ~= 0 then
    fail("key 'laguna.nextn_predict_layers' is not 0: layers that predict further tokens are not supported")
  end
  if g:int("laguna.expert_group_count", 0, 1 << 16, 0) > 1 then
    fail("key 'laguna.expert_group_count' is above 1: groups of experts are not supported")
  end
end

local function head_size(g, d)
  local hd = g:int("laguna.attention.key_length", 1, 256, d.embd // d.heads[1])
  for _, name in ipairs({ "value_length", "key_length_swa", "value_length_swa" }) do
    if g:int("laguna.attention." .. name, 1, 1024, hd) ~= hd then
      fail("key 'laguna.attention." .. name .. "' differs from key_length, " .. hd .. "; lagen needs one head size")
    end
  end
  local scale = g:number("laguna.attention.scale", 0, 1e6, 0)
  if scale ~= 0 and math.abs(scale * math.sqrt(hd) - 1) > 1e-6 then
    fail("key 'laguna.attention.scale' is " .. string.format("%g", scale) .. ", not 1 / sqrt(" .. hd .. ")")
  end
  return hd
end

-- Which layers see only a window: all but every `period`th, the first being one that sees all; 0: every layer.
local function windows(g, d)
  local window = g:int("laguna.attention.sliding_window", 0, 1 << 30, 0)
  local pattern = get(g.meta, "laguna.attention.sliding_window_pattern", 4)
  local period = math.type(pattern) == "integer" and pattern or 4
  if math.type(pattern) ~= "integer" and type(pattern) ~= "table" then
    fail("key 'laguna.attention.sliding_window_pattern' is neither an integer nor a list")
  end
  if period < 0 then
    fail("key 'laguna.attention.sliding_window_pattern' is " .. period)
  end
  for i = 0, d.layers - 1 do
    local slides = window > 0 and (period == 0 or i % period ~= 0)
    d.window[i] = slides and window or 0
    if type(pattern) == "table" then
      local said = pattern[i + 1]
      if window > 0 and (said == true or said == 1) ~= slides then
        fail("key 'laguna.attention.sliding_window_pattern' says otherwise of layer " .. i
          .. " than every fourth layer seeing all positions")
      end
    end
  end
end

local function experts(g, d)
  d.dense = g:int("laguna.leading_dense_block_count", 0, 512)
  d.experts = g:int("laguna.expert_count", 0, 65535)
  d.used = g:int("laguna.expert_used_count", 0, 65535)
  d.expert_ffn = g:int("laguna.expert_feed_forward_length", 0, 1 << 22)
  if d.dense >= d.layers then
    return
  end
  if d.experts == 0 or d.used == 0 or d.used > d.experts or d.expert_ffn == 0 then
    fail("keys 'laguna.expert_count' " .. d.experts .. ", expert_used_count " .. d.used
      .. ", expert_feed_forward_length " .. d.expert_ffn .. ": a mixture needs 1 or more of each, and no more used"
      .. " than there are")
  end
  d.gating = GATINGS[g:int("laguna.expert_gating_func", 0, 255, 0)]
  if d.gating == nil then
    fail("key 'laguna.expert_gating_func' is " .. g:int("laguna.expert_gating_func", 0, 255) ..
      "; lagen knows 1, softmax, and 2, sigmoid")
  end
  d.norm = g:key("laguna.expert_weights_norm", "bool", false)
  d.expert_scale = g:number("laguna.expert_weights_scale", 0, 1e6, 0)
  if d.expert_scale == 0 then
    d.expert_scale = 1.0
  end
  local shared = g:int("laguna.expert_shared_count", 0, 1024, 1)
  d.shared_ffn = g:int("laguna.expert_shared_feed_forward_length", 0, 1 << 22, mul(d.expert_ffn, shared))
end

local function dims(g)
  local d = { window = {} }
  d.layers = g:int("laguna.block_count", 1, 512)
  d.embd = g:int("laguna.embedding_length", 1, 1 << 20)
  d.ffn = g:int("laguna.feed_forward_length", 1, 1 << 22)
  d.heads = g:per_layer("laguna.attention.head_count", d.layers, 1, 1 << 16)
  d.kv = g:per_layer("laguna.attention.head_count_kv", d.layers, 1, 1 << 16,
    get(g.meta, "laguna.attention.head_count", nil))
  for i = 1, d.layers do
    if d.heads[i] % d.kv[i] ~= 0 then
      fail("key 'laguna.attention.head_count' of layer " .. i - 1 .. " is " .. d.heads[i]
        .. ", not a multiple of its head_count_kv " .. d.kv[i])
    end
  end
  d.head_dim = head_size(g, d)
  d.eps = g:number("laguna.attention.layer_norm_rms_epsilon", 0, 1)
  d.ctx_train = g:int("laguna.context_length", 1, 1 << 30)
  windows(g, d)
  experts(g, d)
  refuse_unknown(g)
  return d
end

-- How many of a head's dimensions turn.
local function rotated(g, d, name, default)
  local n = g:int("laguna.rope." .. name, 2, d.head_dim, default)
  if n % 2 ~= 0 then
    fail("key 'laguna.rope." .. name .. "' is " .. n .. "; it must be even")
  end
  return n
end

-- The tables of angles: of layers that see all positions and, where there are any, of those with a window.
local function rotations(g, d)
  local n_full = rotated(g, d, "dimension_count", d.head_dim)
  local base = g:number("laguna.rope.freq_base", 1, 1e12, 10000.0)
  local base_swa = g:number("laguna.rope.freq_base_swa", 1, 1e12, base)
  local n_swa = rotated(g, d, "dimension_count_swa", n_full)
  local full, swa
  for i = 0, d.layers - 1 do
    if d.window[i] == 0 and not full then
      local freq, mscale = rope.from_keys(g, "laguna.", n_full, nil)
      full = { n_rot = n_full, table = g:rope_table(freq, mscale) }
    elseif d.window[i] > 0 and not swa then
      local plain = { n_rot = n_swa, base = base_swa, type = "none", factor = 1.0, mscale = 1.0 }
      local freq, mscale = rope.frequencies(plain)
      swa = { n_rot = n_swa, table = g:rope_table(freq, mscale) }
    end
  end
  return full, swa
end

-- One number for each head of the layer or for each element: the file's tensor tells.
local function gate_width(g, name, heads, head_dim)
  local n = g:rows_of(name)
  if n ~= heads and n ~= heads * head_dim then
    fail("tensor '" .. name .. "' has " .. n .. " rows; a gate for each of " .. heads .. " heads has " .. heads
      .. ", one for each element " .. heads * head_dim)
  end
  return n
end

local function attention(g, d, x, turn)
  local p, i = "blk." .. g.layer .. ".", g.layer
  local heads, kv, hd = d.heads[i + 1], d.kv[i + 1], d.head_dim
  local h = g:rms_norm("attn_norm", x, g:weight(p .. "attn_norm.weight", d.embd), d.eps)
  local function project(name, n)
    return g:linear(name, h, g:weight(p .. name .. ".weight", d.embd, n), n)
  end
  local function head(name, projected)
    local y = g:head_norm(name .. "_normed", projected, g:weight(p .. "attn_" .. name .. "_norm.weight", hd), hd, d.eps)
    return g:rope(name, y, turn.table, { head_dim = hd, n_rot = turn.n_rot, pairing = "neox" })
  end
  local q, k = project("attn_q", heads * hd), project("attn_k", kv * hd)
  local v = project("attn_v", kv * hd)
  local gate = project("attn_gate", gate_width(g, p .. "attn_gate.weight", heads, hd))
  q, k = head("q", q), head("k", k)
  local cache = g:kv_cache(kv, hd, d.window[i])
  g:kv_store(k, v, cache)
  local o = g:attention("attn", q, cache, { n_head = heads, scale = 1.0 / math.sqrt(hd) })
  o = g:gate("gated", o, gate, hd, "softplus")
  o = g:linear("attn_output", o, g:weight(p .. "attn_output.weight", heads * hd, d.embd), d.embd)
  return g:add("x", x, o)
end

-- SwiGLU of width n over h, added to x; suffix "" or "_shexp".
local function feed_forward(g, d, x, h, n, suffix)
  local p = "blk." .. g.layer .. ".ffn_"
  local function project(name, from, cols, rows)
    return g:linear("ffn_" .. name .. suffix, from, g:weight(p .. name .. suffix .. ".weight", cols, rows), rows)
  end
  local gate, up = project("gate", h, d.embd, n), project("up", h, d.embd, n)
  return g:add("x", x, project("down", g:silu_mul("ffn_act" .. suffix, gate, up), n, d.embd))
end

local function mixture(g, d, x, h)
  local p = "blk." .. g.layer .. "."
  local function part(name, from, ids, cols, rows)
    local w = g:weight(p .. "ffn_" .. name .. "_exps.weight", cols, rows, d.experts)
    return g:expert_linear("ffn_" .. name .. "_exps", from, ids, w, rows)
  end
  local logits = g:linear("router_logits", h, g:weight(p .. "ffn_gate_inp.weight", d.embd, d.experts), d.experts)
  local ids, weights = g:router("experts", logits, g:optional(p .. "exp_probs_b.bias", d.experts),
    { n_used = d.used, gating = d.gating, norm = d.norm, scale = d.expert_scale })
  local gate, up = part("gate", h, ids, d.embd, d.expert_ffn), part("up", h, ids, d.embd, d.expert_ffn)
  local y = part("down", g:silu_mul("ffn_act_exps", gate, up), ids, d.expert_ffn, d.embd)
  return g:add("x", x, g:expert_sum("moe", y, weights))
end

local function layer(g, d, x, turn)
  x = attention(g, d, x, turn)
  local h = g:rms_norm("ffn_norm", x, g:weight("blk." .. g.layer .. ".ffn_norm.weight", d.embd), d.eps)
  if g.layer < d.dense then
    return feed_forward(g, d, x, h, d.ffn, "")
  end
  x = mixture(g, d, x, h)
  return d.shared_ffn > 0 and feed_forward(g, d, x, h, d.shared_ffn, "_shexp") or x
end

-- input: see lib/graph.lua. Returns the graph as plain data.
local function build(input)
  local g = graph.new(input)
  g.arch = "laguna"
  local d = dims(g)
  local vocab = g:rows_of("token_embd.weight")
  local embd = g:weight("token_embd.weight", d.embd, vocab)
  local x = g:embed(embd, d.embd)
  local full, swa = rotations(g, d)
  for i = 0, d.layers - 1 do
    g.layer = i
    x = layer(g, d, x, d.window[i] > 0 and swa or full)
  end
  g.layer = -1
  x = g:take_rows("x_out", x)
  x = g:rms_norm("output_norm", x, g:weight("output_norm.weight", d.embd), d.eps)
  local head = g:optional("output.weight", d.embd, vocab) or embd
  local logits = g:linear("logits", x, head, vocab)
  return g:finish({ n_layers = d.layers, n_embd = d.embd, n_vocab = vocab, ctx_train = d.ctx_train, logits = logits })
end

-- No tensor's values shape the graph.
local function numbers()
  return {}
end

return { build = build, numbers = numbers }
