-- F16: IEEE halves.
local M = {}

M.type = "f16"
M.qblock_elems = 1
M.qblock_bytes = 2
M.kind = "float"
M.planes = {
  { name = "w", src_offset = 0, n_bytes = 2, word_bytes = 2, half_scale = 0 },
}

return M
