-- Attention, in three texts. One for few rows, whose splits lie on ctas of their own (op.split), and one for any number of
-- rows compute the same bits; one for prompts (op.prompt "f16") computes on tensor cores.
local function file_of(op)
  if has(op, "split") then return "kernel/attn/decode.cu.lua" end
  return get(op, "prompt", "f32") == "f16" and "kernel/attn/prefill_f16.cu.lua" or "kernel/attn/prefill.cu.lua"
end

function module.describe(op) return import(file_of(op)).describe(op) end

%%template
${include(file_of(params), params)}
