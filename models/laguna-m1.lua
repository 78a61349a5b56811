-- laguna-m1.lua -- Laguna-M.1, about 225 billion weights. Only its layers and experts are known here; every other
-- size comes from the file.
local recipe = import("lib/recipe.lua")
local chat = import("lib/laguna_chat.lua")

local sizes = { block_count = 70, expert_count = 256, expert_used_count = 16 }

return {
  recipe = function(file)
    return recipe.is(file, "laguna", sizes)
      and chat.facts("the layout of Laguna-M.1's repository; it ships the chat template of the XS models")
  end,
}
