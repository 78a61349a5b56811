-- laguna.lua -- directory and keys of a synthetic model of architecture "laguna".
-- Weights have standard deviation gain / sqrt(row length), so that activations stay near 1; norms of the heads of
-- queries and keys are above 1, so that attention prefers some positions; the router's logits spread over what a
-- sigmoid tells apart, and what the experts add is no larger than what the others do: with random weights a pick
-- often hangs on rounding. The output spreads as much as the recipe's logit_std asks.

local types = import("lib/types.lua")
local tokenizer = import("lib/tokenizer.lua")

local function keys_of(d, opts)
  local out = {}
  local function add(name, kind, value)
    table.insert(out, { key = name, type = kind, value = value })
  end
  add("general.architecture", "string", "laguna")
  add("general.type", "string", "model")
  add("general.name", "string", "synthetic " .. d.name)
  add("general.description", "string", "random weights, seed " .. opts.seed)
  local function own(name, kind, value) add("laguna." .. name, kind, value) end
  own("vocab_size", "u32", d.vocab)
  own("block_count", "u32", d.layers)
  own("context_length", "u32", d.ctx)
  own("embedding_length", "u32", d.embd)
  own("feed_forward_length", "u32", d.ffn)
  own("leading_dense_block_count", "u32", d.dense)
  local heads = {}
  for i = 0, d.layers - 1 do heads[i + 1] = d.heads_of(i) end
  own("attention.head_count", "i32[]", heads)
  own("attention.head_count_kv", "u32", d.kv)
  own("attention.key_length", "u32", d.head_dim)
  own("attention.value_length", "u32", d.head_dim)
  own("attention.layer_norm_rms_epsilon", "f32", 1e-6)
  if d.window > 0 then own("attention.sliding_window", "u32", d.window) end
  own("expert_count", "u32", d.experts)
  own("expert_used_count", "u32", d.used)
  own("expert_feed_forward_length", "u32", d.expert_ffn)
  own("expert_shared_feed_forward_length", "u32", d.shared_ffn)
  own("expert_gating_func", "u32", 2)
  own("expert_weights_norm", "bool", true)
  own("expert_weights_scale", "f32", d.expert_scale)
  own("rope.dimension_count", "u32", d.n_rot)
  own("rope.freq_base", "f32", d.rope_base)
  if d.window > 0 then
    own("rope.dimension_count_swa", "u32", d.n_rot_swa)
    own("rope.freq_base_swa", "f32", d.rope_base_swa)
  end
  if d.yarn then
    own("rope.scaling.type", "string", "yarn")
    own("rope.scaling.factor", "f32", d.yarn.factor)
    own("rope.scaling.original_context_length", "u32", d.yarn.original)
    own("rope.scaling.yarn_beta_fast", "f32", d.yarn.beta_fast)
    own("rope.scaling.yarn_beta_slow", "f32", 1.0)
    own("rope.scaling.yarn_attn_factor", "f32", 1.0)
  end
  add("general.quantization_version", "u32", 2)
  for _, entry in ipairs(tokenizer.bpe(d.vocab, "laguna")) do table.insert(out, entry) end
  return out
end

