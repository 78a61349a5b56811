-- laguna-tiny.lua -- our own laguna-tiny (models/laguna-tiny). It knows a small world by heart, so the likeliest token
-- is the right one.
local recipe = import("lib/recipe.lua")
local chat = import("lib/laguna_chat.lua")

local sizes = { block_count = 8, embedding_length = 256, expert_count = 12, expert_used_count = 4, vocab_size = 4096 }

return {
  recipe = function(file)
    if not recipe.is(file, "laguna", sizes) or recipe.n_tokens(file) ~= 4096 then return false end
    local facts = chat.facts("models/laguna-tiny: trained on dialogues with and without thinking")
    facts.sampling = { temperature = 0.0 }
    return facts
  end,
}
