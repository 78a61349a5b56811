-- llama.lua -- the llama family: pre-norm, grouped-query attention, rotary embedding on adjacent
-- pairs, SwiGLU, of one gated product or of experts; output tied to the embedding where the file has no output tensor.
-- Facts: GGUF metadata keys "llama.*"; optional biases; rope_freqs.weight divides the frequencies.

local graph = import("lib/graph.lua")
local rope = import("lib/rope.lua")

local function dims(g)
  local d = {}
  d.layers = g:int("llama.block_count", 1, 512)
  d.embd = g:int("llama.embedding_length", 1, 1 << 20)
  d.ffn = g:int("llama.feed_forward_length", 1, 1 << 22)
  d.heads = g:int("llama.attention.head_count", 1, 1 << 16)
  d.kv = g:int("llama.attention.head_count_kv", 1, 1 << 16, d.heads)
  if d.heads % d.kv ~= 0 then
    fail("key 'llama.attention.head_count' is " .. d.heads .. ", not a multiple of head_count_kv " .. d.kv)
  end
  d.head_dim = g:int("llama.attention.key_length", 1, 1024, d.embd // d.heads)
  local value_dim = g:int("llama.attention.value_length", 1, 1024, d.head_dim)
  if value_dim ~= d.head_dim then
    fail("key 'llama.attention.value_length' is " .. value_dim .. "; lagen needs key_length, " .. d.head_dim)
  end
  d.n_rot = g:int("llama.rope.dimension_count", 2, d.head_dim, d.head_dim)
  if d.n_rot % 2 ~= 0 then
    fail("key 'llama.rope.dimension_count' is " .. d.n_rot .. "; it must be even")
  end
  d.eps = g:number("llama.attention.layer_norm_rms_epsilon", 0, 1)
  d.scale = g:number("llama.attention.scale", 0, 1e6, 0)
  if d.scale == 0 then
    d.scale = 1.0 / math.sqrt(d.head_dim)
  end
  d.ctx_train = g:int("llama.context_length", 1, 1 << 30)
  local window = g:int("llama.attention.sliding_window", 0, 1 << 30, 0)
  if window > 0 and window < d.ctx_train then
    fail("key 'llama.attention.sliding_window' is " .. window .. ", and of this architecture it is not known which layers slide")
  end
  d.experts = g:int("llama.expert_count", 0, 1024, 0)
  d.picks = d.experts > 0 and g:int("llama.expert_used_count", 1, d.experts) or 0
  return d
end

local function attention(g, d, x, tab)
  local p = "blk." .. g.layer .. "."
  local h = g:rms_norm("attn_norm", x, g:weight(p .. "attn_norm.weight", d.embd), d.eps)
  local function project(name, n)
    local w = g:weight(p .. name .. ".weight", d.embd, n)
    return g:linear(name, h, w, n, g:optional(p .. name .. ".bias", n))
  end
  local q = project("attn_q", d.heads * d.head_dim)
  local k = project("attn_k", d.kv * d.head_dim)
  local v = project("attn_v", d.kv * d.head_dim)
  local turn = { head_dim = d.head_dim, n_rot = d.n_rot, pairing = "norm" }
  q = g:rope("q", q, tab, turn)
  k = g:rope("k", k, tab, turn)
  local cache = g:kv_cache(d.kv, d.head_dim, 0)
  g:kv_store(k, v, cache)
  local o = g:attention("attn", q, cache, { n_head = d.heads, scale = d.scale })
  local w = g:weight(p .. "attn_output.weight", d.heads * d.head_dim, d.embd)
  o = g:linear("attn_output", o, w, d.embd, g:optional(p .. "attn_output.bias", d.embd))
  return g:add("x", x, o)
end

local function feed_forward(g, d, x)
  local p = "blk." .. g.layer .. "."
  local h = g:rms_norm("ffn_norm", x, g:weight(p .. "ffn_norm.weight", d.embd), d.eps)
  local function project(name, from, cols, n)
    local w = g:weight(p .. name .. ".weight", cols, n)
    return g:linear(name, from, w, n, g:optional(p .. name .. ".bias", n))
  end
  local gate = project("ffn_gate", h, d.embd, d.ffn)
  local up = project("ffn_up", h, d.embd, d.ffn)
  local y = project("ffn_down", g:silu_mul("ffn_act", gate, up), d.ffn, d.embd)
  return g:add("x", x, y)
end

-- Mixtral's feed-forward part: softmax over all experts' logits, the picks' weights divided by their sum.
local function mixture(g, d, x)
  local p = "blk." .. g.layer .. "."
  local h = g:rms_norm("ffn_norm", x, g:weight(p .. "ffn_norm.weight", d.embd), d.eps)
  local logits = g:linear("router", h, g:weight(p .. "ffn_gate_inp.weight", d.embd, d.experts), d.experts)
  local ids, weights = g:router("moe", logits, nil, { n_used = d.picks, gating = "softmax", norm = true, scale = 1.0 })
  local function project(name, from, cols, n)
    return g:expert_linear(name, from, ids, g:weight(p .. name .. ".weight", cols, n, d.experts), n)
  end
  local gate = project("ffn_gate_exps", h, d.embd, d.ffn)
  local up = project("ffn_up_exps", h, d.embd, d.ffn)
  local y = project("ffn_down_exps", g:silu_mul("ffn_act", gate, up), d.ffn, d.embd)
  return g:add("x", x, g:expert_sum("moe", y, weights))
end

-- input: see lib/graph.lua. Returns the graph as plain data.
local function build(input)
  local g = graph.new(input)
  g.arch = "llama"
  local d = dims(g)
  local vocab = g:rows_of("token_embd.weight")
  local embd = g:weight("token_embd.weight", d.embd, vocab)
  local freq, mscale = rope.from_keys(g, "llama.", d.n_rot, g:numbers("rope_freqs.weight", d.n_rot // 2))
  local x = g:embed(embd, d.embd)
  local tab = g:rope_table(freq, mscale)
  for i = 0, d.layers - 1 do
    g.layer = i
    x = attention(g, d, x, tab)
    x = d.experts > 0 and mixture(g, d, x) or feed_forward(g, d, x)
  end
  g.layer = -1
  x = g:take_rows("x_out", x)
  x = g:rms_norm("output_norm", x, g:weight("output_norm.weight", d.embd), d.eps)
  local head = g:optional("output.weight", d.embd, vocab) or embd
  local logits = g:linear("logits", x, head, vocab, g:optional("output.bias", vocab))
  return g:finish({ n_layers = d.layers, n_embd = d.embd, n_vocab = vocab, ctx_train = d.ctx_train, logits = logits })
end

-- Tensors whose values shape the graph; the generator reads these few numbers.
local function numbers()
  return { "rope_freqs.weight" }
end

return { build = build, numbers = numbers }
