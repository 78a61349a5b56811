-- Q4_K: w = (d * sc) * q - dmin * m, q of 4 bits; sc and m of 6 bits for each 32 elements.
local M = {}

M.type = "q4_k"
M.qblock_elems = 256
M.qblock_bytes = 144
M.kind = "int"
M.planes = {
  { name = "qs", src_offset = 16, n_bytes = 128, word_bytes = 4, half_scale = 0 },
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 1 },
  { name = "dmin", src_offset = 2, n_bytes = 2, word_bytes = 2, half_scale = 1 },
  { name = "s", src_offset = 4, n_bytes = 12, word_bytes = 1, half_scale = 0 },
}

return M
