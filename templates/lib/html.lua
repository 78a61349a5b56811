-- html.lua: text that is safe in HTML, whatever bytes a model file holds.
local M = {}

local NAMED = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function as_hex(bytes)
  return (string.gsub(bytes, ".", function(c) return string.format("\\x%02x", string.byte(c)) end))
end

-- For element content and for quoted attributes. Bytes that are no UTF-8, control characters and those that turn the
-- direction of writing are spelled out: a page shows what a name is, not what it would do.
function M.text(s)
  if not utf8.len(s) then
    s = string.gsub(s, "[\x80-\xff]", as_hex)
  end
  s = string.gsub(s, "[%c\x7f]", as_hex)
  s = string.gsub(s, "\xc2[\x80-\x9f]", as_hex)
  s = string.gsub(s, "\xe2\x80[\x8b-\x8f\xaa-\xae]", as_hex)
  s = string.gsub(s, "\xe2\x81[\xa6-\xa9]", as_hex)
  return (string.gsub(s, "[&<>\"']", NAMED))
end

-- 1234567 as "1 234 567", with narrow spaces.
function M.number(n)
  local s, count = string.format("%d", n), 1
  while count > 0 do
    s, count = string.gsub(s, "^(%d+)(%d%d%d)", "%1&#8239;%2")
  end
  return s
end

return M
