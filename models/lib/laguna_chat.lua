-- laguna_chat.lua -- what is known about how Laguna models talk, whatever their size.
local M = {}

-- Sampling: poolside's own serving entry has temperature 1 and top_p 1; that nothing else cuts the distribution either
-- follows from it. No recommendation of theirs for other settings is known here.
-- Thinking: these are reasoning models. Their template leaves it off where nobody says, because its clients always do;
-- llama.cpp's server turns it on for every template that knows it, and so do programs made here. Answers need
-- room then, some thousand tokens.
-- Ends: </assistant> ends a turn and is a control token in newer files only; older ones have it as an ordinary
-- added token, which would leak into the text.
function M.facts(why)
  return {
    why = why,
    sampling = { temperature = 1.0, top_p = 1.0, min_p = 0.0, top_k = 0 },
    thinking = "on",
    ends = { "</assistant>", "〈|EOS|〉" },
    output = "laguna",
  }
end

return M
