local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local moe = import("lib/moe_parts.lua")

function module.describe(op)
  moe.check(op)
  local P = moe.per_row(op)
  return {
    name = name.kernel("moe_sum", {}, "f32", { op.H, op.n_used, moe.shared(op) and "shared" or "routed" }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("x", "const float *"), descr.param("weights", "const float *"),
               descr.param("y", "float *"), descr.step_param() },
    operands = { descr.operand("x", "read", "T * " .. mul(P, op.H), 4, 64),
                 descr.operand("weights", "read", "T * " .. op.n_used, 4, 64),
                 descr.operand("y", "both", "T * " .. op.H, 4, 64) },
    covers = { descr.whole_rows("y", "T", 1, op.H) },
    scratch = 256, reduction = "picks", tolerance = 1e-6,
    bytes = "T * " .. (4 * (P + 2) * op.H), flops = "T * " .. (2 * P * op.H),
    includes = { op.hw.isa }, features = { "f32" },
  }
end

%%template
% local d = module.describe(params)
% local P, shared = moe.per_row(params), moe.shared(params)
% local does = "y += sum over picks of weight * x, in their order" .. (shared and ", + the shared expert's x" or "")
% local shapes = "x [n_rows][" .. P .. "][" .. H .. "];  y [n_rows][" .. H .. "]"
${descr.c_head(d, "kernel/moe_sum.c.lua", does .. "; one row a cta", shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"

${descr.c_params(d)}

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const float *x = p.x + (size_t)t * ${P * H}, *w = p.weights + (size_t)t * ${n_used};
        float *y = p.y + (size_t)t * ${H};
        for (uint32_t at = 0; at < ${H}; at += ISA_N) {
            const uint32_t n = ${H} - at < ISA_N ? ${H} - at : ISA_N;
            isa_f sum = isa_set1(0.0f);
            for (uint32_t j = 0; j < ${n_used}; j++) {
                sum = isa_fma(isa_set1(w[j]), isa_load_n(x + (size_t)j * ${H} + at, n), sum);
            }
% if shared then
            sum = isa_add(sum, isa_load_n(x + ${n_used * H} + at, n));
% end
            isa_store_n(y + at, isa_add(isa_load_n(y + at, n), sum), n);
        }
    }
}
