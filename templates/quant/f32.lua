-- F32: 32-bit floats as they are.
local M = {}

M.type = "f32"
M.qblock_elems = 1
M.qblock_bytes = 4
M.kind = "float"
M.planes = {
  { name = "w", src_offset = 0, n_bytes = 4, word_bytes = 4, half_scale = 0 },
}

return M
