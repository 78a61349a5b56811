-- The 16 levels that two IQ4 types share, as ggml names them: kvalues_iq4nl. tests/kernel/test_books.py checks them against
-- their published digest.
local M = {}

M.values = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 }

return M
