-- laguna-odd.lua -- Laguna in odd sizes: a gate for each element, heads of 48 of which 20 turn, 7 experts of which 3
-- are used, a window of 13, two dense layers, the output tied to the embedding.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-odd", layers = 5, embd = 96, head_dim = 48, heads = { 2, 4 }, kv = 2, ffn = 160, dense = 2,
  experts = 7, used = 3, expert_ffn = 96, shared_ffn = 64, vocab = 353, types = "q8_0", window = 13, gate = "element",
  n_rot = 20, n_rot_swa = 48, tied = true, yarn = { factor = 4.0, original = 256, beta_fast = 32.0 },
})
