-- steps.lua -- groups a step's launches for emission: layers with the same kernels share one function.
--
-- plan(launches) takes the generator's list (each: kernel, layer, label, when, args = { { param, ctype,
-- arena, offset, what } }) and returns { before, classes, layers, after, picks }:
--   before, after  launches outside the layers
--   picks          those behind them that choose tokens
--   classes        { letter, launches, fields }: fields are the arguments whose offset differs
--   layers         per layer { class, offsets } in the order of the class's fields

local M = {}

-- Layers come in order, without a gap, and nothing outside them between two: the verifier has seen
-- to it, and a launch that found no group here would be lost.
local function by_layer(launches)
  local before, layers, after, picks = {}, {}, {}, {}
  for _, l in ipairs(launches) do
    if l.family == "sample" then
      table.insert(picks, l)
    elseif #picks > 0 then
      fail("launch '" .. l.label .. "' stands behind those that choose tokens")
    elseif l.layer >= 0 then
      if #after > 0 or l.layer > #layers or l.layer < #layers - 1 then
        fail("launch '" .. l.label .. "' of layer " .. l.layer .. " is out of order")
      end
      layers[l.layer + 1] = layers[l.layer + 1] or {}
      table.insert(layers[l.layer + 1], l)
    elseif #layers == 0 then
      table.insert(before, l)
    else
      table.insert(after, l)
    end
  end
  return before, layers, after, picks
end

-- Two layers are of one class if they run the same kernels on the same arenas in the same order.
local function signature(launches)
  local parts = {}
  for _, l in ipairs(launches) do
    parts[#parts + 1] = l.kernel .. "?" .. l.when
    for _, a in ipairs(l.args) do
      parts[#parts + 1] = a.param .. "@" .. a.arena
    end
  end
  return join(parts, ";")
end

-- The arguments of a class whose offsets are not the same in all its layers, with unique names.
local function varying(members)
  local fields, used = {}, {}
  for i, l in ipairs(members[1]) do
    for j, a in ipairs(l.args) do
      local same = true
      for _, other in ipairs(members) do
        same = same and other[i].args[j].offset == a.offset
      end
      if not same then
        local name, n = a.what, 2
        while used[name] do
          name, n = a.what .. "_" .. n, n + 1
        end
        used[name] = true
        fields[#fields + 1] = { name = name, launch = i, arg = j }
      end
    end
  end
  return fields
end

-- a, b, ... z, a2, b2, ...
local function letter(i)
  local round = (i - 1) // 26
  local at = (i - 1) % 26 + 1
  return string.sub("abcdefghijklmnopqrstuvwxyz", at, at) .. (round > 0 and tostring(round + 1) or "")
end

function M.plan(launches)
  local before, layers, after, picks = by_layer(launches)
  local order, members = {}, {}
  for _, layer in ipairs(layers) do
    local s = signature(layer)
    if members[s] == nil then
      members[s] = {}
      order[#order + 1] = s
    end
    table.insert(members[s], layer)
  end
  local classes, class_of = {}, {}
  for i, s in ipairs(order) do
    classes[i] = { letter = letter(i), launches = members[s][1], fields = varying(members[s]) }
    class_of[s] = classes[i]
  end
  local rows = {}
  for i, layer in ipairs(layers) do
    local class = class_of[signature(layer)]
    local offsets = {}
    for k, f in ipairs(class.fields) do
      offsets[k] = layer[f.launch].args[f.arg].offset
    end
    rows[i] = { class = class, offsets = offsets }
  end
  return { before = before, classes = classes, layers = rows, after = after, picks = picks }
end

-- C text of argument `a`: a place in an arena, or the layer's own (`field`).
function M.argument(a, field)
  if field then
    return "(" .. a.ctype .. ")(w->" .. a.arena .. " + o->" .. field .. ")"
  end
  return "(" .. a.ctype .. ")(w->" .. a.arena .. " + " .. a.offset .. ")"
end

-- C text of a launch's call, inside the condition under which it takes place: `rows` is C text, `few` the most
-- rows of a step of few, `prompt` C text for its rows of prompts where those take other ways (nil elsewhere).
function M.conditional(l, rows, few, prompt, text)
  if l.when == "any" then return text end
  local is_few = l.when == "few"
  local condition = rows .. (is_few and " <= " or " > ") .. few
  if prompt then condition = condition .. (is_few and " && " .. prompt .. " == 0" or " || " .. prompt .. " > 0") end
  return "if (" .. condition .. ") {\n" .. indent(text, 4) .. "\n}"
end

-- The field's name for argument j of launch i in a class, or nil if it is the same in all layers.
function M.field(class, i, j)
  for _, f in ipairs(class.fields) do
    if f.launch == i and f.arg == j then
      return f.name
    end
  end
  return nil
end

return M
