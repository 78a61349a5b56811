-- term.lua -- C text of terms with numbers that are known while text is made, without those that do nothing.
local M = {}

function M.times(a, n)
  return n == 1 and a or a .. " * " .. n
end

function M.plus(a, n)
  return n == 0 and a or a .. " + " .. n
end

function M.minus(a, n)
  return n == 0 and a or a .. " - " .. n
end

function M.over(a, n)
  return n == 1 and a or a .. " / " .. n
end

function M.mod(a, n)
  return n == 1 and "0" or a .. " % " .. n
end

-- In parentheses, but for a name or a number.
function M.whole(a)
  return string.find(a, " ", 1, true) and "(" .. a .. ")" or a
end

return M
