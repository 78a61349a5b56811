-- llama.lua -- directory and keys of a synthetic model of architecture "llama".
-- Weights have standard deviation gain / sqrt(row length), so that activations stay near 1; queries
-- and keys a little more, so that attention prefers some positions; the output as much as the
-- recipe's logit_std asks. Norm weights are 1 with some spread.

local types = import("lib/types.lua")
local tokenizer = import("lib/tokenizer.lua")

local gains = { attn_q = 1.6, attn_k = 1.6 }

-- rope_freqs.weight as in Llama 3.1: divisors by wavelength, `f` = { factor, low, high, original }.
local function frequency_factors(n_rot, base, f)
  local out = {}
  for i = 0, n_rot // 2 - 1 do
    local wave = 6.283185307179586 * base ^ (2 * i / n_rot)
    local t = (f.original / wave - f.low) / (f.high - f.low)
    local divisor = t > 1 and 1.0 or t < 0 and f.factor + 0.0 or 1 / ((1 - t) / f.factor + t)
    table.insert(out, divisor)
  end
  return out
end

local function keys_of(d, opts)
  local out = {}
  local function add(name, kind, value)
    table.insert(out, { key = name, type = kind, value = value })
  end
  add("general.architecture", "string", "llama")
  add("general.type", "string", "model")
  add("general.name", "string", "synthetic " .. d.name)
  add("general.description", "string", "random weights, seed " .. opts.seed)
  add("llama.block_count", "u32", d.layers)
  add("llama.context_length", "u32", d.ctx)
  add("llama.embedding_length", "u32", d.embd)
  add("llama.feed_forward_length", "u32", d.ffn)
  if d.experts then
    add("llama.expert_count", "u32", d.experts)
    add("llama.expert_used_count", "u32", d.picks)
  end
  add("llama.attention.head_count", "u32", d.heads)
  add("llama.attention.head_count_kv", "u32", d.kv)
  add("llama.attention.key_length", "u32", d.head_dim)
  add("llama.attention.value_length", "u32", d.head_dim)
  add("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5)
  add("llama.rope.dimension_count", "u32", d.head_dim)
  add("llama.rope.freq_base", "f32", d.rope_base)
  if d.scaling then
    add("llama.rope.scaling.type", "string", d.scaling.type)
    add("llama.rope.scaling.factor", "f32", d.scaling.factor)
    add("llama.rope.scaling.original_context_length", "u32", d.scaling.original)
  end
  add("llama.vocab_size", "u32", d.vocab)
  add("general.quantization_version", "u32", 2)
  local vocabulary = d.tokenizer == "spm" and tokenizer.spm(d.vocab) or tokenizer.bpe(d.vocab, d.tokenizer)
  for _, entry in ipairs(vocabulary) do table.insert(out, entry) end
  return out
end

-- A router of plain numbers and three tensors of d.experts matrices.
local function mixture(out, d, layer, blk)
  local function add(name, kind, ne, std)
    table.insert(out, { name = blk .. name .. ".weight", type = kind, ne = ne, fill = "normal", mean = 0, std = std })
    if d.scales and ne[3] then
      local scales = {}
      for e = 1, ne[3] do scales[e] = (8 + e % 5) / 8 + 1 / 64 end
      table.insert(out, { name = blk .. name .. ".scale", type = "f32", ne = { ne[3] }, fill = "values", values = scales })
    end
  end
  add("ffn_gate_inp", "f32", { d.embd, d.experts }, 2 / math.sqrt(d.embd))
  for _, part in ipairs({ { "ffn_gate", d.embd, d.ffn }, { "ffn_up", d.embd, d.ffn }, { "ffn_down", d.ffn, d.embd } }) do
    local kind = types.pick(d.types, part[1], layer, d.layers, part[2], false)
    add(part[1] .. "_exps", kind, { part[2], part[3], d.experts }, 1 / math.sqrt(part[2]))
  end
end

-- Scales of whole matrices, as NVFP4 files have them: from 1/8 to 3, none of them 1.
local function scale_of(i) return (1 + 5 * i % 23) / 8 + 1 / 64 end

local function tensors_of(d)
  local out = {}
  local function matrix(name, role, layer, cols, rows, std, output)
    local kind = types.pick(d.types, role, layer, d.layers, cols, output)
    local scale = d.scales and layer >= 0 and scale_of(#out) or 1.0
    table.insert(out, { name = name .. ".weight", type = kind, ne = { cols, rows }, fill = "normal", mean = 0,
      std = std / scale })
    if scale ~= 1.0 then
      table.insert(out, { name = name .. ".scale", type = "f32", ne = { 1 }, fill = "values", values = { scale } })
    end
    if d.bias and layer >= 0 then
      table.insert(out, { name = name .. ".bias", type = "f32", ne = { rows }, fill = "normal", mean = 0, std = 0.2 })
    end
  end
  local function norm(name)
    table.insert(out, { name = name .. ".weight", type = "f32", ne = { d.embd }, fill = "normal", mean = 1, std = 0.1 })
  end
  local logit_std = d.logit_std / math.sqrt(d.embd)
  matrix("token_embd", "token_embd", -1, d.embd, d.vocab, logit_std, d.tied)
  norm("output_norm")
  if not d.tied then matrix("output", "output", -1, d.embd, d.vocab, logit_std, true) end
  if d.freqs then
    table.insert(out, { name = "rope_freqs.weight", type = "f32", ne = { d.head_dim // 2 }, fill = "values",
      values = frequency_factors(d.head_dim, d.rope_base, d.freqs) })
  end
  local q, kv = d.heads * d.head_dim, d.kv * d.head_dim
  for i = 0, d.layers - 1 do
    local blk = "blk." .. i .. "."
    local function part(role, cols, rows)
      local gain = has(gains, role) and gains[role] or 1
      matrix(blk .. role, role, i, cols, rows, gain / math.sqrt(cols), false)
    end
    norm(blk .. "attn_norm")
    part("attn_q", d.embd, q)
    part("attn_k", d.embd, kv)
    part("attn_v", d.embd, kv)
    part("attn_output", q, d.embd)
    norm(blk .. "ffn_norm")
    if d.experts then
      mixture(out, d, i, blk)
    else
      part("ffn_gate", d.embd, d.ffn)
      part("ffn_up", d.embd, d.ffn)
      part("ffn_down", d.ffn, d.embd)
    end
  end
  return out
end

local M = {}

-- The recipe of one model. dims: name, layers, embd, ffn, heads, kv, vocab, types, and what differs
-- from: head_dim = embd / heads, ctx = 4096, rope_base = 10000, logit_std = 3, tied = true, bias =
-- false, tokenizer "chatml", "llama3" (byte-level BPE) or "spm"; scaling = { type, factor, original };
-- freqs = { factor, low, high, original }; scales = true: a scale beside each matrix of a layer; experts and picks: a mixture
-- of them in place of one gated product.
function M.recipe(dims)
  return {
    synth = function(opts)
      local d = {
        name = dims.name, embd = dims.embd, ffn = dims.ffn, heads = dims.heads, kv = dims.kv,
        vocab = dims.vocab, head_dim = dims.head_dim or exact_div(dims.embd, dims.heads),
        ctx = dims.ctx or 4096, rope_base = dims.rope_base or 10000.0, scaling = dims.scaling,
        freqs = dims.freqs, logit_std = dims.logit_std or 3.0, tied = dims.tied ~= false,
        bias = dims.bias or false, tokenizer = dims.tokenizer or "chatml",
        scales = dims.scales or false, experts = dims.experts or false, picks = dims.picks,
        layers = get(opts, "layers", dims.layers), types = get(opts, "types", dims.types),
      }
      return { keys = keys_of(d, opts), tensors = tensors_of(d) }
    end,
  }
end

return M
