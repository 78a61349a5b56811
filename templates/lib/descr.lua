-- descr.lua -- pieces of kernel descriptors (docs/kernels.md, "Descriptor"), so that the kernel
-- files state only what is theirs. Expressions are text in T, L, ctx, slots.
local M = {}

-- "T" and "n_rows" for ops over all rows, "L" and "n_logits" for those over logit rows.
function M.rows_of(op)
  local r = get(op, "rows", "T")
  if r ~= "T" and r ~= "L" then fail("op.rows must be 'T' or 'L', got '" .. tostring(r) .. "'") end
  return r
end

-- The rows axis; it stands on x, tile rows to a cta.
function M.rows_axis(rows, tile)
  return { name = "rows", kind = rows == "L" and "logits" or "rows", bound = rows, tile = tile, on = "x",
           fold = "none" }
end

function M.dim_axis(name, bound, on)
  return { name = name, kind = "dim", bound = tostring(bound), tile = 1, on = on, fold = "none" }
end

function M.row_ctas(rows, tile)
  if tile == 1 then return rows end
  return "ceil_div(" .. rows .. ", " .. tile .. ")"
end

-- An operand of `count` elements of `elem_bytes` (count: expression).
function M.operand(param, access, count, elem_bytes, align)
  return { param = param, access = access, bytes = "(" .. count .. ") * " .. elem_bytes, align = align,
           max_index = "(" .. count .. ") - 1", index_bits = 64 }
end

-- A cover of rows x the columns 0..n-1, all written by the cta that has the row.
function M.whole_rows(param, rows, tile, n)
  return { param = param, rows = { axis = "rows", tile = tile, n = rows },
           cols = { { first = 0, tile = n, begin = 0, n = n } } }
end

-- The three q8 operands of `rows` rows of `k` elements, and their parameters.
function M.q8_operands(prefix, access, rows, k)
  return M.operand(prefix .. "_q", access, rows .. " * " .. k, 1, 64),
         M.operand(prefix .. "_d", access, rows .. " * " .. (k // 32), 4, 64),
         M.operand(prefix .. "_s", access, rows .. " * " .. (k // 16), 2, 64)
end

function M.q8_params(prefix, const)
  local c = const and "const " or ""
  return { name = prefix .. "_q", ctype = c .. "int8_t *" },
         { name = prefix .. "_d", ctype = c .. "float *" },
         { name = prefix .. "_s", ctype = c .. "int16_t *" }
end

function M.param(name, ctype) return { name = name, ctype = ctype } end

function M.step_param() return { name = "step", ctype = "const rt_step *" } end

-- Bytes of the image of n rows x k columns: whole strips of 16 rows.
function M.image_bytes(quant, n, k)
  return (n + 15) // 16 * 16 * (k // quant.qblock_elems) * quant.qblock_bytes
end

return M
