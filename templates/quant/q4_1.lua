-- Q4_1: w = d * q + m, q of 4 bits.
local M = {}

M.type = "q4_1"
M.qblock_elems = 32
M.qblock_bytes = 20
M.kind = "int"
M.planes = {
  { name = "qs", src_offset = 4, n_bytes = 16, word_bytes = 4, half_scale = 0 },
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 1 },
  { name = "m", src_offset = 2, n_bytes = 2, word_bytes = 2, half_scale = 1 },
}

return M
