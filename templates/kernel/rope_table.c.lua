local name = import("lib/name.lua")
local descr = import("lib/descr.lua")

function module.describe(op)
  if #op.freq * 2 ~= op.n_rot then fail("rope_table: freq must hold n_rot / 2 numbers") end
  return {
    name = name.kernel("rope_table", {}, "f32",
      { op.n_rot, name.f64_hash(op.freq), name.f32(op.mscale) }),
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = 1,
    params = { descr.param("y", "float *"), descr.step_param() },
    operands = { descr.operand("y", "write", "T * " .. op.n_rot, 4, 64) },
    covers = { descr.whole_rows("y", "T", 1, op.n_rot) },
    scratch = 0, reduction = "none", tolerance = 1e-7,
    bytes = "T * " .. (op.n_rot * 4), flops = "T * " .. (op.n_rot * 15),
    includes = { op.hw.isa, "isa_math.h" }, features = {},
  }
end

%%template
% local d = module.describe(params)
% local does = "y[t][i] = (cos, sin) of pos_of_row[t] * freq[i], times the magnitude; one row a cta"
${descr.c_head(d, "kernel/rope_table.c.lua", does, "y [n_rows][" .. n_rot // 2 .. "][2]")}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

static const double freq[${n_rot // 2}] = {
% for i, f in ipairs(params.freq) do
    ${hexfloat_note(f, "f64")},
% end
};

${descr.c_open(d)}
    for (uint32_t t = cta_begin; t < cta_end; t++) {
        const double pos = (double)p.step->pos_of_row[t];
        float *y = p.y + (size_t)t * ${n_rot};
        for (uint32_t i = 0; i < ${n_rot // 2}; i++) {
            double c, s;
            isa_cos_sin(pos * freq[i], &c, &s);
            y[2 * i] = (float)c * ${hexfloat(mscale)};
            y[2 * i + 1] = (float)s * ${hexfloat(mscale)};
        }
    }
}
