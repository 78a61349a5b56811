-- layout.lua -- what the generator asks of a quant file, as plain data.

-- arg: { type }. Returns { type, kind = "int" | "float", qblock_elems, qblock_bytes, planes } of
-- templates/quant/<type>.lua; planes in the order in which they stand in an atom.
local function layout(arg)
  local q = import("quant/" .. arg.type .. ".lua")
  return {
    type = q.type,
    kind = q.kind,
    qblock_elems = q.qblock_elems,
    qblock_bytes = q.qblock_bytes,
    planes = q.planes,
  }
end

return { layout = layout }
