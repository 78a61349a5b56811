-- llama-linear.lua -- linear rope scaling.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-linear", layers = 2, embd = 64, ffn = 160, heads = 4, kv = 2, vocab = 320, types = "q8_0",
  scaling = { type = "linear", factor = 4.0, original = 1024 },
})
