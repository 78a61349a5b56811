local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/norm_quant.c.lua")

-- Lanes of a row's sum.
local LANES = 256

-- Threads of a cta, which has one row: at most three columns each, for of a single row each one costs time.
local function threads_of(op) return LANES * math.min(4, ceil_div(op.H, 3 * LANES)) end

function module.describe(op)
  local rows, threads = descr.rows_of(op), threads_of(op)
  local smem = { cuda.smem("lane", 4 * LANES) }
  if threads > LANES then smem[2] = cuda.smem("row", 4 * op.H) end
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis(rows, 1) },
    grid = { rows, "1", "1" }, block = threads, ctas_per_sm = 1,
    smem = smem, features = { "shuffle", "redux" }, early = { "w" },
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
% local rows, n_threads, at = descr.rows_of(params), threads_of(params), cuda.smem_offsets(d.smem)
% local per_thread, whole = ceil_div(H, n_threads), H % n_threads == 0
% local does = "y = x / sqrt(mean(x * x) + eps) * w, kept as " .. join(kept(outputs), " and ")
% local shapes = "x, y [rows][" .. H .. "];  w [" .. H .. "]"
${cuda.head(d, "kernel/norm_quant.cu.lua", does .. "; one row a cta", shapes)}

${cuda.params(d)}

${cuda.open(d)}
    float *lane = (float *)(void *)isa_smem(${at.lane});
    const size_t row = isa_cta_x();
    /* Thread i has columns i, i + ${n_threads}, .. */
    float w[${per_thread}], v[${per_thread}];
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t col = isa_thread() + ${n_threads} * k;
        w[k] = ${whole and "" or "col >= " .. H .. " ? 0.0f : "}p.w[col];
    }
    isa_wait_launch();
    isa_let_launch();
% if rows == "L" then
    const float *x = p.x + (size_t)p.step->logit_rows[row] * ${H};
% else
    const float *x = p.x + row * ${H};
% end
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t col = isa_thread() + ${n_threads} * k;
        v[k] = ${whole and "" or "col >= " .. H .. " ? 0.0f : "}x[col];
    }

    /* Lane i of the sum has elements i, i + ${LANES}, .. */
% if n_threads == LANES then
    float squares = 0.0f;
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        squares = ${whole and "" or "isa_thread() + " .. n_threads .. " * k >= " .. H .. " ? squares : "}isa_fma(v[k], v[k], squares);
    }
    lane[isa_thread()] = squares;
% else
    float *all = (float *)(void *)isa_smem(${at.row});
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t col = isa_thread() + ${n_threads} * k;
% if whole then
        all[col] = v[k];
% else
        if (col < ${H}) {
            all[col] = v[k];
        }
% end
    }
    isa_barrier();
    if (isa_thread() < ${LANES}) {
        float squares = 0.0f;
#pragma unroll
        for (uint32_t col = isa_thread(); col < ${H}; col += ${LANES}) {
            squares = isa_fma(all[col], all[col], squares);
        }
        lane[isa_thread()] = squares;
    }
% end
    isa_barrier();
    const float sum = isa_lanes_sum(lane);
    const float r = isa_div(1.0f, isa_sqrt(isa_div(sum, ${H}.0f) + ${hexfloat(eps)}));

#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t col = isa_thread() + ${n_threads} * k;
        const float y = v[k] * r * w[k];
% if not whole then
        if (col >= ${H}) {
            break;
        }
% end
% if f32 then
        p.y[row * ${H} + col] = y;
% end
% if q8 then
        isa_q8_group(y, p.y_q + row * ${H} + col, p.y_d + row * ${H // 32} + col / 32,
            p.y_s + row * ${H // 16} + col / 32 * 2);
% end
    }
}
