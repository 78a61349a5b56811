local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

-- Query rows of one cta; score rows of 256 positions for all of them are the kernel's scratch.
local ROW_TILE = 16

function module.describe(op)
  if op.n_head % op.n_kv ~= 0 then fail("attn: n_head must be a multiple of n_kv") end
  if op.hd % 16 ~= 0 or op.hd > 256 then fail("attn: head size " .. op.hd .. " (multiple of 16, at most 256)") end
  if op.cap % 256 ~= 0 then fail("attn: cap must be a multiple of 256") end
  local width = (op.n_head + 2 * op.n_kv) * op.hd
  local cells = op.slots * op.n_kv * op.cap * op.hd
  local guard = "step: slot < slots, pos % cap < cap"
  local k, v = descr.operand("k", "read", tostring(cells), 2, 64), descr.operand("v", "read", tostring(cells), 2, 64)
  k.indexed, v.indexed = guard, guard
  return {
    name = name.kernel("attn", { "f16" }, "f32", { op.n_head, op.n_kv, op.hd, name.f32(op.scale),
      op.window, op.cap, op.slots }),
    axes = { descr.rows_axis("T", ROW_TILE), descr.dim_axis("heads", op.n_head, "y"),
             { name = "splits", kind = "kv", bound = "ctx", tile = 256, on = "loop", fold = "none" } },
    grid = { descr.row_ctas("T", ROW_TILE), tostring(op.n_head), "1" }, block = 1,
    params = { descr.param("qkv", "const float *"), descr.param("k", "const uint16_t *"),
               descr.param("v", "const uint16_t *"), descr.param("y", "float *"), descr.step_param() },
    operands = { descr.operand("qkv", "read", "T * " .. width, 4, 64), k, v,
                 descr.operand("y", "write", "T * " .. (op.n_head * op.hd), 4, 64) },
    covers = { { param = "y", rows = { axis = "rows", tile = ROW_TILE, n = "T" },
                 cols = { { axis = "heads", first = 0, tile = op.hd, begin = 0, n = op.n_head * op.hd } } } },
    scratch = ROW_TILE * (1024 + op.hd * 8) + 1024, reduction = "splits256", tolerance = 1e-5,
    bytes = "slots * ctx * " .. (op.n_kv * op.hd * 4) .. " + T * " .. (op.n_head * op.hd * 8),
    flops = "T * ctx * " .. (op.n_head * op.hd * 4),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f16", "f32" },
  }
end
%%template
