-- Attention, in two texts that compute the same bits: one for few rows, whose splits lie on ctas of their own (op.split),
-- and one for any number of rows.
local function file_of(op) return has(op, "split") and "kernel/attn/decode.cu.lua" or "kernel/attn/prefill.cu.lua" end

function module.describe(op) return import(file_of(op)).describe(op) end

%%template
${include(file_of(params), params)}
