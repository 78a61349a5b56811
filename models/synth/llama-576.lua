-- llama-576.lua -- SmolLM2's widths and a vocabulary of odd size: no row is a multiple of 256 wide
-- except those of ffn_down, no matrix but the vocabulary's has a ragged last strip.
local llama = import("lib/llama.lua")

return llama.recipe({
  name = "llama-576", layers = 3, embd = 576, ffn = 1536, heads = 9, kv = 3, vocab = 32001, types = "q4_1",
  rope_base = 100000.0,
})
