local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/moe_sum.c.lua")
local moe = import("lib/moe_parts.lua")

local THREADS = 256

local function columns_of(op) return op.H % 4 == 0 and 4 or 1 end -- of a thread, read at once

function module.describe(op)
  local tile = THREADS * columns_of(op)
  local pieces = ceil_div(op.H, tile)
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1), descr.dim_axis("pieces", pieces, "y") },
    grid = { "T", tostring(pieces), "1" }, block = THREADS, ctas_per_sm = 4,
    covers = { { param = "y", rows = { axis = "rows", tile = 1, n = "T" },
                 cols = { { axis = "pieces", first = 0, tile = tile, begin = 0, n = op.H } } } },
    features = {},
  })
end

%%template
% local d = module.describe(params)
% local P, shared, n = moe.per_row(params), moe.shared(params), columns_of(params)
% local does = "y += sum over picks of weight * x, in their order" .. (shared and ", + the shared expert's x" or "")
% local shapes = "x [n_rows][" .. P .. "][" .. H .. "];  y [n_rows][" .. H .. "]"
${cuda.head(d, "kernel/moe_sum.cu.lua", does .. "; a thread " .. n .. " columns of a row", shapes)}

${cuda.params(d)}

% if n == 4 then
typedef isa_x4 columns;

ISA_FN columns load(const float *x) {
    return isa_load_x4(x);
}

ISA_FN void store(float *y, columns v) {
    isa_store_x4(y, v);
}
% else
typedef struct columns {
    uint32_t w[1];
} columns;

ISA_FN columns load(const float *x) {
    const columns v = {{isa_load_x1(x)}};
    return v;
}

ISA_FN void store(float *y, columns v) {
    *y = isa_float(v.w[0]);
}
% end

${cuda.open(d)}
    const size_t row = isa_cta_x();
    const uint32_t at = (isa_cta_y() * ${THREADS} + isa_thread()) * ${n};
    isa_wait_launch();
    isa_let_launch();
    if (at >= ${H}) {
        return;
    }
    const float *x = p.x + row * ${P * H} + at, *w = p.weights + row * ${n_used};
    float *y = p.y + row * ${H} + at;
    columns part[${P}];
#pragma unroll
    for (uint32_t j = 0; j < ${P}; j++) {
        part[j] = load(x + j * ${H});
    }
    columns v = load(y);
#pragma unroll
    for (uint32_t c = 0; c < ${n}; c++) {
        float sum = 0.0f;
#pragma unroll
        for (uint32_t j = 0; j < ${n_used}; j++) {
            sum = isa_fma(w[j], isa_float(part[j].w[c]), sum);
        }
% if shared then
        sum += isa_float(part[${n_used}].w[c]);
% end
        v.w[c] = isa_bits(isa_float(v.w[c]) + sum);
    }
    store(y, v);
}
