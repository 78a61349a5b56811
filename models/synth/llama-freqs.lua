-- llama-freqs.lua -- Llama 3.1 in small: rope_freqs.weight, its chat format and splitter.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-freqs", layers = 2, embd = 128, ffn = 352, heads = 4, kv = 1, vocab = 1024, types = "q8_0",
  tokenizer = "llama3", rope_base = 500000.0, ctx = 16384,
  freqs = { factor = 8, low = 1, high = 4, original = 256 },
})
