-- types.lua -- which tensor type each matrix of a synthetic model gets.
-- A mix is a rule of llama-quantize: a default, and better types for the matrices that suffer most;
-- what is no mix is the name of one type for all of them. Rules: llama.cpp's quantisation (GQA 4 or
-- more, no importance matrix, not 8 experts), and of published files of Laguna-S-2.1 what they mix.

-- Layers that get the better type in the "_m" mixes: the first and last eighth, and every third of
-- the others.
local function more_bits(layer, n_layers)
  local eighth = n_layers // 8
  return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
end

local mixes = {}

-- ffn_down, of the experts and of the shared one too.
local function is_down(role) return role:sub(1, 8) == "ffn_down" end

-- The experts' own matrices: "gate", "up", "down"; nil of others.
local function expert_part(role) return role:match("^ffn_(%a+)_exps$") end

function mixes.q4_k_m(role, layer, n_layers)
  local better = role == "attn_v" or is_down(role)
  return better and more_bits(layer, n_layers) and "q6_k" or "q4_k"
end

function mixes.q4_k_s(role, layer, n_layers)
  local better = role == "attn_v" and layer < 4 or is_down(role) and layer < n_layers // 8
  return better and "q5_k" or "q4_k"
end

function mixes.q5_k_m(role, layer, n_layers)
  local better = role == "attn_v" or is_down(role)
  return better and more_bits(layer, n_layers) and "q6_k" or "q5_k"
end

function mixes.q3_k_m(role, layer, n_layers)
  if role == "attn_v" then return layer < 2 and "q5_k" or "q4_k" end
  if is_down(role) then return layer < n_layers // 16 and "q5_k" or "q4_k" end
  return role == "attn_output" and "q4_k" or "q3_k"
end

-- Poolside's own "Q4_K_M": attention in halves. Reported, not verified.
function mixes.q4_k_m_f16(role, layer, n_layers)
  return role:sub(1, 5) == "attn_" and "f16" or mixes.q4_k_m(role, layer, n_layers)
end

-- Experts Q4_K, every other matrix Q8_0.
function mixes.q8_0_q4_k(role)
  return expert_part(role) and "q4_k" or "q8_0"
end

-- A published file whose length this predicts to the byte: experts Q2_K up to layer 20, then Q3_K; the rest Q8_0.
function mixes.routed_q2_k(role, layer)
  if expert_part(role) then return layer <= 20 and "q2_k" or "q3_k" end
  return "q8_0"
end

-- Unsloth's dynamic files; what their listings leave open is as near to them as their sizes tell.
local function ud_large(role, layer, n_layers, gate)
  local part = expert_part(role)
  if part then return (part == "down" or layer == n_layers - 1) and "iq4_xs" or gate end
  return "q8_0"
end

function mixes.ud_q3_k_m(role, layer, n_layers) return ud_large(role, layer, n_layers, "iq3_xxs") end

-- Named after its down matrices: those of gate and up, twice as many, are IQ3_S.
function mixes.ud_iq4_xs(role, layer, n_layers) return ud_large(role, layer, n_layers, "iq3_s") end

local ud_rest = { token_embd = "q5_k", attn_k = "q6_k", attn_v = "q6_k", ffn_down = "q6_k",
  ffn_down_shexp = "q6_k" }

-- m: types of gate and up, of those in the last layer, and of the output.
local function ud_small(role, layer, n_layers, m)
  local part, last = expert_part(role), layer == n_layers - 1
  if part == "down" then return layer >= n_layers - 2 and "iq4_xs" or "iq3_xxs" end
  if part then return last and m.last or m.gate end
  if role == "output" then return m.output end
  local t = get(ud_rest, role, "q5_k")
  if not last or role == "attn_k" or role == "attn_v" then return t end
  return t == "q6_k" and "q8_0" or "q6_k"
end

function mixes.ud_iq2_m(role, layer, n_layers)
  return ud_small(role, layer, n_layers, { gate = "iq2_xxs", last = "iq2_s", output = "q5_k" })
end

function mixes.ud_q2_k_xl(role, layer, n_layers)
  return ud_small(role, layer, n_layers, { gate = "iq2_xs", last = "iq3_xxs", output = "q4_k" })
end

-- Every type with qblocks of up to 32 elements, plain ones beside quantised ones in one product.
local small = { attn_q = "f16", attn_k = "bf16", attn_v = "q5_1", attn_output = "q5_0", ffn_gate = "q4_0",
  ffn_up = "q4_1", ffn_down = "f32", attn_gate = "f32", ffn_gate_exps = "q4_1", ffn_up_exps = "q5_0",
  ffn_down_exps = "q5_1", ffn_gate_shexp = "bf16", ffn_up_shexp = "q4_0" }

function mixes.mixed_32(role)
  return get(small, role, "q8_0")
end

-- Every type with qblocks of 256.
local large = { attn_q = "q5_k", attn_v = "q6_k", ffn_gate = "q5_k", ffn_down = "q6_k", attn_gate = "q8_0",
  ffn_gate_exps = "q5_k", ffn_down_exps = "q6_k" }

function mixes.mixed_k(role)
  return get(large, role, "q4_k")
end

-- The mixes that give the matrix of the logits q6_k.
local stock = { q3_k_m = true, q4_k_s = true, q4_k_m = true, q5_k_m = true, q4_k_m_f16 = true, mixed_k = true }

-- Every type whose codes number entries of a grid.
local grids = { attn_q = "iq2_xxs", attn_k = "iq2_xs", attn_v = "iq3_xxs", attn_output = "iq3_s", ffn_gate = "iq2_s",
  ffn_up = "iq1_s", ffn_down = "iq1_m" }

function mixes.mixed_iq(role)
  return get(grids, role, "iq4_xs")
end

-- What a mix uses instead where a row is not a whole number of 256-element qblocks.
local narrow = { q2_k = "q4_0", q3_k = "q4_0", q4_k = "q5_0", q5_k = "q5_1", q6_k = "q8_0", iq4_xs = "iq4_nl",
  iq1_s = "iq4_nl", iq1_m = "iq4_nl", iq2_xxs = "iq4_nl", iq2_xs = "iq4_nl", iq2_s = "iq4_nl", iq3_xxs = "iq4_nl",
  iq3_s = "iq4_nl" }

local M = {}

-- The type of one matrix: `types` is a mix or a type, `cols` the length of a row, `output` whether
-- the matrix makes the logits (a tied embedding does).
function M.pick(types, role, layer, n_layers, cols, output)
  if not has(mixes, types) then return types end
  local t = mixes[types](role, layer, n_layers)
  if output and has(narrow, t) and has(stock, types) then t = "q6_k" end
  if cols % 256 == 0 or not has(narrow, t) then return t end
  return cols % 32 == 0 and narrow[t] or "f16"
end

return M
