-- laguna-s.lua -- Laguna-S-2.1, 118 billion weights.
local recipe = import("lib/recipe.lua")
local chat = import("lib/laguna_chat.lua")

local sizes = { block_count = 48, embedding_length = 3072, expert_count = 256, expert_used_count = 10 }

return {
  recipe = function(file)
    return recipe.is(file, "laguna", sizes)
      and chat.facts("poolside's published configuration and chat template of Laguna-S-2.1")
  end,
}
