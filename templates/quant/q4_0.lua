-- Q4_0: w = d * (q - 8), q of 4 bits.
local M = {}

M.type = "q4_0"
M.qblock_elems = 32
M.qblock_bytes = 18
M.kind = "int"
M.planes = {
  { name = "qs", src_offset = 2, n_bytes = 16, word_bytes = 4, half_scale = 0 },
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 1 },
}

return M
