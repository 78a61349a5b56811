-- laguna-dense.lua -- Laguna's attention without experts: all layers are leading dense ones; two layers see all
-- positions, four a window of 8.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-dense", layers = 6, embd = 128, head_dim = 32, heads = { 4, 6 }, kv = 2, ffn = 352, dense = 512,
  experts = 4, used = 2, expert_ffn = 64, vocab = 331, types = "q8_0", window = 8,
  yarn = { factor = 32.0, original = 64, beta_fast = 64.0 },
})
