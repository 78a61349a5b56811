-- program/splitter.c.lua: a pre-tokenizer as C: one match function per alternative of its
-- expressions, and `<prefix>split`, which applies the stages. Parameters: the tree of
-- lg_splitter_value, and `prefix`, which goes before every name (empty in programs).

-- Names of classes that are common enough to have one; the others are numbered.
local class_names = {
  ["\\p{L}"] = "letter",
  ["\\p{N}"] = "number",
  ["\\d"] = "digit",
  ["\\s"] = "space",
  ["\\S"] = "not_space",
  [" "] = "blank",
  ["'"] = "quote",
  ["\n"] = "line_feed",
  ["[\\n]"] = "line_feed",
  ["[^\\n]"] = "not_line_feed",
  ["[\\r\\n]"] = "newline",
  ["[^\\s\\p{L}\\p{N}]"] = "symbol",
  ["[^\\r\\n\\p{L}\\p{N}]"] = "opener",
}

-- The letters that a class consists of, or nil.
local function only_letters(cls)
  local letters = ""
  for _, r in ipairs(cls.ranges) do
    local letter = r.first == r.last and r.first < 128 and string.char(r.first) or ""
    letters = letters .. (letter:match("^%w$") or "-")
  end
  local plain = #cls.mask + #cls.except == 0 and not cls.negated and not letters:find("-", 1, true)
  return plain and letters or nil
end

local function class_name(p, index)
  local cls = p.classes[index]
  local letters = only_letters(cls)
  local name = get(class_names, cls.source, letters or "class_" .. index)
  return p.prefix .. "is_" .. name
end

-- Cuts a text into lines of at most 80 bytes, between characters.
local function lines_of(text)
  local lines = {}
  local from = 1
  while #text - from + 1 > 80 do
    local stop = utf8.offset(text, 0, from + 80)
    table.insert(lines, text:sub(from, stop - 1))
    from = stop
  end
  table.insert(lines, text:sub(from))
  return lines
end

-- A comment that shows an expression; long ones are indented below each other.
local function comment(text)
  return "/* " .. join(lines_of(c_comment(text)), "\n * ") .. " */"
end

local function code(n)
  local shown = n > 32 and n < 127 and string.format(" /* %s */", string.char(n)) or ""
  return string.format("0x%X%s", n, shown)
end

