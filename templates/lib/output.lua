-- output.lua -- how models spell reasoning and calls: the formats that runtime/chat/output.h reads.
-- A recipe names one, or gives a table of its own; without a recipe the chat template's text tells.
local M = {}

local BAR, BLOCK = "\u{FF5C}", "\u{2581}"

local function deepseek(word)
  return "<" .. BAR .. "tool" .. BLOCK .. word .. BAR .. ">"
end

-- Fields as in rt_output_format; form without RT_CALLS_.
M.formats = {
  plain = { form = "NONE" },
  laguna = {
    form = "KEYS", call_begin = "<tool_call>", call_end = "</tool_call>",
    key_begin = "<arg_key>", key_end = "</arg_key>",
    value_begin = "<arg_value>", value_end = "</arg_value>",
    turn_end = "</assistant>",
  },
  hermes = { form = "JSON", call_begin = "<tool_call>", call_end = "</tool_call>" },
  llama3 = { form = "BARE", call_begin = "<|python_tag|>", arguments_key = "parameters" },
  channels = { form = "CHANNELS" },
  deepseek = {
    form = "NAMED", calls_begin = deepseek("calls" .. BLOCK .. "begin"),
    calls_end = deepseek("calls" .. BLOCK .. "end"),
    call_begin = deepseek("call" .. BLOCK .. "begin"), call_end = deepseek("call" .. BLOCK .. "end"),
    separator = deepseek("sep"),
  },
}

M.fields = {
  "think_begin", "think_end", "call_begin", "call_end", "calls_begin", "calls_end", "separator",
  "key_begin", "key_end", "value_begin", "value_end", "arguments_key", "turn_end",
}

-- The first mark that the template has decides.
local MARKS = {
  { "<|channel|>", "channels" },
  { "<arg_key>", "laguna" },
  { "tool" .. BLOCK .. "calls" .. BLOCK .. "begin", "deepseek" },
  { "<tool_call>", "hermes" },
  { "<|python_tag|>", "llama3" },
  { '"parameters": ', "llama3" },
}

local function has(source, mark)
  return source:find(mark, 1, true) ~= nil
end

local function guess(source)
  for _, m in ipairs(MARKS) do
    if has(source, m[1]) then return m[2] end
  end
  return "plain"
end

-- Markers that may be looked for at one time must not begin with each other.
local function check(f)
  assert(f.form, "output format: form is missing")
  local markers = {}
  for _, field in ipairs(M.fields) do
    local v = f[field]
    if v and field ~= "arguments_key" then
      assert(#v > 0 and #v <= 48, "output format: " .. field .. " must have 1 to 48 bytes")
      markers[#markers + 1] = { field, v }
    end
  end
  for _, a in ipairs(markers) do
    for _, b in ipairs(markers) do
      assert(a == b or b[2]:sub(1, #a[2]) ~= a[2],
        "output format: " .. b[1] .. " begins with " .. a[1])
    end
  end
  return f
end

-- The format for a model: `recipe` is a format's name, a table, or false; `source` its chat template.
function M.resolve(recipe, source)
  local f = {}
  local name = type(recipe) == "string" and recipe or not recipe and guess(source) or "recipe"
  local from = type(recipe) == "table" and recipe or M.formats[name]
  assert(from, "output format '" .. name .. "' is not known")
  for field, value in sorted_pairs(from) do f[field] = value end
  f.name = name
  if f.form ~= "CHANNELS" and type(recipe) ~= "table" and has(source, "</think>") then
    f.think_begin, f.think_end = "<think>", "</think>"
  end
  if f.turn_end and not has(source, f.turn_end) then f.turn_end = nil end
  return check(f)
end

return M
