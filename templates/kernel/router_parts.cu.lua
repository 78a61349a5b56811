-- Sums of a router's atoms, in two texts that compute the same bits: op.role "decode" for at most 8 rows, and "prefill"
-- (also without a role) for any number of them.
local function file_of(role)
  if role ~= "decode" and role ~= "prefill" then fail("router_parts: role '" .. tostring(role) .. "'") end
  return "kernel/router_parts/" .. role .. ".cu.lua"
end

function module.describe(op) return import(file_of(get(op, "role", "prefill"))).describe(op) end

%%template
${include(file_of(get(params, "role", "prefill")), params)}
