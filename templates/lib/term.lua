-- term.lua -- C text of terms with numbers that are known while text is made, without those that do nothing.
local M = {}

-- Appends an operation with a number, but for the one that changes nothing.
local function unless(idle, operation)
  return function(a, n) return n == idle and a or a .. operation .. n end
end

M.times, M.over = unless(1, " * "), unless(1, " / ")
M.plus, M.minus = unless(0, " + "), unless(0, " - ")

function M.mod(a, n)
  return n == 1 and "0" or a .. " % " .. n
end

-- In parentheses, but for a name or a number.
function M.whole(a)
  return string.find(a, " ", 1, true) and "(" .. a .. ")" or a
end

return M
