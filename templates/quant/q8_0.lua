-- Q8_0: w = d * q, q a signed byte.
local M = {}

M.type = "q8_0"
M.qblock_elems = 32
M.qblock_bytes = 34
M.kind = "int"
M.planes = {
  { name = "qs", src_offset = 2, n_bytes = 32, word_bytes = 4, half_scale = 0 },
  { name = "d", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 1 },
}

return M
