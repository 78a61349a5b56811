local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local moe = import("lib/moe_parts.lua")

function module.describe(op)
  moe.check(op)
  if op.gating ~= "sigmoid" and op.gating ~= "softmax" then
    fail("router_topk: gating '" .. tostring(op.gating) .. "'")
  end
  local params = { descr.param("logits", "const float *") }
  local operands = { descr.operand("logits", "read", "T * " .. mul(op.parts, op.E), 4, 64) }
  if op.bias then
    params[2] = descr.param("bias", "const float *")
    operands[2] = descr.operand("bias", "read", tostring(op.E), 4, 64)
  end
  params[#params + 1] = descr.param("ids", "int32_t *")
  params[#params + 1] = descr.param("weights", "float *")
  params[#params + 1] = descr.step_param()
  operands[#operands + 1] = descr.operand("ids", "write", "T * " .. op.n_used, 4, 64)
  operands[#operands].below = op.E
  operands[#operands + 1] = descr.operand("weights", "write", "T * " .. op.n_used, 4, 64)
  return {
    name = name.kernel("router_topk", {}, "f32", { op.E, op.n_used, op.gating, op.bias and "bias" or "plain",
      op.norm and "norm" or "as", name.f32(op.scale), op.parts }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = params, operands = operands,
    covers = { descr.whole_rows("ids", "T", 1, op.n_used), descr.whole_rows("weights", "T", 1, op.n_used) },
    scratch = 16384, reduction = "picks", tolerance = 1e-6,
    bytes = "T * " .. (op.E * op.parts * 4 + op.n_used * 8), flops = "T * " .. (op.E * (12 + op.n_used)),
    includes = { op.hw.isa, "isa_math.h" }, features = { "f32" },
  }
end

%%template
% local d = module.describe(params)
% local padded = round_up(E, 16)
% local does = "the " .. n_used .. " of " .. E .. " experts with the greatest " .. gating .. (bias and " + bias" or "")
% does = does .. ", and their weights; one row a cta"
% local shapes = "logits [n_rows]" .. (parts > 1 and "[" .. parts .. "]" or "") .. "[" .. E .. "];  ids, weights [n_rows][" .. n_used .. "]"
${descr.c_head(d, "kernel/router_topk.c.lua", does, shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

/* A greater number has a greater key; NaN has the least, and 0 is none's. */
ISA_FN uint32_t key_of(float x) {
    uint32_t b = isa_soft_bits(x + 0.0f); /* -0 becomes 0 */
    if (x != x) {
        return 1;
    }
    return b & 0x80000000u ? ~b : b | 0x80000000u;
}

% if gating == "sigmoid" then
/* 1 / (1 + exp(-x)) */
static void gate(const float *x, float *prob) {
    const isa_f one = isa_set1(1.0f);
    for (uint32_t e = 0; e < ${E}; e += ISA_N) {
        const isa_f v = isa_load_n(x + e, ${E} - e < ISA_N ? ${E} - e : ISA_N);
        isa_store(prob + e, isa_div(one, isa_add(one, isa_exp(isa_neg(v)))));
    }
}
% else
/* exp(x - max) over its sum of 256 lanes: lane i has experts i, i + 256, .. */
static void gate(const float *x, float *prob) {
    isa_f lane[256 / ISA_N];
    float top = x[0];
    for (uint32_t e = 1; e < ${E}; e++) {
        top = x[e] > top ? x[e] : top;
    }
    for (uint32_t i = 0; i < 256 / ISA_N; i++) {
        lane[i] = isa_set1(0.0f);
    }
    for (uint32_t e = 0; e < ${E}; e += ISA_N) {
        const uint32_t n = ${E} - e < ISA_N ? ${E} - e : ISA_N;
        const isa_f v = isa_exp(isa_add(isa_load_n(x + e, n), isa_set1(-top)));
        isa_store(prob + e, v);
        const uint32_t i = e % 256 / ISA_N;
        lane[i] = isa_add(lane[i], isa_sel(isa_first(n), v, isa_set1(0.0f)));
    }
    const isa_f sum = isa_set1(isa_lanes_sum(lane));
    for (uint32_t e = 0; e < ${E}; e += ISA_N) {
        isa_store(prob + e, isa_div(isa_load(prob + e), sum));
    }
}
% end

% if parts > 1 then
/* The parts of each expert's logit, one after the other. */
static void add_parts(const float *x, float *logits) {
    for (uint32_t e = 0; e < ${E}; e += ISA_N) {
        const uint32_t n = ${E} - e < ISA_N ? ${E} - e : ISA_N;
        isa_f sum = isa_load_n(x + e, n);
        for (uint32_t a = 1; a < ${parts}; a++) {
            sum = isa_add(sum, isa_load_n(x + a * ${E} + e, n));
        }
        isa_store(logits + e, sum);
    }
}

% end
/* The pick with the greatest key, of equal ones the first; it will not be picked again. */
static uint32_t pick(uint32_t *key) {
    uint32_t best = 0, at = 0;
    for (uint32_t e = 0; e < ${E}; e++) {
        at = key[e] > best ? e : at;
        best = key[e] > best ? key[e] : best;
    }
    key[at] = 0;
    return at;
}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const size_t row = t;
        float prob[${padded}], w[${n_used}], sum = 0.0f;
        uint32_t key[${E}];
% if parts > 1 then
        float logits[${padded}];
        add_parts(p.logits + row * ${parts * E}, logits);
        gate(logits, prob);
% else
        gate(p.logits + row * ${E}, prob);
% end
        for (uint32_t e = 0; e < ${E}; e++) {
            key[e] = key_of(prob[e]${bias and " + p.bias[e]" or ""});
        }
        for (uint32_t j = 0; j < ${n_used}; j++) {
            const uint32_t e = pick(key);
            p.ids[row * ${n_used} + j] = (int32_t)e;
            w[j] = prob[e];
            sum = j == 0 ? w[0] : sum + w[j];
        }
        for (uint32_t j = 0; j < ${n_used}; j++) {
            float v = w[j];
% if norm then
            v = v / (sum > ${hexfloat(6.103515625e-5)} ? sum : ${hexfloat(6.103515625e-5)});
% end
% if scale ~= 0 and scale ~= 1 then
            v = v * ${hexfloat(scale)};
% end
            p.weights[row * ${n_used} + j] = v != v ? isa_soft_float(0x7fc00000u) : v;
        }
    }
}
