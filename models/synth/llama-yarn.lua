-- llama-yarn.lua -- YaRN rope scaling.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-yarn", layers = 2, embd = 128, ffn = 352, heads = 2, kv = 1, vocab = 320, types = "q8_0",
  rope_base = 500000.0, scaling = { type = "yarn", factor = 8.0, original = 512 },
})
