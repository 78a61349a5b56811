-- llama-moe-nvfp4.lua -- a mixture of experts in NVFP4, each matrix of which has a second scale.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-moe-nvfp4", layers = 2, embd = 128, ffn = 192, heads = 4, kv = 2, vocab = 320, types = "nvfp4",
  experts = 8, picks = 3, scales = true,
})
