-- tokenizer.lua -- small synthetic vocabularies of any size: byte-level BPE and SPM.
-- Merged tokens grow letter by letter from a space or a letter, in order of length, so that every
-- text is a sequence of known pieces and every piece has exactly one last merge.

local letters = "etaoinshrdlucmfwygpbvkxjqz"

local chatml = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + " ..
  "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}" ..
  "{{ '<|im_start|>assistant\n' }}{% endif %}"

local llama3 = "{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + " ..
  "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}" ..
  "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"

-- Calls add(prefix, letter) for `n` merges, shortest tokens first. `space` is how the vocabulary
-- writes a space.
local function grow(space, n, add)
  local row = { space }
  for c in letters:gmatch(".") do table.insert(row, c) end
  while n > 0 do
    local longer = {}
    for _, prefix in ipairs(row) do
      for c in letters:gmatch(".") do
        if n == 0 then return end
        add(prefix, c)
        table.insert(longer, prefix .. c)
        n = n - 1
      end
    end
    row = longer
  end
end

-- The characters that stand for bytes 0..255 in byte-level BPE: printable ones for themselves, the
-- others for code points from 256 on (openai/gpt-2, encoder.py, bytes_to_unicode).
local function byte_characters()
  local shown, hidden = {}, {}
  for b = 0, 255 do
    local plain = b >= 0x21 and b <= 0x7E or b >= 0xA1 and b <= 0xAC or b >= 0xAE
    if plain then table.insert(shown, utf8.char(b))
    else table.insert(hidden, utf8.char(256 + #hidden)) end
  end
  for _, c in ipairs(hidden) do table.insert(shown, c) end
  return shown
end

local function key(name, kind, value)
  return { key = "tokenizer." .. name, type = kind, value = value }
end

-- A short form of Laguna's messages: with or without thinking, without tools.
local laguna = "〈|EOS|〉{% for message in messages %}{{ '<' + message['role'] + '>' }}" ..
  "{% if message['role'] == 'assistant' %}{{ '</think>' }}{% endif %}" ..
  "{{ message['content'] + '</' + message['role'] + '>\n' }}{% endfor %}" ..
  "{% if add_generation_prompt %}{{ '<assistant>' + ('<think>' if enable_thinking else '</think>') }}{% endif %}"

local laguna_marks = { "<system>", "</system>", "<user>", "</user>", "<assistant>", "<think>", "</think>",
  "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_response>" }

-- Control tokens of Laguna's vocabulary where their numbers are known: 2, 9 and 24; the message marks fill 10..23.
local function laguna_control()
  local list = {}
  for i = 0, 9 do
    table.insert(list, i == 2 and "〈|EOS|〉" or i == 9 and "〈|PAD|〉" or "〈|SPECIAL_" .. i .. "|〉")
  end
  for _, mark in ipairs(laguna_marks) do table.insert(list, mark) end
  table.insert(list, "</assistant>")
  return list
end

local styles = {
  chatml = { pre = "smollm", template = chatml, bos = 1, eos = 2, add_bos = false,
    control = { "<|endoftext|>", "<|im_start|>", "<|im_end|>" } },
  llama3 = { pre = "llama-bpe", template = llama3, bos = 0, eos = 3, add_bos = true,
    control = { "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>" } },
  laguna = { pre = "laguna", template = laguna, bos = 2, eos = 2, eot = 24, pad = 9, add_bos = false,
    control = laguna_control(), printed = { first = 10, last = 23 } },
}

local M = {}

-- Byte-level BPE of n tokens: control tokens, 256 bytes, merges. style: "chatml", "llama3"
-- or "laguna".
function M.bpe(n, style)
  local s = styles[style]
  local tokens, kinds, merges = {}, {}, {}
  local function add(text, kind)
    table.insert(tokens, text)
    table.insert(kinds, kind)
  end
  for i, text in ipairs(s.control) do
    local printed = s.printed and i - 1 >= s.printed.first and i - 1 <= s.printed.last
    add(text, printed and 4 or 3) -- 4: user-defined, shown as text
  end
  for _, text in ipairs(byte_characters()) do add(text, 1) end
  assert(n >= #tokens, "a byte-level BPE vocabulary of this style has at least " .. #tokens .. " tokens")
  grow("Ġ", n - #tokens, function(prefix, letter)
    add(prefix .. letter, 1)
    table.insert(merges, prefix .. " " .. letter)
  end)
  local more = {}
  if s.eot then table.insert(more, key("ggml.eot_token_id", "u32", s.eot)) end
  if s.pad then table.insert(more, key("ggml.padding_token_id", "u32", s.pad)) end
  local list = {
    key("ggml.model", "string", "gpt2"),
    key("ggml.pre", "string", s.pre),
    key("ggml.tokens", "string[]", tokens),
    key("ggml.token_type", "i32[]", kinds),
    key("ggml.merges", "string[]", merges),
    key("ggml.bos_token_id", "u32", s.bos),
    key("ggml.eos_token_id", "u32", s.eos),
    key("ggml.add_bos_token", "bool", s.add_bos),
    key("ggml.add_space_prefix", "bool", false),
    key("chat_template", "string", s.template),
  }
  for _, entry in ipairs(more) do table.insert(list, entry) end
  return list
end

-- SPM of n tokens: unknown and control tokens, 256 byte tokens, printable ASCII, merges. Chat style
-- ChatML. Scores fall with the id, so shorter pieces merge first.
function M.spm(n)
  local tokens, kinds, scores = {}, {}, {}
  local function add(text, kind, score)
    table.insert(tokens, text)
    table.insert(kinds, kind)
    table.insert(scores, score)
  end
  add("<unk>", 2, 0)
  add("<s>", 3, 0)
  add("</s>", 3, 0)
  for b = 0, 255 do add(string.format("<0x%02X>", b), 6, 0) end
  add("<|im_start|>", 3, 0)
  add("<|im_end|>", 3, 0)
  add("▁", 1, -1)
  for b = 0x21, 0x7E do add(string.char(b), 1, -1) end
  assert(n >= #tokens, "an SPM vocabulary has at least " .. #tokens .. " tokens")
  grow("▁", n - #tokens, function(prefix, letter)
    add(prefix .. letter, 1, -#tokens)
  end)
  return {
    key("ggml.model", "string", "llama"),
    key("ggml.pre", "string", "default"),
    key("ggml.tokens", "string[]", tokens),
    key("ggml.token_type", "i32[]", kinds),
    key("ggml.scores", "f32[]", scores),
    key("ggml.bos_token_id", "u32", 1),
    key("ggml.eos_token_id", "u32", 260),
    key("ggml.unknown_token_id", "u32", 0),
    key("ggml.add_bos_token", "bool", true),
    key("chat_template", "string", chatml),
  }
end

return M
