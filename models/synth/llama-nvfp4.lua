-- llama-nvfp4.lua -- NVFP4 with a second scale beside each matrix.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-nvfp4", layers = 2, embd = 128, ffn = 320, heads = 4, kv = 2, vocab = 320, types = "nvfp4",
  scales = true,
})