local function ranges_text(ranges)
  local rows = {}
  for i = 1, #ranges, 4 do
    local row = {}
    for k = i, math.min(i + 3, #ranges) do
      local r = ranges[k]
      table.insert(row, string.format("{0x%X, 0x%X}", r.first, r.last))
    end
    table.insert(rows, join(row, ", ") .. ",")
  end
  return join(rows, "\n")
end

-- Where a list of ranges stands as a table: with the first class that has the same one. Its second
-- value says whether that is class `index` itself. `part` is "ranges" or "except".
local function table_of(p, index, part)
  local want = ranges_text(p.classes[index][part])
  for i = 1, index do
    for _, k in ipairs({ "ranges", "except" }) do
      local list = p.classes[i][k]
      if #list > (k == "ranges" and 8 or 0) and ranges_text(list) == want then
        return class_name(p, i) .. "_" .. k, i == index and k == part
      end
    end
  end
  return nil, false
end

-- The test of a class: its categories, then its characters.
local function conditions(p, index)
  local cls = p.classes[index]
  local tests = {}
  if #cls.mask > 0 then
    local names = {}
    for _, name in ipairs(cls.mask) do
      table.insert(names, name:sub(1, 6) == "LB_UC_" and name or "LB_UC(" .. name .. ")")
    end
    table.insert(tests, "rt_is(c, " .. join(names, " | ") .. ")")
  end
  if #cls.ranges > 8 then
    table.insert(tests, string.format("rt_in_ranges(c, %s, %d)", (table_of(p, index, "ranges")),
      #cls.ranges))
    return tests
  end
  for _, r in ipairs(cls.ranges) do
    if r.first == r.last then
      table.insert(tests, "rt_code(c) == " .. code(r.first))
    elseif r.first == 0 then
      table.insert(tests, "rt_code(c) <= " .. code(r.last))
    else
      table.insert(tests, string.format("(rt_code(c) >= %s && rt_code(c) <= %s)", code(r.first),
        code(r.last)))
    end
  end
  return tests
end

-- The statement that returns the test; a line holds as many conditions as it has room for.
local function return_test(p, index)
  local tests = conditions(p, index)
  local negated = p.classes[index].negated
  local open, close = "return ", ";"
  if negated and #tests == 1 and tests[1]:find("^rt_code%(c%) == ") then
    tests[1] = tests[1]:gsub("==", "!=")
  elseif negated then
    local call_only = #tests == 1 and not tests[1]:find("=", 1, true)
    open = call_only and "return !" or "return !("
    close = call_only and ";" or ");"
  end
  local lines = {}
  local line = open
  for i, test in ipairs(tests) do
    local piece = test .. (i < #tests and " ||" or close)
    if i > 1 and #line + #piece > 90 then
      table.insert(lines, line)
      line = string.rep(" ", #open) .. piece
    else
      line = line .. (i > 1 and " " or "") .. piece
    end
  end
  table.insert(lines, line)
  return join(lines, "\n")
end

local function call(p, index, at)
  local fn = p.fns[index]
  return p.prefix .. fn.name .. "(t, " .. at .. ", end" .. (fn.uses_runs and ", runs)" or ")")
end

local function is_stage(p, index)
  for _, stage in ipairs(p.stages) do
    if stage.fn == index then
      return true
    end
  end
  return false
end

-- Whether the function reads characters at all.
local function reads(fn)
  if has(fn, "choices") then
    return true
  end
  for _, op in ipairs(fn.ops) do
    if op.kind ~= "end" then
      return true
    end
  end
  return false
end

local function parameters(p, index)
  local fn = p.fns[index]
  local runs = (fn.uses_runs or is_stage(p, index)) and ", rt_split_run *runs" or ""
  return "const rt_char *t, size_t at, size_t end" .. runs
end

%%template choices(p, fn)
size_t stop = ${call(p, fn.choices[1], "at")};
% for i = 2, #fn.choices do
if (stop == RT_SPLIT_NONE) {
    stop = ${call(p, fn.choices[i], "at")};
}
% end
return stop;
%%template run(p, op)
% local is = class_name(p, op.cls)
% local max = get(op, "max", 0)
% if op.min == 1 then
if (at == end || !${is}(t[at])) {
    return RT_SPLIT_NONE;
}
at++;
% end
% if max == 0 and op.min <= 1 then
while (at < end && ${is}(t[at])) {
    at++;
}
% elseif max == 1 and op.min == 0 then
if (at < end && ${is}(t[at])) {
    at++;
}
% elseif max ~= 1 then
${module.count(is, op, max)}
% end
%%template count(is, op, max)
% local more = max == 0 and "" or " && n < " .. max - (op.min == 1 and 1 or 0)
{
    size_t n = 0;
    for (; at < end${more} && ${is}(t[at]); n++) {
        at++;
    }
% if op.min > 1 then
    if (n < ${op.min}) {
        return RT_SPLIT_NONE;
    }
% end
}
%%template read_run(p, op)
% local is = class_name(p, op.cls)
size_t stop = rt_run_skip(&runs[${op.run}], at);
while (stop < end && ${is}(t[stop])) {
    stop = rt_run_skip(&runs[${op.run}], stop + 1);
}
%%template steps(p, op)
${module.read_run(p, op)}
rt_run_enter(&runs[${op.run}], at, stop);
stop -= (stop - at) % ${op.min};
% if not op.may_be_none then
if (stop == at) {
    return RT_SPLIT_NONE;
}
% end
at = stop;
%%template next_is(p, op)
% if op.negative then
if (at < end && ${class_name(p, op.cls)}(t[at])) {
% else
if (at == end || !${class_name(p, op.cls)}(t[at])) {
% end
    return RT_SPLIT_NONE;
}
%%template segment_end()
if (at != end) {
    return RT_SPLIT_NONE;
}
%%template look(p, op)
if (${call(p, op.fn, "at")} ${op.negative and "!=" or "=="} RT_SPLIT_NONE) {
    return RT_SPLIT_NONE;
}
%%template repeat_fn(p, op)
% local max = get(op, "max", 0)
% if max == 1 then
{
    size_t stop = ${call(p, op.fn, "at")};
% if op.min == 1 then
    if (stop == RT_SPLIT_NONE) {
        return RT_SPLIT_NONE;
    }
    at = stop;
% else
    if (stop != RT_SPLIT_NONE) {
        at = stop;
    }
% end
}
% else
for (size_t n = 0;${max == 0 and "" or " n < " .. max}; n++) {
    size_t stop = ${call(p, op.fn, "at")};
% if op.min > 0 then
    if (stop == RT_SPLIT_NONE && n < ${op.min}) {
        return RT_SPLIT_NONE;
    }
% end
    if (stop == RT_SPLIT_NONE || stop == at) {
        break;
    }
    at = stop;
}
% end
%%template give_back(p, op)
% local is = class_name(p, op.cls)
% local max = get(op, "max", 0)
% local least = op.min == 0 and "at" or "at + " .. op.min
% if has(op, "run") then
${module.read_run(p, op)}
for (stop = rt_run_enter(&runs[${op.run}], at, stop); stop > ${least}; stop--) {
% else
size_t stop = at;
while (stop < end && ${max == 0 and "" or "stop - at < " .. max .. " && "}${is}(t[stop])) {
    stop++;
}
for (stop++; stop > ${least}; stop--) {
% end
    size_t rest = ${call(p, op.fn, "stop - 1")};
    if (rest != RT_SPLIT_NONE) {
        return rest;
    }
% if has(op, "run") then
    rt_run_fail(&runs[${op.run}], stop - 1);
% end
}
return RT_SPLIT_NONE;
%%lua
local function op_text(p, op)
  local kinds = {
    run = module.run, steps = module.steps, next = module.next_is, look = module.look,
    ["repeat"] = module.repeat_fn, give_back = module.give_back,
  }
  if op.kind == "end" then
    return module.segment_end()
  end
  return kinds[op.kind](p, op)
end

local function is_single(op)
  return op.kind == "run" and op.min == 1 and get(op, "max", 0) == 1
end

-- The tests of `n` characters in a row, from ops[from] on.
local function singles_text(p, ops, from, n)
  local lines = {}
  local line = "if (end - at < " .. n
  for i = 0, n - 1 do
    local at = i == 0 and "at" or "at + " .. i
    local piece = " || !" .. class_name(p, ops[from + i].cls) .. "(t[" .. at .. "])"
    if #line + #piece > 86 then
      table.insert(lines, line .. " ||")
      line, piece = "   ", piece:sub(4)
    end
    line = line .. piece
  end
  table.insert(lines, line .. ") {\n    return RT_SPLIT_NONE;\n}\nat += " .. n .. ";")
  return join(lines, "\n")
end

local function body(p, fn)
  if has(fn, "choices") then
    return module.choices(p, fn)
  end
  local parts = {}
  local i = 1
  while i <= #fn.ops do
    local n = 0
    while i + n <= #fn.ops and is_single(fn.ops[i + n]) do
      n = n + 1
    end
    table.insert(parts, n > 1 and singles_text(p, fn.ops, i, n) or op_text(p, fn.ops[i]))
    i = i + math.max(n, 1)
  end
  if fn.ops[#fn.ops].kind ~= "give_back" then
    table.insert(parts, "return at;")
  end
  return join(parts, "\n")
end
%%template class(p, index)
% local cls = p.classes[index]
% for _, part in ipairs({ "ranges", "except" }) do
% local name, own = table_of(p, index, part)
% if own then
static const uint32_t ${name}[][2] = {
    ${ranges_text(cls[part])}
};
% end
% end
${comment(cls.source)}
static bool ${class_name(p, index)}(rt_char c) {
% if #cls.except > 0 then
    if (rt_in_ranges(c, ${(table_of(p, index, "except"))}, ${#cls.except})) {
        return false;
    }
% end
    ${return_test(p, index)}
}
%%template fn(p, index)
% local fn = p.fns[index]
${comment(fn.source)}
static size_t ${p.prefix}${fn.name}(${parameters(p, index)}) {
% if is_stage(p, index) and not fn.uses_runs then
    (void)runs;
% end
% if not reads(fn) then
    (void)t;
% end
    ${body(p, fn)}
}
%%template
% for i = 1, #classes do
${module.class(params, i)}

% end
% for i = 1, #fns do
${module.fn(params, i)}

% end
/* Pre-tokenizer '${c_comment(name)}'. */
static void ${prefix}split(rt_char *t, size_t n) {
% for _, stage in ipairs(stages) do
    rt_split_stage(t, n, ${prefix}${fns[stage.fn].name});
% end
}
