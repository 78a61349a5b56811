-- A warp has a row: lane l experts l, l + 32, .. in registers. Each pick is two searches through the warp, for the
-- greatest key and for the first expert that has it.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/router_topk.c.lua")

local ROWS = 4

function module.describe(op)
  local c = c_kernel.describe(op)
  return cuda.of(c, {
    axes = { descr.rows_axis("T", ROWS) },
    grid = { descr.row_ctas("T", ROWS), "1", "1" }, block = 32 * ROWS, ctas_per_sm = 4,
    covers = { descr.whole_rows("ids", "T", ROWS, op.n_used), descr.whole_rows("weights", "T", ROWS, op.n_used) },
    features = { "shuffle", "redux" },
  })
end

%%template
% local d = module.describe(params)
% local per_lane = ceil_div(E, 32)
% local full = E % 32 == 0
% local does = "the " .. n_used .. " of " .. E .. " experts with the greatest " .. gating .. (bias and " + bias" or "")
% does = does .. ", and their weights; a warp a row"
% local shapes = "logits [n_rows]" .. (parts > 1 and "[" .. parts .. "]" or "") .. "[" .. E .. "];  ids, weights [n_rows][" .. n_used .. "]"
${cuda.head(d, "kernel/router_topk.cu.lua", does, shapes)}

${cuda.params(d)}

/* A greater number has a greater key; NaN has the least, and 0 is none's. */
ISA_FN uint32_t key_of(float x) {
    const uint32_t b = isa_bits(x + 0.0f); /* -0 becomes 0 */
    if (x != x) {
        return 1;
    }
    return b & 0x80000000u ? ~b : b | 0x80000000u;
}

${cuda.open(d)}
    const uint32_t lane = isa_lane();
    const size_t row = (size_t)isa_cta_x() * ${ROWS} + isa_warp();
    isa_wait_launch();
    isa_let_launch();
    if (row >= p.step->n_rows) {
        return;
    }
    const float *x = p.logits + row * ${parts * E};
    float logit[${per_lane}], prob[${per_lane}];
#pragma unroll
    for (uint32_t i = 0; i < ${per_lane}; i++) {
        const uint32_t e = ${full and "32 * i + lane" or "32 * i + lane < " .. E .. " ? 32 * i + lane : 0"};
        logit[i] = x[e];
% if parts > 1 then
#pragma unroll
        for (uint32_t a = 1; a < ${parts}; a++) {
            logit[i] += x[a * ${E} + e];
        }
% end
    }
% if gating == "sigmoid" then
#pragma unroll
    for (uint32_t i = 0; i < ${per_lane}; i++) {
        prob[i] = isa_div(1.0f, 1.0f + isa_exp(-logit[i]));
    }
% else
    float top = logit[0];
#pragma unroll
    for (uint32_t i = 1; i < ${per_lane}; i++) {
        top = logit[i] > top ? logit[i] : top;
    }
    top = isa_warp_max(top);
    /* As the 256 lanes of docs/numerics.md: lane i has experts i, i + 256, .. */
    float part[8] = {};
#pragma unroll
    for (uint32_t i = 0; i < ${per_lane}; i++) {
        prob[i] = isa_exp(logit[i] + -top);
        if (32 * i + lane < ${E}) {
            part[i % 8] += prob[i];
        }
    }
    const float even = (part[0] + part[4]) + (part[2] + part[6]), odd = (part[1] + part[5]) + (part[3] + part[7]);
    const float all = isa_warp_sum(even + odd);
#pragma unroll
    for (uint32_t i = 0; i < ${per_lane}; i++) {
        prob[i] = isa_div(prob[i], all);
    }
% end
    uint32_t key[${per_lane}];
#pragma unroll
    for (uint32_t i = 0; i < ${per_lane}; i++) {
        const uint32_t e = 32 * i + lane;
% if full then
        key[i] = key_of(prob[i]${bias and " + p.bias[e]" or ""});
        (void)e;
% else
        key[i] = e < ${E} ? key_of(prob[i]${bias and " + p.bias[e]" or ""}) : 0;
% end
    }

    /* Pick j ends in lane j. */
    uint32_t my_id = 0;
    float my_w = 0.0f, sum = 0.0f;
    for (uint32_t j = 0; j < ${n_used}; j++) {
        uint32_t best = 0, first = 0;
#pragma unroll
        for (uint32_t i = 0; i < ${per_lane}; i++) {
            best = key[i] > best ? key[i] : best;
        }
        best = isa_warp_umax(best);
#pragma unroll
        for (uint32_t i = ${per_lane}; i-- > 0;) {
            first = key[i] == best ? ~(32 * i + lane) : first;
        }
        const uint32_t e = ~isa_warp_umax(first);
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t i = 0; i < ${per_lane}; i++) {
            if (32 * i + lane == e) {
                bits = isa_bits(prob[i]);
                key[i] = 0;
            }
        }
        const float w = isa_float(isa_warp_umax(bits));
        sum = j == 0 ? w : sum + w;
        if (lane == j) {
            my_id = e;
            my_w = w;
        }
    }
    if (lane < ${n_used}) {
% if norm then
        my_w = isa_div(my_w, sum > ${hexfloat(6.103515625e-5)} ? sum : ${hexfloat(6.103515625e-5)});
% end
% if scale ~= 0 and scale ~= 1 then
        my_w = my_w * ${hexfloat(scale)};
% end
        p.ids[row * ${n_used} + lane] = (int32_t)my_id;
        p.weights[row * ${n_used} + lane] = my_w != my_w ? isa_float(0x7fc00000u) : my_w;
    }
}
