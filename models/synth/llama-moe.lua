-- llama-moe.lua -- a small mixture of experts as Mixtral is one: 32 experts, 3 picks, narrower than an atom.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-moe", layers = 2, embd = 96, ffn = 160, heads = 4, kv = 2, head_dim = 32, vocab = 320, types = "q8_0",
  experts = 32, picks = 3,
})
