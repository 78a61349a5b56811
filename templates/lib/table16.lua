-- table16.lua -- a table of signed bytes as text: an initialiser for C, words for CUDA.
local M = {}

-- "1, 2, .."; `plus` is added to each.
function M.bytes(values, plus)
  local list = {}
  for i, v in ipairs(values) do list[i] = v + plus end
  return join(list, ", ")
end

-- "0x.., 0x.., 0x.., 0x..": bytes 0..3 in the first word, lowest first.
function M.words(values)
  local list = {}
  for w = 0, #values // 4 - 1 do
    local word = 0
    for b = 0, 3 do word = word | (values[4 * w + b + 1] & 255) << 8 * b end
    list[w + 1] = string.format("0x%08xu", word)
  end
  return join(list, ", ")
end

return M
