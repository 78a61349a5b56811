local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/norm_quant.c.lua")

-- Threads of a cta, which has one row: thread i is lane i of the sum.
local THREADS = 256

function module.describe(op)
  local rows = descr.rows_of(op)
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis(rows, 1) },
    grid = { rows, "1", "1" }, block = THREADS, ctas_per_sm = 1,
    smem = { cuda.smem("lane", 4 * THREADS) }, features = { "shuffle", "redux" },
  })
end

local function kept(outputs)
  local list = {}
  if get(outputs, "f32", false) then list[#list + 1] = "f32" end
  if get(outputs, "q8", false) then list[#list + 1] = "q8" end
  return list
end

%%template
% local d = module.describe(params)
% local f32, q8 = get(outputs, "f32", false), get(outputs, "q8", false)
% local rows = descr.rows_of(params)
% local does = "y = x / sqrt(mean(x * x) + eps) * w, kept as " .. join(kept(outputs), " and ")
% local shapes = "x, y [rows][" .. H .. "];  w [" .. H .. "]"
${cuda.head(d, "kernel/norm_quant.cu.lua", does .. "; one row a cta", shapes)}

${cuda.params(d)}

${cuda.open(d)}
    const size_t row = isa_cta_x();
    isa_wait_launch();
    isa_let_launch();
% if rows == "L" then
    const float *x = p.x + (size_t)p.step->logit_rows[row] * ${H};
% else
    const float *x = p.x + row * ${H};
% end

    /* Lane i has elements i, i + 256, .. */
    float squares = 0.0f;
    for (uint32_t col = isa_thread(); col < ${H}; col += ${THREADS}) {
        squares = isa_fma(x[col], x[col], squares);
    }
    const float sum = isa_lanes_sum(squares, (float *)(void *)isa_smem(0));
    const float r = isa_div(1.0f, isa_sqrt(isa_div(sum, ${H}.0f) + ${hexfloat(eps)}));

    for (uint32_t col = isa_thread(); col < ${H}; col += ${THREADS}) {
        const float v = x[col] * r * p.w[col];
% if f32 then
        p.y[row * ${H} + col] = v;
% end
% if q8 then
        isa_q8_group(v, p.y_q + row * ${H} + col, p.y_d + row * ${H // 32} + col / 32,
            p.y_s + row * ${H // 16} + col / 32 * 2);
% end
    }
}
