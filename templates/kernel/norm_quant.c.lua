local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local norm = import("lib/norm_parts.lua")

local function kept(outputs)
  local list = {}
  if get(outputs, "f32", false) then list[#list + 1] = "f32" end
  if get(outputs, "q8", false) then list[#list + 1] = "q8" end
  return list
end

local function operands(op, rows)
  local list = { descr.operand("x", "read", "T * " .. op.H, 4, 64),
                 descr.operand("w", "read", tostring(op.H), 4, 64) }
  if rows == "L" then list[1].indexed = "step: logit_rows[i] < T" end
  if get(op.outputs, "f32", false) then
    list[#list + 1] = descr.operand("y", "write", rows .. " * " .. op.H, 4, 64)
  end
  if get(op.outputs, "q8", false) then
    for _, o in ipairs({ descr.q8_operands("y", "write", rows, op.H) }) do list[#list + 1] = o end
  end
  return list
end

local function params(op)
  local list = { descr.param("x", "const float *"), descr.param("w", "const float *") }
  if get(op.outputs, "f32", false) then list[#list + 1] = descr.param("y", "float *") end
  if get(op.outputs, "q8", false) then
    for _, p in ipairs({ descr.q8_params("y", false) }) do list[#list + 1] = p end
  end
  list[#list + 1] = descr.step_param()
  return list
end

local function covers(op, rows)
  local list = {}
  if get(op.outputs, "f32", false) then list[#list + 1] = descr.whole_rows("y", rows, 1, op.H) end
  if get(op.outputs, "q8", false) then
    list[#list + 1] = descr.whole_rows("y_q", rows, 1, op.H)
    list[#list + 1] = descr.whole_rows("y_d", rows, 1, op.H // 32)
    list[#list + 1] = descr.whole_rows("y_s", rows, 1, op.H // 16)
  end
  return list
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local out = join(kept(op.outputs), "")
  if out == "" then fail("norm_quant: no outputs") end
  if get(op.outputs, "q8", false) and op.H % 32 ~= 0 then
    fail("norm_quant: H must be a multiple of 32 for q8")
  end
  return {
    name = name.kernel("norm_quant", { "f32" }, out, { op.H, name.f32(op.eps), rows }),
    axes = { descr.rows_axis(rows, 1) },
    grid = { rows, "1", "1" }, block = 1,
    params = params(op), operands = operands(op, rows), covers = covers(op, rows),
    scratch = 1024 + 4 * (op.H + 64), reduction = "lanes256", tolerance = 1e-6,
    bytes = rows .. " * " .. (op.H * 8) .. " + " .. (op.H * 4), flops = rows .. " * " .. (op.H * 7),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f32" },
  }
end

%%template
% local d = module.describe(params)
% local f32, q8 = get(outputs, "f32", false), get(outputs, "q8", false)
% local rows = descr.rows_of(params)
% local does = "y = x / sqrt(mean(x * x) + eps) * w, kept as " .. join(kept(outputs), " and ")
% local shapes = "x, y [rows][" .. H .. "];  w [" .. H .. "]"
${descr.c_head(d, "kernel/norm_quant.c.lua", does .. "; one row a cta", shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

${norm.c_inverse_rms(H, eps)}

${descr.c_open(d)}
    for (uint32_t i = cta_begin; i < cta_end; i++) {
        const size_t row = i;
% if rows == "L" then
        const float *x = p.x + (size_t)p.step->logit_rows[i] * ${H};
% else
        const float *x = p.x + row * ${H};
% end
        const isa_f r = isa_set1(inverse_rms(x));
% if q8 then
        for (uint32_t g = 0; g < ${H // 32}; g++) {
            isa_f v[32 / ISA_N];
            for (uint32_t k = 0; k < 32 / ISA_N; k++) {
                const uint32_t at = 32 * g + k * ISA_N;
                v[k] = isa_mul(isa_mul(isa_load(x + at), r), isa_load(p.w + at));
% if f32 then
                isa_store(p.y + row * ${H} + at, v[k]);
% end
            }
            isa_q8_group(v, p.y_q + row * ${H} + 32 * g, p.y_d + row * ${H // 32} + g,
                p.y_s + row * ${H // 16} + 2 * g);
        }
% else
        for (uint32_t at = 0; at < ${H}; at += ISA_N) {
            const uint32_t n = ${H} - at < ISA_N ? ${H} - at : ISA_N;
            isa_f v = isa_mul(isa_mul(isa_load_n(x + at, n), r), isa_load_n(p.w + at, n));
            isa_store_n(p.y + row * ${H} + at, v, n);
        }
% end
    }
}
