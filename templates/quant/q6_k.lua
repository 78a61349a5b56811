-- Q6_K: w = (d * sc) * (q - 32), q of 6 bits; sc a signed byte for each 16 elements.
local M = {}

M.type = "q6_k"
M.qblock_elems = 256
M.qblock_bytes = 210
M.kind = "int"
M.planes = {
  { name = "ql", src_offset = 0, n_bytes = 128, word_bytes = 4, half_scale = 0 },
  { name = "qh", src_offset = 128, n_bytes = 64, word_bytes = 4, half_scale = 0 },
  { name = "sc", src_offset = 192, n_bytes = 16, word_bytes = 1, half_scale = 0 },
  { name = "d", src_offset = 208, n_bytes = 2, word_bytes = 2, half_scale = 1 },
}

return M
