local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local attn = import("lib/attn_parts.lua")
local norm = import("lib/norm_parts.lua")

local function operands(op, kv)
  local guard = "step: slot < slots, pos % cap < cap"
  local k = descr.operand("k", "write", tostring(attn.cells(op)), kv.elem_bytes, 64)
  local v = descr.operand("v", "write", tostring(attn.cells(op)), kv.elem_bytes, 64)
  k.indexed, v.indexed = guard, guard
  local list = { descr.operand("qkv", "both", "T * " .. attn.width(op), 4, 64) }
  if has(op, "eps") then
    list[2] = descr.operand("q_norm", "read", tostring(op.hd), 4, 64)
    list[3] = descr.operand("k_norm", "read", tostring(op.hd), 4, 64)
  end
  list[#list + 1] = descr.operand("table", "read", "T * " .. op.n_rot, 4, 64)
  list[#list + 1] = k
  list[#list + 1] = v
  if has(op, "count") then list[#list + 1] = descr.operand("count", "write", "T * " .. op.count, 4, 64) end
  return list
end

local function params(op, kv)
  local list = { descr.param("qkv", "float *") }
  if has(op, "eps") then
    list[2] = descr.param("q_norm", "const float *")
    list[3] = descr.param("k_norm", "const float *")
  end
  for _, p in ipairs({ { "table", "const float *" }, { "k", kv.ctype .. " *" }, { "v", kv.ctype .. " *" } }) do
    list[#list + 1] = descr.param(p[1], p[2])
  end
  if has(op, "count") then list[#list + 1] = descr.param("count", "int32_t *") end
  list[#list + 1] = descr.step_param()
  return list
end

-- The literals that change the arithmetic; what most models do without stands last.
local function dims(op)
  local list = { op.n_head, op.n_kv, op.hd, op.n_rot, op.pairing, op.cap, op.slots }
  if op.gate ~= "none" then list[#list + 1] = "gate" .. op.gate end
  if has(op, "eps") then list[#list + 1] = "norm" .. name.f32(op.eps) end
  if has(op, "count") then list[#list + 1] = "count" .. op.count end
  return list
end

local function covers(op, q)
  local list = { { param = "qkv", partial = true, rows = { axis = "rows", tile = 1, n = "T" },
                   cols = { { first = 0, tile = q, begin = 0, n = q } } } }
  if has(op, "count") then list[2] = descr.whole_rows("count", "T", 1, op.count) end
  return list
end

function module.describe(op)
  if op.pairing ~= "norm" and op.pairing ~= "neox" then
    fail("rope_kv: pairing '" .. tostring(op.pairing) .. "'")
  end
  local kv, q = attn.kv(op), op.n_head * op.hd
  local flops = (op.n_head + op.n_kv) * (op.n_rot * 3 + (has(op, "eps") and 5 * op.hd or 0))
  return {
    name = name.kernel("rope_kv", { op.kv }, "f32", dims(op)),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = params(op, kv), operands = operands(op, kv),
    covers = covers(op, q),
    scratch = 12 * op.hd + 1280, reduction = "none", tolerance = 1e-6,
    bytes = "T * " .. (attn.width(op) * 8), flops = "T * " .. flops,
    includes = { op.hw.isa, "isa_math.h" }, features = { "f16" },
  }
end

%%template
% local d, kv = module.describe(params), attn.kv(params)
% local width, half, normed = attn.width(params), n_rot // 2, has(params, "eps")
% local does = normed and "norms the heads of q and k, " or ""
% does = does .. "rotates q in place, k into its cache, v into its cache (" .. params.kv .. "); one row a cta"
% local shapes = "qkv [n_rows][" .. width .. "];  k, v [slot][" .. n_kv .. "][" .. cap // 16 .. " blocks of "
% shapes = shapes .. kv.block(hd) .. "]"
${descr.c_head(d, "kernel/rope_kv.c.lua", does, shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

% if half % 16 ~= 0 then
/* One pair, for what is left of n_rot / 2 after whole vectors. */
static void rotate_pair(const float *cs, float a, float b, float *y_a, float *y_b) {
    *y_a = isa_fma1(a, cs[0], -(b * cs[1]));
    *y_b = isa_fma1(a, cs[1], b * cs[0]);
}

% end
% if normed then
${norm.c_inverse_rms(hd, eps)}

/* One head: y = x / rms * w. */
static void norm_head(const float *x, const float *w, float *y) {
    const isa_f r = isa_set1(inverse_rms(x));
    for (uint32_t i = 0; i < ${hd}; i += ISA_N) {
        isa_store(y + i, isa_mul(isa_mul(isa_load(x + i), r), isa_load(w + i)));
    }
}

% end
/* One head: the first ${n_rot} dimensions are rotated, the others copied; y may be x. */
static void rotate(const float *x, const float *table, float *y) {
    uint32_t i = 0;
    for (; i + ISA_N <= ${half}; i += ISA_N) {
        isa_f a, b, c, s;
        isa_unzip(isa_load(table + 2 * i), isa_load(table + 2 * i + ISA_N), &c, &s);
% if pairing == "norm" then
        isa_unzip(isa_load(x + 2 * i), isa_load(x + 2 * i + ISA_N), &a, &b);
% else
        a = isa_load(x + i);
        b = isa_load(x + ${half} + i);
% end
        isa_f y_a = isa_fma(a, c, isa_neg(isa_mul(b, s)));
        isa_f y_b = isa_fma(a, s, isa_mul(b, c));
% if pairing == "norm" then
        isa_zip(y_a, y_b, &a, &b);
        isa_store(y + 2 * i, a);
        isa_store(y + 2 * i + ISA_N, b);
% else
        isa_store(y + i, y_a);
        isa_store(y + ${half} + i, y_b);
% end
    }
% if half % 16 ~= 0 then
    for (; i < ${half}; i++) {
% if pairing == "norm" then
        rotate_pair(table + 2 * i, x[2 * i], x[2 * i + 1], y + 2 * i, y + 2 * i + 1);
% else
        rotate_pair(table + 2 * i, x[i], x[${half} + i], y + i, y + ${half} + i);
% end
    }
% end
% if n_rot < hd then
    memmove(y + ${n_rot}, x + ${n_rot}, ${hd - n_rot} * sizeof(float));
% end
}

${kv.c_store(hd)}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const uint32_t slot = p.step->slot_of_seq[p.step->seq_of_row[t]];
        const uint32_t at = p.step->pos_of_row[t] % ${cap};
        const float *table = p.table + (size_t)t * ${n_rot};
        float *row = p.qkv + (size_t)t * ${width};

        for (uint32_t h = 0; h < ${n_head}; h++) {
            float *q = row + h * ${hd};
% if normed then
            norm_head(q, p.q_norm, q);
% end
            rotate(q, table, q);
        }

        for (uint32_t h = 0; h < ${n_kv}; h++) {
            const size_t cell = ((size_t)slot * ${n_kv} + h) * ${attn.head_cells(params)};
            const float *k = row + ${n_head * hd} + h * ${hd};
            float key[${hd}];
% if normed then
            norm_head(k, p.k_norm, key);
            rotate(key, table, key);
% else
            rotate(k, table, key);
% end
            store_key(key, p.k + cell, at);
            store_value(k + ${n_kv * hd}, p.v + cell, at);
        }
% if has(params, "count") then
        memset(p.count + (size_t)t * ${count}, 0, ${count} * sizeof *p.count);
% end
    }
}
