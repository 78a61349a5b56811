-- Twice the 16 values of E2M1 (OCP Microscaling Formats 1.0, section 5.3.3), which two FP4 types share; ggml: kvalues_mxfp4.
local M = {}

M.values = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 }

return M