local function tensors_of(d)
  local out = {}
  local function add(name, kind, ne, mean, std)
    table.insert(out, { name = name, type = kind, ne = ne, fill = "normal", mean = mean, std = std })
  end
  local function matrix(name, role, layer, cols, rows, std, output)
    local kind = types.pick(d.types, role, layer, d.layers, cols, output)
    add(name .. ".weight", kind, { cols, rows }, 0, std)
  end
  local function norm(name, n, mean) add(name .. ".weight", "f32", { n }, mean, 0.1) end
  local logit_std = d.logit_std / math.sqrt(d.embd)
  matrix("token_embd", "token_embd", -1, d.embd, d.vocab, logit_std, d.tied)
  norm("output_norm", d.embd, 1)
  if not d.tied then matrix("output", "output", -1, d.embd, d.vocab, logit_std, true) end
  for i = 0, d.layers - 1 do
    local blk = "blk." .. i .. "."
    local q, kv, hd = d.heads_of(i) * d.head_dim, d.kv * d.head_dim, d.head_dim
    local function part(role, cols, rows, gain)
      matrix(blk .. role, role, i, cols, rows, (gain or 1) / math.sqrt(cols), false)
    end
    local function experts(role, cols, rows, gain)
      local kind = types.pick(d.types, role, i, d.layers, cols, false)
      add(blk .. role .. ".weight", kind, { cols, rows, d.experts }, 0, gain / math.sqrt(cols))
    end
    norm(blk .. "attn_norm", d.embd, 1)
    part("attn_q", d.embd, q)
    part("attn_k", d.embd, kv)
    part("attn_v", d.embd, kv)
    norm(blk .. "attn_q_norm", hd, 1.3)
    norm(blk .. "attn_k_norm", hd, 1.3)
    part("attn_gate", d.embd, d.gate == "head" and d.heads_of(i) or q)
    part("attn_output", q, d.embd)
    norm(blk .. "ffn_norm", d.embd, 1)
    if i < d.dense then
      part("ffn_gate", d.embd, d.ffn)
      part("ffn_up", d.embd, d.ffn)
      part("ffn_down", d.ffn, d.embd)
    else
      add(blk .. "ffn_gate_inp.weight", "f32", { d.embd, d.experts }, 0, 1.5 / math.sqrt(d.embd))
      add(blk .. "exp_probs_b.bias", "f32", { d.experts }, 0, 0.1)
      experts("ffn_gate_exps", d.embd, d.expert_ffn, 1)
      experts("ffn_up_exps", d.embd, d.expert_ffn, 1)
      experts("ffn_down_exps", d.expert_ffn, d.embd, 1 / d.expert_scale)
      part("ffn_gate_shexp", d.embd, d.shared_ffn)
      part("ffn_up_shexp", d.embd, d.shared_ffn)
      part("ffn_down_shexp", d.shared_ffn, d.embd)
    end
  end
  return out
end

local M = {}

-- The recipe of one model. dims: name, layers, embd, head_dim, heads = { full, swa }, kv, ffn, dense (leading dense
-- layers), experts, used, expert_ffn, vocab, types, and what differs from: window = 0 (every layer sees all), gate =
-- "head" (or "element"), shared_ffn = expert_ffn, expert_scale = 2.5, ctx = 4096, n_rot = half of head_dim, n_rot_swa =
-- head_dim, rope_base = 500000, rope_base_swa = 10000, yarn = { factor, original, beta_fast }, logit_std = 3,
-- tied = false.
function M.recipe(dims)
  return {
    synth = function(opts)
      local window = dims.window or 0
      local function heads_of(i)
        return (window > 0 and i % 4 ~= 0) and dims.heads[2] or dims.heads[1]
      end
      local d = {
        name = dims.name, embd = dims.embd, head_dim = dims.head_dim, kv = dims.kv, ffn = dims.ffn, vocab = dims.vocab,
        experts = dims.experts, used = dims.used, expert_ffn = dims.expert_ffn,
        shared_ffn = dims.shared_ffn or dims.expert_ffn, expert_scale = dims.expert_scale or 2.5, window = window,
        gate = dims.gate or "head", heads_of = heads_of, ctx = dims.ctx or 4096,
        n_rot = dims.n_rot or dims.head_dim // 2, n_rot_swa = dims.n_rot_swa or dims.head_dim, rope_base = dims.rope_base or 500000.0,
        rope_base_swa = dims.rope_base_swa or 10000.0, yarn = dims.yarn, logit_std = dims.logit_std or 3.0,
        tied = dims.tied or false, layers = get(opts, "layers", dims.layers), types = get(opts, "types", dims.types),
      }
      d.dense = math.min(dims.dense, d.layers)
      return { keys = keys_of(d, opts), tensors = tensors_of(d) }
    end,
  }
end

return M
