-- recipe.lua -- telling a model by the keys of its file, for the recipes in models/ (gen/recipe.h).
local M = {}

-- Whether the file is of this architecture and its keys "<architecture>.<name>" have the wanted values.
function M.is(file, architecture, want)
  if get(file.meta, "general.architecture", "") ~= architecture then return false end
  for name, value in sorted_pairs(want) do
    if get(file.meta, architecture .. "." .. name, nil) ~= value then return false end
  end
  return true
end

-- The tokens of the file's vocabulary: how many.
function M.n_tokens(file)
  local tokens = get(file.meta, "tokenizer.ggml.tokens", {})
  return has(tokens, "long_array") and tokens.long_array or #tokens
end

return M
