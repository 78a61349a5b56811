-- llama-spm.lua -- an SPM vocabulary; biases on every projection.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-spm", layers = 2, embd = 96, ffn = 256, heads = 6, kv = 6, vocab = 1009, types = "q8_0",
  tokenizer = "spm", bias = true, tied = false,
})
