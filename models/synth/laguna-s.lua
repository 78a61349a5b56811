-- laguna-s.lua -- Laguna-S-2.1's sizes (117.6 billion weights), meant for --header-only: 66.3 GiB as q4_k_m.
-- Source: its published config, with YaRN as in the files for 262,144 positions.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-s", layers = 48, embd = 3072, head_dim = 128, heads = { 48, 72 }, kv = 8, ffn = 12288, dense = 1,
  experts = 256, used = 10, expert_ffn = 1024, vocab = 100352, types = "q4_k_m", window = 512, ctx = 262144,
  yarn = { factor = 32.0, original = 8192, beta_fast = 32.0 },
})
