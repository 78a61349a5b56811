-- llama-tiny.lua -- the smallest model that has every part: seconds for anything.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-tiny", layers = 2, embd = 64, ffn = 160, heads = 4, kv = 2, vocab = 320, types = "q8_0",
})
