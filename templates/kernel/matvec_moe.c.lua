local descr = import("lib/descr.lua")
local moe = import("lib/moe_parts.lua")
local product = import("kernel/matmul.c.lua")
local text = import("lib/moe_text.lua")

local function ids(op)
  return { param = "ids", ctype = "const int32_t *", count = "T * " .. op.n_used, below = op.E }
end

local function gated(op)
  local outputs, covers = moe.gated_outputs(op), {}
  for i, o in ipairs(outputs) do covers[i] = moe.pair_cover(op, o.param, "pairs", 1, o.per32, o.width) end
  local d = moe.product(op, { ids(op) }, outputs)
  d.axes = { moe.pairs_axis(op, 1), descr.dim_axis("pieces", ceil_div(op.n, 32), "y") }
  d.grid = { moe.n_pairs(op), tostring(ceil_div(op.n, 32)), "1" }
  d.covers = covers
  return d
end

local function down(op)
  local weights = { param = "weights", ctype = "const float *", count = "T * " .. op.n_used }
  local y = { param = "y", ctype = "float *", count = "T * " .. op.n, bytes = 4, access = "both" }
  local d = moe.product(op, { ids(op), weights }, { y })
  d.axes = { descr.rows_axis("T", 1), descr.dim_axis("strips", ceil_div(op.n, 16), "y") }
  d.grid = { "T", tostring(ceil_div(op.n, 16)), "1" }
  d.covers = { { param = "y", rows = { axis = "rows", tile = 1, n = "T" },
                 cols = { { axis = "strips", first = 0, tile = 16, begin = 0, n = op.n } } } }
  return d
end

function module.describe(op) return op.stage == "gated" and gated(op) or down(op) end

%%template type_functions(quant, K)
% if quant.kind == "int" then
${product.int_atom(quant, K)}

${product.int_strip(quant, K)}
% else
${product.float_atom(quant, K)}

${product.float_strip(quant, K)}
% end

%%template strip(m, K, at, row, out)
% if m.quant.kind == "int" then
${m.type}_strip(${at}, p->x_q + ${row} * ${K}, p->x_d + ${row} * ${K // 32}, p->x_s + ${row} * ${K // 16},
    1, ${out});
% else
${m.type}_strip(${at}, p->x + ${row} * ${K}, 1, ${out});
% end

%%template gated_set(set, K, n)
% local g, u = set.of[1], set.of[2]
/* Strip `strip` of gate and up of ${set.name == "routed" and "expert e" or "the shared expert"} times row `row`. */
static void ${set.name}_gated(const params *p, uint32_t e, size_t row, uint32_t strip, float *act) {
    float gate[1][16] = {{0}}, up[1][16] = {{0}};
    const uint8_t *w_gate = p->${g.param} + (size_t)e * ${g.matrix_bytes} + (size_t)strip * ${g.strip_bytes};
    const uint8_t *w_up = p->${u.param} + (size_t)e * ${u.matrix_bytes} + (size_t)strip * ${u.strip_bytes};
    ${module.strip(g, K, "w_gate", "row", "gate")}
    ${module.strip(u, K, "w_up", "row", "up")}
% if g.factor then
    scale_16(gate[0], p->${g.factor}[e]);
% end
% if u.factor then
    scale_16(up[0], p->${u.factor}[e]);
% end
    gate_16(gate[0], up[0], act);
}

%%template down_set(set, K)
% local m = set.of[1]
/* Strip `strip` of ${set.name == "routed" and "expert e" or "the shared expert"} times what pair `pair` gave. */
static void ${set.name}_down(const params *p, uint32_t e, size_t pair, uint32_t strip, float (*out)[16]) {
    const uint8_t *w = p->${m.param} + (size_t)e * ${m.matrix_bytes} + (size_t)strip * ${m.strip_bytes};
    ${module.strip(m, K, "w", "pair", "out")}
% if m.factor then
    scale_16(out[0], p->${m.factor}[e]);
% end
}

%%template gated_body(op)
% local P, n_pieces = moe.per_row(op), ceil_div(op.n, 32)
    const uint32_t n_pairs = p.step->n_rows * ${P};
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const uint32_t pair = cta % n_pairs, piece = cta / n_pairs, row = pair / ${P}, j = pair % ${P};
        float act[32] = {0};
        for (uint32_t strip = 2 * piece; strip < 2 * piece + 2 && strip < ${ceil_div(op.n, 16)}; strip++) {
% if moe.shared(op) then
            if (j == ${op.n_used}) {
                shared_gated(&p, 0, row, strip, act + strip % 2 * 16);
                continue;
            }
% end
            const uint32_t e = (uint32_t)p.ids[row * ${op.n_used} + j];
            routed_gated(&p, e, row, strip, act + strip % 2 * 16);
        }
        store_gated(&p, pair, 32 * piece, act);
    }

%%template down_body(op)
    const uint32_t n_rows = p.step->n_rows;
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const size_t row = cta % n_rows;
        const uint32_t strip = cta / n_rows;
        isa_f sum[16 / ISA_N];
        for (uint32_t r = 0; r < 16 / ISA_N; r++) {
            sum[r] = isa_set1(0.0f);
        }
        for (uint32_t j = 0; j < ${op.n_used}; j++) {
            const isa_f w = isa_set1(p.weights[row * ${op.n_used} + j]);
            float z[1][16] = {{0}};
            routed_down(&p, (uint32_t)p.ids[row * ${op.n_used} + j], row * ${moe.per_row(op)} + j, strip, z);
            for (uint32_t r = 0; r < 16 / ISA_N; r++) {
                sum[r] = isa_fma(w, isa_load(z[0] + r * ISA_N), sum[r]);
            }
        }
% if moe.shared(op) then
        float z[1][16] = {{0}};
        shared_down(&p, 0, row * ${moe.per_row(op)} + ${op.n_used}, strip, z);
        for (uint32_t r = 0; r < 16 / ISA_N; r++) {
            sum[r] = isa_add(sum[r], isa_load(z[0] + r * ISA_N));
        }
% end
        float *y = p.y + row * ${op.n} + 16 * strip;
        for (uint32_t c = 0; c < 16 && 16 * strip + c < ${op.n}; c += ISA_N) {
            const uint32_t left = ${op.n} - (16 * strip + c), n = left < ISA_N ? left : ISA_N;
            isa_store_n(y + c, isa_add(isa_load_n(y + c, n), sum[c / ISA_N]), n);
        }
    }

%%template
% local d = module.describe(params)
% local gated = stage == "gated"
% local does = gated and "silu(gate x) * (up x) of every pair; a pair and 32 columns a cta"
%   or "y += sum over picks of weight * W x, in their order; a row and 16 columns a cta"
${descr.c_head(d, "kernel/matvec_moe.c.lua", does, moe.shapes(params))}
${text.includes(hw)}

${descr.c_params(d)}

typedef ${d.name}_params params;

% for _, quant in ipairs(moe.types(params)) do
${module.type_functions(quant, K)}

% end
% if moe.any_factor(params) then
${text.scale()}

% end
% if gated then
${text.gate()}

${text.store_gated(outputs, n)}

% end
% for _, set in ipairs(moe.each_set(params)) do
${gated and module.gated_set(set, K, n) or module.down_set(set, K)}

% end
${descr.c_open(d)}
${gated and module.gated_body(params) or module.down_body(params)}
}
