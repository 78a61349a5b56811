-- laguna-xs.lua -- Laguna-XS-2.1's sizes (33.4 billion weights).
-- Source: its published config: 40 layers, window 512, YaRN 32 over 8192 positions.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-xs", layers = 40, embd = 2048, head_dim = 128, heads = { 48, 64 }, kv = 8, ffn = 8192, dense = 1,
  experts = 256, used = 8, expert_ffn = 512, vocab = 100352, types = "q4_k_m", window = 512, ctx = 262144,
  yarn = { factor = 32.0, original = 8192, beta_fast = 64.0 },
})
