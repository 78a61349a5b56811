-- Q5_0: w = d * (q - 16), q of 5 bits.
local M = {}

M.type = "q5_0"
M.qblock_elems = 32
M.qblock_bytes = 22
M.kind = "int"
M.planes = {
  { name = "qs", src_offset = 6, n_bytes = 16, word_bytes = 4, half_scale = 0 },
  { name = "qh", src_offset = 2, n_bytes = 4, word_bytes = 4, half_scale = 0 },
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 1 },
}

return M
