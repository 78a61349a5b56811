-- laguna-w8.lua -- Laguna in small with a window of 8: one dense layer, 16 experts of which 10 are used.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-w8", layers = 3, embd = 256, head_dim = 64, heads = { 2, 3 }, kv = 1, ffn = 512, dense = 1,
  experts = 16, used = 10, expert_ffn = 256, vocab = 337, types = "q4_k_m", window = 8,
  yarn = { factor = 32.0, original = 64, beta_fast = 64.0 },
})
