-- laguna-s-1m.lua -- laguna-s with the context of its published config: 1,048,576 positions, YaRN 128.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-s-1m", layers = 48, embd = 3072, head_dim = 128, heads = { 48, 72 }, kv = 8, ffn = 12288, dense = 1,
  experts = 256, used = 10, expert_ffn = 1024, vocab = 100352, types = "q4_k_m", window = 512, ctx = 1048576,
  yarn = { factor = 128.0, original = 8192, beta_fast = 32.0 },
})
