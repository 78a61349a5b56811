-- name.lua -- symbols of emitted kernels; nothing else makes one.
--
--   k_<family>_<wtype>_<atype>__<dims>
--     family  template name
--     wtype   weight types joined by _, once if all parts have the same, "none" without weights
--     atype   q8, f32 or q8f32: what the activations are
--     dims    every literal that changes the arithmetic, joined by x: two ops with equal symbols are
--             the same kernel, two with different arithmetic never share one.
-- Real numbers enter dims as the hex digits of their bits (f32: 8, f64 lists: an FNV-1a hash).
local M = {}

function M.kernel(family, wtypes, atype, dims)
  local same = #wtypes > 0
  for _, t in ipairs(wtypes) do same = same and t == wtypes[1] end
  local w = same and wtypes[1] or #wtypes == 0 and "none" or table.concat(wtypes, "_")
  local d = {}
  for i, v in ipairs(dims) do d[i] = tostring(v) end
  return "k_" .. family .. "_" .. w .. "_" .. atype .. "__" .. table.concat(d, "x")
end

-- The bits of a float rounded to f32, as 8 hex digits.
function M.f32_bits(v)
  return string.format("%08x", (string.unpack("<I4", string.pack("<f", v))))
end

-- FNV-1a over the bytes of a list of doubles, 16 hex digits: for tables too long to spell out.
function M.f64_hash(list)
  local h = 0xcbf29ce484222325
  for _, v in ipairs(list) do
    for _, b in ipairs({ string.byte(string.pack("<d", v), 1, 8) }) do
      h = (h ~ b) * 0x100000001b3
    end
  end
  return string.format("%016x", h)
end

return M
