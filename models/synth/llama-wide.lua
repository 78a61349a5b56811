-- llama-wide.lua -- every row a multiple of 256, for the types with 256-element qblocks; output
-- untied, head width 64 over 2 KV heads.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-wide", layers = 3, embd = 512, ffn = 1280, heads = 8, kv = 2, vocab = 2051, types = "q4_k_m",
  tied = false,
})
