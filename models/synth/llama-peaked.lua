-- llama-peaked.lua -- far-apart logits: greedy text does not hang on rounding.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-peaked", layers = 2, embd = 64, ffn = 160, heads = 4, kv = 2, vocab = 320, types = "q8_0",
  logit_std = 24.0, tied = false,
})
