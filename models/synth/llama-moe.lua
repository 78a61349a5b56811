-- llama-moe.lua -- a small mixture of experts as Mixtral is one: 8 experts, 3 picks, widths of no whole atom or tile.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-moe", layers = 2, embd = 64, ffn = 96, heads = 4, kv = 2, vocab = 320, types = "q8_0", experts = 8,
  picks = 3,
})
