-- laguna-w64.lua -- Laguna in small with a window of 64: 8 layers, 12 experts of which 4 are used; every row a multiple
-- of 256, for the types with 256-element qblocks.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-w64", layers = 8, embd = 256, head_dim = 64, heads = { 4, 8 }, kv = 2, ffn = 512, dense = 1,
  experts = 12, used = 4, expert_ffn = 256, vocab = 1031, types = "q4_k_m", window = 64,
  yarn = { factor = 32.0, original = 128, beta_fast = 32.0 },
})
