-- laguna-m1-like.lua -- a Laguna shaped like M.1, not M.1: 70 layers that all see all positions, a gate for each
-- element, 16 of 256 experts, three dense layers. Width, dense and expert widths, scale and rotary base of the real
-- model are not known here; a program takes them from the file.
local laguna = import("lib/laguna.lua")

return laguna.recipe({
  name = "laguna-m1-like", layers = 70, embd = 4096, head_dim = 128, heads = { 64, 64 }, kv = 8, ffn = 16384, dense = 3,
  experts = 256, used = 16, expert_ffn = 1024, vocab = 100352, types = "q4_k_m", gate = "element", n_rot = 128,
  ctx = 262144,
})
