-- llama-70b.lua -- Llama 3 70B's sizes, meant for --header-only: 69.8 GiB, and 66.4 GiB with
-- --layers 76.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-70b", layers = 80, embd = 8192, ffn = 28672, heads = 64, kv = 8, vocab = 128256, types = "q8_0",
  tied = false, tokenizer = "llama3", rope_base = 500000.0, ctx = 131072,
  freqs = { factor = 8, low = 1, high = 4, original = 8192 },
})
