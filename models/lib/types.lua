-- types.lua -- which tensor type each matrix of a synthetic model gets.
-- A mix is a rule of llama-quantize: a default, and better types for the matrices that suffer most;
-- what is no mix is the name of one type for all of them. Rules: llama.cpp's quantisation of dense
-- models (GQA 4 or more, no importance matrix).

-- Layers that get the better type in the "_m" mixes: the first and last eighth, and every third of
-- the others.
local function more_bits(layer, n_layers)
  local eighth = n_layers // 8
  return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
end

local mixes = {}

function mixes.q4_k_m(role, layer, n_layers)
  local better = role == "attn_v" or role == "ffn_down"
  return better and more_bits(layer, n_layers) and "q6_k" or "q4_k"
end

function mixes.q4_k_s(role, layer, n_layers)
  local better = role == "attn_v" and layer < 4 or role == "ffn_down" and layer < n_layers // 8
  return better and "q5_k" or "q4_k"
end

function mixes.q5_k_m(role, layer, n_layers)
  local better = role == "attn_v" or role == "ffn_down"
  return better and more_bits(layer, n_layers) and "q6_k" or "q5_k"
end

function mixes.q3_k_m(role, layer, n_layers)
  if role == "attn_v" then return layer < 2 and "q5_k" or "q4_k" end
  if role == "ffn_down" then return layer < n_layers // 16 and "q5_k" or "q4_k" end
  return role == "attn_output" and "q4_k" or "q3_k"
end

-- Every type with qblocks of up to 32 elements, plain ones beside quantised ones in one product.
local small = { attn_q = "f16", attn_k = "bf16", attn_v = "q5_1", attn_output = "q5_0", ffn_gate = "q4_0",
  ffn_up = "q4_1", ffn_down = "f32" }

function mixes.mixed_32(role)
  return get(small, role, "q8_0")
end

-- Every type with qblocks of 256.
local large = { attn_q = "q5_k", attn_v = "q6_k", ffn_gate = "q5_k", ffn_down = "q6_k" }

function mixes.mixed_k(role)
  return get(large, role, "q4_k")
end

-- What a mix uses instead where a row is not a whole number of 256-element qblocks.
local narrow = { q3_k = "q4_0", q4_k = "q5_0", q5_k = "q5_1", q6_k = "q8_0" }

local M = {}

-- The type of one matrix: `types` is a mix or a type, `cols` the length of a row, `output` whether
-- the matrix makes the logits (a tied embedding does).
function M.pick(types, role, layer, n_layers, cols, output)
  if not has(mixes, types) then return types end
  local t = mixes[types](role, layer, n_layers)
  if output and has(narrow, t) then t = "q6_k" end
  if cols % 256 == 0 or not has(narrow, t) then return t end
  return cols % 32 == 0 and narrow[t] or "f16"
end

return M
