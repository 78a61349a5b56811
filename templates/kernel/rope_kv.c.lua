local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  if op.pairing ~= "norm" and op.pairing ~= "neox" then
    fail("rope_kv: pairing '" .. tostring(op.pairing) .. "'")
  end
  if op.cap % 256 ~= 0 then fail("rope_kv: cap must be a multiple of 256") end
  local width = (op.n_head + 2 * op.n_kv) * op.hd
  local cells = op.slots * op.n_kv * op.cap * op.hd
  local guard = "step: slot < slots, pos % cap < cap"
  local k = descr.operand("k", "write", tostring(cells), 2, 64)
  local v = descr.operand("v", "write", tostring(cells), 2, 64)
  k.indexed, v.indexed = guard, guard
  return {
    name = name.kernel("rope_kv", { "f16" }, "f32",
      { op.n_head, op.n_kv, op.hd, op.n_rot, op.pairing, op.cap, op.slots }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("qkv", "float *"), descr.param("table", "const float *"),
               descr.param("k", "uint16_t *"), descr.param("v", "uint16_t *"),
               descr.step_param() },
    operands = { descr.operand("qkv", "both", "T * " .. width, 4, 64),
                 descr.operand("table", "read", "T * " .. op.n_rot, 4, 64), k, v },
    covers = { { param = "qkv", partial = true, rows = { axis = "rows", tile = 1, n = "T" },
                 cols = { { first = 0, tile = op.n_head * op.hd, begin = 0,
                            n = op.n_head * op.hd } } } },
    scratch = 4 * op.hd + 64, reduction = "none", tolerance = 1e-6,
    bytes = "T * " .. (width * 8), flops = "T * " .. ((op.n_head + op.n_kv) * op.n_rot * 3),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f16" },
  }
end

%%template
% local d = module.describe(params)
% local width, half = (n_head + 2 * n_kv) * hd, n_rot // 2
% local does = "rotates q in place, k into its cache, v into its cache (f16); one row a cta"
% local shapes = "qkv [n_rows][" .. width .. "];  k [slot][" .. n_kv .. "][" .. cap // 16 .. "]["
% shapes = shapes .. hd .. "][16];  v [slot][" .. n_kv .. "][" .. cap .. "][" .. hd .. "]"
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

/* f32 to f16, ${hd} elements. */
static void to_half(const float *x, uint16_t *y) {
    for (uint32_t i = 0; i < ${hd}; i += ISA_N) {
        isa_store_half(y + i, isa_load(x + i));
    }
}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const uint32_t slot = p.step->slot_of_seq[p.step->seq_of_row[t]];
        const uint32_t at = p.step->pos_of_row[t] % ${cap};
        const float *table = p.table + (size_t)t * ${n_rot};
        float *row = p.qkv + (size_t)t * ${width};

        for (uint32_t h = 0; h < ${n_head}; h++) {
            rotate(row + h * ${hd}, table, row + h * ${hd});
        }

        for (uint32_t h = 0; h < ${n_kv}; h++) {
            const size_t cell = ((size_t)slot * ${n_kv} + h) * ${cap * hd};
            float key[${hd}];
            uint16_t half[${hd}];
            rotate(row + ${n_head * hd} + h * ${hd}, table, key);
            to_half(key, half);
            uint16_t *k = p.k + cell + (size_t)(at / 16) * ${16 * hd} + at % 16;
            for (uint32_t i = 0; i < ${hd}; i++) {
                k[16 * i] = half[i];
            }
            to_half(row + ${(n_head + n_kv) * hd} + h * ${hd}, p.v + cell + (size_t)at * ${hd});
        }
    }
}
