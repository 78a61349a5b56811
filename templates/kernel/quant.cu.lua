local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/quant.c.lua")

-- A warp makes one group of 32; a cta has 8 of them of one row.
local GROUPS = 8

local function cover(param, K, per_group)
  return { param = param, rows = { axis = "rows", tile = 1, n = "T" },
           cols = { { axis = "pieces", first = 0, tile = GROUPS * per_group, begin = 0, n = K // 32 * per_group } } }
end

function module.describe(op)
  local pieces = ceil_div(op.K // 32, GROUPS)
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1), descr.dim_axis("pieces", pieces, "y") },
    grid = { "T", tostring(pieces), "1" }, block = 32 * GROUPS, ctas_per_sm = 1, features = { "redux" },
    covers = { cover("y_q", op.K, 32), cover("y_d", op.K, 1), cover("y_s", op.K, 2) },
  })
end

%%template
% local d = module.describe(params)
% local does = "y_q, y_d, y_s = x as bytes, scales and sums for each 32 columns; a warp a group"
${cuda.head(d, "kernel/quant.cu.lua", does, "x [n_rows][" .. K .. "]")}

${cuda.params(d)}

${cuda.open(d)}
    const size_t row = isa_cta_x();
    const uint32_t g = isa_cta_y() * ${GROUPS} + isa_warp();
    isa_wait_launch();
    isa_let_launch();
    if (g < ${K // 32}) {
        const size_t at = row * ${K} + 32 * g + isa_lane();
        isa_q8_group(p.x[at], p.y_q + at, p.y_d + row * ${K // 32} + g, p.y_s + row * ${K // 16} + 2 * g);
    }
}
