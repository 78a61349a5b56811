-- name.lua -- symbols of emitted kernels; nothing else makes one.
--
--   k_<family>_<wtype>_<atype>__<dims>
--     family  template name
--     wtype   weight types joined by _, once if all parts have the same, "none" without weights
--     atype   q8, f32 or q8f32: what the activations are
--     dims    every literal that changes the arithmetic, joined by x: two ops with equal symbols
--             are the same kernel, two with different arithmetic never share one.
-- Real numbers enter dims exactly: f32 spelled out, lists of f64 as a hash.
local M = {}

function M.kernel(family, wtypes, atype, dims)
  local same = #wtypes > 0
  for _, t in ipairs(wtypes) do same = same and t == wtypes[1] end
  local w = same and wtypes[1] or #wtypes == 0 and "none" or join(wtypes, "_")
  local d = {}
  for i, v in ipairs(dims) do d[i] = tostring(v) end
  return "k_" .. family .. "_" .. w .. "_" .. atype .. "__" .. join(d, "x")
end

-- A float rounded to f32, spelled exactly: its hex form without signs and points.
function M.f32(v)
  local s = hexfloat(v):gsub("[^%x%-p]", ""):gsub("%-", "m"):gsub("f$", "")
  return s
end

-- FNV-1a over the exact spelling of a list of doubles: for tables too long to spell out.
function M.f64_hash(list)
  local h = 0xcbf29ce484222325
  for _, v in ipairs(list) do
    for _, b in ipairs({ string.byte(hexfloat(v, "f64"), 1, -1) }) do
      h = (h ~ b) * 0x100000001b3
    end
  end
  return string.format("%016x", h)
end

return M
