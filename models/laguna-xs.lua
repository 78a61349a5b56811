-- laguna-xs.lua -- Laguna-XS.2 and Laguna-XS-2.1, 33 billion weights: alike but for context and YaRN, which the file says.
local recipe = import("lib/recipe.lua")
local chat = import("lib/laguna_chat.lua")

local sizes = { block_count = 40, embedding_length = 2048, expert_count = 256, expert_used_count = 8 }

return {
  recipe = function(file)
    return recipe.is(file, "laguna", sizes)
      and chat.facts("poolside's published configuration and chat template of Laguna-XS-2.1")
  end,
}
