-- Experts for many rows: a cta has a tile of at most 64 pairs of one expert and 64 rows of its weights (of a gated
-- product 32 of gate and 32 of up); a warp 16 of those rows (a strip) by all pairs, in the fragments of isa_mma_s8:
-- lane l has rows l / 4 and l / 4 + 8, and of each 8 pairs numbers 2 (l % 4) and 2 (l % 4) + 1. Which pairs, and of which
-- expert, the map says that moe_sort made; rows of x are gathered by index into shared memory, an atom's columns at a
-- time. Entries of the map that no expert needed end their cta at once.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/moe_matmul.c.lua")
local mma = import("lib/mma_text.lua")
local moe = import("lib/moe_parts.lua")

local PAIRS = moe.TILE
local WARPS = 4
-- Floats of a pair's row of 32 results.
local ACT_STRIDE = 33

-- Strips of each matrix that a cta has.
local function strips_of(op) return op.stage == "gated" and WARPS // 2 or WARPS end

local function carve(op)
  local list = { cuda.smem("pair", PAIRS * 4), cuda.smem("row", PAIRS * 4) }
  local function add(name, bytes) list[#list + 1] = cuda.smem(name, bytes) end
  for _, piece in ipairs(mma.carve(moe.types(op))) do list[#list + 1] = piece end
  for _, piece in ipairs(mma.carve_float(moe.types(op))) do list[#list + 1] = piece end
  if op.stage == "gated" then add("act", PAIRS * ACT_STRIDE * 4) end
  return list
end

function module.describe(op)
  local c = c_kernel.describe(op)
  return cuda.of(c, {
    axes = c.axes, grid = c.grid, block = 32 * WARPS, ctas_per_sm = #moe.types(op) > 1 and 2 or 3, -- for registers of several types
    smem = carve(op), features = { "mma_s8", "f16" },
  })
end

%%lua
local function of_kind(op, kind)
  local list = {}
  for i, quant in ipairs(moe.types(op)) do
    if quant.kind == kind then list[#list + 1] = { quant = quant, number = i - 1 } end
  end
  return list
end

-- C text that calls text(quant) for the types of one kind, of those of the op.
local function parts_of_kind(op, kind, text)
  local list, lines = of_kind(op, kind), {}
  if #moe.types(op) == 1 then return text(list[1].quant) end
  for _, one in ipairs(list) do
    lines[#lines + 1] = "if (type == " .. one.number .. ") {"
    lines[#lines + 1] = indent(text(one.quant), 4)
    lines[#lines + 1] = "}"
  end
  return join(lines, "\n")
end

local function type_number(op, m)
  for i, quant in ipairs(moe.types(op)) do
    if quant.type == m.type then return i - 1 end
  end
  fail("no such type")
end

%%template place_set(op, set)
% local gated, routed = op.stage == "gated", set.name == "routed"
% for i, m in ipairs(set.of) do
% local from = "p." .. m.param .. (routed and " + (size_t)e * " .. m.matrix_bytes or "") .. " + (size_t)strip * " .. m.strip_bytes
% if gated then
${i == 1 and "if (!is_up) {" or "} else {"}
    weights = ${from};
% if #moe.types(op) > 1 then
    type = ${type_number(op, m)};
% end
${i == 2 and "}" or ""}
% else
weights = ${from};
% if #moe.types(op) > 1 then
type = ${type_number(op, m)};
% end
% end
% end

%%template place(op)
% local sets = moe.each_set(op)
const uint8_t *weights = nullptr;
% if #moe.types(op) > 1 then
uint32_t type = 0;
% end
% if #sets == 1 then
${module.place_set(op, sets[1])}
% else
if (e < ${op.E}) {
    ${module.place_set(op, sets[1])}
} else {
    ${module.place_set(op, sets[2])}
}
% end

%%template int_atom(op, block)
isa_barrier();
${mma.stage(moe.types(op), op.K, block, "n_pairs", "(size_t)row_of[t]")}
isa_barrier();
if (here) {
    ${parts_of_kind(op, "int", function(quant) return quant.type .. "_part(weights, a, x, n_pairs, acc);" end)}
}

%%template float_atom(op, block)
% local function part(quant) return quant.type .. "_part(weights, a, begin, width, x_f, n_pairs, acc);" end
${mma.float_atom(op.K, block, "n_pairs", "(size_t)row_of[t]", parts_of_kind(op, "float", part))}

%%template gated_end(op, block)
% local n = op.n
    /* The warps of up hand theirs over; those of gate put what comes of both in its place. */
    float *mine = act + isa_lane() / 4 + w % 2 * 16;
    if (is_up) {
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            float *v = &mine[(k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2) * ${ACT_STRIDE} + k % 4 / 2 * 8];
            *v = ${moe.scaled(op, "y[k / 4][k % 4]", 2, "e")};
        }
    }
    isa_barrier();
    if (!is_up) {
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            float *v = &mine[(k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2) * ${ACT_STRIDE} + k % 4 / 2 * 8];
            *v = isa_silu(${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")}) * *v;
        }
    }
    isa_barrier();

    /* A warp a pair's row, a lane a column. */
    const uint32_t column = 32 * piece + isa_lane();
    for (uint32_t t = w; t < n_pairs; t += ${WARPS}) {
        const float v = ${n % 32 == 0 and "" or "column >= " .. n .. " ? 0.0f : "}act[t * ${ACT_STRIDE} + isa_lane()];
        const size_t pair = pair_of[t];
% if moe.out(op, "f32") then
% if n % 32 == 0 then
        p.y[pair * ${n} + column] = v;
% else
        if (column < ${n}) {
            p.y[pair * ${n} + column] = v;
        }
% end
% end
% if moe.out(op, "q8") then
        isa_q8_group(v, p.y_q + pair * ${n} + column, p.y_d + pair * ${n // 32} + piece,
            p.y_s + pair * ${n // 16} + 2 * piece);
% end
    }

%%template down_end(op)
#pragma unroll
    for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
        const uint32_t t = k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2;
        const uint32_t column = 16 * strip + isa_lane() / 4 + k % 4 / 2 * 8;
        if (t < n_pairs && column < ${op.n}) {
            p.y[(size_t)pair_of[t] * ${op.n} + column] = ${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")};
        }
    }

%%template
% local d = module.describe(params)
% local P, gated = moe.per_row(params), stage == "gated"
% local int, float = moe.has_kind(params, "int"), moe.has_kind(params, "float")
% local at, n_strips = cuda.smem_offsets(d.smem), strips_of(params)
% local does = gated and "silu(gate x) * (up x) of every pair" or "W x of every pair"
% does = does .. "; a tile of at most " .. PAIRS .. " pairs of an expert by 64 rows of its weights a cta"
${cuda.head(d, "kernel/moe_matmul.cu.lua", does, moe.shapes(params))}

${cuda.params(d)}

% if int then
${mma.staged_type(moe.types(params))}

% end
% for _, quant in ipairs(moe.types(params)) do
${quant.kind == "int" and mma.int_type(quant, K, moe.types(params), at) or mma.float_type(quant, K)}

% end
${cuda.open(d)}
    const uint32_t piece = isa_cta_y(), w = isa_warp();
    uint32_t *pair_of = (uint32_t *)(void *)isa_smem(${at.pair}), *row_of = (uint32_t *)(void *)isa_smem(${at.row});
    ${book.fill(moe.types(params), at, d.block)}
    isa_wait_launch();
    isa_let_launch();
    const isa_x4 entry = isa_load_x4(p.map + (size_t)isa_cta_x() * ${moe.ENTRY});
    const uint32_t e = entry.w[0], n_pairs = entry.w[2];
    if (n_pairs == 0) {
        return;
    }
    if (isa_thread() < ${PAIRS}) {
        const uint32_t t = isa_thread() < n_pairs ? isa_thread() : 0;
        const uint32_t pair = (uint32_t)p.pairs[(size_t)entry.w[1] + t];
        pair_of[isa_thread()] = pair;
        row_of[isa_thread()] = pair${gated and " / " .. P or ""};
    }
    isa_barrier();
% if gated then
    const bool is_up = w >= ${n_strips};
% end
    const uint32_t strip = ${n_strips} * piece + w % ${n_strips};
    const bool here = ${n % (16 * n_strips) == 0 and "true" or "16 * strip < " .. n};
    ${module.place(params)}
% if int then
    ${mma.staged_x(moe.types(params), at)}
% end
% if float then
    float *x_f = (float *)(void *)isa_smem(${at.f});
% end
% if gated then
    float *act = (float *)(void *)isa_smem(${at.act}); /* [pair][${ACT_STRIDE}] */
% end
    float y[${PAIRS // 8}][4] = {};
#pragma unroll 1
    for (uint32_t a = 0; a < ${ceil_div(K, 256)}; a++) {
        float acc[${PAIRS // 8}][4] = {};
% if int then
        ${module.int_atom(params, d.block)}
% end
% if float then
        ${module.float_atom(params, d.block)}
% end
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            y[k / 4][k % 4] = a == 0 ? acc[k / 4][k % 4] : y[k / 4][k % 4] + acc[k / 4][k % 4];
        }
    }

% if gated then
${module.gated_end(params, d.block)}
% else
${module.down_end(params)}
% end
}
